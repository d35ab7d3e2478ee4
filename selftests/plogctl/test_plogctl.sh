#!/bin/bash
# SPDX-License-Identifier: MIT
#
# plogctl from the first command on an empty disk to the last, without a daemon
# and with one; plogcat; the C library. Wants root, the module, no instance, and
# an empty /var/lib/plog.
set -uo pipefail

dir=/var/lib/plog/test
work=$(mktemp -d)
count=0 failed=0
daemon=
broker=127.0.0.1:19092

finish() {
	[ -z "$daemon" ] || kill -KILL "$daemon" 2>/dev/null
	plogctl instance stop >/dev/null 2>&1
	rm -rf "$work"
}
trap finish EXIT

ok() { count=$((count + 1)); echo "ok $count - $1"; }
not_ok() {
	count=$((count + 1)) failed=$((failed + 1))
	echo "not ok $count - $1"
	sed 's/^/#   /' "$work/out" "$work/err" 2>/dev/null | head -40
}

# t NAME STATUS PATTERN COMMAND...: the exit status, and an extended regular
# expression that some line of output or errors must fit ("" for none).
t() {
	local name=$1 want=$2 pattern=$3 got
	shift 3
	"$@" >"$work/out" 2>"$work/err"
	got=$?
	# of the files: grep goes at the first match, and who still wrote into a pipe would fail
	if [ $got -eq "$want" ] && { [ -z "$pattern" ] ||
		grep -Eq -- "$pattern" "$work/out" "$work/err"; }; then
		ok "$name"
	else
		echo "# status $got, wanted $want and: $pattern" >&2
		not_ok "$name"
	fi
}

# j NAME FILTER COMMAND...: the JSON that it prints fits the filter of jq.
j() {
	local name=$1 filter=$2
	shift 2
	if "$@" --json >"$work/out" 2>"$work/err" && jq -e "$filter" "$work/out" >"$work/jq" 2>&1
	then
		ok "$name"
	else
		not_ok "$name"
	fi
}

as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"; }
in_namespace() { unshare -n -- "$@"; }
end_of() { plogctl partition show "$1" "$2" --json | jq .log_end; }

# ---- the command line itself ----

t "no command: help, and status 2" 2 "^usage: plogctl" plogctl
t "help" 0 "topic create" plogctl help
t "a command's help" 0 "--partitions N" plogctl topic create --help
t "help of a command" 0 "--partitions N" plogctl help topic create
t "an unknown command: the closest is named" 2 'did you mean "create"|mean "topic create"' \
	plogctl topic craete x
t "an unknown group" 2 'did you mean "topic"' plogctl topics list
t "an unknown option: the closest is named" 2 "did you mean --partitions" \
	plogctl topic create x --partitons 3
t "an option without its value" 2 "needs a value" plogctl topic create x --partitions
t "a value that is none" 2 "from 1 to 65536" plogctl topic create x --partitions 0
t "an argument too many" 2 "too many: y" plogctl topic create x y
t "a missing argument" 2 "argument is missing" plogctl topic create
t "a bad topic name" 2 "only letters" plogctl topic create a/b
t "a bad configuration key: the closest is named" 2 "did you mean segment.bytes" \
	plogctl topic create x --config segment.byte=1
t "a bad configuration value" 2 "out of range" plogctl topic create x --config segment.bytes=1
t "an unknown user" 2 'no user "nobodyatall"' plogctl topic create x --owner nobodyatall
j "configuration keys" 'length > 30 and all(.[]; .doc != "")' plogctl topic configs

# ---- instance ----

t "topics without an instance: what to do is said" 1 "plogctl instance set --data-dir" \
	plogctl topic list
j "no instance" '.state == "none"' plogctl instance show
t "stop without an instance" 1 "nothing to stop" plogctl instance stop
timeout 600 plogctl monitor --json >"$work/events" 2>&1 &
monitor=$!
t "set" 0 "serving $dir: 0 topics" plogctl instance set --data-dir $dir
t "set again" 0 "serving $dir" plogctl instance set --data-dir $dir/../test/
t "set another directory" 1 "serves $dir already" plogctl instance set --data-dir /tmp/other
t "the same directory in another namespace is refused" 1 "is in use by a plog module instance" \
	in_namespace plogctl instance set --data-dir $dir
