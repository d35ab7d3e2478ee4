#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills guests under load and looks what the next one finds. selftests/crash/run starts it.

    killed.py --vm TOOL --program PROGRAM --module FILE --dir DIR [--kernel KIND]
              [--seed N] FS:KILLS...

For each FS one guest after the other uses one kept disk, all FS at once: each opens
what the one before left, compares, and writes until QEMU gets SIGKILL at a random
moment. What was acknowledged is what had come out of the guest by then.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time


class Lane(threading.Thread):
    def __init__(self, opt, fs, kills):
        super().__init__(daemon=True)
        self.opt, self.fs, self.kills = opt, fs, kills
        self.random = random.Random(f"{opt.seed} {fs}")
        self.dir = os.path.join(opt.dir, fs)
        self.image = os.path.join(self.dir, "image")
        self.file = os.path.join(self.dir, "promises")
        self.promises = {}
        self.done = self.acks = self.found = self.promised = self.entries = 0
        self.boot = []
        self.bad = None

    def run(self):
        os.makedirs(self.dir, exist_ok=True)
        for old in (self.image, self.file):
            if os.path.exists(old):
                os.unlink(old)
        try:
            for life in range(self.kills + 1):
                self.live(life, life == self.kills)
                if self.bad:
                    self.bad = f"life {life}: {self.bad}"
                    return
        except OSError as e:
            self.bad = str(e)

    def live(self, life, last):
        with open(self.file, "w") as f:
            f.writelines(self.promises.values())
        command = [self.opt.vm, "--kernel", self.opt.kernel, "--module", self.opt.module,
                   "--mem", "1G", "--image", self.image, "--fs", self.fs, "--disk", "1G",
                   "--timeout", "300", "--", self.opt.program, "--life", str(life),
                   "--promises", self.file] + (["--last"] if last else [])
        began = time.monotonic()
        guest = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, errors="replace")
        errors, rest = [], []
        reader = threading.Thread(target=lambda: errors.extend(guest.stderr), daemon=True)
        reader.start()
        timer = None
        killed = threading.Event()

        def kill():
            killed.set()
            qemu = children(guest.pid)
            guest.kill()
            for pid in qemu:
                gone(pid)

        for line in guest.stdout:
            word, _, text = line.partition(" ")
            if word == "promise" and line.endswith("\n"):
                # by life's end whatever came through had been promised before
                self.promises[text.split(" ", 1)[0]] = line
                self.acks += 1
            elif word == "found":
                found = text.split()
                self.found += int(found[0])
                self.promised += int(found[1])
            elif word == "files":
                self.entries = int(text)
            elif word == "bad":
                self.bad = text.strip()
            elif line == "load\n":
                self.boot.append(time.monotonic() - began)
                timer = threading.Timer(self.random.uniform(0.05, 1.5), kill)
                timer.start()
            else:
                rest.append(line)
        if timer:
            timer.join()
        status = guest.wait()
        reader.join(10)
        if not self.bad and not last and not killed.is_set():
            self.bad = f"the guest ended before it was killed ({status})"
        elif not self.bad and last and status:
            self.bad = f"status {status}"
        if self.bad:
            for text in rest + errors[-40:]:
                print("# " + text.rstrip())
        elif not last:
            self.done += 1
            if not self.done % 10:
                print(f"# {self.fs}: {self.done} of {self.kills} guests killed", flush=True)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(p) for p in f.read().split()]


def gone(pid):
    """QEMU dies with its parent; the disk is free once it has."""
    for _ in range(3000):
        try:
            with open(f"/proc/{pid}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] in "ZX":
                    return
        except OSError:
            return
        time.sleep(0.01)


def main():
    parser = argparse.ArgumentParser()
    for name in ("vm", "program", "module", "dir"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--kernel", default="stock")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("lanes", nargs="+", metavar="FS:KILLS")
    opt = parser.parse_args()
    lanes = []
    for text in opt.lanes:
        fs, _, kills = text.partition(":")
        lanes.append(Lane(opt, fs, int(kills)))
    print(f"TAP version 13\n1..{len(lanes)}\n# seed {opt.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for lane in lanes:
        lane.start()
    while any(lane.is_alive() for lane in lanes):
        for lane in lanes:
            lane.join(0.5)
    for n, lane in enumerate(lanes, 1):
        if lane.boot:
            print(f"# {lane.fs}: {lane.acks} acknowledgements, up and compared in "
                  f"{min(lane.boot):.1f} to {max(lane.boot):.1f} s")
        if lane.bad:
            print(f"# {lane.fs}: {lane.bad}")
        print(f"{'not ok' if lane.bad else 'ok'} {n} - {lane.fs}: {lane.done} guests killed under "
              f"load: {lane.found} batches found, {lane.promised} of them acknowledged, "
              f"{lane.entries} index entries", flush=True)
        if not lane.bad:
            os.unlink(lane.image)
    return 1 if any(lane.bad for lane in lanes) else 0


sys.exit(main())
