#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bad input at the broker's port: that connection ends with one line, others do not notice.

    test_input.py HOST:PORT PID LOG

    test_input.py HOST:PORT PID LOG logs

PID is plogd's, LOG its lines; with "logs" only what touches the logs is done, and LOG is not
read. Asks for plogd's memory, and whether it is there, as asked of lib.sh answers. The broker
runs with socket.request.max.bytes=2000000, plog.request.arrival.ms=1000 and
connections.max.idle.ms=3000.
"""
import os
import random
import socket
import struct
import sys
import threading
import time
import zlib

from wire import (API_VERSIONS, Conn, CREATE_TOPICS, DELETE_TOPICS, FETCH, LIST_OFFSETS,
                  METADATA, PRODUCE, Tests, W, address, batch, batches, closed, parse_fetch,
                  parse_produce, record, same, varint)

ADDRESS = address()
PID, LOG = int(sys.argv[2]), sys.argv[3]
MOST, ARRIVAL, IDLE = 2000000, 1.0, 3.0
T = Tests()


def ask(what):
    print("?", what, flush=True)
    return int(sys.stdin.readline())


def rss():
    """Resident memory of plogd, MiB."""
    return ask("rss") / 1024


def peer(conn):
    """Who that is in the log of the daemon, and where in it: a port comes again."""
    host, port = conn.s.getsockname()[:2]
    return f"{host}:{port}", os.path.getsize(LOG)


def lines_of(who):
    name, since = who
    with open(LOG, errors="replace") as f:
        f.seek(since)
        return [x for x in f if f" {name}: " in x]


def one_line(who, *words):
    """Exactly one line names the peer, and says why in these words."""
    end = time.time() + 2
    while not lines_of(who) and time.time() < end:
        time.sleep(0.02)
    found = lines_of(who)
    same(len(found), 1, f"lines about {who[0]}: {found}")
    for word in words:
        if word not in found[0]:
            raise AssertionError(f"{word!r} is not in {found[0]!r}")


class Canary:
    """Somebody else's connections, old and new, all the time: the longest answer, s."""

    def __init__(self):
        self.longest, self.error, self.stop = 0, None, False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            old = Conn(ADDRESS, timeout=5)
            while not self.stop:
                began = time.time()
                same(old.api_versions(0)["error"], 0)
                new = Conn(ADDRESS, timeout=5)
                same(new.api_versions(0)["error"], 0)
                new.close()
                self.longest = max(self.longest, time.time() - began)
                time.sleep(0.02)
            old.close()
        except Exception as e:      # told by the thread that counts
            self.error = e

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.stop = True
        self.thread.join()
        if exc[0] is None:
            if self.error:
                raise AssertionError(f"another connection noticed: {self.error!r}")
            if self.longest > 2:
                raise AssertionError(f"another connection waited {self.longest:.1f} s")


def refused(data, *words, within=0.9):
    """@data ends the connection at once, with one line."""
    c = Conn(ADDRESS)
    who = peer(c)
    with Canary():
        c.send_raw(data)
        if not closed(c, within):
            raise AssertionError("the connection stays open")
    one_line(who, *words)


def garbage():
    rng = random.Random(1)
    for n in range(30):
        # a length that is accepted, or not; whatever follows is no request
        c = Conn(ADDRESS)
        who = peer(c)
        data = rng.randbytes(rng.choice((5, 50, 500, 5000, 50000)))
        if n % 2:
            data = struct.pack(">i", len(data)) + data
        try:
            c.send_raw(data)
        except OSError:
            pass
        if not closed(c, ARRIVAL + 2.5):
            raise AssertionError(f"garbage {n} is not refused")
        one_line(who)