j "running" '.state == "running" and .data_dir == "'$dir'" and .incarnation == 0' \
	plogctl instance show
t "not root: refused, and said why" 1 "CAP_NET_ADMIN|Permission denied" \
	as_nobody plogctl topic create x
t "not root: told how" 1 "sudo" as_nobody plogctl instance stop

# ---- limits ----

# limits PARTITIONS WAITERS DESCRIPTORS BYTES: as a filter of jq
limits() {
	echo ".max_partitions == $1 and .max_waiters == $2 and .max_descriptors == $3 and
		.max_append_bytes == $4"
}
j "limits that nobody has set" "$(limits 20000 4096 65536 67108864)" plogctl instance show
t "limits of an instance that runs" 0 "max append bytes: +4096" plogctl instance set \
	--max-partitions 2 --max-waiters 7 --max-descriptors 900 --max-append-bytes 4096
j "are in force" "$(limits 2 7 900 4096)" plogctl instance show
t "one out of range is refused" 2 "max-waiters.*1 to 1048576" \
	plogctl instance set --max-waiters 0
t "no partition beyond the limit" 1 "max-partitions allows" \
	plogctl topic create many --partitions 3
j "and none is left of a topic that was refused" 'length == 0' plogctl topic list
t "as many as the limit" 0 "two: 2 partitions" plogctl topic create two --partitions 2
t "no append beyond the limit" 1 "Message too long" \
	bash -c 'head -c 5000 /dev/zero | dd of=/dev/plog/two/0 bs=5000 iflag=fullblock'
t "one below it" 0 "" \
	bash -c 'head -c 4000 /dev/zero | dd of=/dev/plog/two/0 bs=4000 iflag=fullblock'
t "no growth beyond the limit" 1 "max-partitions allows" \
	plogctl topic alter two --partitions 4 --set retention.ms=77
plogctl instance set --max-partitions 3 >/dev/null
t "nor a part of one" 1 "max-partitions allows" \
	plogctl topic alter two --partitions 4 --mode 0666
j "the topic is as it was" '.partitions == 2 and .config == {} and .mode == "0600" and
	(.partition_states | length == 2 and all(.state == "online" and .mode == "0600"))' \
	plogctl topic describe two
t "in the directory too" 0 "^two-0 two-1 two.topic $" \
	bash -c "cd $dir && ls -d two-[0-9]* two.topic | tr '\\n' ' '"
t "what the limit allows is taken" 0 "changed" plogctl topic alter two --partitions 3
j "whole" '.partitions == 3 and (.partition_states | length == 3)' plogctl topic describe two
plogctl topic delete two >/dev/null
t "limits with a directory" 0 "serving $dir" plogctl instance set --data-dir $dir \
	--max-partitions 20000 --max-waiters 4096 --max-descriptors 65536 \
	--max-append-bytes 67108864
j "are in force too" "$(limits 20000 4096 65536 67108864)" plogctl instance show

# ---- topics without a daemon ----

t "create" 0 "orders: 3 partitions" plogctl topic create orders --partitions 3 \
	--config segment.bytes=1000000
t "its nodes are there, only the owner's" 0 "^crw-------" ls -l /dev/plog/orders/2
t "create again" 1 '"orders" exists already' plogctl topic create orders
t "no node where none was wanted" 2 "" bash -c 'plogctl topic create a.b >/dev/null &&
	plogctl topic create gone --no-node >/dev/null && ls /dev/plog/gone'
t "a name that differs only by . and _" 1 "differ only by" plogctl topic create a_b
t "echo into the node" 0 "" bash -c 'echo hello >/dev/plog/orders/0'
t "plogcat prints it" 0 "^hello$" plogcat -e orders/0
j "list" 'map(.name) == ["a.b", "gone", "orders"] and .[2].offsets == 1 and .[2].online == 3' \
	plogctl topic list
