# SPDX-License-Identifier: MIT
"""Kafka's wire protocol as the tests need it: written by hand from the protocol's
documentation, so that the daemon's codec is not tested against itself."""
import gzip
import os
import socket
import struct
import sys
import time

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 0, 1, 2, 3, 18
CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, OFFSET_FOR_LEADER_EPOCH = 19, 20, 21, 23
FLEXIBLE = {PRODUCE: 9, FETCH: 12, LIST_OFFSETS: 6, METADATA: 9, API_VERSIONS: 3,
            CREATE_TOPICS: 5, DELETE_TOPICS: 4, DELETE_RECORDS: 2,
            OFFSET_FOR_LEADER_EPOCH: 4}
NO_ID = bytes(16)


class Closed(Exception):
    """The broker has closed the connection."""


class W:
    """Bytes of a message; flexible versions have compact lengths and tags."""

    def __init__(self, flexible=False):
        self.b = bytearray()
        self.flexible = flexible

    def raw(self, data):
        self.b += data
        return self

    def i8(self, v):
        return self.raw(struct.pack(">b", v))

    def i16(self, v):
        return self.raw(struct.pack(">h", v))

    def i32(self, v):
        return self.raw(struct.pack(">i", v))

    def i64(self, v):
        return self.raw(struct.pack(">q", v))

    def uvarint(self, v):
        while v > 127:
            self.b.append(v & 127 | 128)
            v >>= 7
        self.b.append(v)
        return self

    def string(self, s):
        if self.flexible:
            self.uvarint(0 if s is None else len(s) + 1)
        else:
            self.i16(-1 if s is None else len(s))
        return self.raw(b"" if s is None else s.encode())

    def count(self, n):
        if self.flexible:
            return self.uvarint(0 if n is None else n + 1)
        return self.i32(-1 if n is None else n)

    def blob(self, data):
        self.count(None if data is None else len(data))
        return self.raw(data or b"")

    def tags(self):
        return self.uvarint(0) if self.flexible else self


class R:
    def __init__(self, data, flexible=False):
        self.d, self.at, self.flexible = data, 0, flexible

    def raw(self, n):
        if self.at + n > len(self.d):
            raise ValueError(f"the answer ends at byte {len(self.d)}, {n} wanted at {self.at}")
        self.at += n
        return self.d[self.at - n:self.at]

    def i8(self):
        return struct.unpack(">b", self.raw(1))[0]

    def i16(self):
        return struct.unpack(">h", self.raw(2))[0]

    def i32(self):
        return struct.unpack(">i", self.raw(4))[0]

    def i64(self):
        return struct.unpack(">q", self.raw(8))[0]

    def uvarint(self):
        v = shift = 0
        while True:
            b = self.raw(1)[0]
            v |= (b & 127) << shift
            if b < 128:
                return v
            shift += 7

    def string(self):
        n = self.uvarint() - 1 if self.flexible else self.i16()
        return None if n < 0 else self.raw(n).decode()

    def count(self):
        return self.uvarint() - 1 if self.flexible else self.i32()

    def blob(self):
        n = self.count()
        return None if n < 0 else self.raw(n)

    def tags(self):
        found = {}
        if self.flexible:
            for _ in range(self.uvarint()):
                tag = self.uvarint()
                found[tag] = self.raw(self.uvarint())
        return found

    def array(self, one):
        n = self.count()
        return None if n < 0 else [one(self) for _ in range(n)]

    def done(self):
        if self.at != len(self.d):
            raise ValueError(f"{len(self.d) - self.at} bytes behind the answer")


# ---- record batches ----

_TABLE = []
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = _c >> 1 ^ (0x82F63B78 if _c & 1 else 0)
    _TABLE.append(_c)


def crc32c(data):
    c, table = 0xFFFFFFFF, _TABLE
    for b in data:
        c = table[(c ^ b) & 255] ^ c >> 8
    return c ^ 0xFFFFFFFF


def varint(v):
    v = v << 1 if v >= 0 else (-v << 1) - 1
    return bytes(W().uvarint(v).b)


