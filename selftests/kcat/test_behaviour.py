#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Behaviour that new brokers get wrong, case by case, against a running broker.

    test_behaviour.py HOST:PORT

The broker makes topics automatically, has one partition by default and lets a
fresh connection do everything. Topics get names of this run.
"""
import os
import struct
import threading
import time

from wire import (API_VERSIONS, Conn, CREATE_TOPICS, DELETE_TOPICS, FETCH, METADATA, NO_ID,
                  PRODUCE, Tests, W, address, batch, batches, closed, crc32c,
                  parse_api_versions, parse_fetch, parse_produce, record, same, values)

ADDRESS = address()
RUN = f"b{os.getpid()}"
T = Tests()
C = Conn(ADDRESS)


def name(text):
    return f"{RUN}-{text}"


def topic(text, partitions=1, **config):
    n = name(text)
    C.create(n, partitions, {k.replace("_", "."): v for k, v in config.items()})
    return n


# ---- B1: versions ----

def unknown_api_versions():
    c = Conn(ADDRESS)
    r = c.call(API_VERSIONS, 9, b"\x02a\x021\0")
    # a client that knows nothing yet must be able to read it: version 0, key 18 alone
    r.flexible = False
    answer = parse_api_versions(r, 0)
    same(answer["error"], 35)
    same([(k, lo) for k, lo, hi in answer["keys"]], [(18, 0)])
    full = c.api_versions(3)
    same(full["error"], 0)
    keys = {k: (lo, hi) for k, lo, hi in full["keys"]}
    same(answer["keys"][0][2], keys[18][1], "the largest version")
    same(keys[0][0], 0, "Produce begins at 0 for old librdkafka")
    for key, lo, hi in ((0, 3, 7), (1, 4, 11), (2, 1, 2), (3, 0, 4), (19, 2, 4), (20, 1, 1)):
        if not keys[key][0] <= lo <= hi <= keys[key][1]:
            raise AssertionError(f"key {key}: {keys[key]} does not hold {lo} to {hi}")
    c.close()


def client_name():
    same(C.api_versions(3, name="")["error"], 42, "empty name")
    same(C.api_versions(3, name="-x")["error"], 42, "-x")
    same(C.api_versions(3, software="1.0 beta")["error"], 42, "blank in the version")
    same(C.api_versions(4, name="apache-kafka.java", software="4.2.0")["error"], 0)
    same(C.api_versions(0)["error"], 0)


def two_at_once():
    """kafka-python sends ApiVersions 0 and Metadata 0 before it reads."""
    c = Conn(ADDRESS)
    first = c.frame(API_VERSIONS, 0, b"")
    second = c.frame(METADATA, 0, W().count(0).b)
    c.send_raw(first + second)
    same(c.receive(API_VERSIONS, 0, 1).i16(), 0)
    c.receive(METADATA, 0, 2)
    c.close()


def no_coordinator():
    for version in (0, 1, 2):
        w = W().string("group")
        if version:
            w.i8(0)
        r = C.call(10, version, w.b)
        if version:
            same(r.i32(), 0)
        same(r.i16(), 15, f"version {version}")
        if version:
            r.string()
        same((r.i32(), r.string(), r.i32()), (-1, "", -1))
        r.done()


def refused_versions():
    for key, version in ((PRODUCE, 2), (PRODUCE, 0), (FETCH, 99), (METADATA, -1), (77, 0)):
        c = Conn(ADDRESS)
        c.send(key, version, b"\0" * 20)
        if not closed(c):
            raise AssertionError(f"key {key} version {version}: the connection stays")
    same(C.api_versions(0)["error"], 0, "others do not notice")


# ---- B5: metadata ----

def metadata_all_and_none():
    t = topic("meta")
    for version in range(0, 14):
        if t not in C.metadata(version, None if version else [])["topics"]:
            raise AssertionError(f"version {version}: all topics do not hold {t}")
        if version:
            same(C.metadata(version, [])["topics"], {}, f"version {version}: none")
        m = C.metadata(version, [t])
        p = m["topics"][t]["partitions"]
        same([(x["error"], x["leader"]) for x in p], [(0, m["brokers"][0][0])], f"v{version}")


def auto_creation():
    t = name("made")
    same(C.metadata(4, [t], auto=False)["topics"][t]["error"], 3)
    m = C.metadata(4, [t])["topics"][t]
    if m["error"] not in (0, 3, 5):
        raise AssertionError(f"error {m['error']}")
    end = time.time() + 5
    while m["error"] and time.time() < end:
        time.sleep(0.1)
        m = C.metadata(4, [t])["topics"][t]
    same(m["error"], 0)
    same(len(m["partitions"]), 1)


def bad_names():
    for bad in ("", ".", "..", "a b", "a/b", "x" * 250, "a\0b", "\u00e4"):
        w = W().count(1)
        data = bad.encode()
        w.i16(len(data)).raw(data).i8(1)
        r = C.call(METADATA, 4, w.b)
        r.i32()
        r.array(lambda r: (r.i32(), r.string(), r.i32(), r.string()))
        r.string(), r.i32(), r.i32()
        same(r.i16(), 17, repr(bad))
    for n in C.metadata(1, None)["topics"]:
        if n in (".", "..") or " " in n:
            raise AssertionError(f"{n!r} was made")


def topic_ids():
    t = name("ids")
    tid = C.create(t)
    if tid == NO_ID:
        raise AssertionError("no topic id")
    same(C.metadata(12, [t])["topics"][t]["id"], tid)
    same(C.metadata(12, [t], ids={t: tid})["topics"][t]["id"], tid, "asked by id")
    same(C.metadata(12, ["?"], ids={"?": b"x" * 16})["topics"][None]["error"], 100)


# ---- B6, B8, B11: offsets and times ----

def check_times(t):
    wanted = {2: (0, 2), 3: (1, 4), 5: (2, 6), 8: (3, 8), 9: (-1, -1), -2: (0, -1), -1: (4, -1)}
    for version in (1, 2, 4, 5, 6, 7, 10, 11):
        for when, (offset, at) in wanted.items():
            p = C.list_offsets(version, t, when)
            same((p["error"], p["offset"], p["time"]), (0, offset, at), f"v{version} of {when}")
            if version >= 4 and offset >= 0 and p["epoch"] < 0:
                raise AssertionError(f"v{version} of {when}: no leader epoch")


def times_in_batches():
    t = topic("t4", message_timestamp_before_max_ms=str(2 ** 62))
    for when in (2, 4, 6, 8):
        C.append(t, batch([b"x"], [when]))
    check_times(t)
    same(C.list_offsets(7, t, -3)["offset"], 3, "largest time")
    # of remote storage: there is none
    for when, since in ((-5, 9), (-6, 11)):
        p = C.list_offsets(since, t, when)
        same((p["error"], p["offset"], p["epoch"]), (0, -1, -1), f"{when}")
        same(C.list_offsets(since - 1, t, when)["error"], 35, f"{when} too early")
    same(C.list_offsets(11, t, -7)["error"], 35)


def times_in_one_batch():
    t = topic("t1", message_timestamp_before_max_ms=str(2 ** 62))
    C.append(t, batch([b"x"] * 4, [2, 4, 6, 8]))
    check_times(t)


def times_in_gzip():
    t = topic("tz", message_timestamp_before_max_ms=str(2 ** 62))
    C.append(t, batch([b"x"] * 4, [2, 4, 6, 8], codec=1))
    check_times(t)
    p = C.list_offsets(7, t, -3)
    same((p["offset"], p["time"]), (3, 8), "largest time")


def times_out_of_order():
    t = topic("to", message_timestamp_before_max_ms=str(2 ** 62))
    C.append(t, batch([b"x"] * 3, [50, 90, 10]))
    C.append(t, batch([b"x"] * 3, [20, 30, 95], codec=1))
    same(C.list_offsets(4, t, 51)["offset"], 1)
    same(C.list_offsets(4, t, 91)["offset"], 5)
    same(C.list_offsets(4, t, 15)["offset"], 0)
    p = C.list_offsets(7, t, -3)
    same((p["offset"], p["time"]), (5, 95))


def leader_epochs():
    t = topic("epochs")
    C.append(t, batch([b"x"]))
    now = C.list_offsets(4, t, -1)["epoch"]
    same(C.list_offsets(4, t, -2)["epoch"], now)
    same(C.list_offsets(4, t, -1, epoch=now)["error"], 0)
    same(C.list_offsets(4, t, -1, epoch=now + 1)["error"], 75)
    f = C.fetch(11, [(t, 0, 0, 1 << 20, now + 1)])["parts"][(t, 0)]
    same((f["error"], f["hw"]), (75, 1))
    same(C.fetch(11, [(t, 0, 0, 1 << 20, now)])["parts"][(t, 0)]["error"], 0)
    same(C.list_offsets(4, name("nowhere"), -1)["error"], 3)
    same(C.list_offsets(4, t, -1, partition=9)["error"], 3)


def epoch_ends():
    t, empty = topic("epochends"), topic("noepochs")
    for version in 2, 3, 4:
        C.append(t, batch([b"x", b"y"]))
        end = C.list_offsets(4, t, -1)["offset"]
        same(C.epoch_end(version, t, 0), (0, 0, end))
        same(C.epoch_end(version, t, 0, current=0), (0, 0, end))
        same(C.epoch_end(version, t, 1), (0, -1, -1))
        same(C.epoch_end(version, t, -1), (0, -1, -1))
        same(C.epoch_end(version, t, 0, current=1), (75, -1, -1))
        same(C.epoch_end(version, t, 0, partition=9), (3, -1, -1))
        same(C.epoch_end(version, name("nowhere"), 0), (3, -1, -1))
        # noted when it was made, without a record
        same(C.epoch_end(version, empty, 0), (0, 0, 0))
    same(C.list_offsets(4, empty, -2)["epoch"], 0)


def ranges():
    t = topic("ranges")
    C.append(t, batch([b"a", b"b", b"c"]))
    for version in (4, 5, 7, 11, 12):
        p = C.read(t, 3, version=version)
        same((p["error"], p["hw"], p["lso"], p["data"]), (0, 3, 3, b""), "at the end")
        p = C.read(t, 4, version=version)
        same((p["error"], p["hw"], p["lso"]), (1, 3, 3), "behind the end")
        same(C.read(t, -1, version=version)["error"], 1, "below the start")
        p = C.read(t, 1, version=version)
        same([o for o, _ in values(p["data"]) if o >= 1], [1, 2])
        if version >= 5:
            same(p["start"], 0)
    same(C.read(name("nowhere"), 0)["error"], 3)
    same(C.fetch(11, [(t, 7, 0)])["parts"][(t, 7)]["error"], 3)


# ---- B10: sizes ----

def one_large_batch():
    t = topic("large", 2)
    data = batch([b"v" * 200 * 1024])
    for p in (0, 1):
        C.append(t, data, partition=p)
    f = C.fetch(11, [(t, 0, 0, 1), (t, 1, 0, 1)], most=1)
    sizes = [len(f["parts"][(t, p)]["data"]) for p in (0, 1)]
    same(sizes, [len(data), 0])


def small_then_large():
    t = topic("small")
    C.append(t, batch([b"small"]))
    C.append(t, batch([b"L" * 5000]))
    p = C.read(t, 0, most=1024)
    same([b[0] for b in batches(p["data"])], [0])
    p = C.fetch(11, [(t, 0, 0, 1024)])["parts"][(t, 0)]
    same([b[0] for b in batches(p["data"])], [0])


def limits_hold():
    t = topic("limits", 3)
    for p in range(3):
        for _ in range(4):
            C.append(t, batch([b"v" * 1000]), partition=p)
    f = C.fetch(11, [(t, p, 0, 2500) for p in range(3)], most=4000)
    got = [len(batches(f["parts"][(t, p)]["data"])) for p in range(3)]
    same(got, [2, 1, 0])


# ---- long poll ----

def long_poll():
    t = topic("poll")
    started = time.time()
    same(C.read(t, 0, wait=300)["data"], b"")
    took = time.time() - started
    if not 0.28 <= took <= 2:
        raise AssertionError(f"max_wait 300 ms took {took:.3f} s")
    c = Conn(ADDRESS)
    n = c.send(FETCH, 11, c.fetch_body(11, [(t, 0, 0)], wait=8000))
    time.sleep(0.2)
    started = time.time()
    C.append(t, batch([b"wake"]))
    p = parse_fetch(c.receive(FETCH, 11, n), 11)["parts"][(t, 0)]
    took = time.time() - started
    same([v for _, v in values(p["data"])], [b"wake"])
    if took > 2:
        raise AssertionError(f"the wake-up took {took:.3f} s")
    c.close()


def min_bytes():
    t = topic("least")
    one = batch([b"v" * 100])
    c = Conn(ADDRESS)
    n = c.send(FETCH, 11, c.fetch_body(11, [(t, 0, 0)], wait=8000, least=3 * len(one)))
    for _ in range(3):
        time.sleep(0.1)
        C.append(t, one)
    p = parse_fetch(c.receive(FETCH, 11, n), 11)["parts"][(t, 0)]
    same(len(batches(p["data"])), 3)
    started = time.time()
    p = C.read(t, 0, wait=200, least=1 << 20)
    same(len(batches(p["data"])), 3, "what there is, after max_wait")
    if time.time() - started < 0.18:
        raise AssertionError("it did not wait")
    c.close()


def fetched_twice():
    t = topic("fetched", 2)
    for v in (b"a", b"b", b"c"):
        C.append(t, batch([v]))
    C.append(t, batch([b"z"]), partition=1)
    # as Kafka: the last counts, in the first's place; and an unknown one as often as it is named
    body = C.fetch_body(11, [(t, p, offset) for p, offset in
                             ((0, 0), (1, 0), (0, 2), (0, 1), (7, 0), (7, 0))])
    r = C.call(FETCH, 11, body)
    times = r.d.count(struct.pack(">ihq", 0, 0, 3))
    parts = parse_fetch(r, 11)["parts"]
    same([v for _, v in values(parts[(t, 0)]["data"])], [b"b", b"c"])
    same(times, 1, "answers for partition 0")
    same([v for _, v in values(parts[(t, 1)]["data"])], [b"z"])
    same(parts[(t, 7)]["error"], 3)


def many_partitions_with_records():
    t = topic("full", 600)
    one = batch([b"v"])
    C.produce(8, t, [(p, one) for p in range(600)])
    c = Conn(ADDRESS)
    # not all in one answer, which comes at once, though min_bytes would like more
    f = c.fetch(11, [(t, p, 0) for p in range(600)], wait=60000, least=1 << 20)["parts"]
    same({p["error"] for p in f.values()}, {0})
    got = [p for p in range(600) if f[(t, p)]["data"]]
    same(got, list(range(len(got))))
    if not 1 < len(got) <= 512:
        raise AssertionError(f"an answer with records of {len(got)} partitions")
    c.close()


def many_partitions_wait():
    t = topic("many", 20)
    c = Conn(ADDRESS)
    n = c.send(FETCH, 11, c.fetch_body(11, [(t, p, 0) for p in range(20)], wait=8000))
    time.sleep(0.1)
    C.append(t, batch([b"x"]), partition=13)
    f = parse_fetch(c.receive(FETCH, 11, n), 11)["parts"]
    same([p for p in range(20) if f[(t, p)]["data"]], [13])
    c.close()


def read_committed():
    t = topic("lso")
    C.append(t, batch([b"x"]))
    same(C.read(t, 0, isolation=1)["aborted"], [])
    same(C.read(t, 0, isolation=1)["lso"], 1)
    same(C.read(t, 0, isolation=0)["aborted"], None)


# ---- B12: zstd ----

def zstd_topics():
    t = topic("zstd", compression_type="zstd")
    C.append(t, batch([b"x"]))
    same(C.read(t, 0, version=9)["error"], 76)
    same(C.read(t, 0, version=4)["error"], 76)
    same(C.read(t, 0, version=10)["error"], 0)
    t = topic("anyzip")
    # an empty zstd frame of 10 bytes holds no record: only the version matters here
    data = batch([b"x"], codec=4, body=b"(\xb5/\xfd\x04\x00\x01\x00\x00\x99")
    for version in (3, 6):
        same(C.produce(version, t, [(0, data)])[0]["error"], 76, f"Produce {version}")


# ---- B13: sessions ----

def sessions():
    t = topic("session", 3)
    c = Conn(ADDRESS)
    full = c.fetch(11, [(t, p, 0) for p in range(3)], session=0, epoch=0)
    same((full["error"], len(full["parts"])), (0, 3))
    sid = full["session"]
    if not sid:
        raise AssertionError("no session")
    same(c.fetch(11, [], session=sid + 1, epoch=1)["error"], 70, "unknown id")
    same(c.fetch(11, [], session=sid, epoch=5)["error"], 71, "wrong epoch")
    started = time.time()
    f = c.fetch(11, [], session=sid, epoch=1, wait=200)
    same((f["error"], f["session"], f["parts"]), (0, sid, {}))
    if time.time() - started < 0.18:
        raise AssertionError("an empty incremental fetch did not wait")
    C.append(t, batch([b"x"]), partition=1)
    f = c.fetch(11, [], session=sid, epoch=2)
    same([p for _, p in f["parts"]], [1])
    f = c.fetch(11, [(t, 1, 1)], session=sid, epoch=3, wait=50)
    same(f["parts"], {}, "nothing has changed")
    # forgotten partitions are not told of
    C.append(t, batch([b"x"]), partition=1)
    C.append(t, batch([b"x"]), partition=2)
    f = c.fetch(11, [], session=sid, epoch=4, forgotten=[(t, 1)])
    same([p for _, p in f["parts"]], [2])
    # an error is repeated until it clears
    for epoch in (5, 6):
        f = c.fetch(11, [(t, 2, 99)], session=sid, epoch=epoch)
        same([(p, x["error"]) for (_, p), x in f["parts"].items()], [(2, 1)])
    f = c.fetch(11, [(t, 2, 1)], session=sid, epoch=7)
    same([(p, x["error"]) for (_, p), x in f["parts"].items()], [(2, 0)], "cleared")
    # id with epoch 0: a new one in its place
    f = c.fetch(11, [(t, 0, 0)], session=sid, epoch=0)
    same(f["error"], 0)
    if f["session"] in (0, sid):
        raise AssertionError("no new session")
    same(c.fetch(11, [], session=sid, epoch=8)["error"], 70, "the old one is closed")
    # epoch -1 ends it and wants none
    f2 = c.fetch(11, [(t, 0, 0)], session=f["session"], epoch=-1)
    same((f2["error"], f2["session"], len(f2["parts"])), (0, 0, 1))
    same(c.fetch(11, [], session=f["session"], epoch=1)["error"], 70)
    c.close()


def session_without_partitions():
    t = topic("lonely")
    c = Conn(ADDRESS)
    sid = c.fetch(11, [(t, 0, 0)], session=0, epoch=0)["session"]
    started = time.time()
    f = c.fetch(11, [], session=sid, epoch=1, forgotten=[(t, 0)], wait=3000)
    same((f["error"], f["parts"]), (0, {}))
    if time.time() - started > 1.5:
        raise AssertionError("it waited")
    c.close()


def session_ids_and_names():
    t = name("mixed")
    tid = C.create(t)
    c = Conn(ADDRESS)
    sid = c.fetch(12, [(t, 0, 0)], session=0, epoch=0)["session"]
    same(c.fetch(13, [(tid, 0, 0)], session=sid, epoch=1)["error"], 106)
    c.close()


def session_high_watermark():
    """A partition whose high watermark moved is told of, also without bytes for it."""
    t = topic("moved", 2)
    c = Conn(ADDRESS)
    sid = c.fetch(11, [(t, 0, 0), (t, 1, 0)], session=0, epoch=0)["session"]
    C.append(t, batch([b"v" * 3000]), partition=0)
    C.append(t, batch([b"v" * 3000]), partition=1)
    f = c.fetch(11, [], session=sid, epoch=1, most=100)
    sizes = sorted(len(x["data"]) > 0 for x in f["parts"].values())
    same(sizes, [False, True])
    c.close()


def session_pipelined():
    """Fetches of a session one behind the other, before the first is answered."""
    t = topic("row")
    c = Conn(ADDRESS)
    sid = c.fetch(11, [(t, 0, 0)], session=0, epoch=0)["session"]
    sent = [c.send(FETCH, 11, c.fetch_body(11, [], session=sid, epoch=e, wait=100))
            for e in (1, 2, 3)]
    same([parse_fetch(c.receive(FETCH, 11, n), 11)["error"] for n in sent], [0, 0, 0])
    c.close()


def unknown_beside():
    """A topic that is not there is told, but does not make a busy loop of the others' polls."""
    t = topic("beside")
    started = time.time()
    f = C.fetch(11, [(name("nowhere"), 0, 0), (t, 0, 0), (t, 7, 0)], wait=300)["parts"]
    same([f[k]["error"] for k in ((name("nowhere"), 0), (t, 0), (t, 7))], [3, 0, 3])
    if time.time() - started < 0.28:
        raise AssertionError("it did not wait")
    started = time.time()
    f = C.fetch(11, [(name("nowhere"), 0, 0), (t, 7, 0)], wait=8000)["parts"]
    same(sorted(x["error"] for x in f.values()), [3, 3])
    if time.time() - started > 5:
        raise AssertionError("it waited with nothing to wait for")


