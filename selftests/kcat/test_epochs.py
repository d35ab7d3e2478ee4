#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The steps of test_epochs.sh: test_epochs.py HOST:PORT fill | rewrite FOLDER | ask"""
import os
import struct
import sys

from wire import Conn, address, batch, same

TOPIC, ENDS = "led", ((100, 0), (250, 2), (300, 5))


def fill():
    c = Conn(address())
    c.create(TOPIC)
    for i in range(30):
        c.append(TOPIC, batch([b"record"] * 10, times=[1000 + i] * 10))
    same(c.list_offsets(4, TOPIC, -1)["offset"], 300)


def rewrite(folder):
    """The epoch of a batch is not in its CRC: what the leader of that time had written."""
    with open(f"{folder}/{0:020}.log", "r+b") as f:
        log = bytearray(f.read())
        at = 0
        while at < len(log):
            base, size = struct.unpack(">qi", log[at:at + 12])
            epoch = next(epoch for end, epoch in ENDS if base < end)
            log[at + 12:at + 16] = struct.pack(">i", epoch)
            at += 12 + size
        f.seek(0)
        f.write(log)
    for name in "plog.state", "leader-epoch-checkpoint":
        if os.path.exists(f"{folder}/{name}"):
            os.unlink(f"{folder}/{name}")


def ask():
    c = Conn(address())
    for version in 2, 3, 4:
        for asked, answer in ((0, (0, 100)), (1, (0, 100)), (2, (2, 250)), (3, (2, 250)),
                              (5, (5, 300)), (6, (-1, -1)), (-1, (-1, -1))):
            same(c.epoch_end(version, TOPIC, asked), (0, *answer), f"version {version}: {asked}")
            same(c.epoch_end(version, TOPIC, asked, current=5), (0, *answer))
        same(c.epoch_end(version, TOPIC, 0, current=4), (74, -1, -1))
        same(c.epoch_end(version, TOPIC, 0, current=6), (75, -1, -1))
    same(c.list_offsets(4, TOPIC, -1)["epoch"], 5, "latest")
    same(c.list_offsets(4, TOPIC, -2)["epoch"], 0, "earliest")
    for i, epoch in ((0, 0), (9, 0), (10, 2), (24, 2), (25, 5), (29, 5)):
        p = c.list_offsets(4, TOPIC, 1000 + i)
        same((p["offset"], p["epoch"]), (10 * i, epoch), f"time {1000 + i}")


steps = {"fill": fill, "rewrite": rewrite, "ask": ask}
steps[sys.argv[2]](*sys.argv[3:])