def record(index, ts_delta, key, value, headers=()):
    b = b"\0" + varint(ts_delta) + varint(index)
    b += varint(-1) if key is None else varint(len(key)) + key
    b += varint(-1) if value is None else varint(len(value)) + value
    b += varint(len(headers))
    for k, v in headers:
        b += varint(len(k)) + k + (varint(-1) if v is None else varint(len(v)) + v)
    return varint(len(b)) + b


def batch(values, times=None, keys=None, codec=0, attributes=0, base_offset=0, count=None,
          last_delta=None, magic=2, crc=None, producer=(-1, -1, -1), max_time=None, body=None):
    """A batch of @values; what a test wants to be wrong is given explicitly."""
    now = int(time.time() * 1000)
    times = times or [now] * len(values)
    keys = keys or [None] * len(values)
    if body is None:
        body = b"".join(record(i, times[i] - times[0], keys[i], v)
                        for i, v in enumerate(values))
        if codec == 1:
            body = gzip.compress(body)
    tail = struct.pack(">hiqqqhii", attributes | codec,
                       len(values) - 1 if last_delta is None else last_delta, times[0],
                       max(times) if max_time is None else max_time, *producer,
                       len(values) if count is None else count) + body
    return struct.pack(">qiibI", base_offset, len(tail) + 9, -1, magic,
                       crc32c(tail) if crc is None else crc) + tail


def batches(data):
    """The complete batches of fetched bytes: (base offset, count, attributes, max time, raw)."""
    found, at = [], 0
    while at + 61 <= len(data):
        base, length = struct.unpack_from(">qi", data, at)
        if at + 12 + length > len(data):
            break
        raw = data[at:at + 12 + length]
        attributes, = struct.unpack_from(">h", raw, 21)
        max_time, = struct.unpack_from(">q", raw, 35)
        count, = struct.unpack_from(">i", raw, 57)
        found.append((base, count, attributes, max_time, raw))
        at += 12 + length
    return found


def values(data):
    """(offset, value) of every record of uncompressed fetched batches."""
    found = []
    for base, count, attributes, _, raw in batches(data):
        if attributes & 7:
            raise ValueError("a compressed batch")
        r = R(raw[61:])

        def svarint():
            v = r.uvarint()
            return v >> 1 ^ -(v & 1)
        for _ in range(count):
            svarint()
            r.i8()
            svarint()
            delta = svarint()
            n = svarint()
            r.raw(max(n, 0))
            n = svarint()
            found.append((base + delta, r.raw(n) if n >= 0 else None))
            for _ in range(svarint()):
                r.raw(svarint())
                r.raw(max(svarint(), 0))
    return found


# ---- a connection ----