# ---- B14: delete and make again ----

def recreate():
    t = name("again")
    first = C.create(t)
    C.append(t, batch([b"old"] * 5))
    same(C.fetch(13, [(first, 0, 0)])["parts"][(first, 0)]["error"], 0)
    same(C.delete_topics(5, [t])[0]["error"], 0)
    same(C.metadata(4, [t], auto=False)["topics"][t]["error"], 3)
    second = C.create(t)
    if first == second:
        raise AssertionError("the same topic id")
    same(C.append(t, batch([b"new"])), 0, "offsets begin at 0")
    same(C.fetch(13, [(first, 0, 0)])["parts"][(first, 0)]["error"], 100)
    p = C.fetch(13, [(second, 0, 0)])["parts"][(second, 0)]
    same([v for _, v in values(p["data"])], [b"new"])
    d = C.delete_topics(6, [(None, second)])[0]
    same((d["name"], d["error"]), (t, 0))
    same(C.delete_topics(6, [(None, second)])[0]["error"], 100)
    same(C.delete_topics(5, [t])[0]["error"], 3)
    same(C.delete_topics(6, [(t, second)])[0]["error"], 42)


def deleted_twice():
    t, other, third = topic("dt"), topic("du"), topic("dv")
    found = C.delete_topics(5, [t, other, t, name("nowhere"), t])
    same([(d["name"], d["error"]) for d in found],
         [(t, 42), (other, 0), (t, 42), (name("nowhere"), 3), (t, 42)])
    id_of = C.metadata(12, [t])["topics"][t]["id"]
    found = C.delete_topics(6, [(None, id_of), (third, NO_ID), (t, NO_ID)])
    same([d["error"] for d in found], [42, 0, 42], "by its id and by its name")
    same([C.metadata(4, [x], auto=False)["topics"][x]["error"] for x in (t, other, third)],
         [0, 3, 3])


