# SPDX-License-Identifier: MIT
"""One QEMU with its ports, from start to end."""

import ctypes
import os
import select
import signal
import socket
import subprocess
import threading
import time

import fail

_PR_SET_PDEATHSIG = 1

# How long a guest may take: to run the command, in seconds, and from the
# command's end to its own. An emulated debug kernel on a busy machine is slow.
_BOOT_LIMIT = 400
_END_LIMIT = 400


class Guest:
    """Runs QEMU once. See vm.py for what the options mean."""

    def __init__(self, args, initrd, input_fd):
        """args: QEMU's, without ports and initramfs. input_fd: or None."""
        self.ready = None  # seconds from start to the command
        self.status = None  # the command's
        self.failures = []  # what the guest's init found wrong
        self.notes = []
        self.texts = []
        self.fatal = None
        self.done = False
        self.ended_by = None  # "timeout" or the name of a signal
        self.broken_pipe = False
        self._bytes = None
        self._log_len = None
        self._serial = bytearray()
        self._log = bytearray()
        self._args = args
        self._initrd = initrd
        self._input_fd = input_fd
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_w, False)
        self._signals = []
        self._proc = None
        self._counts = {"out": 0, "err": 0}

    # --- start -----------------------------------------------------------

    def start(self, merge, verbose):
        """Starts QEMU. merge: stdout and stderr are one. verbose: log to stderr."""
        ours, fds = {}, []
        ports = ["serial", "ctl", "log", "out"]
        if not merge:
            ports.append("err")
        if self._input_fd is not None:
            ports.append("in")
        argv = list(self._args)
        for nr, name in enumerate(ports):
            mine, theirs = socket.socketpair()
            theirs.set_inheritable(True)
            ours[name] = mine
            fds.append(theirs)
            argv += ["-chardev", f"socket,id={name},fd={theirs.fileno()}"]
            if name == "serial":
                argv += ["-serial", f"chardev:{name}", "-device", "virtio-serial-pci,max_ports=8"]
            else:
                argv += ["-device", f"virtserialport,chardev={name},name={name},nr={nr}"]
        initrd = os.memfd_create("initrd", 0)
        if os.write(initrd, self._initrd) != len(self._initrd):
            raise fail.Broken("no memory for the guest's initramfs")
        argv += ["-initrd", f"/proc/self/fd/{initrd}"]

        self._began = time.monotonic()
        self._errors = open_scratch()
        try:
            self._proc = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                pass_fds=[f.fileno() for f in fds] + [initrd],
                # Ctrl-C at a terminal is for us; we pass it on in our own way.
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        except OSError as e:
            raise fail.Broken(f"cannot start {argv[0]}: {e.strerror}") from None
        for f in fds:
            f.close()
        os.close(initrd)
        self._ctl = ours["ctl"]
        self._ctl.setblocking(False)
        self._threads = {
            "out": self._copy("out", ours["out"], 1),
            "serial": self._collect(ours["serial"], self._serial, 2 if verbose else None),
            "log": self._collect(ours["log"], self._log, None),
        }
        if not merge:
            self._threads["err"] = self._copy("err", ours["err"], 2)
        if self._input_fd is not None:
            # Kept: a port that closes loses what the guest has not read yet.
            self._input = ours["in"]
            _thread(lambda: self._feed(self._input))

    def _collect(self, sock, into, show):
        def run():
            while True:
                data = _recv(sock)
                if not data:
                    return
                into.extend(data)
                if show is not None:
                    _write_all(show, data)

        return _thread(run)

    def _copy(self, name, sock, fd):
        def run():
            lost = False
            while True:
                data = _recv(sock)
                if not data:
                    return
                if not lost and not _write_all(fd, data):
                    # Nobody reads any more: the command must not wait for it.
                    lost = True
                    self.broken_pipe = True
                    self.signal(signal.SIGPIPE)
                self._counts[name] += len(data)

        return _thread(run)

    def _feed(self, sock):
        total = 0
        while True:
            try:
                data = os.read(self._input_fd, 65536)
            except OSError:
                data = b""
            if not data:
                break
            try:
                sock.sendall(data)
            except OSError:
                break
            total += len(data)
        self._tell(f"eof {total}")

    # --- run -------------------------------------------------------------

    def signal(self, number):
        """Asks the guest to end; may be called from a signal handler."""
        self._signals.append(number)
        try:
            os.write(self._wake_w, b".")
        except BlockingIOError:
            pass

    def run(self, timeout, grace, started=None):
        """Waits for the guest's end, and ends it when it has to.

        timeout: seconds that the command may take, None without limit. grace:
        seconds that it has after a signal. started: called when it starts.
        """
        deadline = self._began + _BOOT_LIMIT
        state = "boot"
        pending = b""
        poll = select.poll()
        poll.register(self._ctl, select.POLLIN)
        poll.register(self._wake_r, select.POLLIN)
        open_ctl = True
        signals = 0
        last = 0.0

        while open_ctl:
            wait = None if deadline is None else max(0, deadline - time.monotonic()) * 1000
            events = dict(poll.poll(wait))
            if self._wake_r in events:
                os.read(self._wake_r, 100)
                while self._signals:
                    number = self._signals.pop(0)
                    # One wish may come twice: timeout(1) tells its child and its
                    # group, a terminal a script and what the script tells too.
                    now = time.monotonic()
                    if signals and now - last < 1:
                        continue
                    signals, last = signals + 1, now
                    if self.ended_by is None:
                        self.ended_by = signal.Signals(number).name
                    if state == "boot" or signals > 2:
                        self._kill()
                    elif state == "run":
                        self._tell("term")
                        state, deadline = "term", time.monotonic() + grace
                    elif state == "term":
                        self._tell("kill")
                        state, deadline = "end", time.monotonic() + _END_LIMIT
            if self._ctl.fileno() in events:
                try:
                    data = self._ctl.recv(65536)
                except BlockingIOError:
                    continue
                except OSError:
                    data = b""
                if not data:
                    open_ctl = False
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    key, _, text = line.decode(errors="replace").partition(" ")
                    if key == "ready":
                        self.ready = time.monotonic() - self._began
                        if started:
                            started()
                        if state == "boot":
                            state = "run"
                            deadline = None if timeout is None else time.monotonic() + timeout
                    elif key == "status":
                        self.status = int(text)
                        state, deadline = "end", time.monotonic() + _END_LIMIT
                    elif key == "fail":
                        self.failures.append(text)
                    elif key == "note":
                        self.notes.append(text)
                    elif key == "text":
                        self.texts.append(text)
                    elif key == "told" and state == "hang":
                        # The console may lag behind by a moment.
                        deadline = time.monotonic() + 1
                    elif key == "fatal":
                        self.fatal = text
                        self._kill()
                    elif key == "bytes":
                        self._bytes = [int(n) for n in text.split()]
                    elif key == "log":
                        self._log_len = int(text)
                    elif key == "done":
                        self.done = True
                        state, deadline = "off", time.monotonic() + 15
            elif deadline is not None and time.monotonic() >= deadline:
                if state == "boot":
                    self.fatal = f"the guest did not come up within {_BOOT_LIMIT} s"
                    self._kill()
                elif state == "run":
                    # What hangs, and where, into the kernel log first.
                    self.ended_by = "timeout"
                    self._tell("hang")
                    state, deadline = "hang", time.monotonic() + 20
                elif state == "hang":
                    self._kill()
                elif state == "term":
                    self._tell("kill")
                    state, deadline = "end", time.monotonic() + _END_LIMIT
                elif state == "off":
                    self._kill()
                elif state == "end":
                    self.failures.append(
                        f"the guest did not end within {_END_LIMIT} s of its command"
                    )
                    self._kill()
        self._wait()

    def _tell(self, line):
        try:
            self._ctl.send(line.encode() + b"\n")
        except OSError:
            pass

    def _kill(self):
        """Ends QEMU at once; its control port closes with it."""
        if self._proc and self._proc.poll() is None:
            self._proc.kill()

    def _wait(self):
        self._proc.wait()
        # Their sockets are closed now: the threads end when they have copied
        # what was left, unless nobody takes our output.
        for thread in self._threads.values():
            thread.join(30)

    def stop(self):
        """Leaves no QEMU behind, whatever happened."""
        if self._proc and self._proc.poll() is None:
            self._proc.kill()
            self._proc.wait()

    # --- afterwards ------------------------------------------------------

    def kernel_log(self):
        """The kernel's log: the console's text, and what the guest sent at the end."""
        console = self._serial.decode(errors="replace").replace("\r", "")
        return console, self._log.decode(errors="replace")

    def age(self):
        """Seconds since QEMU was started."""
        return time.monotonic() - self._began

    def qemu_errors(self):
        """What QEMU itself wrote."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip()

    def lost_output(self):
        """True if less arrived than the guest had sent."""
        if self._bytes is None or self.broken_pipe:
            return False
        return self._bytes != [self._counts["out"], self._counts["err"]]


def open_scratch():
    """Returns an unnamed file in memory."""
    return os.fdopen(os.memfd_create("errors"), "w+b", buffering=0)


def _thread(run):
    t = threading.Thread(target=run, daemon=True)
    t.start()
    return t


def _recv(sock):
    try:
        return sock.recv(65536)
    except OSError:
        return b""


def _write_all(fd, data):
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            # Someone made the terminal non-blocking; wait for room.
            select.select([], [fd], [])
        except OSError:
            return False
    return True


def _die_with_parent():
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
