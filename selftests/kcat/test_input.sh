#!/bin/bash
# SPDX-License-Identifier: MIT
# The bad input of test_input.py against a broker of its own, which must then
# still stop cleanly.
. "$(dirname "$0")/lib.sh"

# In a guest the test itself needs seconds between two requests.
if [ "$PLOG_ENGINE" = module ]; then
	which=logs idle=60000
else
	which=all idle=3000
fi
start socket.request.max.bytes=2000000 plog.request.arrival.ms=1000 \
	connections.max.idle.ms=$idle ||
	{ tail "$log" >&2; echo "Bail out! plogd did not start"; exit 1; }
python3 "$here/test_input.py" "$broker" "$pid" "$log" $which
status=$?
[ $status = 0 ] || tail -n 20 "$log" | sed 's/^/# /'
stop || { echo "# plogd ended with $?"; status=1; }
exit $status