def deleted_by_an_old_id():
    """A topic made again while the deletion by its old id is in line stays."""
    t = name("stays")
    first = C.create(t)
    conns = [Conn(ADDRESS, timeout=60) for _ in range(4)]
    # topics change one after the other: this one gives the time to send the rest
    conns[0].send(CREATE_TOPICS, 4, W().count(1).string(name("slow")).i32(200).i16(1).count(0)
                  .count(0).i32(5000).i8(0).b)
    time.sleep(0.01)
    conns[1].send(DELETE_TOPICS, 1, W().count(1).string(t).i32(5000).b)
    time.sleep(0.01)
    conns[2].send(CREATE_TOPICS, 4, W().count(1).string(t).i32(1).i16(1).count(0).count(0)
                  .i32(5000).i8(0).b)
    time.sleep(0.01)
    got = conns[3].delete_topics(6, [(None, first)])[0]
    same(got["error"], 100)
    conns[0].receive(CREATE_TOPICS, 4)
    conns[1].receive(DELETE_TOPICS, 1)
    conns[2].receive(CREATE_TOPICS, 4)
    same(C.metadata(4, [t], auto=False)["topics"][t]["error"], 0)
    for c in conns:
        c.close()
    C.delete_topics(5, [name("slow")])


# ---- B19: DeleteRecords ----

