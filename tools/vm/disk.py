# SPDX-License-Identifier: MIT
"""The log disk of a guest: a sparse file that holds a file system."""

import fcntl
import os
import re
import subprocess
import tempfile

import fail

# The least that each file system's mkfs takes, in bytes.
_LEAST = {"ext4": 16 << 20, "xfs": 300 << 20, "btrfs": 128 << 20, "tmpfs": 1 << 20}

_MKFS = {
    # Inode tables are made when used; a throwaway disk never needs most.
    "ext4": ["mkfs.ext4", "-q", "-F", "-m", "0", "-E",
             "lazy_itable_init=1,lazy_journal_init=1,root_owner=0:0,nodiscard"],
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
    "btrfs": ["mkfs.btrfs", "-q", "-f", "-K"],
}

FILE_SYSTEMS = tuple(_LEAST)


def parse_size(text, what):
    """Returns bytes of a size like 512M or 4G; what names it in the error."""
    m = re.fullmatch(r"(\d+)([KMGT]?)(i?B)?", text.strip(), re.I)
    if not m or not int(m[1]):
        raise fail.Usage(f"{what}: '{text}' is not a size; write it like 512M or 4G")
    return int(m[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[m[2].upper()]


class Disk:
    """What is at /var/lib/plog of one guest.

    fs: ext4, xfs, btrfs, tmpfs, or None for what a kept image holds (ext4 for
    a new one). size: bytes. image: a file to keep, or None.
    """

    def __init__(self, fs, size, image):
        self.size = size
        self.kept = image is not None
        self.path = None
        self._lock = None
        if fs == "tmpfs" and image:
            raise fail.Usage("--image: a tmpfs leaves nothing to keep; use ext4, xfs or btrfs")
        least = _LEAST[fs or "ext4"]
        if size < least:
            raise fail.Usage(f"--disk: {fs or 'ext4'} needs at least {least >> 20}M")
        if image:
            self.fs = self._open_image(os.path.abspath(image), fs)
        else:
            self.fs = fs or "ext4"
            if self.fs != "tmpfs":
                self.path = self._create(scratch_dir(), "plog-vm-")

    def _open_image(self, image, fs):
        folder = os.path.dirname(image)
        if not os.path.isdir(folder):
            raise fail.Broken(f"--image: there is no folder {folder}")
        if not os.path.exists(image):
            self.fs = fs or "ext4"
            made = self._create(folder, "." + os.path.basename(image) + ".")
            try:
                os.link(made, image)
            except FileExistsError:
                pass  # another guest was first; the lock below sorts it out
            os.unlink(made)
        try:
            self._lock = open(image, "r+b")
        except OSError as e:
            raise fail.Broken(f"--image {image}: {e.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise fail.Broken(
                f"--image {image}: another guest is using it; stop that one or name another image"
            ) from None
        self.path = image
        found = _type_of(image)
        if found not in _MKFS:
            raise fail.Broken(
                f"--image {image}: it holds {found or 'no file system that is known'}, "
                "not ext4, xfs or btrfs; name another file or remove this one"
            )
        if fs and fs != found:
            raise fail.Broken(f"--image {image}: it holds {found}, but --fs says {fs}")
        return found

    def _create(self, folder, prefix):
        fd, path = tempfile.mkstemp(prefix=prefix, dir=folder)
        os.ftruncate(fd, self.size)
        os.close(fd)
        env = dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        done = subprocess.run(
            _MKFS[self.fs] + [path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env
        )
        if done.returncode:
            os.unlink(path)
            raise fail.Broken(f"cannot make a {self.fs}: {done.stdout.decode().strip()}")
        return path

    def forget(self):
        """Unlinks a disk that is not kept; who has it open keeps it."""
        if self.path and not self.kept:
            os.unlink(self.path)
            self.path = None


def scratch_dir():
    """Where large temporary files go: not /tmp, which may be memory."""
    return os.environ.get("TMPDIR") or ("/var/tmp" if os.access("/var/tmp", os.W_OK) else "/tmp")


def _type_of(image):
    env = dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    done = subprocess.run(
        ["blkid", "-p", "-o", "value", "-s", "TYPE", image],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
    )
    return done.stdout.decode().strip()