class Conn:
    def __init__(self, address, timeout=10):
        self.s = socket.create_connection(address, timeout=timeout)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation = 0

    def close(self):
        self.s.close()

    def send_raw(self, data):
        try:
            self.s.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed from None

    def receive_raw(self, n):
        data = b""
        while len(data) < n:
            try:
                more = self.s.recv(min(n - len(data), 1 << 20))
            except ConnectionResetError:
                raise Closed from None
            if not more:
                raise Closed
            data += more
        return data

    def frame(self, key, version, body, client="tester"):
        self.correlation += 1
        head = W().i16(key).i16(version).i32(self.correlation).string(client)
        if version >= FLEXIBLE.get(key, 99):
            head.uvarint(0)
        data = bytes(head.b) + bytes(body)
        return struct.pack(">i", len(data)) + data

    def send(self, key, version, body, client="tester"):
        self.send_raw(self.frame(key, version, body, client))
        return self.correlation

    def receive(self, key, version, correlation=None):
        n, = struct.unpack(">i", self.receive_raw(4))
        r = R(self.receive_raw(n), version >= FLEXIBLE.get(key, 99))
        got = r.i32()
        if correlation is not None and got != correlation:
            raise ValueError(f"answer {got} came in place of {correlation}")
        if r.flexible and key != API_VERSIONS:
            r.tags()
        return r

    def call(self, key, version, body):
        return self.receive(key, version, self.send(key, version, body))

    # ---- APIs ----

    def api_versions(self, version, name="tester", software="1.0"):
        w = W(version >= 3)
        if version >= 3:
            w.string(name).string(software).tags()
        r = self.call(API_VERSIONS, version, w.b)
        return parse_api_versions(r, version)

    def metadata(self, version, topics, auto=True, ids=None):
        w = W(version >= 9)
        w.count(None if topics is None else len(topics))
        for t in topics or []:
            if version >= 10:
                w.raw((ids or {}).get(t, NO_ID))
            w.string(None if ids and t in ids else t).tags()
        if version >= 4:
            w.i8(auto)
        if 8 <= version <= 10:
            w.i8(0)
        if version >= 8:
            w.i8(0)
        r = self.call(METADATA, version, w.tags().b)
        out = {"topics": {}}
        if version >= 3:
            r.i32()

        def broker(r):
            b = (r.i32(), r.string(), r.i32())
            if version >= 1:
                r.string()
            r.tags()
            return b
        out["brokers"] = r.array(broker)
        if version >= 2:
            out["cluster"] = r.string()
        if version >= 1:
            out["controller"] = r.i32()

        def partition(r):
            p = {"error": r.i16(), "index": r.i32(), "leader": r.i32()}
            if version >= 7:
                p["epoch"] = r.i32()
            p["replicas"] = r.array(R.i32)
            p["isr"] = r.array(R.i32)
            if version >= 5:
                r.array(R.i32)
            r.tags()
            return p

        def topic(r):
            t = {"error": r.i16(), "name": r.string()}
            if version >= 10:
                t["id"] = r.raw(16)
            if version >= 1:
                r.i8()
            t["partitions"] = r.array(partition)
            if version >= 8:
                r.i32()
            r.tags()
            return t
        for t in r.array(topic):
            out["topics"][t["name"]] = t
        if 8 <= version <= 10:
            r.i32()
        if version >= 13:
            out["error"] = r.i16()
        r.tags()
        r.done()
        return out

    def produce_body(self, version, topic, parts, acks=-1):
        w = W(version >= 9)
        w.string(None).i16(acks).i32(5000).count(1)
        w = w.raw(topic) if version >= 13 else w.string(topic)
        w.count(len(parts))
        for index, data in parts:
            w.i32(index).blob(data).tags()
        return w.tags().tags().b

    def produce(self, version, topic, parts, acks=-1):
        """parts: [(index, bytes)], topic: its id from 13 on. {index: {error, base, time, start, records, message}}"""
        body = self.produce_body(version, topic, parts, acks)
        return parse_produce(self.call(PRODUCE, version, body), version)

    def append(self, topic, data, partition=0, version=8):
        p = self.produce(version, topic, [(partition, data)])[partition]
        if p["error"]:
            raise ValueError(f"produce to {topic}-{partition}: error {p['error']}")
        return p["base"]

    def fetch_body(self, version, parts, wait=0, least=1, most=1 << 30, isolation=0, session=0,
                   epoch=-1, forgotten=()):
        """parts: [(topic or id, partition, offset[, max bytes[, leader epoch]])]"""
        w = W(version >= 12)
        if version <= 14:
            w.i32(-1)
        w.i32(wait).i32(least).i32(most).i8(isolation)
        if version >= 7:
            w.i32(session).i32(epoch)
        w.count(len(parts))
        for p in parts:
            if version >= 13:
                w.raw(p[0])
            else:
                w.string(p[0])
            w.count(1).i32(p[1])
            if version >= 9:
                w.i32(p[4] if len(p) > 4 else -1)
            w.i64(p[2])
            if version >= 12:
                w.i32(-1)
            if version >= 5:
                w.i64(-1)
            w.i32(p[3] if len(p) > 3 else 1 << 20).tags().tags()
        if version >= 7:
            w.count(len(forgotten))
            for topic, partition in forgotten:
                if version >= 13:
                    w.raw(topic)
                else:
                    w.string(topic)
                w.count(1).i32(partition).tags()
        if version >= 11:
            w.string("")
        return w.tags().b

    def fetch(self, version, parts, **how):
        body = self.fetch_body(version, parts, **how)
        return parse_fetch(self.call(FETCH, version, body), version)

    def read(self, topic, offset, partition=0, version=11, **how):
        """One partition's answer."""
        f = self.fetch(version, [(topic, partition, offset)], **how)
        return f["parts"][(topic, partition)]

    def epoch_end(self, version, topic, epoch, partition=0, current=-1):
        """OffsetForLeaderEpoch of one partition: (error, epoch, end)."""
        w = W(version >= 4)
        if version >= 3:
            w.i32(-1)
        w.count(1).string(topic).count(1).i32(partition).i32(current).i32(epoch)
        r = self.call(OFFSET_FOR_LEADER_EPOCH, version, w.tags().tags().tags().b)
        r.i32()
        same(r.count(), 1)
        same(r.string(), topic)
        same(r.count(), 1)
        error = r.i16()
        same(r.i32(), partition)
        got = error, r.i32(), r.i64()
        r.tags()
        r.tags()
        r.tags()
        r.done()
        return got

    def list_offsets(self, version, topic, times, partition=0, isolation=0, epoch=-1,
                     partitions=None):
        """One timestamp, or a list of them for partitions 0, 1, ..., or for @partitions"""
        many = isinstance(times, list)
        w = W(version >= 6)
        w.i32(-1)
        if version >= 2:
            w.i8(isolation)
        w.count(1).string(topic).count(len(times) if many else 1)
        for i, t in enumerate(times if many else [times]):
            w.i32(partitions[i] if partitions else i if many else partition)
            if version >= 4:
                w.i32(epoch)
            w.i64(t).tags()
        w.tags()
        if version >= 10:
            w.i32(1000)
        r = self.call(LIST_OFFSETS, version, w.tags().b)
        if version >= 2:
            r.i32()

        def part(r):
            p = {"index": r.i32(), "error": r.i16(), "time": r.i64(), "offset": r.i64()}
            if version >= 4:
                p["epoch"] = r.i32()
            r.tags()
            return p

        def topic_of(r):
            r.string()
            p = r.array(part)
            r.tags()
            return p
        found = r.array(topic_of)[0]
        r.tags()
        r.done()
        return found if many else found[0]

    def create_topics(self, version, topics, validate=False):
        """topics: [(name, partitions, replication, {config}, [(partition, [brokers])])]"""
        w = W(version >= 5)
        w.count(len(topics))
        for t in topics:
            w.string(t[0]).i32(t[1]).i16(t[2] if len(t) > 2 else -1)
            assignments = t[4] if len(t) > 4 else []
            w.count(len(assignments))
            for index, brokers in assignments:
                w.i32(index).count(len(brokers))
                for b in brokers:
                    w.i32(b)
                w.tags()
            config = t[3] if len(t) > 3 else {}
            w.count(len(config))
            for k, v in config.items():
                w.string(k).string(v).tags()
            w.tags()
        w.i32(5000).i8(validate)
        r = self.call(CREATE_TOPICS, version, w.tags().b)
        if version >= 2:
            r.i32()

        def config(r):
            c = (r.string(), r.string(), r.i8(), r.i8(), r.i8())
            r.tags()
            return c

        def topic(r):
            t = {"name": r.string()}
            if version >= 7:
                t["id"] = r.raw(16)
            t["error"] = r.i16()
            t["message"] = r.string()
            if version >= 5:
                t["partitions"], t["replication"] = r.i32(), r.i16()
                t["configs"] = r.array(config)
            r.tags()
            return t
        found = r.array(topic)
        r.tags()
        r.done()
        return found

    def create(self, name, partitions=1, config=None):
        t, = self.create_topics(7, [(name, partitions, 1, config or {})])
        if t["error"]:
            raise ValueError(f"create {name}: error {t['error']}: {t['message']}")
        return t["id"]

    def delete_topics(self, version, topics):
        """topics: names, or from version 6 (name or None, id)"""
        w = W(version >= 4)
        w.count(len(topics))
        for t in topics:
            if version >= 6:
                w.string(t[0]).raw(t[1]).tags()
            else:
                w.string(t)
        w.i32(5000)
        r = self.call(DELETE_TOPICS, version, w.tags().b)
        r.i32()

        def topic(r):
            t = {"name": r.string()}
            if version >= 6:
                t["id"] = r.raw(16)
            t["error"] = r.i16()
            if version >= 5:
                t["message"] = r.string()
            r.tags()
            return t
        found = r.array(topic)
        r.tags()
        r.done()
        return found

    def delete_records(self, version, topic, offsets):
        """@offsets: [(partition, offset)]; {partition: (low watermark, error)}"""
        w = W(version >= 2)
        w.count(1).string(topic).count(len(offsets))
        for partition, offset in offsets:
            w.i32(partition).i64(offset).tags()
        w.tags().i32(5000)
        r = self.call(DELETE_RECORDS, version, w.tags().b)
        r.i32()
        found = {}

        def part(r):
            index = r.i32()
            found[index] = (r.i64(), r.i16())
            r.tags()

        def one(r):
            same(r.string(), topic)
            r.array(part)
            r.tags()
        r.array(one)
        r.tags()
        r.done()
        return found