def delete_records():
    t = topic("shorter")
    for i in range(5):
        C.append(t, batch([b"a%d" % i, b"b%d" % i]))

    def to(offset, version=2, partition=0):
        return C.delete_records(version, t, [(partition, offset)])[partition]
    same(to(4, version=0), (4, 0))
    for version in range(3):
        same(to(-2, version), (-1, 1), "below 0")
        same(to(11, version), (-1, 1), "above the high watermark")
        same(to(3, version), (4, 0), "never back")
        same(to(4, version), (4, 0), "where it is")
    p = C.read(t, 3)
    same((p["error"], p["start"], p["hw"]), (1, 4, 10))
    same(C.read(t, 4)["error"], 0)
    same(C.list_offsets(5, t, -2)["offset"], 4)
    # inside a batch: it comes whole, and what lies below the start is the reader's to skip
    same(to(5), (5, 0))
    p = C.read(t, 5)
    same((p["error"], p["start"], [o for o, _ in values(p["data"])][:2]), (0, 5, [4, 5]))
    same(C.read(t, 4)["error"], 1)
    same(C.list_offsets(5, t, -2)["offset"], 5)
    same(C.list_offsets(5, t, 0)["offset"], 5, "by time, not below the start")
    same(to(-1), (10, 0))
    same((C.read(t, 9)["error"], C.read(t, 10)["error"]), (1, 0))
    same(C.append(t, batch([b"next"])), 10)
    same(to(0, partition=1), (-1, 3), "no such partition")
    same(to(0, partition=-1), (-1, 3))
    same(C.delete_records(2, name("nowhere"), [(0, 0)])[0], (-1, 3))
    same(C.metadata(4, [name("nowhere")], auto=False)["topics"][name("nowhere")]["error"], 3)


