#!/bin/bash
# SPDX-License-Identifier: MIT
# The cases of test_behaviour.py against a broker of its own, which must then
# stop cleanly: a sanitizer that has seen something tells it by the status.
. "$(dirname "$0")/lib.sh"

start || { tail "$log" >&2; echo "Bail out! plogd did not start"; exit 1; }
far python3 "$here/test_behaviour.py" "$broker"
status=$?
stop || { echo "# plogd ended with $?"; status=1; }
[ $status = 0 ] || tail -n 100 "$log" | grep -v ' INFO  topics: ' | sed 's/^/# /'
exit $status
