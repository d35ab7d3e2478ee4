# SPDX-License-Identifier: MIT
"""Unpacks the kernel proper out of a bzImage: vmlinux.py BZIMAGE VMLINUX.

QEMU starts such a file by PVH, and an emulated CPU then need not decompress it,
which takes longer than all the rest of the boot.
"""

import lzma
import struct
import subprocess
import sys
import zlib


def payload(image):
    """Returns the compressed kernel, found as the boot protocol (2.08) says."""
    if image[0x202:0x206] != b"HdrS":
        raise ValueError("no bzImage")
    protected = (image[0x1F1] + 1) * 512
    offset, length = struct.unpack_from("<II", image, 0x248)
    return image[protected + offset : protected + offset + length]


def unpack(data):
    """Returns data without its compression; a size stands behind the stream."""
    if data.startswith(b"\xfd7zXZ"):
        return lzma.LZMADecompressor().decompress(data)
    if data.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(31).decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return subprocess.run(
            ["zstd", "-dcq"], input=data[:-4], stdout=subprocess.PIPE, check=True
        ).stdout
    raise ValueError("a compression that is not xz, gzip or zstd")


def main():
    with open(sys.argv[1], "rb") as f:
        kernel = unpack(payload(f.read()))
    if not kernel.startswith(b"\x7fELF"):
        raise ValueError("what it holds is no ELF file")
    with open(sys.argv[2], "wb") as f:
        f.write(kernel)


if __name__ == "__main__":
    try:
        main()
    except ValueError as e:
        sys.exit(f"{sys.argv[1]}: {e}")
