# SPDX-License-Identifier: MIT
"""What of a suite's log tells why it failed.

A failure is told where it happens, and what comes after it may be hundreds of
lines of tests that passed: the end of a log alone is seldom enough.
"""
import re

# What is looked for, and how many lines before and behind it belong to it: TAP's diagnostics
# come before the result, a sanitizer's and the kernel's stacks behind the line that names them.
MARKS = (
    (re.compile(r"^\s*not ok\b"), 12, 3),
    (re.compile(r"WARNING: ThreadSanitizer"), 2, 22),
    (re.compile(r"ERROR: (Address|Leak|Memory)Sanitizer|ERROR: libFuzzer"), 2, 22),
    (re.compile(r"runtime error: "), 2, 8),
    (re.compile(r"\b(BUG: |Oops|Kernel panic|KASAN: |WARNING: CPU: |INFO: task .* blocked)"), 2, 22),
    (re.compile(r"^Bail out!|^Traceback \(most recent call last\)"), 4, 12),
    (re.compile(r"\bmake(\[\d+\])?: \*\*\*|\berror: "), 4, 2),
)


def excerpt(lines, most=80, end=20, width=300):
    """Lines of @lines, at most @most and each cut to @width: those round the first hit of each
    of MARKS, in the order of the log, and the last @end. Where some are left out, a line
    "... (line N)" says where it goes on; of these there are no more than of MARKS, and one."""
    wanted, left = set(range(max(0, len(lines) - end), len(lines))), most
    left -= len(wanted)
    for mark, before, behind in MARKS:
        hit = next((i for i, line in enumerate(lines) if mark.search(line)), None)
        if hit is None:
            continue
        # the nearest first, should there not be room for all
        for i in sorted(range(max(0, hit - before), min(len(lines), hit + behind + 1)),
                        key=lambda i: (abs(i - hit), i)):
            if i not in wanted and left > 0:
                wanted.add(i)
                left -= 1
    out, last = [], -1
    for i in sorted(wanted):
        if i != last + 1:
            out.append(f"... (line {i + 1})")
        out.append(lines[i].rstrip()[:width])
        last = i
    return out