def delete_records_policies():
    compact = topic("compacts", cleanup_policy="compact")
    both = topic("both", cleanup_policy="compact,delete")
    for t in compact, both:
        C.append(t, batch([b"v"] * 3, keys=[b"k"] * 3))
    same(C.delete_records(2, compact, [(0, 1)])[0], (-1, 44))
    same(C.delete_records(1, compact, [(0, -1)])[0], (-1, 44))
    same(C.delete_records(2, both, [(0, 1)])[0], (1, 0))
    C.create_topics(4, [("__consumer_offsets", 1)])
    same(C.delete_records(2, "__consumer_offsets", [(0, 0)])[0], (-1, 17))


def delete_records_many():
    t = topic("wide", 5)
    for i in range(5):
        C.append(t, batch([b"x"] * (i + 1)), partition=i)
    same(C.delete_records(2, t, [(0, -1), (1, 1), (2, 9), (3, -1), (7, 0)]),
         {0: (1, 0), 1: (1, 0), 2: (-1, 1), 3: (4, 0), 7: (-1, 3)})
    same([p["offset"] for p in C.list_offsets(5, t, [-2] * 5)], [1, 1, 0, 4, 0])


def named_twice():
    t = topic("twice", 3)
    for i in range(3):
        C.append(t, batch([b"x"] * 9), partition=i)
    for time_of in (0, -1, -2):
        found = C.list_offsets(5, t, [time_of] * 6, partitions=[1, 0, 1, 7, 2, 1])
        same([(p["index"], p["error"]) for p in found],
             [(1, 42), (0, 0), (1, 42), (7, 3), (2, 0), (1, 42)])
        same([p["offset"] for p in found if p["error"]], [-1] * 4)
    # of a partition's offsets the last counts, be it the smaller one
    same(C.delete_records(2, t, [(1, 7), (0, 2), (1, 4), (2, 20), (2, 1)]),
         {1: (4, 0), 0: (2, 0), 2: (1, 0)})
    same([p["offset"] for p in C.list_offsets(5, t, [-2] * 3)], [2, 4, 1])


