#!/bin/bash
# SPDX-License-Identifier: MIT
# The bad input of test_input.py against a broker of its own, which must then
# still stop cleanly.
#
# Its clients stay where plogd is, in the guest: a connection that ends while plogd does not read
# it ends the published port's QEMU too (libslirp 4.7, an assertion in soread()).
unset PLOG_FAR
. "$(dirname "$0")/lib.sh"

# What does not touch the logs is plogd's own work, the same with either engine.
if [ "$PLOG_ENGINE" = module ]; then
	which=logs idle=60000
else
	which=all idle=3000
fi
start socket.request.max.bytes=2000000 plog.request.arrival.ms=1000 \
	connections.max.idle.ms=$idle ||
	{ tail "$log" >&2; echo "Bail out! plogd did not start"; exit 1; }
asked python3 -u "$here/test_input.py" "$broker" "$pid" "$log" $which
status=$?
[ $status = 0 ] || tail -n 20 "$log" | sed 's/^/# /'
stop || { echo "# plogd ended with $?"; status=1; }
# whatever it was sent, the next one starts on what is left of it
if ! start || ! stop; then
	echo "# plogd does not start again:"
	tail -n 5 "$log" | sed 's/^/# /'
	status=1
fi
exit $status
