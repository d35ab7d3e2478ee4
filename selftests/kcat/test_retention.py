#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The steps of test_retention.sh that speak Kafka's protocol.

    test_retention.py HOST:PORT

Reads a step a line, "NAME [ARGUMENT]...", each on a connection of its own, and writes what
it found and "status N". One process for all: to start one takes a second in a guest.
"""
import sys
import time
import traceback

from wire import Conn, address, batch, same, values

C = None
DAY = 24 * 3600 * 1000
NOW = int(time.time() * 1000)
NOON = NOW // DAY * DAY + DAY // 2 - DAY


def fill(topic, first, last, age_ms):
    """Records @first to @last, of 600 bytes and a batch each, so many milliseconds old."""
    for i in range(int(first), int(last) + 1):
        same(C.append(topic, batch([b"%05d" % i + b"." * 600], times=[NOW - int(age_ms)])), i)


def create(topic, *config):
    C.create(topic, 1, dict(c.split("=", 1) for c in config))


def start(topic, wanted, seconds=20):
    """Wait until the log starts there, and see that it reads from there on."""
    end = time.time() + float(seconds)
    while True:
        at = C.list_offsets(5, topic, -2)["offset"]
        if at >= int(wanted) or time.time() > end:
            break
        time.sleep(0.05)
    same(at, int(wanted))
    latest = C.list_offsets(5, topic, -1)["offset"]
    got, offset = [], at
    while offset < latest:
        p = C.read(topic, offset)
        same((p["error"], p["start"]), (0, at))
        got += [(o, int(v[:5])) for o, v in values(p["data"]) if o >= offset]
        offset = got[-1][0] + 1
    same(got, [(o, o) for o in range(at, latest)])
    if at:
        same(C.read(topic, at - 1)["error"], 1)
    print(latest)


def stamped(topic, *ages):
    """A record for each age, in seconds before noon of yesterday."""
    for age in ages:
        C.append(topic, batch([b"." * 600], times=[NOON - int(age) * 1000]))


def largest(topic):
    """The record with the largest timestamp (KIP-734): error, offset, age."""
    p = C.list_offsets(7, topic, -3)
    print(p["error"], p["offset"], (NOON - p["time"]) // 1000 if p["offset"] >= 0 else p["time"])


def delete(topic, offset):
    print(*C.delete_records(2, topic, [(0, int(offset))])[0])


STEPS = {"create": create, "fill": fill, "start": start, "delete": delete, "stamped": stamped,
         "largest": largest}

for line in sys.stdin:
    name, *arguments = line.split()
    status = 0
    try:
        C = Conn(address())
        STEPS[name](*arguments)
        C.close()
    except (Exception, SystemExit):
        traceback.print_exc()
        status = 1
    print("status", status, flush=True)
