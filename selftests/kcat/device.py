# SPDX-License-Identifier: MIT
"""ioctls of the module beside a plogd that runs: what a test does in a daemon's place."""
import fcntl
import os
import struct

MODE_BATCH = 1
CONTROL_UNSTABLE = 7


def _iowr(nr, size):
    return 3 << 30 | size << 16 | 0xB9 << 8 | nr


def _call(fd, nr, data):
    arg = bytearray(data)
    fcntl.ioctl(fd, _iowr(nr, len(arg)), arg)
    return arg


def bind(topic, partition):
    fd = os.open("/dev/plog-control", os.O_RDWR)
    _call(fd, 0x01, struct.pack("<II256s", MODE_BATCH, partition, topic.encode()))
    return fd


def incarnation():
    """Of the daemon that is registered, 0 if none is."""
    fd = os.open("/dev/plog-control", os.O_RDWR)
    found = struct.unpack_from("<IIQIIQ", _call(fd, 0x00, bytes(64)))[5]
    os.close(fd)
    return found


def set_unstable(topic, partition, offset):
    """Say, in the name of the daemon, which transaction is the oldest that is open."""
    fd = bind(topic, partition)
    _call(fd, 0x15, struct.pack("<IiQqiIQ", CONTROL_UNSTABLE, 0, incarnation(), offset, 0, 0, 0))
    os.close(fd)
