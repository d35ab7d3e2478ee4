#!/bin/bash
# SPDX-License-Identifier: MIT
# The cases of test_behaviour.py against a broker of its own.
. "$(dirname "$0")/lib.sh"

start || { tail "$log" >&2; echo "Bail out! plogd did not start"; exit 1; }
python3 "$here/test_behaviour.py" "$broker"
status=$?
[ $status = 0 ] || tail -n 20 "$log" | sed 's/^/# /'
exit $status
