#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The steps of test_stable.sh.

    test_stable.py HOST:PORT fill | rewrite FOLDER | bounds LSO | append | ends | deleted
"""
import os
import struct
import sys
import time

import device
from wire import Conn, FETCH, address, batch, crc32c, parse_fetch, same, values

TOPIC, HELD = "held", 5
PRODUCER, TRANSACTIONAL = 4711, 0x10
# A Fetch that is not woken comes back after this long; one that is, long before the half.
WAIT_MS = 20000


def fill():
    c = Conn(address())
    c.create(TOPIC)
    for i in range(10):
        same(c.append(TOPIC, batch([b"record %d" % i])), i)


def rewrite(folder):
    """Record HELD becomes one of a transaction, and nothing is left that says how it stopped."""
    with open(f"{folder}/{0:020}.log", "r+b") as f:
        log = bytearray(f.read())
        at = 0
        while at < len(log):
            base, size = struct.unpack_from(">qi", log, at)
            end = at + 12 + size
            if base == HELD:
                struct.pack_into(">h", log, at + 21, TRANSACTIONAL)
                struct.pack_into(">qhi", log, at + 43, PRODUCER, 0, 0)
                struct.pack_into(">I", log, at + 17, crc32c(log[at + 21:end]))
            at = end
        f.seek(0)
        f.write(log)
    if os.path.exists(f"{folder}/plog.state"):
        os.unlink(f"{folder}/plog.state")


def bounds(stable):
    c, stable = Conn(address(), timeout=30), int(stable)
    end = c.list_offsets(5, TOPIC, -1)["offset"]
    same(c.list_offsets(5, TOPIC, -1, isolation=1)["offset"], stable, "latest, committed")
    start = c.list_offsets(5, TOPIC, -2)["offset"]
    p = c.read(TOPIC, start)
    same((p["hw"], p["lso"]), (end, stable))
    same([o for o, _ in values(p["data"])], list(range(start, end)))
    p = c.read(TOPIC, start, isolation=1)
    same([o for o, _ in values(p["data"])], list(range(start, stable)))


class Parked:
    """A Fetch of committed records from @offset on that waits."""

    def __init__(self, offset):
        self.c = Conn(address(), timeout=60)
        body = self.c.fetch_body(11, [(TOPIC, 0, offset)], wait=WAIT_MS, isolation=1)
        self.sent = self.c.send(FETCH, 11, body)
        time.sleep(0.5)
        self.began = time.monotonic()

    def answered(self, seconds):
        self.c.s.settimeout(seconds)
        try:
            found = bool(self.c.s.recv(1, 2))      # MSG_PEEK
        except TimeoutError:
            found = False
        self.c.s.settimeout(60)
        return found

    def answer(self):
        p = parse_fetch(self.c.receive(FETCH, 11, self.sent), 11)["parts"][(TOPIC, 0)]
        took = time.monotonic() - self.began
        if took > WAIT_MS / 2000:
            raise AssertionError(f"nobody woke it: {took:.1f} s")
        return p


def append():
    parked = Parked(HELD)
    Conn(address()).append(TOPIC, batch([b"later"]))
    same(parked.answered(1), False)
    parked.c.close()


def ends():
    """What the coordinator of transactions will do, by the hands of this test."""
    parked = Parked(HELD)
    device.set_unstable(TOPIC, 0, -1)
    p = parked.answer()
    same((p["error"], p["lso"]), (0, p["hw"]))
    same([o for o, _ in values(p["data"])], list(range(HELD, p["hw"])))


def deleted():
    c = Conn(address())
    parked = Parked(HELD)
    same(c.delete_records(2, TOPIC, [(0, 8)]), {0: (8, 0)})
    p = parked.answer()
    same((p["error"], p["start"], p["lso"]), (1, 8, 8))


steps = {"fill": fill, "rewrite": rewrite, "bounds": bounds, "append": append, "ends": ends,
         "deleted": deleted}
steps[sys.argv[2]](*sys.argv[3:])