def delete_under_reader():
    t = topic("gone")
    c = Conn(ADDRESS)
    n = c.send(FETCH, 11, c.fetch_body(11, [(t, 0, 0)], wait=10000))
    time.sleep(0.2)
    started = time.time()
    C.delete_topics(5, [t])
    p = parse_fetch(c.receive(FETCH, 11, n), 11)["parts"][(t, 0)]
    same(p["error"], 3)
    if time.time() - started > 5:
        raise AssertionError("the reader was not woken")
    c.close()


# ---- creation ----

def creation():
    t = name("c")
    one = C.create_topics(7, [(t, 3, 1, {"retention.ms": "5000"})], validate=True)[0]
    same((one["error"], one["partitions"]), (0, 3))
    same(C.metadata(4, [t], auto=False)["topics"][t]["error"], 3, "validate_only makes nothing")
    one = C.create_topics(7, [(t, 3, 1, {"retention.ms": "5000"})])[0]
    same((one["error"], one["partitions"], one["replication"]), (0, 3, 1))
    configs = {c[0]: (c[1], c[3]) for c in one["configs"]}
    same(configs["retention.ms"], ("5000", 1))
    same(configs["cleanup.policy"], ("delete", 5))
    same(len(C.metadata(4, [t])["topics"][t]["partitions"]), 3)
    same(C.create_topics(4, [(t, 1)])[0]["error"], 36, "exists")
    cases = ((37, 0, -1, {}, []), (37, -2, -1, {}, []), (38, 1, 3, {}, []), (38, 1, 0, {}, []),
             (39, -1, -1, {}, [(0, [99])]), (39, -1, -1, {}, [(1, [0])]),
             (42, 2, 1, {}, [(0, [0])]), (40, 1, 1, {"retention.mss": "1"}, []),
             (40, 1, 1, {"retention.ms": "soon"}, []), (40, 1, 1, {"retention.ms": None}, []))
    for error, partitions, replication, config, assignments in cases:
        got = C.create_topics(4, [(name("x"), partitions, replication, config, assignments)])[0]
        same(got["error"], error, f"{partitions} {replication} {config} {assignments}")
        if not got["message"]:
            raise AssertionError(f"error {error} without a message")
    same(C.create_topics(4, [("no good", 1)])[0]["error"], 17)
    same([x["error"] for x in C.create_topics(4, [(name("y"), 1)] * 2)], [42, 42], "twice")
    same(C.create_topics(4, [(name("z"), -1)])[0]["error"], 0, "default partitions")
    node = C.metadata(4, [])["brokers"][0][0]
    got = C.create_topics(5, [(name("as"), -1, -1, {}, [(0, [node]), (1, [node])])])[0]
    same((got["error"], got["partitions"]), (0, 2), "by assignment")
    same(C.create_topics(4, [(name("z").replace("-", "."), 1)])[0]["error"], 0)
    same(C.create_topics(4, [(name("z").replace("-", "_"), 1)])[0]["error"], 17, "collides")


# ---- B15: batches that are refused ----

def refuses(text, data, error, version=8, config=None):
    t = topic(text, 2, **(config or {}))
    good = batch([b"good"])
    got = C.produce(version, t, [(0, data), (1, good)])
    same(got[0]["error"], error, text)
    same((got[0]["base"], got[1]["error"], got[1]["base"]), (-1, 0, 0), text)
    same(C.read(t, 0)["hw"], 0, "nothing appended")
    same(C.append(t, good), 0, "the next append")
    return got[0]


