#!/bin/bash
# SPDX-License-Identifier: MIT
# What goes from a log and its folder: DeleteRecords kept over every kind of
# restart, retention on the engine's own clock, files that are unlinked.
. "$(dirname "$0")/lib.sh"

coproc far python3 "$here/test_retention.py" "$broker"
# $(step) is a subshell, which does not get these two by themselves
exec 7<&"${COPROC[0]}" 8>&"${COPROC[1]}"

step() {
	local line

	echo "$@" >&8
	while read -r -t 60 -u 7 line; do
		[ "${line% *}" = status ] && return "${line#* }"
		echo "$line"
	done
	echo "# no answer to: $*"
	return 1
}
segments() {
	(cd "$data" && find "$1-0" -name '*.log' | wc -l)
}
# eventually COMMAND...: within 20 s it is true
eventually() {
	local i

	for ((i = 0; i < 60; i++)); do
		"$@" && return 0
		sleep 0.3
	done
	echo "# not within a while: $*"
	return 1
}
has_segments() {
	[ "$(segments "$1")" = "$2" ]
}

start log.retention.check.interval.ms=200
ok "plogd starts" $?

# ---- DeleteRecords ----

step create d segment.bytes=2000 file.delete.delay.ms=0 && step fill d 0 19 0
ok "a log of several segments" $?
before=$(segments d)
is "DeleteRecords answers with the new start" "$(step delete d 13)" "13 0"
is "and the log has it" "$(step start d 13)" 20
eventually has_segments d 4
ok "whole segments below the start are unlinked, of $before logs" $?
stop_hard
start log.retention.check.interval.ms=200
ok "plogd starts after kill -9" $?
is "the log starts where DeleteRecords has put it" "$(step start d 13)" 20
is "never back" "$(step delete d 4)" "13 0"
stop && start log.retention.check.interval.ms=200
ok "plogd starts after a clean end" $?
is "the same" "$(step start d 13)" 20
is "up to the high watermark" "$(step delete d -1)" "20 0"
stop_hard
start log.retention.check.interval.ms=200
is "with nothing left in it, after kill -9" "$(step start d 20)" 20
step fill d 20 22 0
is "offsets go on" "$(step start d 20)" 23

# ---- by time ----

step create t segment.bytes=2000 retention.ms=86400000 file.delete.delay.ms=0
step fill t 0 8 $((9 * 86400000)) && step fill t 9 12 0
ok "a log with old records" $?
is "old segments go by themselves" "$(step start t 9)" 13
eventually has_segments t 2
ok "and so do their files" $?
is "no index of theirs stays" "$(find "$data/t-0" -name '0000000000000000000*' | wc -l)" \
	"$(find "$data/t-0" -name '0000000000000000000[9]*' | wc -l)"
step create w segment.bytes=2000 retention.ms=86400000 file.delete.delay.ms=0
step fill w 0 5 $((9 * 86400000))
is "all of it has expired: the log end stays" "$(step start w 6)" 6
step fill w 6 6 0
is "and takes the next record" "$(step start w 6)" 7

# ---- by size; changed while it runs ----

step create s segment.bytes=2000 retention.ms=-1 file.delete.delay.ms=600000
step fill s 0 19 $((9 * 86400000))
sleep 1
is "without a limit nothing goes" "$(step start s 0)" 20
if [ "$PLOG_ENGINE" = module ]; then
	"$plogctl" topic alter s --set retention.bytes=4000 >/dev/null
	ok "plogctl changes retention.bytes" $?
	is "it counts at once: what is left has 4000 bytes" "$(step start s 14)" 20
	is "the files stay for file.delete.delay.ms" \
		"$("$plogctl" segment retired s 0 --json | grep -c delayed)" 7
	is "as many as there were" "$(segments s)" 10
	"$plogctl" topic alter s --set retention.bytes=0 >/dev/null
	is "nothing at all" "$(step start s 20)" 20
	"$plogctl" partition delete-records d 0 21 >/dev/null
	is "plogctl deletes records beside the daemon" "$(step start d 21)" 23
	"$plogctl" partition roll d 0 >/dev/null
	is "and begins a segment" "$(step start d 21)" 23
fi

# ---- the largest timestamp, of what is left ----

step create m segment.bytes=2000 retention.ms=-1 file.delete.delay.ms=0
step stamped m 50 10 40 30 20
is "the record with the largest timestamp" "$(step largest m)" "0 1 10"
step delete m 1 >/dev/null
is "it is the first one now" "$(step largest m)" "0 1 10"
step delete m 2 >/dev/null
is "DeleteRecords took its segment: the next largest" "$(step largest m)" "0 4 20"
step delete m 3 >/dev/null
is "the beginning of a segment is below the start" "$(step largest m)" "0 4 20"
step delete m 5 >/dev/null
is "nothing is left" "$(step largest m)" "0 -1 -1"
step create n segment.bytes=2000 retention.ms=-1
step stamped n 10 50
step delete n 1 >/dev/null
is "DeleteRecords took it, its segment stays" "$(step largest n)" "0 1 50"

# ---- files that cannot be deleted ----

step create j segment.bytes=2000 retention.ms=-1 file.delete.delay.ms=0
step fill j 0 9 0
first=$data/j-0/00000000000000000000
rm -f "$first.timeindex" && mkdir "$first.timeindex"
is "DeleteRecords does not wait for files" "$(step delete j 4)" "4 0"
# said TEXT: plogd's lines have it
said() {
	grep -qF -- "$1" "$log"
}
eventually said "ERROR retention: j-0: "
ok "a file that cannot be deleted is told" $?
is "by its name, and that it is tried again" \
	"$(grep 'ERROR retention: j-0: ' "$log" | head -n 1 | grep -c 'timeindex.*it is tried again')" 1
eventually has_segments j 4
ok "the others are deleted meanwhile" $?
test -e "$first.log"
ok "the log of that one stays: what an opening finds is tried again" $?
is "and the log goes on" "$(step start j 4)" 10
stop
[ "$PLOG_ENGINE" = process ] || "$plogctl" instance stop >/dev/null
rmdir "$first.timeindex"
printf 'log.retention.check.interval.ms=3600000\n' >"$work/retention.properties"
start "$work/retention.properties"
ok "plogd starts with a file" $?
eventually has_segments j 3
ok "and deletes it" $?

# ---- the interval, changed while it runs ----

step create h segment.bytes=2000 retention.ms=86400000 file.delete.delay.ms=0
step fill h 0 5 $((9 * 86400000))
sleep 1
is "nothing goes before retention looks" "$(step start h 0)" 6
sed -i 's/3600000/200/' "$work/retention.properties"
kill -HUP "$pid"
is "SIGHUP with a shorter interval: it looks now" "$(step start h 6)" 6
printf 'log.retention.check.interval.ms=soon\n' >"$work/retention.properties"
kill -HUP "$pid"
eventually said "log.retention.check.interval.ms=soon: must be a whole number"
ok "an interval that is none is refused" $?
step fill h 6 8 $((9 * 86400000))
is "and the one before stays" "$(step start h 9)" 9

stop
ok "plogd ends cleanly" $?
if [ "$PLOG_ENGINE" = process ]; then
	# what waits for its delay is found again, and goes without one
	start log.retention.check.interval.ms=200
	is "without limits still" "$(step start s 0)" 20
	stop
	ok "plogd ends cleanly again" $?
fi
finish
