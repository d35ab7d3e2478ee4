#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden_batches.txt: record batches as kafka-python makes them.

    pip install kafka-python==2.0.2 python-snappy lz4 zstandard crc32c
    python3 golden_batches.py > golden_batches.txt

A line: name of the codec, hex of the batch. The records are those of test_records.c's
test_golden().
"""
import sys

# kafka-python 2.0.2 carries an old copy of six that newer Pythons do not load
try:
    import kafka.vendor.six.moves  # noqa: F401
except ImportError:
    import six
    sys.modules["kafka.vendor.six"] = six
    sys.modules["kafka.vendor.six.moves"] = six.moves

from kafka.record.default_records import DefaultRecordBatchBuilder

RECORDS = [
    (1600000000000, b"key", b"value", []),
    (1600000000005, None, b"x" * 1000, [("h1", b"v1"), ("h2", b"")]),
    (1599999999999, b"", None, []),
    (1600000000003, b"k" * 300, b"", [("h", None)]),
]


def main():
    print("# SPDX-License-Identifier: MIT")
    print("# Made by golden_batches.py, see there.")
    for codec, name in enumerate(["none", "gzip", "snappy", "lz4", "zstd"]):
        builder = DefaultRecordBatchBuilder(
            magic=2, compression_type=codec, is_transactional=False, producer_id=-1,
            producer_epoch=-1, base_sequence=-1, batch_size=1 << 20)
        for i, (time, key, value, headers) in enumerate(RECORDS):
            builder.append(i, time, key, value, headers)
        print(name, bytes(builder.build()).hex())


if __name__ == "__main__":
    sys.exit(main())
