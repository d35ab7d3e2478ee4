# SPDX-License-Identifier: MIT
"""Finds what a healthy kernel never says in a kernel log."""

import re

# Each is written by the kernel itself when something is broken: oopses,
# warnings, KASAN, UBSAN, lockdep, debug objects, hangs. Call traces alone are
# not in: fault injection and failed allocations print them on purpose.
_REPORT = re.compile(
    r"""BUG:\s
      | \bOops:\s
      | Kernel\ panic
      | \bWARNING:\ CPU:\s
      | \bWARNING:\ .*\bat\ \S+:\d+
      | \bWARNING:\ (possible|inconsistent|suspicious|bad|nested|held|lock|chain|Nested)
      | general\ protection\ fault
      | unable\ to\ handle\ (kernel|page)
      | double\ fault
      | KASAN:\s
      | UBSAN:\s
      | KCSAN:\s
      | ODEBUG:\s
      | DEBUG_LOCKS_WARN_ON
      | \[\ cut\ here\ \]
      | suspicious\ RCU\ usage
      | inconsistent\ lock\ state
      | possible\ (recursive|circular|irq)
      | INFO:\ task\ .*\ blocked\ for\ more\ than
      | rcu.*\bdetected\ .*stall
      | rcu.*\bself-detected\ stall
      | soft\ lockup
      | hard\ LOCKUP
      | unregister_netdevice:\ waiting\ for
      | kmemleak:\ \d+\ new\ suspected
      | list_(add|del)\ corruption
      | refcount_t:\s
      | Objects\ remaining\ in
      | scheduling\ while\ atomic
      | sleeping\ function\ called
      | Bad\ page\ state
      | Internal\ error
      | ------------\[
      | XFS\ \(\S+\):\ (Corruption|Internal)
      | EXT4-fs\ error(?!.*Out\ of\ memory) # a failed allocation was asked for by failnth
      | BTRFS\ critical
      | BTRFS\ error(?!.*\ bdev\ /dev/dm-\d+\ errs:) # a device mapper's disk fails on purpose
    """,
    re.X,
)


def reports(text):
    """Returns the lines of a kernel log, in order, that report a failure."""
    return [line for line in text.splitlines() if _REPORT.search(line)]


def tail(text, lines=80):
    """Returns the end of a kernel log; from the first report on if it has one.

    A report is followed by its stack, which is worth more than what a panic
    adds, so of a long log the part that begins at the first report is kept.
    """
    all_lines = text.splitlines()
    for i, line in enumerate(all_lines):
        if _REPORT.search(line):
            start = max(0, i - 10)
            return all_lines[start : start + 2 * lines]
    return all_lines[-lines:]