def batch_checks():
    two = batch([b"a", b"b"])
    refuses("delta", batch([b"a", b"b"], last_delta=5), 87)
    refuses("count0", batch([b"a"], count=0, last_delta=-1), 87)
    refuses("count9", batch([b"a"], count=9, last_delta=8), 87)
    refuses("control", batch([b"a"], attributes=0x20), 87)
    refuses("noseq", batch([b"a"], producer=(5, 0, -1)), 87)
    refuses("base", batch([b"a"], base_offset=7), 87)
    refuses("twobatches", two + two, 87)
    refuses("magic1", batch([b"a"], magic=1), 87)
    refuses("nothing", b"", 87)
    refuses("crc", batch([b"a"], crc=12345), 2)
    refuses("torn", two[:-3], 87)
    refuses("lost", batch([b"a"], body=record(0, 0, None, b"a")[:-1]), 87)
    refuses("behind", batch([b"a"], body=record(0, 0, None, b"a") + b"\0"), 87)
    refuses("badzip", batch([b"a"], codec=1, body=b"no gzip at all"), 87)


def too_large():
    t = topic("big", max_message_bytes="2000")
    same(C.produce(8, t, [(0, batch([b"v" * 2000]))])[0]["error"], 10)
    same(C.append(t, batch([b"v" * 1500])), 0)
    t = topic("default")
    same(C.produce(8, t, [(0, batch([b"v" * 1048588]))])[0]["error"], 10)


def keyless():
    t = topic("compact", cleanup_policy="compact")
    got = C.produce(8, t, [(0, batch([b"a", b"b", b"c"], keys=[b"k", None, b"k"]))])[0]
    same((got["error"], [i for i, _ in got["records"]]), (87, [1]))
    same(C.append(t, batch([b"a"], keys=[b"k"])), 0)


def record_times():
    now = int(time.time() * 1000)
    late = {"message_timestamp_after_max_ms": "10000", "message_timestamp_before_max_ms": "5000"}
    got = refuses("future", batch([b"a", b"b"], [now, now + 60000]), 32, config=late)
    same([i for i, _ in got["records"]], [1])
    refuses("past", batch([b"a"], [now - 60000]), 32, config=late)
    refuses("minus", batch([b"a"], [-1]), 32)
    refuses("bit", batch([b"a"], attributes=8), 32,
            config={"message_timestamp_type": "LogAppendTime"})


def times_are_set():
    now = int(time.time() * 1000)
    t = topic("maxtime")
    C.append(t, batch([b"a", b"b"], [now - 5, now - 9], max_time=now + 777))
    base, count, attributes, max_time, raw = batches(C.read(t, 0)["data"])[0]
    same(max_time, now - 5, "the header's max timestamp")
    same(struct.unpack_from(">I", raw, 17)[0], crc32c(raw[21:]), "its CRC")
    C.append(t, batch([b"a"], [now], attributes=8))
    same(batches(C.read(t, 1)["data"])[-1][2] & 8, 0, "LogAppendTime bit on a CreateTime topic")
    t = topic("append", message_timestamp_type="LogAppendTime")
    got = C.produce(8, t, [(0, batch([b"a"], [5]))])[0]
    same(got["error"], 0)
    if abs(got["time"] - now) > 60000:
        raise AssertionError(f"log append time {got['time']}")
    base, count, attributes, max_time, raw = batches(C.read(t, 0)["data"])[0]
    same((attributes & 8, max_time), (8, got["time"]))
    same(struct.unpack_from(">I", raw, 17)[0], crc32c(raw[21:]))


def acks():
    t = topic("acks")
    for n, a in enumerate((1, -1)):
        same(C.produce(7, t, [(0, batch([b"x"]))], acks=a)[0]["base"], n)
    same(C.produce(7, t, [(0, batch([b"x"]))], acks=2)[0]["error"], 21)
    c = Conn(ADDRESS)
    c.send(PRODUCE, 7, c.produce_body(7, t, [(0, batch([b"silent"]))], acks=0))
    same(c.metadata(4, [t])["topics"][t]["error"], 0, "the next answer is the next request's")
    same(C.read(t, 2)["hw"], 3)
    c.send(PRODUCE, 7, c.produce_body(7, t, [(0, batch([b"x"], crc=1))], acks=0))
    if not closed(c):
        raise AssertionError("an error with acks=0 does not end the connection")
    same(C.produce(7, name("nowhere"), [(0, batch([b"x"]))])[0]["error"], 3)
    same(C.produce(7, t, [(5, batch([b"x"]))])[5]["error"], 3)
    t = topic("insync", min_insync_replicas="2")
    same(C.produce(7, t, [(0, batch([b"x"]))], acks=-1)[0]["error"], 19)
    same(C.produce(7, t, [(0, batch([b"x"]))], acks=1)[0]["base"], 0, "nothing was appended")


def produce_versions():
    t = topic("versions")
    tid = C.metadata(12, [t])["topics"][t]["id"]
    for n, version in enumerate(range(3, 14)):
        told = tid if version >= 13 else t
        got = C.produce(version, told, [(0, batch([b"x"]))])
        same(got[0]["base"], n, f"version {version}")
        same(got.topic, told)
    same(C.produce(13, bytes(15) + b"\1", [(0, batch([b"x"]))])[0]["error"], 100, "no such id")
    same(C.produce(13, tid, [(7, batch([b"x"]))])[7]["error"], 3, "no such partition")
    for version in list(range(4, 13)):
        f = C.fetch(version, [(t, 0, 0)])["parts"][(t, 0)]
        same((f["error"], len(values(f["data"]))), (0, 11), f"Fetch {version}")
    for version in range(13, 19):
        f = C.fetch(version, [(tid, 0, 0)])["parts"][(tid, 0)]
        same((f["error"], len(values(f["data"]))), (0, 11), f"Fetch {version}")
    same(C.fetch(13, [(b"y" * 16, 0, 0)])["parts"][(b"y" * 16, 0)]["error"], 100)


