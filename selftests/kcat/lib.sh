# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For the scripts of this folder: a broker of their own, and TAP.
#
#   PLOG_ENGINE=process   the engine inside plogd (the default)
#   PLOG_ENGINE=module    the loaded module; as root, in a guest
#   PLOG_PORT=19310       where the broker listens
#   PLOGD=build/bin/plogd
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
PLOG_ENGINE=${PLOG_ENGINE:-process}
port=${PLOG_PORT:-19310}
broker=127.0.0.1:$port
plogd=${PLOGD:-$top/build/bin/plogd}
plogctl=${PLOGCTL:-$top/build/bin/plogctl}
work=$(mktemp -d "${TMPDIR:-/tmp}/kcat-test.XXXXXX")
data=$work/data
log=$work/plogd.log
pid=
tests=0 failed=0

# In a guest /tmp may be of a kind that the module does not take: logs go to its disk.
if [ "$PLOG_ENGINE" = module ]; then
	data=$(mktemp -d /var/lib/plog/kcat-test.XXXXXX)
fi

cleanup() {
	stop_hard
	if [ "$PLOG_ENGINE" = module ]; then
		"$plogctl" instance stop >/dev/null ||
			echo "# the instance on $data was not stopped"
	fi
	rm -rf "$work" "$data"
}
trap cleanup EXIT

skip_all() {
	echo "1..0 # SKIP $*"
	exit 4
}

# ok NAME STATUS: one result, with the end of plogd's lines if it failed.
ok() {
	tests=$((tests + 1))
	if [ "$2" = 0 ]; then
		echo "ok $tests - $1"
		return
	fi
	failed=$((failed + 1))
	tail -n 15 "$log" 2>/dev/null | sed 's/^/# /'
	echo "not ok $tests - $1"
}

# is NAME GOT WANTED
is() {
	if [ "$2" = "$3" ]; then
		ok "$1" 0
	else
		echo "# got:    ${2:0:300}"
		echo "# wanted: ${3:0:300}"
		ok "$1" 1
	fi
}

finish() {
	echo "1..$tests"
	[ "$failed" = 0 ]
	exit
}

# start [KEY=VALUE]...: a broker on $data, ready when this returns 0.
start() {
	local args=(--engine "$PLOG_ENGINE" --set "log.dirs=$data"
		--set "listeners=PLAINTEXT://127.0.0.1:$port")
	local kv i before

	for kv; do
		args+=(--set "$kv")
	done
	before=$(grep -c 'plogd: ready' "$log" 2>/dev/null)
	"$plogd" "${args[@]}" >>"$log" 2>&1 &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		[ "$(grep -c 'plogd: ready' "$log" 2>/dev/null)" != "${before:-0}" ] && return 0
		kill -0 "$pid" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# stop: as an operator would. Its exit status.
stop() {
	local status

	kill -TERM "$pid"
	wait "$pid"
	status=$?
	pid=
	return $status
}

stop_hard() {
	[ -n "$pid" ] || return 0
	kill -KILL "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	pid=
}

kc() {
	timeout 30 kcat -b "$broker" "$@"
}

"$top/tools/setup/packages" kcat python3 >&2 || exit 1
