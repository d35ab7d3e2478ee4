# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For the scripts of this folder: Apache Kafka's broker, its client and its dump
# tool, plogd, and TAP.
#
#   KAFKA_CP      class path, see run
#   PLOG_PORT     Kafka's broker listens there, its controller and plogd behind
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
port=${PLOG_PORT:-19500}
kafka=127.0.0.1:$port
plog=127.0.0.1:$((port + 2))
# In the tree, where a guest sees it.
mkdir -p "$top/build/tests/kafka"
work=$(mktemp -d "$top/build/tests/kafka/work.XXXXXX")
# Small heaps, and no time spent on making code fast that runs but for seconds.
java=(java -Xmx300m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto
	-Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$KAFKA_CP")
kafka_pid= plog_pid=
tests=0 failed=0

cleanup() {
	[ -z "$kafka_pid" ] || kill -KILL "$kafka_pid" 2>/dev/null
	[ -z "$plog_pid" ] || kill -KILL "$plog_pid" 2>/dev/null
	wait 2>/dev/null
	[ "${KEEP:-0}" = 1 ] || rm -rf "$work"
}
trap cleanup EXIT

# ok NAME STATUS: one result, with the ends of the logs if it failed.
ok() {
	tests=$((tests + 1))
	if [ "$2" = 0 ]; then
		echo "ok $tests - $1"
		return
	fi
	failed=$((failed + 1))
	for f in broker plogd peer; do
		tail -n 8 "$work/$f.log" 2>/dev/null | cut -c1-300 | sed "s/^/# $f: /"
	done
	echo "not ok $tests - $1"
}

# same NAME GOT WANTED: are the two files equal?
same() {
	if ! cmp -s "$2" "$3"; then
		diff "$3" "$2" | head -n 10 | sed 's/^/# /'
		ok "$1" 1
	else
		ok "$1" 0
	fi
}

finish() {
	echo "1..$tests"
	[ "$failed" = 0 ]
	exit
}

bail() {
	tail -n 20 "$work/broker.log" "$work/plogd.log" "$work/peer.log" 2>/dev/null |
		cut -c1-300 | sed 's/^/# /'
	echo "Bail out! $*"
	exit 1
}

# kafka_config DIR: a broker that is its own controller.
kafka_config() {
	cat >"$work/server.properties" <<-END
	process.roles=broker,controller
	node.id=1
	controller.quorum.bootstrap.servers=127.0.0.1:$((port + 1))
	listeners=PLAINTEXT://$kafka,CONTROLLER://127.0.0.1:$((port + 1))
	controller.listener.names=CONTROLLER
	listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
	log.dirs=$1
	offsets.topic.replication.factor=1
	offsets.topic.num.partitions=2
	transaction.state.log.replication.factor=1
	transaction.state.log.min.isr=1
	transaction.state.log.num.partitions=2
	group.initial.rebalance.delay.ms=0
	log.cleaner.backoff.ms=300
	log.initial.task.delay.ms=500
	log.flush.offset.checkpoint.interval.ms=1000
	log.flush.start.offset.checkpoint.interval.ms=1000
	END
}

kafka_format() {
	kafka_config "$1"
	"${java[@]}" kafka.tools.StorageTool format -t 4L6g3nShT-eMCtK--X86sw \
		-c "$work/server.properties" --standalone >"$work/broker.log" 2>&1
}

# Does somebody listen at that port of 127.0.0.1?
listens() {
	(exec 9<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

kafka_start() {
	kafka_config "$1"
	! listens "$port" || bail "port $port is taken; PLOG_PORT names another"
	"${java[@]}" kafka.Kafka "$work/server.properties" >>"$work/broker.log" 2>&1 &
	kafka_pid=$!
	for _ in $(seq 600); do
		kill -0 "$kafka_pid" 2>/dev/null || return 1
		listens "$port" && return 0
		sleep 0.1
	done
	return 1
}

# kafka_stop [SIGNAL]
kafka_stop() {
	kill "-${1:-TERM}" "$kafka_pid"
	wait "$kafka_pid" 2>/dev/null
	kafka_pid=
}

# plogd_start DIR [ARG]...: a broker with the process engine
plogd_start() {
	local dir=$1

	shift
	: >"$work/plogd.log"
	"$top/build/bin/plogd" --engine process --set "log.dirs=$dir" --set node.id=1 \
		--set "listeners=PLAINTEXT://$plog" "$@" >"$work/plogd.log" 2>&1 &
	plog_pid=$!
	for _ in $(seq 300); do
		grep -q 'plogd: ready' "$work/plogd.log" && return 0
		kill -0 "$plog_pid" 2>/dev/null || break
		sleep 0.1
	done
	wait "$plog_pid"
	plog_pid=
	return 1
}

plogd_stop() {
	local status

	kill "-${1:-TERM}" "$plog_pid"
	wait "$plog_pid" 2>/dev/null
	status=$?
	plog_pid=
	return $status
}

peer() {
	timeout 120 "${java[@]}" Peer "$@" >"$work/peer.log" 2>&1
}

# Files of partitions below DIR that the dump tool knows, with commas.
dump_files() {
	find "$1" \( -name '*.log' -o -name '*.index' -o -name '*.timeindex' -o -name '*.snapshot' \
		-o -name '*.txnindex' \) -not -path '*__cluster_metadata*' | sort | paste -sd,
}

# dump DIR: what Apache Kafka's tool has to say against the files, one line each. It
# ends at the first that it cannot make sense of.
dump() {
	local files how

	files=$(dump_files "$1")
	[ -n "$files" ] || { echo "no files in $1"; return; }
	# the content, then each index against its log, then as a broker does at its start
	for how in '--deep-iteration --print-data-log' --verify-index-only --index-sanity-check; do
		# shellcheck disable=SC2086
		"${java[@]}" org.apache.kafka.tools.DumpLogSegments $how --files "$files" \
			>"$work/dump.txt" 2>&1 || echo "$how: the tool has failed"
		# Faults are named at the end, by file. A compacted log has gaps, and Kafka's
		# cleaner indexes the time of records that it has removed; that the first
		# offset follows none (-1) is no fault.
		awk '/^\| offset/ { next }
		/^ *-1 is followed by/ { next }
		/^ *[0-9]+ is followed by/ { if (file !~ "/compact-0/") print file ": " $0; next }
		/^Non-.*secutive offsets in/ { file = $NF; next }
		/timestamp mismatch in .*\/compact-0\// { next }
		tolower($0) ~ /mismatch|exception|corrupt|invalid|out of order|not found|fail/' \
			"$work/dump.txt"
	done
}
