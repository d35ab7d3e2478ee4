#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The other half of test_run.sh: make run where the running kernel takes the
# module. Runs as root in a guest, which is such a place. Prints the log of the
# run; ends with 0 if a record went in and came out and nothing was left behind.
set -uo pipefail

top=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
cd "$top" || exit 1
# Everything is built: as if make had called it.
export MAKELEVEL=1
export PORT=19512 WHERE=host PLOG_STATE=/var/tmp/plog-run-test
log=/tmp/run.log

# The guest has no modules.dep of its own: what modprobe would load.
modules=$(tools/kernel/kernel path stock modules)
insmod "$modules/kernel/drivers/block/loop.ko" || exit 1
insmod "$modules/kernel/lib/libcrc32c.ko" || exit 1

fail() { echo "host.sh: $*" >&2; cat $log >&2; exit 1; }

tools/run/run >$log 2>&1 &
runner=$!
until grep -q '^plog is ready at' $log; do
	kill -0 $runner 2>/dev/null || fail "it ended"
	sleep 1
done
grep -q '^run: the module is loaded into the running kernel' $log || fail "it does not say where"
echo hello | kcat -b 127.0.0.1:$PORT -P -t greetings -p 0 || fail "produce"
[ "$(kcat -b 127.0.0.1:$PORT -C -t greetings -p 0 -o beginning -e -q)" = hello ] || fail "consume"
kill -TERM $runner
wait $runner || fail "it ended with status $?"
grep -q '^plog ' /proc/modules && fail "the module is still loaded"
grep -q plog-run-test /proc/mounts && fail "the image is still mounted"
exit 0
