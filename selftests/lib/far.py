#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The other end of far.c: runs the command that comes on standard input, in the project's folder.

Where the connection ends first, because whoever asked has been killed, the command is, too.
"""
import os
import signal
import struct
import subprocess
import sys
import threading

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
lock = threading.Lock()


def send(what, data):
    with lock:
        frame = what + struct.pack(">I", len(data)) + data
        while frame:
            frame = frame[os.write(1, frame):]


def read(size):
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def receive():
    what, size = struct.unpack(">cI", read(5))
    return what, read(size)


def relay(pipe, what):
    """The command's output, and that of whomever it leaves it to, until the last is gone."""
    while data := os.read(pipe.fileno(), 65536):
        send(what, data)


def feed(child):
    """The command's input, while it takes any; and its end with ours."""
    try:
        while True:
            what, data = receive()
            try:
                if what == b"i" and data:
                    child.stdin.write(data)
                elif what == b"i":
                    child.stdin.close()
            except (OSError, ValueError):
                pass        # it has closed it
    except (EOFError, OSError):
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    what, data = receive()
    if what != b"a":
        return 1
    command = [os.fsdecode(x) for x in data.split(b"\0")[:-1]]
    try:
        child = subprocess.Popen(command, cwd=TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, bufsize=0, start_new_session=True)
    except OSError as e:
        send(b"e", f"far: {command[0]}: {e.strerror}\n".encode())
        send(b"x", bytes([127 if isinstance(e, FileNotFoundError) else 126]))
        return 0
    threading.Thread(target=feed, args=(child,), daemon=True).start()
    out = [threading.Thread(target=relay, args=(child.stdout, b"o")),
           threading.Thread(target=relay, args=(child.stderr, b"e"))]
    for thread in out:
        thread.start()
    for thread in out:
        thread.join()
    status = child.wait()
    send(b"x", bytes([status if status >= 0 else 128 - status]))
    return 0


sys.exit(main())
