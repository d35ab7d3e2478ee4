# SPDX-License-Identifier: MIT
"""The kernel of a guest: image, modules, and the initramfs that starts it."""

import lzma
import os
import subprocess
import zlib

import fail


class Kernel:
    """A kernel of tools/kernel/kernel. kind: stock, debug or 6.12."""

    def __init__(self, top, kind):
        self.kind = kind
        self._tool = os.path.join(top, "tools/kernel/kernel")
        # One call fetches or builds; the others then only look.
        self.image = self._path("image")
        self.modules = self._path("modules")
        self.release = self._path("release")
        self._dep = None

    def _path(self, what):
        try:
            done = subprocess.run(
                [self._tool, "path", self.kind, what], stdout=subprocess.PIPE, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            raise fail.Broken(f"no kernel {self.kind} (see above)") from None
        return done.stdout.decode().strip()

    def _load_dep(self):
        self._dep = {}
        with open(os.path.join(self.modules, "modules.dep")) as f:
            for line in f:
                file, _, needs = line.partition(":")
                self._dep[module_name(file)] = (file, needs.split())

    def files(self, names):
        """Returns (name, bytes) of each module in names and of all they need.

        What must come first comes first. A name that the kernel does not have
        as a module is skipped: it is built in, and if not, its use will tell.
        """
        if self._dep is None:
            self._load_dep()
        order = []

        def add(file):
            if file in order:
                return
            # modules.dep lists the nearest need last.
            for need in self._dep[module_name(file)][1]:
                if need not in order:
                    add(need)
            order.append(file)

        for name in names:
            found = self._dep.get(name.replace("-", "_"))
            if found:
                add(found[0])
        return [(module_name(f), self._read(f)) for f in order]

    def _read(self, file):
        with open(os.path.join(self.modules, file), "rb") as f:
            data = f.read()
        if file.endswith(".xz"):
            return lzma.decompress(data)
        if file.endswith(".gz"):
            return zlib.decompress(data, 31)
        if file.endswith(".zst"):
            return subprocess.run(
                ["zstd", "-dc"], input=data, stdout=subprocess.PIPE, check=True
            ).stdout
        return data


def module_name(file):
    """Returns the kernel's name of a module from the name of its file."""
    return os.path.basename(file).split(".")[0].replace("-", "_")


def needs(file):
    """Returns the names of modules that module file depends on."""
    try:
        done = subprocess.run(
            ["/sbin/modinfo", "-F", "depends", file],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=True,
        )
    except subprocess.CalledProcessError as e:
        raise fail.Broken(f"{file} is no kernel module: {e.stderr.decode().strip()}") from None
    return [n for n in done.stdout.decode().strip().split(",") if n]


def release_of(file):
    """Returns the release of the kernel that module file was built for."""
    done = subprocess.run(
        ["/sbin/modinfo", "-F", "vermagic", file], stdout=subprocess.PIPE, check=True
    )
    return done.stdout.decode().split()[0]


def cpio(files):
    """Packs (path, mode, bytes) into an initramfs: the 'newc' form of cpio.

    The kernel unpacks it as it stands; directories must come before what they
    hold. A mode without a file type is a regular file's.
    """
    out = bytearray()

    def entry(name, mode, data, ino):
        raw = name.encode() + b"\0"
        fields = [ino, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0]
        out.extend(b"070701" + b"".join(b"%08X" % f for f in fields) + raw)
        out.extend(b"\0" * (-len(out) % 4))
        out.extend(data)
        out.extend(b"\0" * (-len(out) % 4))

    for ino, (name, mode, data) in enumerate(files, 1):
        entry(name.lstrip("/"), mode if mode > 0o7777 else mode | 0o100000, data, ino)
    entry("TRAILER!!!", 0, b"", 0)
    return bytes(out)
