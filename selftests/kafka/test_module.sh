#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The module takes over a directory of Apache Kafka's in a guest, from plogctl and
# then from plogd; what it has written there goes past Kafka's dump tool and back
# to Kafka's broker.
. "$(dirname "$0")/lib.sh"
cd "$top" || exit 1
guest=127.0.0.1:$((port + 3))
vm=
trap '[ -z "$vm" ] || { kill "$vm"; wait "$vm"; } 2>/dev/null; cleanup' EXIT
a=$work/a

# ---- a broker of Kafka's writes, in two leader epochs ----
if [ -d "${KAFKA_SHARED:-}/filled" ]; then
	cp -a --sparse=always "$KAFKA_SHARED/filled" "$a"
else
	kafka_format "$a" && kafka_start "$a" || bail "Apache Kafka's broker does not start"
	peer fill "$kafka" || bail "the broker could not be filled"
	kafka_stop
fi
kafka_start "$a" || bail "Apache Kafka's broker does not start again"
peer more "$kafka" 8 then truth "$kafka" "$work/want" || bail "the broker could not be written"
kafka_stop
(cd "$a" && find . -name '*.snapshot' -not -path '*__cluster_metadata*' | sort) >"$work/before"

# ---- the module takes it over ----
mkfifo "$work/stdin"
# another process group: what stops this script stops the guest by its trap
tools/vm/vm --load --mem 1G --timeout 240 --stdin --publish "$((port + 3)):9092" -- \
	selftests/kafka/guest "$a" "$guest" <"$work/stdin" >"$work/out" 2>"$work/plogd.log" &
vm=$!
exec 7>"$work/stdin"
for _ in $(seq 1800); do
	grep -q 'plogd: ready' "$work/plogd.log" && break
	kill -0 "$vm" 2>/dev/null || bail "the guest has ended"
	sleep 0.1
done
[ "$(grep -c '9 adopted from Apache Kafka$' "$work/plogd.log")" = 2 ]
ok "plogctl puts Kafka's directory into service" $?
peer read "$guest" "$work/got" || bail "plogd in the guest cannot be read"
# what came by write(2) bears the guest's own time: plain-0 is compared up to there
same "every record and look-up of the other partitions is what Kafka says" \
	<(grep -v '^plain-0' "$work/got") <(grep -v '^plain-0' "$work/want")
same "and every record that was there before the writes to the node" \
	<(grep '^plain-0 [0-9]* 16' "$work/got") <(grep '^plain-0 [0-9]* 16' "$work/want")
[ "$(($(grep -c '^plain-0 [0-9]* ' "$work/got") - $(grep -c '^plain-0 [0-9]* ' "$work/want")))" = 300 ]
ok "and 300 records more" $?
peer more "$guest" 1 then read "$guest" "$work/want" || bail "plogd in the guest cannot be written"
echo >&7
exec 7>&-
wait "$vm"
ok "the guest ends" $?
vm=
sed '0,/^BEGIN/d' "$work/out" | base64 -d | tar -C "$work" -xzf - || bail "no directory came back"

# ---- what it has written ----
faults=$(dump "$work/d")
head -n 5 <<<"$faults" | sed '/^$/d; s/^/# /'
[ -s "$work/dump.txt" ] && [ -z "$faults" ]
ok "Kafka's dump tool finds no fault in what the module has written" $?
missing=$(cd "$work/d" && xargs ls -d <"$work/before" 2>&1 >/dev/null)
[ -s "$work/before" ] && [ -z "$missing" ]
ok "no producer state file of Kafka's is gone" $?
(
	differ=0 several=0
	for f in "$a"/[a-z]*/leader-epoch-checkpoint; do
		name=${f#"$a"/}
		# compaction took the first batch of an epoch: nobody can tell where it was
		[ "${name%/*}" != compact-0 ] || continue
		cmp "$f" "$work/e/$name" || differ=1
		[ "$(wc -l <"$f")" -lt 4 ] || several=1
	done
	[ $differ = 0 ] && [ $several = 1 ]
) >"$work/peer.log" 2>&1
ok "leader epochs made anew from the log: byte for byte what Kafka has written" $?
peer epochs "$work/d" "$work/got"
for f in "$work/d"/[a-z]*/leader-epoch-checkpoint; do
	tail -n +3 "$f" | sed "s|^|$(basename "$(dirname "$f")") |"
done >"$work/epochs"
same "Kafka reads the leader epochs that the module has written" "$work/got" "$work/epochs"
kafka_start "$work/d" || bail "Kafka's broker does not start on the module's directory"
peer truth "$kafka" "$work/got"
same "Kafka's broker serves it" "$work/got" "$work/want"
kafka_stop
finish
