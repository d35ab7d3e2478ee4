#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Directories go from Apache Kafka's broker to plogd and back, after clean stops
# and kills; every record and look-up by time is compared, and Kafka's dump tool
# looks at every file that was written here.
. "$(dirname "$0")/lib.sh"
cd "$top" || exit 1
a=$work/a

# Is $faults empty, of a tool that has seen something?
no_faults() {
	head -n 5 <<<"$faults" | sed '/^$/d; s/^/# /'
	[ -s "$work/dump.txt" ] && [ -z "$faults" ]
}

# ---- a broker of Kafka's writes ----
kafka_format "$a" && kafka_start "$a" || bail "Apache Kafka's broker does not start"
peer fill "$kafka" then truth "$kafka" "$work/want" || bail "the broker could not be filled"
plogd_start "$a"
[ $? = 1 ] && grep -q "in use by process $kafka_pid" "$work/plogd.log"
ok "a directory that Kafka serves is refused, with the broker's process id" $?
kafka_stop
ok "compaction has left gaps, and deleted records a log start" \
	"$(grep -c '^compact-0 [0-9]* [0-9]* C' "$work/want" | awk '{ exit !($1 < 800) }'
	   a=$?; grep -q '^deleted-0 from 201 ' "$work/want" && echo $a || echo 1)"
cp -a "$a" "$work/b"
cp -a "$a" "$work/c"
if [ -n "${KAFKA_SHARED:-}" ]; then
	cp -a "$a" "$KAFKA_SHARED/filled"
	cp "$work/want" "$KAFKA_SHARED/want"
fi

# ---- plogd takes it over ----
old=(0123456789abcdef0123456789abcdef 00112233445566778899aabbccddeeff)
cp -a "$a/plain-0" "$a/gone-0.${old[0]}-delete"
cp -a "$a/plain-0" "$a/gone-0.${old[0]}-stray"
cp -a "$a/plain-0" "$a/plain-0.${old[1]}-future"
# but for segments below a log start, which may go at any time
(cd "$a" && find . -type f ! -name .kafka_cleanshutdown ! -name .lock | sort) |
	grep -vE '^\./deleted-0/0*(0|1[0-9][0-9])\.' >"$work/before"
plogd_start "$a" || bail "plogd does not start on Kafka's directory"
grep -q '9 topics with 12 partitions are open$' "$work/plogd.log"
ok "plogd opens a directory of Kafka's" $?
peer read "$plog" "$work/got" || bail "plogd cannot be read"
same "every record, log start, end and time is what Kafka says" "$work/got" "$work/want"
missing=$(cd "$a" && xargs ls -d <"$work/before" 2>&1 >/dev/null)
[ -z "$missing" ]
ok "no file of Kafka's is gone" $?
[ ! -e "$a/.kafka_cleanshutdown" ]
ok "but its mark of a clean stop" $?
peer more "$plog" 1 then read "$plog" "$work/want" || bail "plogd cannot be written"
[ "$(wc -l <"$work/want")" -gt "$(($(wc -l <"$work/got") + 2400))" ]
ok "records are appended to it" $?
plogd_stop
ok "plogd stops" $?
faults=$(dump "$a")
no_faults
ok "Kafka's dump tool finds no fault" $?
# ... and would, if there were one
mkdir "$work/c1" "$work/c2"
mv "$work/c/codecs-0" "$work/c1/"
mv "$work/c/plain-1" "$work/c2/"
f=$(ls -S "$work"/c1/codecs-0/*.timeindex | head -n 1)
printf '\377\377' | dd of="$f" bs=1 seek=6 conv=notrunc status=none
f=$(ls -S "$work"/c2/plain-1/*.index | head -n 1)
printf '\0\0\0\1' | dd of="$f" conv=notrunc status=none
[ -n "$(dump "$work/c1")" ] && [ -n "$(dump "$work/c2")" ]
ok "and finds one of each index that was put there" $?

mkdir "$work/c3"
build/tests/unit/test_snapshot "$work/c3/00000000000000000007.snapshot" &&
	[ -z "$(dump "$work/c3")" ] && "${java[@]}" org.apache.kafka.tools.DumpLogSegments --files \
	"$work/c3/00000000000000000007.snapshot" >"$work/dump.txt" 2>&1 &&
	grep -q '^producerId: 25 producerEpoch: 0 .*currentTxnFirstOffset: OptionalLong\[0\].*firstSequence: 15 lastSequence: 19 lastOffset: 19' "$work/dump.txt"
ok "it reads a producer state file that was written here" $?

# ---- and Kafka again ----
rm -rf "$a"/*-delete "$a"/*-stray "$a"/*-future
kafka_start "$a" || bail "Kafka's broker does not start on plogd's directory"
peer truth "$kafka" "$work/got" || bail "Kafka's broker cannot be read"
same "Kafka's broker serves what plogd has written" "$work/got" "$work/want"
peer more "$kafka" 2 then truth "$kafka" "$work/want" || bail "Kafka's broker cannot be written"
kafka_stop KILL
plogd_start "$a" || bail "plogd does not start on a killed broker's directory"
peer read "$plog" "$work/got"
same "plogd serves what a broker that was killed has left" "$work/got" "$work/want"
plogd_stop KILL

# ---- a broker that is killed before plog ever saw the directory ----
kafka_start "$work/b" || bail "Kafka's broker does not start again"
peer more "$kafka" 3 then truth "$kafka" "$work/want"
sleep 1.5	# so that its checkpoints are of the middle
peer more "$kafka" 4 then truth "$kafka" "$work/want"
kafka_stop KILL
size=$(stat -c %s "$work/b"/allocated-0/*.log | sort -n | tail -n 1)
last=$(ls "$work/b"/allocated-0/*.log | tail -n 1)
tail -c 100 "$last" | tr -d '\0' | wc -c | grep -qx 0
ok "the killed broker has left zeros ($size bytes)" $?
plogd_start "$work/b" || bail "plogd does not start on a killed broker's directory"
peer read "$plog" "$work/got" then more "$plog" 5 then read "$plog" "$work/after"
same "plogd serves what it has left" "$work/got" "$work/want"
plogd_stop KILL
plogd_start "$work/b" || bail "plogd does not start after it was killed"
peer read "$plog" "$work/got"
same "plogd serves it after it was killed itself" "$work/got" "$work/after"
plogd_stop

# ---- damaged indexes ----
n=0
for f in "$work"/b/[a-z]*/*index; do
	case $((n++ % 4)) in
	0) rm "$f" ;;
	1) truncate -s -3 "$f" ;;
	2) truncate -s +4096 "$f" ;;
	3) cp "$work/b/plain-0/00000000000000000000.index" "$f" 2>/dev/null ;;
	esac
done
plogd_start "$work/b" || bail "plogd does not start with damaged indexes"
peer read "$plog" "$work/got"
same "plogd serves it with $n indexes damaged" "$work/got" "$work/after"
plogd_stop
faults=$(dump "$work/b")
no_faults
ok "Kafka's dump tool finds no fault in what was built anew" $?
kafka_start "$work/b" || bail "Kafka's broker does not start on repaired indexes"
peer truth "$kafka" "$work/got"
same "Kafka's broker serves it" "$work/got" "$work/after"
kafka_stop
finish
