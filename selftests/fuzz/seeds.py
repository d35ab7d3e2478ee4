#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Seeds for the fuzzers, out of the messages and batches that the unit tests compare with.

    seeds.py FUZZER FOLDER
"""
import os
import struct
import sys

UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit")
# the version from which an answer's header has tagged fields; ApiVersions' never has
FLEXIBLE = {0: 9, 1: 12, 2: 6, 3: 9, 10: 3, 18: 99, 19: 5, 20: 4}


def lines(name):
    with open(os.path.join(UNIT, name)) as f:
        return [line.split() for line in f if not line.startswith("#")]


def fuzz_codec():
    for key, version, side, bare, raw in lines("golden_messages.txt"):
        key, version, raw = int(key), int(version), bytes.fromhex(raw)
        if side == "q":
            yield bytes([0, 0, 2]) + raw
            continue
        head = 4 + (version >= FLEXIBLE[key])
        yield bytes([key, version, 1]) + raw[head:]


def fuzz_records():
    for _, raw in lines("golden_batches.txt"):
        raw = bytes.fromhex(raw)
        yield b"\x00" + raw
        yield b"\x01" + raw
        yield b"\x05" + raw
        yield b"\x81" + raw
    # bare snappy: a literal only
    records = bytes.fromhex("0e000000026b02760000")[:8]
    block = bytes([len(records), (len(records) - 1) << 2]) + records
    head = struct.pack(">qiibIhiqqqhii", 0, 49 + len(block), -1, 2, 0, 2, 0, 0, 0, -1, -1, -1, 1)
    yield b"\x01" + head + block


def golden():
    return [bytes.fromhex(raw) for _, raw in lines("golden_batches.txt")]


def fuzz_batch():
    yield from golden()


def fuzz_record():
    for raw in golden():
        yield raw
        yield b"\x01" + raw[1:]


def fuzz_log():
    log, index, times, offset = b"", b"", b"", 0
    for raw in golden():
        last = offset + struct.unpack(">i", raw[23:27])[0]
        index += struct.pack(">II", last, len(log)) if log else b""
        times += struct.pack(">qI", 1000 + offset, last)
        log += struct.pack(">q", offset) + raw[8:]
        offset = last + 1
        yield struct.pack(">HHH", len(index), len(times), 0) + index + times + log
        yield struct.pack(">HHH", 0, 0, 0) + log[:-3]


def main():
    name, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for i, seed in enumerate(globals().get(name, lambda: [])()):
        with open(os.path.join(folder, f"seed-{i:04}"), "wb") as f:
            f.write(seed)


if __name__ == "__main__":
    sys.exit(main())