j "describe" '.config["segment.bytes"] == "1000000" and (.partition_states | length) == 3 and
	.partition_states[0]["segment.bytes"] == 1000000' plogctl topic describe orders
t "describe marks what nothing acts on" 0 "retention.ms .*stored" \
	plogctl topic describe orders --all
t "describe what is not there" 1 'no topic "nope"' plogctl topic describe nope
t "more partitions, other mode and owner" 0 "changed" plogctl topic alter orders \
	--partitions 4 --mode 0660 --owner nobody:nogroup --set max.message.bytes=2000
t "the new node has them" 0 "^crw-rw---- .* nobody +nogroup" ls -l /dev/plog/orders/3
t "the old ones too" 0 "^crw-rw---- .* nobody +nogroup" ls -l /dev/plog/orders/0
j "the module has the new limit" 'all(.[]; .["max.message.bytes"] == 2000)' \
	plogctl partition show orders
t "the new owner may write" 0 "" as_nobody bash -c 'echo mine >/dev/plog/orders/3'
t "one partition's own mode" 0 "changed" plogctl topic alter orders --partition 1 --mode 0600
j "is only its own" '.overrides == [{"partition":1,"uid":65534,"gid":65534,"mode":"0600"}]' \
	plogctl topic describe orders
t "fewer partitions" 1 "can only grow" plogctl topic alter orders --partitions 2
t "as many" 1 "can only grow" plogctl topic alter orders --partitions 4
t "unset" 0 "changed" plogctl topic alter orders --unset max.message.bytes
j "is the default again" 'all(.[]; .["max.message.bytes"] == 1048588)' \
	plogctl partition show orders
t "nothing to change" 2 "nothing to change" plogctl topic alter orders
t "a partition that is not there" 1 "no partition" plogctl partition show orders 9
t "segments for people: a column for each value" 0 '^ *0 .* active$' \
	bash -c 'plogctl segment list orders 0 | tee /dev/stderr | tail -n 1; test $(plogctl segment list orders 0 | wc -l) = 2'
j "segments" 'length == 1 and .[0].active and .[0].bytes > 0' plogctl segment list orders 0
j "epochs" 'length == 1 and .[0].leader_epoch == 0 and .[0].start_offset == 0' \
	plogctl epoch list orders 0
t "epochs as a table" 0 "EPOCH +START" plogctl epoch list orders 0
t "epochs of nothing" 1 "no partition of this topic" plogctl epoch list orders 77
# one of them was written to a topic that is gone
j "counters of all" '.total.records == 3 and (.partitions | length) == 6' plogctl stats
j "counters of one" '.records == 1 and .appends == 1' plogctl stats orders 0
t "counters of an interval" 0 "^orders +0 +0" plogctl stats orders --interval 1 --count 1

# ---- retention without a daemon ----

# fill TOPIC N: that many records of 900 bytes, two a segment
fill() {
	for _ in $(seq "$2"); do
		head -c 900 /dev/zero | tr '\0' x >"/dev/plog/$1/0"
	done
}
start_of() { plogctl partition show "$1" 0 --json | jq .log_start; }
# becomes WANTED COMMAND...: within 20 s that is what it prints
becomes() {
	local wanted=$1 _
	shift
	for _ in $(seq 100); do
		[ "$("$@")" = "$wanted" ] && return
		sleep 0.2
	done
	echo "got $("$@"), not $wanted"
	return 1
}
retired_states() { plogctl segment retired "$1" 0 --json | jq -r 'map(.state) | unique | join(" ")'; }
plogctl topic create old --config segment.bytes=2000 --config file.delete.delay.ms=0 >/dev/null
t "how often retention looks" 0 "" plogctl instance set --retention-check-ms 3600000
j "as JSON" '.retention_check_ms == 3600000' plogctl instance set --retention-check-ms 3600000
t "a value that is none" 2 "retention-check-ms" plogctl instance set --retention-check-ms never
plogctl topic alter old --set retention.bytes=0 >/dev/null
sleep 1
fill old 9
t "until it looks nothing goes" 0 "^0$" start_of old
t "retention run" 0 "looks at old now" plogctl retention run old
t "lets all of it go" 0 "" becomes 9 start_of old
t "nobody deletes the files: the room is given back" 0 "" becomes emptied retired_states old
j "of each segment that left" 'length == 5 and all(.[]; .topic == "old" and .pins == 0)' \
	plogctl segment retired old
