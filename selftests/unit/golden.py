#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden_messages.txt: messages as an implementation other than ours encodes them.

    pip install kio==0.6.5 && python3 golden.py > golden_messages.txt

kio's classes are generated from Apache Kafka's own message definitions. What is in a
message follows from the names of its fields alone (see value()), so that test_codec.c can
work out the same content without knowing in which order the fields travel.

A line: key, version, q(uestion) or a(nswer), content (0 full, 1 bare), hex of header and body.
"""
import dataclasses
import datetime
import importlib
import io
import sys
import types
import typing
import uuid

from kio.serial import entity_writer

APIS = [
    ("produce", 0, range(3, 14)), ("fetch", 1, range(4, 19)), ("list_offsets", 2, range(1, 12)),
    ("metadata", 3, range(0, 14)), ("find_coordinator", 10, range(0, 3)),
    ("api_versions", 18, range(0, 5)),
    ("create_topics", 19, range(2, 8)), ("delete_topics", 20, range(1, 7)),
    ("delete_records", 21, range(0, 3)),
    ("offset_for_leader_epoch", 23, range(2, 5)),
]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def plain(name):
    """The field's name in lower case without a unit: kio has its own idea of both."""
    name = name.replace("_", "").lower()
    return name[:-2] if name.endswith("ms") else name


def number(name, k):
    h = 2166136261
    for c in name.encode():
        h = (h ^ c) * 16777619 & 0xffffffff
    return h ^ (k * 0x9e3779b1 & 0xffffffff)


def scalar(kind, name, k, full):
    h = number(name, k) if full else 0
    if kind == "bool":
        return bool(h & 1)
    if kind == "int8":
        return h % 100
    if kind == "int16":
        return h % 80 if name.endswith("errorcode") else h % 20000
    if kind == "error_code":
        from kio.schema.errors import ErrorCode
        return ErrorCode(h % 80)
    if kind == "int32":
        return h & 0x7fffffff
    if kind == "timedelta_i32":
        return datetime.timedelta(milliseconds=h & 0x7fffffff)
    if kind == "int64":
        return h * 1000
    if kind == "datetime_i64":
        return EPOCH + datetime.timedelta(milliseconds=h * 1000)
    if kind == "uuid":
        raw = bytes((h >> 8 * (j % 4) & 0xff) ^ j for j in range(16))
        return uuid.UUID(bytes=raw) if full else None
    if kind == "string":
        return f"{name}-{k}" if full else ""
    if kind == "records":
        return f"{name}{name}{k}".encode() if full else b""
    raise ValueError(kind)


def value(field, kind, name, k, full):
    """One field of an object whose place in the message is k."""
    if "tag" in field.metadata and not full:
        return field.default
    args = typing.get_args(kind)
    nullable = isinstance(kind, types.UnionType) and field.metadata.get("kafka_type") not in (
        "uuid", "datetime_i64")
    if isinstance(kind, types.UnionType):
        kind = args[0]
    if nullable and (k % 2 or not full):
        return None
    if typing.get_origin(kind) is tuple:
        element = typing.get_args(kind)[0]
        if not full:
            return ()
        return tuple(one(field, element, name, 2 * k + 1 + i) for i in range(2))
    return one(field, kind, name, k, full)


def one(field, kind, name, k, full=True):
    if dataclasses.is_dataclass(kind) and "kafka_type" not in field.metadata:
        return entity(kind, k, full)
    return scalar(field.metadata["kafka_type"], name, k, full)


def entity(kind, k, full):
    hints = typing.get_type_hints(kind)
    return kind(**{f.name: value(f, hints[f.name], plain(f.name), k, full)
                   for f in dataclasses.fields(kind)})


def encode(obj):
    out = io.BytesIO()
    entity_writer(type(obj))(out, obj)
    return out.getvalue()


def main():
    print("# SPDX-License-Identifier: MIT")
    print("# Made by golden.py, see there.")
    for api, key, versions in APIS:
        for version in versions:
            for side, what in (("q", "request"), ("a", "response")):
                module = importlib.import_module(f"kio.schema.{api}.v{version}.{what}")
                cls = next(c for c in vars(module).values() if dataclasses.is_dataclass(c)
                           and c.__module__ == module.__name__
                           and c.__type__.name == what)
                header = cls.__header_schema__
                if side == "q":
                    head = header(request_api_key=key, request_api_version=version,
                                  correlation_id=7, client_id="golden")
                else:
                    head = header(correlation_id=7)
                for full in (True, False):
                    raw = encode(head) + encode(entity(cls, 0, full))
                    print(key, version, side, 0 if full else 1, raw.hex())


if __name__ == "__main__":
    sys.exit(main())
