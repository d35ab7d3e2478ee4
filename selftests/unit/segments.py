#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads the segments of a partition folder with a decoder of its own and says what is wrong.

    segments.py FOLDER [--live]

Checks what Kafka's dump tool checks, and more: every batch whole, CRC right, offsets rising
and inside their segment; every index entry names the last offset of the batch at its position;
every time index entry the largest timestamp so far and the last offset of the first batch that
has it; entries rise; the last time index entry is the segment's largest timestamp (not with
--live, of a log that is open). Exit status 1 after a fault.
"""
import os
import struct
import sys

faults = 0


def fault(text):
    global faults
    faults += 1
    print(f"# {text}")


def table():
    t = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        t.append(i)
    return t


TABLE = table()


def crc32c(data):
    c = 0xFFFFFFFF
    for byte in data:
        c = TABLE[(c ^ byte) & 0xFF] ^ c >> 8
    return c ^ 0xFFFFFFFF


def batches(name, base, raw, expected):
    """Yields (position, last offset, largest timestamp) of each batch."""
    pos = 0
    while pos < len(raw):
        if len(raw) - pos < 61:
            return fault(f"{name}: {len(raw) - pos} bytes behind the last batch")
        offset, length, _, magic, crc, _, delta, _, top, _, _, _, count = struct.unpack_from(
            ">qiibIhiqqqhii", raw, pos)
        end = pos + 12 + length
        if magic != 2 or length < 49 or end > len(raw):
            return fault(f"{name}: no whole batch at {pos}")
        if crc32c(raw[pos + 21:end]) != crc:
            fault(f"{name}: wrong CRC at {pos}")
        if offset < expected or offset < base:
            fault(f"{name}: offset {offset} at {pos} where {expected} is the least")
        if count <= 0 or delta < count - 1:
            fault(f"{name}: {count} records and last offset delta {delta} at {pos}")
        expected = offset + delta + 1
        yield pos, offset + delta, top
        pos = end


def read(folder, name):
    try:
        with open(os.path.join(folder, name), "rb") as f:
            return f.read()
    except FileNotFoundError:
        fault(f"{name} is missing")
        return b""


def check(folder, base, live, expected):
    name = f"{base:020}"
    found = list(batches(name + ".log", base, read(folder, name + ".log"), expected))
    last_at = {pos: last for pos, last, _ in found}
    tops, top = {}, -1
    for _, last, t in found:
        if t > top:
            top = t
            tops[t] = last

    raw = read(folder, name + ".index")
    if len(raw) % 8:
        fault(f"{name}.index: size {len(raw)} is no multiple of 8")
    before = (-1, -1)
    for at in range(0, len(raw) - 7, 8):
        relative, pos = struct.unpack_from(">II", raw, at)
        if last_at.get(pos) != base + relative:
            fault(f"{name}.index: entry {at // 8}: offset {base + relative} is not at {pos}")
        if relative <= before[0] or pos <= before[1]:
            fault(f"{name}.index: entry {at // 8} does not rise")
        before = (relative, pos)

    raw = read(folder, name + ".timeindex")
    if len(raw) % 12:
        fault(f"{name}.timeindex: size {len(raw)} is no multiple of 12")
    before = (-1, -1)
    for at in range(0, len(raw) - 11, 12):
        time, relative = struct.unpack_from(">qI", raw, at)
        if tops.get(time) != base + relative:
            fault(f"{name}.timeindex: entry {at // 12}: {time} at {base + relative}, "
                  f"the log says {tops.get(time)}")
        if time <= before[0] or relative < before[1]:
            fault(f"{name}.timeindex: entry {at // 12} does not rise")
        before = (time, relative)
    if not live and top >= 0 and before[0] != top:
        fault(f"{name}.timeindex: ends with {before[0]}, the largest is {top}")
    return len(found), found[-1][1] + 1 if found else max(base, expected)


def main():
    folder = sys.argv[1]
    bases = sorted(int(n[:20]) for n in os.listdir(folder)
                   if len(n) == 24 and n.endswith(".log") and n[:20].isdigit())
    count, expected = 0, 0
    if not bases:
        fault(f"{folder}: no segment")
    for base in bases:
        n, expected = check(folder, base, "--live" in sys.argv[2:], expected)
        count += n
    print(f"# {len(bases)} segments, {count} batches, log end {expected}, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