def parse_api_versions(r, version):
    out = {"error": r.i16()}

    def one(r):
        v = (r.i16(), r.i16(), r.i16())
        r.tags()
        return v
    out["keys"] = r.array(one)
    if version >= 1:
        r.i32()
    r.tags()
    r.done()
    return out


class Produced(dict):
    """What is told of each partition of a topic, and of which topic: its name or id."""
    topic = None


def parse_produce(r, version):
    out = Produced()

    def bad(r):
        b = (r.i32(), r.string())
        r.tags()
        return b

    def part(r):
        p = {"index": r.i32(), "error": r.i16(), "base": r.i64()}
        if version >= 2:
            p["time"] = r.i64()
        if version >= 5:
            p["start"] = r.i64()
        if version >= 8:
            p["records"], p["message"] = r.array(bad), r.string()
        r.tags()
        out[p["index"]] = p

    def topic(r):
        out.topic = r.raw(16) if version >= 13 else r.string()
        r.array(part)
        r.tags()
    r.array(topic)
    r.i32()
    r.tags()
    r.done()
    return out


def parse_fetch(r, version):
    out = {"error": 0, "session": 0, "parts": {}}
    r.i32()
    if version >= 7:
        out["error"], out["session"] = r.i16(), r.i32()

    def part(r):
        p = {"index": r.i32(), "error": r.i16(), "hw": r.i64(), "lso": r.i64(), "start": -1}
        if version >= 5:
            p["start"] = r.i64()
        p["aborted"] = r.array(lambda r: (r.i64(), r.i64(), r.tags()))
        if version >= 11:
            r.i32()
        p["data"] = r.blob()
        p["tags"] = r.tags()
        return p

    def topic(r):
        name = r.raw(16) if version >= 13 else r.string()
        for p in r.array(part):
            out["parts"][(name, p["index"])] = p
        r.tags()
    r.array(topic)
    r.tags()
    r.done()
    return out


