#!/bin/bash
# SPDX-License-Identifier: MIT
# What a user does with kcat: list, produce with every codec, read, tail, query
# by time; and the broker's end and new beginning in between.
. "$(dirname "$0")/lib.sh"

start || { tail "$log" >&2; echo "Bail out! plogd did not start"; exit 1; }

kc -L >"$work/out"
ok "-L answers" $?
is "-L names the broker" "$(grep -c "broker 0 at $broker (controller)" "$work/out")" 1

seq 1 5000 | sed 's/$/ some text that can be compressed, compressed, compressed/' >"$work/in"
for codec in none gzip snappy lz4 zstd; do
	# a batch of one message is not smaller compressed, and librdkafka then leaves it so:
	# wait for many
	[ $codec = none ] && z=() || z=(-z $codec -X linger.ms=500)
	kc -P -t "codec-$codec" "${z[@]}" <"$work/in"
	ok "-P $codec" $?
	kc -C -t "codec-$codec" -o beginning -e -q >"$work/out"
	cmp -s "$work/in" "$work/out"
	ok "-C gives back what -P $codec took, in order" $?
	# B2: what is stored has the codec's bits
	segment=$(ls "$data/codec-$codec-0/"*.log)
	bits=$(od -An -tu1 -j22 -N1 "$segment" | tr -d ' ')
	case $codec in none) n=0 ;; gzip) n=1 ;; snappy) n=2 ;; lz4) n=3 ;; zstd) n=4 ;; esac
	is "the stored batch has codec $n" "$((bits & 7))" $n
done

printf 'k1:v1\nk2:\n:v3\n' | kc -P -t keys -K : -Z -H color=red
kc -C -t keys -o beginning -e -q -f '%k=%s %h %o\n' >"$work/out"
is "keys, empty values and headers" "$(cat "$work/out")" "k1=v1 color=red 0
k2= color=red 1
=v3 color=red 2"

# each new record wakes the reader: all of them arrive long before max_wait ends
: >"$work/out"
kc -L -t tail >/dev/null
far timeout 120 kcat -b "$broker" -C -t tail -o beginning -q -u -X fetch.wait.max.ms=30000 \
	-c 5 >"$work/out" 2>/dev/null &
reader=$!
sleep 1
most=0
for i in 1 2 3 4 5; do
	echo "line $i" | kc -P -t tail
	began=$(date +%s%N)
	for ((n = 0; n < 800; n++)); do
		[ "$(wc -l <"$work/out")" -ge $i ] && break
		sleep 0.05
	done
	took=$((($(date +%s%N) - began) / 1000000))
	[ $took -gt $most ] && most=$took
done
wait $reader
is "-C tails: every record arrives" "$(cat "$work/out")" "$(seq -f 'line %g' 5)"
[ $most -lt 5000 ]
ok "and wakes the reader, $most ms after its producer has ended at most" $?

# -Q by time
echo before | kc -P -t times
sleep 0.2
# of the clock that stamps records: a guest's may be a second behind
now=$(far date +%s%3N)
sleep 0.2
printf 'after\nlater\n' | kc -P -t times
is "-Q by time" "$(kc -Q -t "times:0:$now")" "times [0] offset 1"
is "-Q earliest" "$(kc -Q -t times:0:-2)" "times [0] offset 0"
is "-Q latest" "$(kc -Q -t times:0:-1)" "times [0] offset 3"
is "-C from a time" "$(kc -C -t times -o "s@$now" -e -q)" "after
later"
is "-C the last one" "$(kc -C -t times -o -1 -e -q)" later
is "-C an offset" "$(kc -C -t times -o 1 -c 1 -q)" after

# one large message, and one that is too large
head -c 900000 /dev/urandom | base64 -w0 | head -c 990000 >"$work/big"
kc -P -t big <"$work/big"
ok "-P a message of 990000 bytes" $?
kc -C -t big -o beginning -e -q -D '' >"$work/out"
cmp -s "$work/big" "$work/out"
ok "and -C gives it back" $?
head -c 2000000 /dev/zero | tr '\0' x >"$work/huge"
kc -P -t big -X message.max.bytes=4000000 <"$work/huge" 2>"$work/err"
is "-P a message above max.message.bytes fails" "$(grep -c -i 'too large' "$work/err")" 1
is "and nothing is appended" "$(kc -Q -t big:0:-1)" "big [0] offset 1"

# stop and start: everything is there
stop
is "SIGTERM: exit status 0" $? 0
is "and a line that it stopped" "$(tail -n 1 "$log" | grep -c 'plogd: stopped')" 1
start
ok "a new plogd starts on the same directory" $?
kc -C -t codec-zstd -o beginning -e -q >"$work/out"
cmp -s "$work/in" "$work/out"
ok "and serves what was there" $?

# kill and start: what was acknowledged is there, and the broker soon
kc -P -t killed <"$work/in"
stop_hard
start
ok "after SIGKILL a new plogd starts" $?
# by its own lines: to load the program takes a guest seconds
stamp() {
	date -d "$(grep "$1" "$log" | tail -n 1 | cut -d ' ' -f 1)" +%s%3N
}
took=$(($(stamp 'plogd: ready') - $(stamp 'starts on')))
[ $took -lt 1000 ]
ok "and is ready within a second ($took ms)" $?
kc -C -t killed -o beginning -e -q >"$work/out"
cmp -s "$work/in" "$work/out"
ok "what was acknowledged before SIGKILL is there" $?
stop
is "and it stops cleanly" $? 0
finish
