#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Keeps of a fuzzer's corpus what is worth its place in the tree.

    corpus.py FUZZER SEEDS FOUND KEPT

FUZZER, the program, sees what the inputs in the folders SEEDS and FOUND reach. Into the file
KEPT go those of FOUND that reach most of what SEEDS do not, for their size: again and again the
one that has most new features (libFuzzer's word) for each byte, until LIMIT bytes or LINES lines
are full or none has any. One input a line, in hex; seeds.py unpacks them.
"""
import os
import subprocess
import sys
import tempfile

LIMIT = 64 << 10
LINES = 800
HEAD = "# SPDX-License-Identifier: MIT\n# Made by \"make corpus\", see corpus.py.\n"


def features(fuzzer, seeds, found):
    """{file: set of features}, from the notes that a merge makes for itself."""
    names, reached = [], {}
    with tempfile.TemporaryDirectory() as scratch:
        notes = os.path.join(scratch, "notes")
        new = os.path.join(scratch, "new")
        os.mkdir(new)
        subprocess.run([fuzzer, "-merge=1", "-max_len=8192", "-rss_limit_mb=1024", "-timeout=40",
                        f"-merge_control_file={notes}", new, seeds, found],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(notes) as f:
            count = int(f.readline())
            f.readline()
            names = [f.readline().rstrip("\n") for _ in range(count)]
            for line in f:
                words = line.split()
                if words and words[0] == "FT":
                    reached[names[int(words[1])]] = set(map(int, words[2:]))
    return reached


def choose(reached, seeds):
    known = set().union(*(fs for name, fs in reached.items() if os.path.dirname(name) == seeds))
    left, room = {}, LIMIT - len(HEAD)
    for name, fs in reached.items():
        size = os.path.getsize(name)
        # the line's end, too
        if os.path.dirname(name) != seeds and size:
            left[name] = (2 * size + 1, fs)
    kept = []
    while left and len(kept) < LINES:
        best, best_worth = None, 0
        for name in sorted(left):
            size, fs = left[name]
            fs -= known
            if not fs or size > room:
                del left[name]
            elif len(fs) / size > best_worth:
                best, best_worth = name, len(fs) / size
        if not best:
            break
        size, fs = left.pop(best)
        known |= fs
        room -= size
        kept.append(best)
    return kept


def main():
    fuzzer, seeds, found, path = sys.argv[1:]
    kept = choose(features(fuzzer, seeds, found), seeds)
    lines = []
    for name in kept:
        with open(name, "rb") as f:
            lines.append(f.read().hex())
    with open(path + ".new", "w") as f:
        f.write(HEAD)
        f.writelines(line + "\n" for line in sorted(lines, key=lambda line: (len(line), line)))
    os.rename(path + ".new", path)
    print(f"{os.path.basename(path)}: {len(lines)} of {len(os.listdir(found))} inputs, "
          f"{os.path.getsize(path)} bytes")


if __name__ == "__main__":
    sys.exit(main())