t "for people too" 0 "^old +0 +0 .*emptied" plogctl segment retired old 0
t "segment clean" 0 "files of 5 segments deleted" plogctl segment clean old 0
t "they are gone" 0 "^1$" bash -c "ls $dir/old-0/*.log | wc -l"
j "nothing is retired" '. == []' plogctl segment retired old
j "nothing to clean" '.deleted == 0' plogctl segment clean
t "of a partition that is not there" 1 "no partition" plogctl segment clean old 7
t "retention of one that is not there" 1 "no partition" plogctl retention run old 7
fill old 4
t "a shorter interval" 0 "" plogctl instance set --retention-check-ms 100
t "counts at once" 0 "" becomes 13 start_of old
plogctl instance set --retention-check-ms 300000 >/dev/null
t "not root: no retention" 1 "CAP_NET_ADMIN" as_nobody plogctl retention run old
plogctl topic delete old >/dev/null
t "delete" 0 "deleted" plogctl topic delete gone
t "nothing is left of it" 2 "" ls $dir/gone-0 $dir/gone.topic
t "delete again" 1 'no topic "gone"' plogctl topic delete gone

# ---- the library ----

plogctl topic create lib >/dev/null
plogctl topic create txn >/dev/null
plogctl topic create keys --config cleanup.policy=compact --config max.message.bytes=4096 \
	>/dev/null
while IFS= read -r line; do
	case $line in
	ok*) count=$((count + 1)); echo "ok $count ${line#ok }" ;;
	not*) count=$((count + 1)) failed=$((failed + 1)); echo "not ok $count ${line#not ok }" ;;
	*) echo "$line" ;;
	esac
done < <(timeout 60 build/tests/plogctl/liblog 2>&1 || echo "# liblog ended with status $?")
plogctl topic delete txn >/dev/null

t "plogcat: fields" 0 '^lib/0 0 1000 k h=1,n=NULL first 5 1$' \
	plogcat -e -f '%t/%p %o %T %k %h %s %S %K\n' lib/0
t "plogcat: JSON" 0 '"offset":11,.*"key":"gone","payload":null' plogcat -e -J /dev/plog/lib/0
t "plogcat: from a time" 0 '^5$' plogcat -e -c 1 -o s@2031 -f '%o\n' lib/0
t "plogcat: the last two" 0 '^11,12,$' bash -c "plogcat -e -o -2 -f '%o,' lib/0; echo"
t "plogcat: a segment's file" 0 '^12$' plogcat -f '%o\n' $dir/lib-0/00000000000000000000.log
t "plogcat: not there" 1 "no such partition" plogcat -e nope/0
t "plogcat: beyond the end" 1 "not in the log" plogcat -e -o 99 lib/0

# ---- stop, and find everything again ----

t "stop" 0 "closed cleanly" plogctl instance stop
t "the nodes are gone" 2 "" ls /dev/plog/orders/0
t "another process may have the directory" 0 "" flock -n $dir true
t "set finds everything again" 0 "4 topics, 7 partitions" plogctl instance set --data-dir $dir
t "the records too" 0 "^hello$" plogcat -e orders/0
j "and owners" '.[1].mode == "0600" and .[0].mode == "0660" and .[0].uid == 65534' \
	plogctl partition show orders
j "nothing had to be scanned" '.total.recovered_bytes == 0' plogctl stats
plogctl instance stop >/dev/null