# ---- order and company ----

def pipelined():
    """A hundred requests before one answer is read; appended and answered in order."""
    t = topic("pipe")
    c = Conn(ADDRESS)
    frames = [c.frame(PRODUCE, 7, c.produce_body(7, t, [(0, batch([b"%d" % i]))]))
              for i in range(100)]
    c.send_raw(b"".join(frames))
    for i in range(100):
        same(parse_produce(c.receive(PRODUCE, 7, i + 1), 7)[0]["base"], i)
    same([v for _, v in values(C.read(t, 0)["data"])], [b"%d" % i for i in range(100)])
    c.close()


def many_writers():
    """Several connections to several partitions: each order is kept, nothing is lost."""
    t = topic("writers", 4)
    errors = []

    def write(n):
        try:
            c = Conn(ADDRESS)
            for i in range(50):
                for p in range(4):
                    c.append(t, batch([b"%d:%d" % (n, i)]), partition=p)
            c.close()
        except Exception as e:      # told below, in the thread that counts
            errors.append(e)
    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    same(errors, [])
    for p in range(4):
        got, at = [], 0
        while at < 200:
            one = values(C.read(t, at, partition=p)["data"])
            got += [v for o, v in one if o >= at]
            at = one[-1][0] + 1
        same(len(got), 200)
        for n in range(4):
            mine = [v for v in got if v.startswith(b"%d:" % n)]
            same(mine, [b"%d:%d" % (n, i) for i in range(50)])


for title, fn in (
        ("B1 ApiVersions of an unknown version is answered in v0 with 35", unknown_api_versions),
        ("B1 a client's name that is none gives 42", client_name),
        ("ApiVersions 0 and Metadata 0 back to back are answered in order", two_at_once),
        ("FindCoordinator: there is none", no_coordinator),
        ("B2 versions that are not served end the connection", refused_versions),
        ("B5 all topics and none, in every version", metadata_all_and_none),
        ("B5 a topic is made only when asked", auto_creation),
        ("B5 a bad name gives 17 and nothing is made", bad_names),
        ("topic ids in Metadata", topic_ids),
        ("B6 times 2, 4, 6, 8 as four batches", times_in_batches),
        ("B6 as one batch", times_in_one_batch),
        ("B6 as one gzip batch", times_in_gzip),
        ("B6 times out of order", times_out_of_order),
        ("B8 leader epochs; 74 and 75", leader_epochs),
        ("B26 where a leader epoch ended", epoch_ends),
        ("B10 the first batch comes whole, for the first partition only", one_large_batch),
        ("B10 a small batch before a large one comes alone", small_then_large),
        ("max_bytes holds over all partitions", limits_hold),
        ("B11 ends, ranges and true offsets", ranges),
        ("a long poll waits, and wakes", long_poll),
        ("min_bytes is waited for", min_bytes),
        ("a partition that Fetch names twice", fetched_twice),
        ("more partitions with records than an answer has room for", many_partitions_with_records),
        ("one append of twenty partitions wakes", many_partitions_wait),
        ("read_committed has an empty list of aborted transactions", read_committed),
        ("B12 zstd: 76 below Fetch 10 and Produce 7", zstd_topics),
        ("B13 fetch sessions", sessions),
        ("B13 a session without partitions answers at once", session_without_partitions),
        ("B13 names and ids do not mix in a session", session_ids_and_names),
        ("B13 a moved high watermark is told", session_high_watermark),
        ("B13 fetches of a session one behind the other", session_pipelined),
        ("an unknown topic beside others does not end their wait", unknown_beside),
        ("B14 delete and make again", recreate),
        ("B14 a deletion that names a topic twice", deleted_twice),
        ("B14 a deletion by an old id leaves the new topic", deleted_by_an_old_id),
        ("a topic is deleted under a waiting reader", delete_under_reader),
        ("B19 DeleteRecords: offsets and ends", delete_records),
        ("B19 DeleteRecords: 44 where a topic only compacts, 17 for an internal one",
         delete_records_policies),
        ("B19 DeleteRecords: many partitions", delete_records_many),
        ("partitions that ListOffsets and DeleteRecords name twice", named_twice),
        ("CreateTopics: what it checks and answers", creation),
        ("B15 batches that are refused", batch_checks),
        ("B15 larger than max.message.bytes: 10", too_large),
        ("B15 a null key on a compacted topic names its record", keyless),
        ("B15 times out of range: 32", record_times),
        ("B15 max timestamp and time type are the broker's", times_are_set),
        ("acks 0, 1, all", acks),
        ("Produce 3 to 11 and Fetch 4 to 18", produce_versions),
        ("a hundred requests in flight stay in order", pipelined),
        ("four writers to four partitions", many_writers),
):
    T.run(title, fn)
T.run("the first connection has stayed open", lambda: same(C.api_versions(0)["error"], 0))
T.end()
