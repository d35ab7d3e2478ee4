# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For the scripts of this folder: a broker of their own, and TAP.
#
#   PLOG_ENGINE=process   the engine inside plogd (the default)
#   PLOG_ENGINE=module    the loaded module; as root, in a guest
#   PLOG_PORT=19310       where the broker listens
#   PLOGD=build/bin/plogd
#   PLOG_FAR=PROGRAM      runs clients outside the guest, at whose port the broker's is
#                         published; see selftests/lib/far.c
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
PLOG_ENGINE=${PLOG_ENGINE:-process}
port=${PLOG_PORT:-19310}
broker=127.0.0.1:$port
listen=127.0.0.1
[ -z "${PLOG_FAR-}" ] || listen=0.0.0.0
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

# far COMMAND...: a client of the broker, which need not be where the broker is
far() {
	if [ -n "${PLOG_FAR-}" ]; then
		"$PLOG_FAR" "$@"
	else
		"$@"
	fi
}

# asked COMMAND...: far COMMAND, which asks for what only we see and do, who are where plogd is:
# a line "? rss" is answered with plogd's resident memory in KiB, "? kill SIGNAL" with the status
# of that. All other lines are passed on.
asked() {
	local line in out client

	coproc far "$@" 2>&1
	exec {in}<&"${COPROC[0]}" {out}>&"${COPROC[1]}"
	client=$COPROC_PID
	while IFS= read -r -t 300 -u "$in" line; do
		case $line in
		'? rss') sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" >&"$out" ;;
		'? kill '*) kill -"${line#? kill }" "$pid"; echo $? >&"$out" ;;
		*) printf '%s\n' "$line" ;;
		esac
	done
	exec {in}<&- {out}>&-
	wait "$client"
}

# at PORT: "${where[@]}" are the options of a plogd that listens there
at() {
	where=(--set "listeners=PLAINTEXT://$listen:$1"
		--set "advertised.listeners=PLAINTEXT://127.0.0.1:$1")
}

# start [KEY=VALUE | /FILE]...: a broker on $data, ready when this returns 0.
start() {
	local where args kv i before

	at "$port"
	args=(--engine "$PLOG_ENGINE" --set "log.dirs=$data" "${where[@]}")
	for kv; do
		case $kv in
		/*) args+=("$kv") ;;
		*) args+=(--set "$kv") ;;
		esac
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
	far timeout 30 kcat -b "$broker" "$@"
}

[ -n "${PLOG_VM-}" ] || "$top/tools/setup/packages" kcat python3 >&2 || exit 1