# A directory as Apache Kafka leaves it: no topic files.
rm $dir/*.topic
t "a directory without topic files is adopted" 0 "4 adopted" \
	plogctl instance set --data-dir $dir
t "with its records" 0 "^hello$" plogcat -e orders/0
mkdir "$work/folder" && mv $dir/a.b-0 "$work/folder"
plogctl instance stop >/dev/null
t "a folder that has gone is told" 0 "a.b/0 was missing" plogctl instance set --data-dir $dir
echo junk >$dir/bad.topic && echo partitions=x >>$dir/bad.topic
plogctl instance stop >/dev/null
t "a topic file that cannot be used is named" 1 "bad.topic, line 2: partitions=x" \
	plogctl instance set --data-dir $dir
rm $dir/bad.topic
t "and after it is gone all is well" 0 "4 topics" plogctl instance set --data-dir $dir

# ---- with a daemon ----

cat >"$work/server.properties" <<END
node.id=1
listeners=PLAINTEXT://$broker
log.dirs=$dir
plog.max.partitions=12
plog.max.waiters=77
plog.max.descriptors=5555
plog.max.append.bytes=2000000
END
start_daemon() {
	plogd "$work/server.properties" >"$work/plogd.log" 2>&1 &
	daemon=$!
	for _ in $(seq 100); do
		[ "$(plogctl instance show --json | jq .incarnation)" != 0 ] &&
			timeout 5 kcat -b $broker -L -m 3 >/dev/null 2>&1 && return
		sleep 0.1
	done
}
start_daemon
j "the daemon is registered" '.incarnation > 0' plogctl instance show
j "and has set the limits of its configuration" "$(limits 12 77 5555 2000000)" \
	plogctl instance show
j "list by the daemon" 'map(.name) == ["a.b", "keys", "lib", "orders"]' plogctl topic list
t "create by the daemon" 0 "relay: 2 partitions" plogctl topic create relay --partitions 2 \
	--mode 0640 --owner nobody --config cleanup.policy=compact,delete
t "a Kafka client sees it" 0 'topic "relay" with 2 partitions' kcat -b $broker -L -m 5
t "so does the device" 0 "^crw-r----- .* nobody" ls -l /dev/plog/relay/1
t "create again: Kafka's error" 1 "TOPIC_ALREADY_EXISTS" plogctl topic create relay
t "alter by the daemon" 0 "changed" plogctl topic alter relay --partitions 3 \
	--set segment.ms=5000 --unset cleanup.policy
j "describe by the daemon" '.partitions == 3 and .config == {"segment.ms":"5000"} and
	.mode == "0640" and .uid == 65534' plogctl topic describe relay
j "the module was told" 'all(.[]; .["segment.ms"] == 5000 and (.compact | not))' \
	plogctl partition show relay
t "a name that differs only by . and _: Kafka's error" 1 "differ only by.*INVALID_TOPIC_EXCEPTION" \
	plogctl topic create a_b
t "as many partitions: Kafka's error" 1 "can only grow.*INVALID_PARTITIONS" \
	plogctl topic alter relay --partitions 3
t "a partition that is not there" 1 "UNKNOWN_TOPIC_OR_PARTITION" \
	plogctl topic alter relay --partition 3 --mode 0600
t "one partition's own mode, by the daemon" 0 "changed" \
	plogctl topic alter relay --partition 1 --mode 0666
j "the daemon tells it" '.overrides == [{"partition":1,"uid":65534,"gid":0,"mode":"0666"}]' \
	plogctl topic describe relay
t "a mode for all ends it" 0 "changed" plogctl topic alter relay --mode 0640
j "which the daemon tells" '.overrides == null and .mode == "0640"' plogctl topic describe relay
j "and the module has" 'all(.[]; .mode == "0640")' plogctl partition show relay
t "no growth beyond plog.max.partitions" 1 "max.partitions|POLICY_VIOLATION" \
	plogctl topic alter relay --partitions 50 --set segment.ms=6000 --mode 0666
j "the topic is as it was before that" '.partitions == 3 and .config == {"segment.ms":"5000"} and
	.mode == "0640"' plogctl topic describe relay
j "in the module too" 'length == 3 and all(.[]; .["segment.ms"] == 5000 and .mode == "0640")' \
	plogctl partition show relay
t "and in the directory" 0 "^relay-0 relay-1 relay-2 segment.ms=5000 $" \
	bash -c "cd $dir && { ls -d relay-[0-9]*; grep segment.ms relay.topic; } | tr '\\n' ' '"
for codec in gzip snappy lz4 zstd; do
	# one batch: librdkafka stores a first record that comes alone as it is
	seq 1 500 | sed "s/^/$codec /" |
		kcat -b $broker -P -t relay -p 0 -z $codec -X linger.ms=1000 2>/dev/null
done
t "plogcat opens what a client compressed" 0 "^2000$" \
	bash -c "plogcat -e -f '%s\n' relay/0 | grep -c ' '"
t "in every codec" 0 "^gzip lz4 snappy zstd $" \
	bash -c "plogcat -e -f '%z\n' relay/0 | sort -u | tr '\n' ' '; echo"
ts=$(plogcat -e -o 1234 -c 1 -f %T relay/0)
first=$(plogcat -e -f '%T %o\n' relay/0 | awk -v t="$ts" '$1 >= t { print $2; exit }')
t "a time inside a compressed batch is found" 0 "^$first $ts$" \
	plogcat -e -c 1 -o "s@$ts" -f '%o %T\n' relay/0
t "segment clean is the daemon's" 1 "a daemon is registered" plogctl segment clean
plogctl topic create going --config segment.bytes=2000 --config file.delete.delay.ms=0 >/dev/null
fill going 9
plogctl topic alter going --set retention.bytes=0 >/dev/null
plogctl retention run going >/dev/null
t "the daemon deletes what retention lets go" 0 "" \
	becomes 1 bash -c "ls $dir/going-0/*.log | wc -l"
plogctl topic delete going >/dev/null
t "delete by the daemon" 0 "deleted" plogctl topic delete relay
t "it is gone for the client" 1 "" bash -c "kcat -b $broker -L -m 5 | grep relay"
t "delete what is not there: Kafka's error" 1 "UNKNOWN_TOPIC_OR_PARTITION" \
	plogctl topic delete relay
t "no more partitions than plog.max.partitions" 1 "" \
	plogctl topic create many --partitions 9
j "and nothing is left of them" 'all(.[]; .name != "many")' plogctl topic list
t "not root: not through the daemon either" 1 "CAP_NET_ADMIN" as_nobody plogctl topic delete lib

# The daemon dies while it is asked: no answer, but no waiting for ever either.
kill -STOP "$daemon"
(sleep 1; kill -KILL "$daemon") &
t "a daemon that dies while it is asked is told" 1 "went away" timeout 30 plogctl topic list
wait "$daemon" 2>/dev/null
daemon=
t "and then plogctl does it itself" 0 "by-hand: 1 partition" plogctl topic create by-hand
start_daemon
j "the next daemon knows of it" 'any(.[]; .name == "by-hand")' plogctl topic list
kill -TERM "$daemon" && wait "$daemon"
daemon=
j "the instance stays when the daemon ends" '.state == "running" and .incarnation == 0' \
	plogctl instance show

t "the last stop" 0 "closed cleanly" plogctl instance stop
kill -TERM $monitor
wait $monitor
t "monitor: saw the instance start and stop, partitions open and close" 0 "^true$" \
	jq -s 'any(.[]; .event == "instance" and .state == "running") and
	any(.[]; .event == "instance" and .state == "stopped") and
	any(.[]; .topic == "orders" and .partition == 2 and .state == "online") and
	any(.[]; .topic == "gone" and .state == "closed")' "$work/events"
t "and files that are to be deleted, by a daemon" 0 "^true$" \
	jq -s 'any(.[]; .event == "retired" and .topic == "going" and .partition == 0) and
	all(.[]; .event != "retired" or .topic != "old")' "$work/events"
t "in another namespace the directory can be served now, and is let go with it" 0 "5 topics" \
	in_namespace plogctl instance set --data-dir $dir

echo "1..$count"
[ $failed -eq 0 ]
