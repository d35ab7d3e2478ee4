#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Seeds for the fuzzers, out of the messages and batches that the unit tests compare with, and
what earlier runs have found (corpus/FUZZER.hex, see corpus.py).

    seeds.py FUZZER FOLDER [--alone]
"""
import gzip
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
UNIT = os.path.join(HERE, "..", "unit")
# the version from which an answer's header has tagged fields; ApiVersions' never has
FLEXIBLE = {0: 9, 1: 12, 2: 6, 3: 9, 10: 3, 18: 99, 19: 5, 20: 4, 21: 2, 23: 4}


def lines(name):
    with open(os.path.join(UNIT, name)) as f:
        return [line.split() for line in f if not line.startswith("#")]


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


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


def varint(v):
    v, out = v << 1 ^ v >> 63, b""
    while v >= 0x80:
        out += bytes([v & 0x7f | 0x80])
        v >>= 7
    return out + bytes([v])


def record(delta, key=b"k", value=b"v", time=0, headers=()):
    def text(b):
        return varint(-1) if b is None else varint(len(b)) + b
    body = b"\0" + varint(time) + varint(delta) + text(key) + text(value) + varint(len(headers))
    body += b"".join(text(k) + text(v) for k, v in headers)
    return varint(len(body)) + body


def batch(records, last, attributes=0, producer=-1, base=0, time=1000):
    body = b"".join(records)
    crc = struct.pack(">hiqqqhii", attributes, last, time, time, producer, 0, 0, len(records)) + body
    return struct.pack(">qiibI", base, 49 + len(body), 3, 2, crc32c(crc)) + crc


def fuzz_log():
    log, index, times, offset = b"", b"", b"", 0
    for raw in golden():
        last = offset + struct.unpack(">i", raw[23:27])[0]
        index += struct.pack(">II", last, len(log)) if log else b""
        times += struct.pack(">qI", 1000 + offset, last)
        log += struct.pack(">q", offset) + raw[8:]
        offset = last + 1
        yield struct.pack(">HHHH", len(index), len(times), 0, 0) + index + times + log
        yield struct.pack(">HHHH", 0, 0, 0, 0) + log[:-3]
        # with the CRCs put right; behind a clean mark (1) and without it, and Kafka's (8)
        for flags, epochs in (1 | 4, b"0\n1\n0 0\n"), (4, b"0\n2\n0 0\n3 7\n"), (8, b""):
            state = b"plogstat" + struct.pack("<IIqqqqqqqqqiq", 1, flags, 1, 0, offset, 0, offset, 0,
                                              len(log), len(log), 1600000000000, 0, 0)
            state = state.ljust(140, b"\0") + struct.pack("<qqqq", 0, 0, 0, 0)
            state = state.ljust(512, b"\0")
            yield struct.pack(">HHHH", 0x8000 | len(index), len(times), 0x8000 | len(state),
                              len(epochs)) + index + times + state + epochs + log
    # a transaction and its end
    txn = batch([record(0)], 0, 0x10, 7) + \
        batch([record(0, b"\0\0\0\1", b"\0\0\0\0\0\5")], 0, 0x30, 7, 1) + \
        batch([record(0)], 0, 0x10, 8, 2) + batch([record(0, b"\0\0\0\0", b"\0")], 0, 0x30, 8, 3)
    yield struct.pack(">HHHH", 0x8000, 0, 0, 0) + txn


def fuzz_walk():
    # flags: right 1, compress 2, ascend 4, filter 8 16, codec 32 64 128
    def seed(flags, script, log, batches):
        return bytes([flags, len(script), len(log)]) + script + log + batches
    some = [record(0), record(1, None, b"", headers=[(b"h", None), (b"", b"x" * 90)]), record(4)]
    some = [batch(some, 5, codec) for codec in range(5)]
    for raw in golden():
        for codec in range(6):
            yield seed(codec << 5, b"", b"", raw)
    for raw in some:
        for codec in 0, 1, 3:
            yield seed(codec << 5 | 7, b"", b"", raw + some[0])
    # next, out of memory, from, skip, the same bytes or fewer
    script = bytes([6, 0x04, 0x1c, 1, 5, 6, 0x2c, 0, 0x53, 0, 0x3e, 1, 0xc0, 6, 0x0b, 1, 2, 6, 6, 1, 0])
    yield seed(7, script, b"", b"".join(some))
    yield seed(7, script, b"", b"".join(golden()) + b"x" * 20)
    # a record that is none behind one that is
    yield seed(5, bytes([6, 6, 6, 1, 0x80 | 2, 6]), b"", batch([record(0), b"\1"], 2) + some[0])
    # gzip in two members; zstd with windows of 1 KiB, 16 MiB, and one that is too large
    two = record(0) + record(1)
    packed = [gzip.compress(two[:9], mtime=0) + gzip.compress(two[9:], mtime=0)]
    packed += [bytes([0x28, 0xb5, 0x2f, 0xfd, 0, window, len(two) << 3 | 1, 0, 0]) + two
               for window in (0, 0x70, 0x98)]
    for codec, p in zip((1, 4, 4, 4), packed):
        yield seed(1, b"", b"", batch([p[:5], p[5:]], 1, codec))
    # a number of headers that are not there
    yield seed(5, b"", b"", batch([b"\x12\0\0\0\1\1" + varint(1 << 25)], 0))
    # more than the library's window at once, and a record that is
    long = [b"".join(record(i, value=b"x" * n) for i, n in enumerate(sizes))
            for sizes in ((40000, 9, 30000, 50000), (150000, 3))]
    for body, n in zip(long, (4, 2)):
        p = gzip.compress(body, mtime=0)
        yield seed(1, b"", b"", batch([p[:9]] + [p[9:]] + [b""] * (n - 2), n - 1, 1))
    # a sum of times that wraps
    yield seed(1 | 2 << 5, b"", b"", batch([record(0, time=-(1 << 62))], 0, time=-(3 << 61)))
    # transactions: one aborted, one committed, one that never ended; a marker
    txn = [batch([record(0)], 0, 0x10 | i % 3, 1 + i % 3) for i in range(8)]
    txn.insert(5, batch([record(0, b"\0\0\0\0", b"\0" * 6)], 0, 0x30, 1))
    log = bytes([0xf0 | 5, 0x80 | 13, 9, 4 | 3, 0x10 | 6, 10, 0x40 | 5])
    for kind in 1, 2, 3:
        for answers in b"", bytes([0x6e, 1, 0, 0xf1, 0x6e, 0xe3, 0x25, 3, 0x1e, 0xf0, 0x41]):
            yield seed(7 | kind << 3, answers, log, b"".join(txn))
    # so many markers that some are forgotten
    yield seed(0x11, bytes(v for i in range(0, 256, 7) for v in (0x45, i)), bytes([5, 10] * 120), b"")


def fuzz_text():
    yield b"\x00cleanup.policy=compact\nretention.ms = 100\\\n  0\n# x\nkey:\\u0041\n"
    yield b"\x010\n2\nt 0 17\nu-x 3 18\n"
    yield b"\x010\n2\nt 0 -1\nu-x 3 18\n"
    yield b"\x010\n3\nt 2147483648 17\n"
    yield b"\x02node.id=1\nlog.dirs=/tmp/x\nlisteners=PLAINTEXT://127.0.0.1:9092\n"
    yield b"\x03AAAAAAAAAAAAAAAAAAAAAQ"
    yield b"\x04version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=1\n" \
        b"directory.id=AAAAAAAAAAAAAAAAAAAAAg\n"
    yield b"\x05topic.id=AAAAAAAAAAAAAAAAAAAAAQ\npartitions=3\nuid=0\ngid=7\nmode=0640\n" \
        b"node=true\npartition.1.mode=0600\nretention.ms=1000\n"
    yield b"\x06version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n"
    entries = struct.pack(">qhiqiqiq", 4000, 1, 9, 17, 9, 1700000000000, -1, -1) \
        + struct.pack(">qhiqiqiq", 4001, 0, -1, -1, 0, -1, 2, 12)
    body = struct.pack(">i", 2) + entries
    yield b"\x07" + struct.pack(">hI", 1, crc32c(body)) + body
    yield b"\x07" + struct.pack(">hI", 1, crc32c(b"\0" * 4)) + b"\0" * 4
    yield b"\x17" + struct.pack(">hI", 1, 0) + body
    yield b"\x17" + struct.pack(">hI", 1, 0) + struct.pack(">i", 3) + entries
    # each key of the sample configuration, then all of them; those that are listed
    with open(os.path.join(UNIT, "..", "..", "daemon", "plogd.properties")) as f:
        keys = [line.lstrip("#") for line in f if re.match("#?[a-z0-9.]+=", line)]
    for line in keys:
        yield b"\x02" + line.encode()
    yield b"\x02" + "".join(keys).encode()
    yield b"\x02listeners=" + b",".join(b"L%d://h:1" % i for i in range(20)) + \
        b"\nlistener.security.protocol.map=" + b",".join(b"L%d:PLAINTEXT" % i for i in range(20)) + \
        b"\nno.such.key=1\n"
    yield b"\x02listeners=A://[::1]:1, B://:2\nlistener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\n" \
        b"advertised.listeners=A://h:3,B://i:4\nplog.engine=process\nauto.create.topics.enable=false\n"

    def parts(*all_parts):
        return b"".join(struct.pack(">H", len(part)) + part for part in all_parts)
    # in a partition's folder: what Kafka has left, and what a compaction has
    log = [batch([record(0), record(1)], 4), batch([record(0)], 0, base=5)]
    point = b"0\n1\nk 0 3\n"
    yield b"\x08" + parts(point, point, point, b"0\n2\n0 0\n7 3\n", log[0], log[1])
    yield b"\x08" + parts(b"", point, b"", b"", log[0], log[1], log[0] + log[1], b"")
    yield b"\x08" + parts(b"", point, point, b"0\n0\n", log[0], log[1], log[0], log[1], log[0])
    yield b"\x08" + parts(b"", point, point, b"", log[0], log[1], b"", log[1], log[0])
    yield b"\x08" + parts(point, b"", b"", b"", b"\0" * 16 + b"\1" * 30, log[1])
    yield b"\x08" + parts(point, b"", b"", b"0\n2\n3 0\n2147483648 1\n", log[0])
    for flags in 1, 4, 5:
        state = (b"plogstat" + struct.pack("<IIqqqq", 1, flags, 1, 0, 6, 0)).ljust(512, b"\0")
        yield b"\x19" + parts(state, log[0], log[1], log[0], log[1])
        yield b"\x19" + parts(state, log[0], log[1], log[0] + log[1])
    yield b"\x09" + parts(b"x", log[0], log[1], log[0][:-1])


def fuzz_relay():
    ask = [
        '{"v":1,"command":"topic-create","topic":"orders","partitions":3,"uid":0,"gid":7,'
        '"mode":"0640","node":true,"config":{"retention.ms":"1000","cleanup.policy":"compact"}}',
        '{"v":1,"command":"topic-alter","topic":"orders","partitions":5,"partition":2,'
        '"config":{"segment.bytes":"1048576"},"unset":["retention.ms"]}',
        '{"v":1,"command":"topic-list","after":"a"}',
        '{"v":1,"command":"topic-list"}',
        '{"v":1,"command":"topic-describe","topic":"orders"}',
        '{"v":1,"command":"topic-list","after":"long.2"}',
        '{"v":1,"command":"topic-describe","topic":"longer"}',
        '{"v":1,"command":"topic-describe","topic":""}',
        '{"v":1,"command":"topic-delete","topic":"orders"}',
        '{"v":1,"command":"broker-describe"}',
        '{"v":2}', '[]', '{"v":1,"command":"x\\u0000y"}',
        '{"v":1,"command":"topic-create","topic":"n","config":{"retention.ms":"1\\u00002"}}',
    ]
    topic = ('{"name":"orders","id":"AAAAAAAAAAAAAAAAAAAAAQ","partitions":3,"uid":0,"gid":0,'
             '"mode":"0600","node":true,"config":{"retention.ms":"1000"},'
             '"overrides":[{"partition":1,"uid":7,"gid":8,"mode":"0660"}]}')
    yield from (b"\x00" + text.encode() for text in ask)
    one = ('{"ok":true,"topic":%s}' % topic).encode()
    page = '{"ok":true,"topics":[%s]%s}'
    yield b"\x01" + (page % (topic, ',"more":true')).encode() + b"\xff" + (page % ("", "")).encode()
    for command in 3, 5, 7:
        yield bytes([command]) + one
    yield b'\x07{"ok":true,"topic":{"name":"orders","partitions":1,"uid":0,"gid":0,"mode":"0600","config":[1]}}'
    yield b'\x09{"ok":true}'
    yield b'\x09{"ok":false,"code":3,"error":"UNKNOWN_TOPIC_OR_PARTITION","message":"There is none."}'


    # messages: of each set of attributes every one, as a number or a text; an error and its words
    def nla(kind, payload):
        return struct.pack("=HH", 4 + len(payload), kind) + payload.ljust(-len(payload) % 4 + len(payload), b"\0")

    def message(kind, command, flags, payload):
        return struct.pack(">BBBH", kind, command, flags, len(payload)) + payload
    for side in b"\x80", b"\x81":
        for value in b"\1\0\0\0", b"\2" + b"\0" * 7, b"orders\0", b"\3":
            yield side + b"".join(
                message(0, command, 0, b"\0\1\0\0" + nla(nest | 0x8000, b"".join(
                    nla(kind, value) for kind in range(1, 45))))
                for nest, command in zip(range(1, 9), (0, 1, 2, 3, 4, 5, 6, 7)))
        # of the relay, and an event of each kind
        relay = nla(1, struct.pack("=I", 4711)) + nla(2, struct.pack("=I", 7)) + nla(3, b'{"v":1}')
        yield side + b"".join(message(0, command, 0, b"\0\1\0\0" + b"".join(
            nla(nest | 0x8000, relay) for nest in range(1, 9))) for command in range(40))
        error = struct.pack("=iIHHII", -22, 16, 0x21, 1, 1, 0)
        yield side + message(1, 0, 3, error + nla(1, b"no such topic\0")) \
            + message(1, 0, 2, error + nla(1, b"no such topic\0")) \
            + message(2, 0, 2, struct.pack("=i", -4) + nla(1, b"interrupted\0"))


def fuzz_epochs():
    yield b"0\n2\n0 0\n3 17\n"
    yield b"0\n0\n"
    yield b"0\n3\n0 0\n2 100\n5 250\n"
    yield b"0\n2\n7 0\n2147483647 9223372036854775807\n"
    yield bytes([2, 0, 0, 0, 0, 2, 2, 0, 100, 0, 2, 5, 0, 250, 0, 1, 0, 0, 120, 0, 0, 0, 0, 200, 0])


def fuzz_swap():
    # in the run of offsets 3 to 8; one that reaches over it; two that cross
    one = golden()[0]
    one = struct.pack(">q", 3) + one[8:23] + struct.pack(">i", 0) + one[27:57] + struct.pack(">i", 1) \
        + one[61:]
    two = struct.pack(">q", 5) + one[8:]
    yield b"\x01" + one
    yield b"\x01" + one + two
    yield b"\x01" + two + one
    yield b"\x00" + one + two
    yield b"\x01" + one[:23] + struct.pack(">i", 5) + one[27:]
    yield b"\x01" + one[:23] + struct.pack(">i", 6) + one[27:]
    yield b"\x01" + one + two[:-3]
    yield b"\x01"


def kept(name):
    path = os.path.join(HERE, "corpus", name + ".hex")
    if os.path.exists(path):
        with open(path) as f:
            yield from (bytes.fromhex(line) for line in f if not line.startswith("#"))


def main():
    name, folder = sys.argv[1:3]
    os.makedirs(folder, exist_ok=True)
    sources = [("seed", globals().get(name, lambda: []))]
    if "--alone" not in sys.argv:
        sources.append(("kept", lambda: kept(name)))
    for kind, source in sources:
        for i, seed in enumerate(source()):
            with open(os.path.join(folder, f"{kind}-{i:04}"), "wb") as f:
                f.write(seed)


if __name__ == "__main__":
    sys.exit(main())
