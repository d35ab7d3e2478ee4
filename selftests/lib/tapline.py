# SPDX-License-Identifier: MIT
"""One line of TAP, as selftests/run and selftests/lib/tap understand it."""
import re
from collections import namedtuple

# how many tests are planned; why all are skipped, or None
Plan = namedtuple("Plan", "count skip")
# did it pass, its name or "", why it was skipped or None
Result = namedtuple("Result", "ok name skip")

PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#\s*skip\S*\s*(.*))?$", re.I)
RESULT = re.compile(r"^(not )?ok\b(?:\s*\d+)?(?:\s*-)?\s*(.*)$")
SKIP = re.compile(r"(?:^|\s)#\s*skip\S*\s*(.*)$", re.I)


def read(text):
    """The Plan or the Result that a line is, or None. A failed test was not skipped."""
    plan = PLAN.match(text)
    if plan:
        return Plan(int(plan[1]), plan[2])
    result = RESULT.match(text)
    if not result:
        return None
    name, skip = result[2], None if result[1] else SKIP.search(result[2])
    if skip:
        name = name[:skip.start()].strip()
    return Result(not result[1], name, skip and skip[1])