# ---- TAP ----

class Tests:
    """Runs functions that raise, and writes TAP."""

    def __init__(self):
        self.n = self.failed = 0

    def run(self, name, fn):
        self.n += 1
        try:
            fn()
            print(f"ok {self.n} - {name}", flush=True)
        except Exception as e:       # whatever goes wrong is this test's failure
            self.failed += 1
            at = sys.exc_info()[2]
            while at.tb_next:
                at = at.tb_next
            where = f"{os.path.basename(at.tb_frame.f_code.co_filename)}:{at.tb_lineno}"
            print(f"# {where}: {type(e).__name__}: {e}", flush=True)
            at = sys.exc_info()[2].tb_next
            if at:
                print(f"# called from line {at.tb_lineno}", flush=True)
            print(f"not ok {self.n} - {name}", flush=True)

    def end(self):
        print(f"1..{self.n}", flush=True)
        sys.exit(1 if self.failed else 0)


def same(got, wanted, what=""):
    if got != wanted:
        raise AssertionError(f"{what}{': ' if what else ''}{got!r}, not {wanted!r}")


def closed(conn, seconds=5):
    """Does the broker end this connection within @seconds?"""
    conn.s.settimeout(seconds)
    try:
        while conn.s.recv(65536):
            pass
        return True
    except ConnectionResetError:
        return True
    except socket.timeout:
        return False


def address():
    """HOST:PORT, the first argument."""
    if len(sys.argv) < 2:
        sys.exit(f"Usage: {sys.argv[0]} HOST:PORT")
    host, port = sys.argv[1].rsplit(":", 1)
    return host, int(port)
