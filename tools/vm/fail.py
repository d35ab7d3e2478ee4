# SPDX-License-Identifier: MIT
"""The ways in which vm itself fails, and its exit statuses."""

KERNEL = 99  # the kernel reported a failure, or the guest died
TIMEOUT = 124  # as timeout(1) has it
BROKEN = 125  # no guest could be had
USAGE = 2


class Broken(Exception):
    """No guest can be had; the text says why and what to do."""


class Usage(Exception):
    """The command line is wrong."""
