#!/bin/bash
# SPDX-License-Identifier: MIT
#
# make run as a user meets it: starts, takes a record, stops on Ctrl-C, is ready
# again within 20 s with the record there, refuses a port that is taken, and
# forgets all with FRESH=1. TAP.
set -uo pipefail

top=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
cd "$top" || exit 1
port=${PLOG_TEST_PORT:-19510}
work=$(mktemp -d)
tests=0
failed=0
runner=

"$top/tools/setup/packages" kcat >&2 || { echo "1..0 # SKIP kcat cannot be installed"; exit 4; }

cleanup() {
	if [ -n "$runner" ] && kill -0 "$runner" 2>/dev/null; then
		kill -INT "$runner"
		wait "$runner"
	fi
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

ok() {
	local status=$?
	tests=$((tests + 1))
	if [ $status -eq 0 ]; then
		echo "ok $tests - $1"
	else
		echo "not ok $tests - $1"
		failed=$((failed + 1))
		sed 's/^/#   /' "$work/log" | tail -25
	fi
}

# A shell starts background jobs with SIGINT ignored, which no trap undoes:
# python gives the script the signals that a terminal's foreground job has.
start() {
	: >"$work/log"
	PORT=$port FRESH=${1:-0} PLOG_STATE=$work/state \
		python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' tools/run/run >"$work/log" 2>&1 &
	runner=$!
}

ready() {
	local i
	for ((i = 0; i < ${1:-1800}; i++)); do
		grep -q '^plog is ready at' "$work/log" && return 0
		kill -0 "$runner" 2>/dev/null || return 1
		sleep 0.1
	done
	return 1
}

interrupt() {
	local status
	kill -INT "$runner"
	wait "$runner"
	status=$?
	runner=
	[ $status -eq 0 ]
}

produce() { printf '%s\n' "$1" | timeout 30 kcat -b 127.0.0.1:"$port" -P -t greetings -p 0 2>>"$work/log"; }
consume() { timeout 30 kcat -b 127.0.0.1:"$port" -C -t greetings -p 0 -o beginning -e -q 2>>"$work/log"; }
# Word by word the commands that were printed.
printed() { grep -c "kcat -b 127.0.0.1:$port -[LPC]" "$work/log"; }

start 1
ready
ok "make run FRESH=1 says that it is ready"
grep -qE '^run: the (broker runs in a guest, because|module is loaded into)' "$work/log"
ok "it says where the broker runs, and why"
[ "$(printed)" -eq 3 ]
ok "it prints three commands to try"
[ -n "$(timeout 30 kcat -b 127.0.0.1:"$port" -L 2>>"$work/log" |
	grep "broker 1 at 127.0.0.1:$port")" ]
ok "clients are told the address that they came to"
produce "what was written" && [ "$(consume)" = "what was written" ]
ok "a record goes in and comes out"

PORT=$port PLOG_STATE=$work/other tools/run/run >"$work/second" 2>&1
[ $? -eq 1 ] && grep -q "port $port of 127.0.0.1 is taken" "$work/second"
ok "a port that is taken: a clear refusal"
PORT=$((port + 1)) PLOG_STATE=$work/state tools/run/run >"$work/second" 2>&1
[ $? -eq 1 ] && grep -q 'another make run uses' "$work/second"
ok "an image that is in use: a clear refusal"

interrupt
ok "Ctrl-C stops it with status 0"
grep -q '^run: stopped' "$work/log"
ok "it says that it has stopped"

begin=$(date +%s%N)
start
ready 200
ok "the second start is ready within 20 s"
echo "# $((($(date +%s%N) - begin) / 1000000)) ms"
[ "$(consume)" = "what was written" ]
ok "what was written is there again"
interrupt
ok "Ctrl-C stops it again"

start 1
ready
[ -z "$(timeout 30 kcat -b 127.0.0.1:"$port" -L 2>>"$work/log" | grep greetings)" ]
ok "make run FRESH=1 starts with nothing"
interrupt
ok "and stops"

PORT=70000 tools/run/run >"$work/second" 2>&1
[ $? -eq 1 ] && grep -q 'is no port number' "$work/second"
ok "a wrong PORT: a clear refusal"

"$top/tools/vm/vm" --timeout 150 -- selftests/run_test/host.sh >"$work/log" 2>&1
ok "where the running kernel takes the module it is loaded there, and removed"

echo "1..$tests"
[ $failed -eq 0 ]