def other_protocols():
    refused(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP")
    refused(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS")


def lengths():
    refused(struct.pack(">i", 0x7fffffff), "2147483647", "socket.request.max.bytes")
    refused(struct.pack(">i", MOST + 1) + b"\0" * 100, str(MOST + 1))
    refused(struct.pack(">i", -1), "negative")
    refused(struct.pack(">i", -0x80000000), "negative")
    refused(struct.pack(">i", 0), "shorter than its header")
    refused(struct.pack(">i", 7) + b"\0" * 7, "shorter than its header")


def half(data, *words):
    c = Conn(ADDRESS)
    who = peer(c)
    began = time.time()
    with Canary():
        c.send_raw(data)
        if closed(c, ARRIVAL * 0.7):
            raise AssertionError("closed too early")
        if not closed(c, ARRIVAL + 2):
            raise AssertionError("the connection stays open")
    if time.time() - began > ARRIVAL + 2:
        raise AssertionError("closed too late")
    one_line(who, *words)


def half_requests():
    half(b"\0\0", "half a request's length")
    half(struct.pack(">i", 5000) + b"\0\x12\0\0", "4 of the 5000 bytes")
    half(struct.pack(">i", 100), "0 of the 100 bytes")


def trickle():
    """A byte now and then does not keep a request alive for ever."""
    c = Conn(ADDRESS)
    who = peer(c)
    c.send_raw(struct.pack(">i", 1000000))
    began = time.time()
    try:
        while time.time() - began < 6:
            c.send_raw(b"\0")
            time.sleep(0.1)
    except Exception:       # what is hoped for
        pass
    if time.time() - began > 4:
        raise AssertionError("a byte every 100 ms keeps it")
    one_line(who, "of the 1000000 bytes")


def nothing():
    c = Conn(ADDRESS)
    who = peer(c)
    with Canary():
        if closed(c, IDLE * 0.7):
            raise AssertionError("closed too early")
        if not closed(c, IDLE + 2):
            raise AssertionError("the connection stays open")
    one_line(who, "nothing came")


def idle_in_use():
    """A long poll is not idleness."""
    c = Conn(ADDRESS)
    c.create(f"i{PID}-idle")
    n = c.send(FETCH, 11, c.fetch_body(11, [(f"i{PID}-idle", 0, 0)], wait=int(IDLE * 1500)))
    same(parse_fetch(c.receive(FETCH, 11, n), 11)["error"], 0)
    c.close()


def ends_in_the_middle():
    for data, word in ((struct.pack(">i", 50) + b"\0" * 20, "20 of 50"), (b"\0", "length")):
        c = Conn(ADDRESS)
        who = peer(c)
        c.send_raw(data)
        c.s.shutdown(socket.SHUT_WR)
        if not closed(c, 1):
            raise AssertionError("the connection stays open")
        one_line(who, word)


def reset_while_waiting():
    c = Conn(ADDRESS)
    c.create(f"i{PID}-reset")
    before = rss()
    with Canary():
        for _ in range(50):
            c = Conn(ADDRESS)
            c.send(FETCH, 11, c.fetch_body(11, [(f"i{PID}-reset", 0, 0)], wait=60000))
            c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            c.close()
    if rss() > before + 30:
        raise AssertionError(f"{before:.0f} MiB became {rss():.0f}")


def claims():
    """Many who claim the most and send little: memory goes by what came."""
    before = rss()
    conns = []
    with Canary():
        for _ in range(300):
            c = Conn(ADDRESS)
            c.send_raw(struct.pack(">i", MOST) + b"\0" * 5000)
            conns.append(c)
        time.sleep(0.3)
        grown = rss() - before
    for c in conns:
        c.close()
    print(f"# 300 claims of {MOST} bytes: {grown:.1f} MiB")
    if grown > 60:
        raise AssertionError(f"{grown:.0f} MiB for 300 claims")


def bodies():
    """Every request of the protocol, cut at every byte and with counts of 2^31 - 1."""
    c = Conn(ADDRESS)
    makers = {
        (API_VERSIONS, 3): W(True).string("a").string("1").tags().b,
        (METADATA, 4): W().count(1).string("topic").i8(0).b,
        (METADATA, 12): W(True).count(1).raw(bytes(16)).string("t").tags().i8(0).i8(0).tags().b,
        (PRODUCE, 7): c.produce_body(7, "no-such", [(0, batch([b"x"]))]),
        (PRODUCE, 9): c.produce_body(9, "no-such", [(0, batch([b"x"]))]),
        (FETCH, 11): c.fetch_body(11, [("no-such", 0, 0)]),
        (FETCH, 13): c.fetch_body(13, [(bytes(16), 0, 0)]),
        (LIST_OFFSETS, 2): W().i32(-1).i8(0).count(1).string("t").count(1).i32(0).i64(-1).b,
        (CREATE_TOPICS, 4): W().count(1).string("a b").i32(1).i16(1).count(0).count(0).i32(9)
        .i8(0).b,
        (DELETE_TOPICS, 3): W().count(1).string("no-such").i32(9).b,
    }
    with Canary():
        for (key, version), body in makers.items():
            for cut in range(0, len(body), 1 if len(body) < 60 else 7):
                c = Conn(ADDRESS)
                who = peer(c)
                c.send(key, version, body[:cut])
                if not closed(c, 2):
                    raise AssertionError(f"{key} version {version} cut at {cut} is answered")
                one_line(who)
        for key, version, body in (
                (METADATA, 4, b"\x7f\xff\xff\xff"), (METADATA, 9, b"\xff\xff\xff\xff\x07"),
                (PRODUCE, 7, b"\xff\xff\0\1\0\0\0\0\x7f\xff\xff\xff"),
                (FETCH, 11, b"\xff" * 4 + b"\0" * 17 + b"\x7f\xff\xff\xff"),
                (CREATE_TOPICS, 4, b"\x7f\xff\xff\xff"), (DELETE_TOPICS, 3, b"\x7f\xff\xff\xff")):
            c = Conn(ADDRESS)
            who = peer(c)
            c.send(key, version, body)
            if not closed(c, 2):
                raise AssertionError(f"{key} version {version}: a count of 2^31 - 1 is taken")
            one_line(who)


def slow_reader():
    """Who does not read is not sent for; later it gets every byte."""
    c = Conn(ADDRESS)
    t = f"i{PID}-slow"
    c.create(t)
    data = batch([b"v" * 900000])
    for _ in range(8):
        c.append(t, data)
    slow = Conn(ADDRESS, timeout=20)
    before = rss()
    frames = [slow.frame(FETCH, 11, slow.fetch_body(11, [(t, 0, 0, 1 << 30)]))
              for _ in range(20)]
    with Canary():
        slow.send_raw(b"".join(frames))
        time.sleep(1.5)
        grown = rss() - before
        for n in range(20):
            p = parse_fetch(slow.receive(FETCH, 11, n + 1), 11)["parts"][(t, 0)]
            got = batches(p["data"])
            same(len(got), 8)
            same([b[4][61:] == data[61:] for b in got], [True] * 8)
    print(f"# 20 answers of 7 MB that nobody reads: {grown:.1f} MiB")
    if grown > 30:
        raise AssertionError(f"{grown:.0f} MiB")
    slow.close()
    c.close()


def never_reads():
    """Requests without end, answers never read: the broker stops to read."""
    c = Conn(ADDRESS)
    c.s.settimeout(1)
    frame = c.frame(METADATA, 1, W().count(None).b) * 200
    before, sent = rss(), 0
    with Canary():
        try:
            while sent < 200 << 20:
                sent += c.s.send(frame)
        except (socket.timeout, OSError):
            pass
        grown = rss() - before
    print(f"# after {sent >> 10} KiB of requests the broker reads no more: {grown:.1f} MiB")
    if sent >= 200 << 20 or grown > 60:
        raise AssertionError(f"{sent >> 20} MiB taken, {grown:.0f} MiB grown")
    c.close()


def blanks():
    """Blanks round values are not kept: the topic's file is one that the next start can read."""
    c = Conn(ADDRESS)
    numbers = {"retention.ms": "1000000", "retention.bytes": "-1", "segment.bytes": "1000000",
               "segment.ms": "1000000", "segment.index.bytes": "1000000",
               "segment.jitter.ms": "0", "index.interval.bytes": "4096", "flush.ms": "100000",
               "flush.messages": "10000", "file.delete.delay.ms": "60000",
               "max.message.bytes": "100000", "min.insync.replicas": "1",
               "min.cleanable.dirty.ratio": "0.5", "min.compaction.lag.ms": "0",
               "max.compaction.lag.ms": "1000000", "delete.retention.ms": "1000000",
               "message.timestamp.after.max.ms": "100000", "preallocate": "false"}
    around = "\n" * 32000
    config = {k: around + v for k, v in numbers.items()}
    t, = c.create_topics(7, [(f"i{PID}-blanks", 1, 1, config)])
    same(t["error"], 0, t["message"])
    same({k: v for k, v, *_ in t["configs"] if k in numbers}, numbers)
    c.close()


def bomb():
    """B16: a small batch that expands to gigabytes."""
    c = Conn(ADDRESS, timeout=60)
    t = f"i{PID}-bomb"
    c.create(t)
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    size = 0x7fffff00
    inner = b"\0" + varint(0) + varint(0) + varint(-1) + varint(size)
    head = pack.compress(varint(len(inner) + size + 1) + inner) + pack.flush(zlib.Z_FULL_FLUSH)
    one = pack.compress(bytes(1 << 20)) + pack.flush(zlib.Z_FULL_FLUSH)
    two = pack.compress(bytes(1 << 20)) + pack.flush(zlib.Z_FULL_FLUSH)
    # after a full flush a block stands alone: the same bytes again and again
    data = batch([b""], codec=1, body=head + one + two * 800)
    before = rss()
    with Canary() as canary:
        began = time.time()
        bombs = []
        for _ in range(4):
            b = Conn(ADDRESS, timeout=60)
            bombs.append((b, b.send(PRODUCE, 8, b.produce_body(8, t, [(0, data)]))))
        # a compressed batch of somebody else goes through meanwhile
        same(c.append(t, batch([b"x"] * 10, codec=1)), 0)
        other = time.time() - began
        top = 0
        for b, n in bombs:
            top = max(top, rss())
            same(parse_produce(b.receive(PRODUCE, 8, n), 8)[0]["error"], 10)
            b.close()
        took = time.time() - began
    print(f"# {len(data) >> 10} KiB that would be 800 MiB: refused in {took:.1f} s; another "
          f"batch waited {other:.2f} s, another connection {canary.longest:.2f} s, "
          f"{top - before:.1f} MiB")
    if top - before > 60:
        raise AssertionError(f"{top - before:.0f} MiB")
    c.close()
    c = Conn(ADDRESS)       # the first one may have been idle for too long
    same(c.append(t, batch([b"y"])), 10, "nothing was appended")
    c.close()


for title, fn in (
        ("garbage", garbage),
        ("HTTP and TLS are named", other_protocols),
        ("2 GiB, negative, zero: lengths that are refused at once", lengths),
        ("half a request, then silence", half_requests),
        ("a request that trickles in", trickle),
        ("nothing at all", nothing),
        ("a long poll is not idleness", idle_in_use),
        ("a request that ends in the middle", ends_in_the_middle),
        ("connections that are reset while they wait", reset_while_waiting),
        ("claims take no memory", claims),
        ("requests cut at every byte, counts of 2^31 - 1", bodies),
        ("a slow reader", slow_reader),
        ("one who never reads", never_reads),
        ("blanks round the values of a configuration", blanks),
        ("B16 a small batch that expands to gigabytes", bomb),
):
    if "logs" not in sys.argv[4:] or fn in (reset_while_waiting, slow_reader):
        T.run(title, fn)
T.run("plogd is still the same process", lambda: same(ask("kill 0"), 0))
T.end()
