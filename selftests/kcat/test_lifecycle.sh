#!/bin/bash
# SPDX-License-Identifier: MIT
# What an operator does to plogd, and what it says: configuration, signals, a
# second one beside it, the end with clients connected.
. "$(dirname "$0")/lib.sh"

# run_wrong FILE WORD...: plogd must not start with FILE, and its line has the words.
run_wrong() {
	local name=$1 out word status
	shift
	out=$(timeout 10 "$plogd" --engine "$PLOG_ENGINE" --set "log.dirs=$data" \
		"$work/$name" 2>&1)
	status=$?
	[ $status = 1 ] || { echo "# status $status: $out"; return 1; }
	for word; do
		grep -qF -- "$word" <<<"$out" || { echo "# no '$word' in: $out"; return 1; }
	done
}

printf 'node.id=0\nnum.partitions=many\n' >"$work/number"
run_wrong number "$work/number:2: num.partitions=many: must be a whole number from 1 to 65536"
ok "a value that is no number is refused with file, line, key and range" $?
printf '\n\nnum.partitions=0\n' >"$work/range"
run_wrong range "$work/range:3: num.partitions=0: out of range: must be from 1 to 65536"
ok "so is one out of range" $?
printf 'auto.create.topics.enable=yes\n' >"$work/bool"
run_wrong bool "$work/bool:1: auto.create.topics.enable=yes: must be true or false"
ok "a boolean that is none" $?
printf '# x\nlisteners=SSL://127.0.0.1:9093\n' >"$work/ssl"
run_wrong ssl "$work/ssl:2:" PLAINTEXT
ok "a listener that plogd cannot serve" $?
printf 'log.retention.hours=soon\n' >"$work/topic"
run_wrong topic "$work/topic:1:" log.retention.hours
ok "a default for topics that is wrong" $?
printf 'listeners=PLAINTEXT://127.0.0.1:9092\nadvertised.listeners=PLAINTEXT://0.0.0.0:9092\n' \
	>"$work/adv"
run_wrong adv "$work/adv:2:" "clients can reach"
ok "an advertised address that nobody can reach" $?
run_wrong missing "$work/missing"
ok "a file that is not there" $?
printf 'num.partitons=3\nlog.dirs=/tmp\n' >"$work/unknown"
out=$("$plogd" --check "$work/unknown" 2>&1)
is "an unknown key is a warning by name, and --check ends with 0" \
	"$?$(grep -c "WARN .*$work/unknown:1: plogd has no key num.partitons" <<<"$out")" 01
"$plogd" --check "$top/daemon/plogd.properties" >"$work/out" 2>&1
is "the sample configuration is good and has no unknown key" "$?$(cat "$work/out")" 0

# ---- reload ----

cat >"$work/server.properties" <<END
log.dirs=$data
listeners=PLAINTEXT://127.0.0.1:$port
auto.create.topics.enable=true
num.partitions=2
END
# start_file: as start, with the file
start_file() {
	local before i
	before=$(grep -c 'plogd: ready' "$log" 2>/dev/null)
	"$plogd" --engine "$PLOG_ENGINE" "$work/server.properties" >>"$log" 2>&1 &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		[ "$(grep -c 'plogd: ready' "$log")" != "${before:-0}" ] && return 0
		kill -0 $pid 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}
# said TEXT: wait until plogd has said it
said() {
	local i
	for ((i = 0; i < 100; i++)); do
		grep -qF -- "$1" "$log" && return 0
		sleep 0.05
	done
	echo "# plogd has not said: $1"
	return 1
}
start_file
ok "plogd starts with a file" $?
[ -n "$pid" ] && kill -0 $pid 2>/dev/null || finish
is "num.partitions is what a new topic gets" \
	"$(kc -L -t first | grep -c 'partition [01], leader 0')" 2
sed -i 's/=true/=false/; s/num.partitions=2/num.partitions=9/; $anode.id=7' \
	"$work/server.properties"
kill -HUP $pid
said "was read again"
ok "SIGHUP reads the file again" $?
said "node.id has changed in the file; it takes effect at the next start only"
ok "and says what has to wait for the next start" $?
sleep 0.2
is "automatic creation is off now" \
	"$(kc -L -t second 2>&1 | grep -c 'Unknown topic or partition')" 1
sed -i 's/num.partitions=9/num.partitions=none/' "$work/server.properties"
kill -HUP $pid
said "SIGHUP: the old configuration stays: $work/server.properties:4: num.partitions=none"
ok "a wrong file changes nothing" $?
kc -L >/dev/null
ok "and plogd goes on" $?
sed -i 's/none/1/; $amessage.max.bytes=5000' "$work/server.properties"
kill -HUP $pid
said "the new defaults are in force"
ok "new defaults reach the topics that are there" $?
head -c 6000 /dev/zero | tr '\0' x >"$work/six"
is "a message above the new max.message.bytes is refused" \
	"$(kc -P -t first -p 0 "$work/six" 2>&1 | grep -c -i 'too large')" 1
head -c 4000 "$work/six" >"$work/four"
kc -P -t first -p 1 "$work/four"
ok "one below is not" $?
stop
is "it stops" $? 0
start_file
is "another node.id than the directory's is refused" \
	"$?$(tail -n 2 "$log" | grep -c 'belongs to node.id 0')" 11
wait "$pid" 2>/dev/null
pid=

# ---- a second one ----

start "advertised.listeners=PLAINTEXT://broker.example:1234"
ok "plogd starts again" $?
is "advertised.listeners is what clients are told" \
	"$(kc -L | grep -c 'broker 0 at broker.example:1234')" 1
out=$(timeout 10 "$plogd" --engine "$PLOG_ENGINE" --set "log.dirs=$data" \
	--set "listeners=PLAINTEXT://127.0.0.1:$port" 2>&1)
is "a port that is taken" "$?$(grep -c "cannot listen at 127.0.0.1:$port" <<<"$out")" 11
if [ "$PLOG_ENGINE" = process ]; then
	out=$(timeout 10 "$plogd" --engine process --set "log.dirs=$data" \
		--set "listeners=PLAINTEXT://127.0.0.1:$((port + 1))" 2>&1)
	is "a second plogd on the same directory is refused" \
		"$?$(grep ERROR <<<"$out" | grep -c "$data")" 11
else
	out=$(timeout 10 "$plogd" --engine process --set "log.dirs=$data" \
		--set "listeners=PLAINTEXT://127.0.0.1:$((port + 1))" 2>&1)
	is "a process engine on the module's directory is refused" \
		"$?$(grep ERROR <<<"$out" | grep -c "$data")" 11
	mkdir -p "$data.other"
	out=$(timeout 10 "$plogd" --engine module --set "log.dirs=$data.other" \
		--set "listeners=PLAINTEXT://127.0.0.1:$((port + 1))" 2>&1)
	is "another directory than the instance's is refused" \
		"$?$(grep -c "the module serves $data" <<<"$out")" 11
	rmdir "$data.other"

	"$plogd" --engine module --set "log.dirs=$data" \
		--set "listeners=PLAINTEXT://127.0.0.1:$((port + 1))" >"$work/second" 2>&1 &
	second=$!
	wait "$pid"
	is "a plogd that is replaced says so and ends" \
		"$?$(grep -c 'another plogd has registered' "$log")" 11
	pid=$second
	for ((i = 0; i < 100; i++)); do
		grep -q 'plogd: ready' "$work/second" && break
		sleep 0.05
	done
	timeout 20 kcat -b "127.0.0.1:$((port + 1))" -L >/dev/null
	ok "and the new one serves" $?

	# the relay
	"$plogctl" topic create relayed --partitions 3 --config retention.ms=86400000 >/dev/null
	ok "plogctl topic create, through plogd" $?
	is "plogctl topic list" "$("$plogctl" topic list | grep -c relayed)" 1
	is "Metadata has it" "$(timeout 20 kcat -b "127.0.0.1:$((port + 1))" -L |
		grep -c 'topic "relayed" with 3 partitions')" 1
	"$plogctl" topic create relayed 2>"$work/err"
	is "a topic that exists is refused with the reason" \
		"$?$(grep -c -i exist "$work/err")" 11
	"$plogctl" topic alter relayed --partitions 5 >/dev/null
	ok "plogctl topic alter" $?
	is "five partitions now" "$(timeout 20 kcat -b "127.0.0.1:$((port + 1))" -L |
		grep -c 'topic "relayed" with 5 partitions')" 1
	"$plogctl" topic delete relayed >/dev/null
	ok "plogctl topic delete" $?
	is "it is gone" "$("$plogctl" topic list | grep -c relayed)" 0

	# records cross between device and clients, also with no daemon
	echo from the device >/dev/plog/first/0
	is "a client reads what the device took" \
		"$(timeout 20 kcat -b "127.0.0.1:$((port + 1))" -C -t first -p 0 -o beginning -e -q)" \
		"from the device"
	echo from a client | timeout 20 kcat -b "127.0.0.1:$((port + 1))" -P -t first -p 0
	is "the device gives what a client sent" "$(timeout 5 head -c 29 /dev/plog/first/0)" \
		"from the device
from a client"
	kill -KILL $pid
	wait $pid 2>/dev/null
	echo while no daemon runs >/dev/plog/first/0
	ok "the device takes records while no daemon runs" $?
	port=$((port + 1)) broker=127.0.0.1:$port
	start
	ok "a new daemon starts" $?
	is "and serves them" "$(kc -C -t first -p 0 -o 2 -e -q)" "while no daemon runs"
fi
stop
is "SIGTERM: exit status 0" $? 0

# ---- the end with clients ----

start auto.create.topics.enable=true
kc -L -t waiting >/dev/null
python3 - "$here" "$broker" "$pid" <<'END' >"$work/out" 2>&1
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
from wire import Conn, FETCH, parse_fetch
host, port = sys.argv[2].split(":")
c = Conn((host, int(port)))
n = c.send(FETCH, 11, c.fetch_body(11, [("waiting", 0, 0)], wait=30000))
time.sleep(0.3)
began = time.time()
os.kill(int(sys.argv[3]), signal.SIGTERM)
answer = parse_fetch(c.receive(FETCH, 11, n), 11)
print("answered" if answer["error"] == 0 and time.time() - began < 2 else answer)
END
is "a Fetch that waits is answered at SIGTERM" "$(cat "$work/out")" answered
wait $pid
is "and plogd ends with 0" $? 0
pid=

start plog.drain.ms=1000
kc -P -t slow -X message.max.bytes=1000000 < <(head -c 6000000 /dev/zero | tr '\0' x | fold -w 60000)
python3 - "$here" "$broker" "$pid" <<'END' >"$work/out" 2>&1
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
from wire import Conn, FETCH
host, port = sys.argv[2].split(":")
c = Conn((host, int(port)))
for _ in range(4):
    c.send(FETCH, 11, c.fetch_body(11, [("slow", 0, 0, 1 << 30)]))
time.sleep(0.5)
os.kill(int(sys.argv[3]), signal.SIGTERM)
time.sleep(3)
END
wait $pid
is "one who does not read cannot hold up the end" \
	"$?$(tail -n 5 "$log" | grep -c 'they are closed')" 01
pid=

start plog.drain.ms=60000
python3 - "$here" "$broker" "$pid" <<'END' >"$work/out" 2>&1
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
from wire import Conn, FETCH
host, port = sys.argv[2].split(":")
c = Conn((host, int(port)))
for _ in range(4):
    c.send(FETCH, 11, c.fetch_body(11, [("slow", 0, 0, 1 << 30)]))
time.sleep(0.5)
os.kill(int(sys.argv[3]), signal.SIGTERM)
time.sleep(0.5)
os.kill(int(sys.argv[3]), signal.SIGTERM)
time.sleep(1)
END
wait $pid
is "a second signal ends at once" "$?$(tail -n 1 "$log" | grep -c 'a second signal')" 11
pid=
start
is "and the logs open again" "$?$(kc -Q -t slow:0:-2)" "0slow [0] offset 0"

# ---- max.connections ----

stop
start max.connections=2
python3 - "$here" "$broker" <<'END' >"$work/out" 2>&1
import socket, sys
sys.path.insert(0, sys.argv[1])
from wire import Conn
host, port = sys.argv[2].split(":")
a, b = Conn((host, int(port))), Conn((host, int(port)))
a.api_versions(0), b.api_versions(0)
c = Conn((host, int(port)), timeout=1)
try:
    c.api_versions(0)
    print("a third was served")
except socket.timeout:
    a.close()
    c.s.settimeout(5)
    print("waited, then", c.receive(18, 0).i16())
END
is "max.connections: the next waits until one ends" "$(cat "$work/out")" "waited, then 0"

# ---- memory, descriptors and disk that run out ----

stop
start socket.request.max.bytes=1000000 queued.max.request.bytes=1000000 \
	plog.request.arrival.ms=1000
python3 - "$here" "$broker" <<'END' >"$work/out" 2>&1
import struct, sys, time
sys.path.insert(0, sys.argv[1])
from wire import API_VERSIONS, Conn
host, port = sys.argv[2].split(":")
a, b, c = (Conn((host, int(port))) for _ in range(3))
a.send_raw(struct.pack(">i", 1000000) + bytes(900000))	# all there is
time.sleep(0.2)
b.send_raw(struct.pack(">i", 900000) + bytes(100000))	# the one that may go beyond it
time.sleep(0.2)
frame = c.frame(API_VERSIONS, 0, b"", client="c" * 3000)
c.send_raw(frame[:100])
time.sleep(2.5)
a.close(), b.close()
time.sleep(0.7)
c.send_raw(frame[100:])
print("answered", c.receive(API_VERSIONS, 0).i16())
END
is "waiting for memory is not held against a peer" "$(cat "$work/out" | tail -n 1)" "answered 0"

python3 - "$here" "$broker" "$pid" <<'END' >"$work/out" 2>&1
import sys, time
sys.path.insert(0, sys.argv[1])
from wire import API_VERSIONS, Conn, FETCH
def rss():
    with open(f"/proc/{sys.argv[3]}/status") as f:
        return [int(x.split()[1]) for x in f if x.startswith("VmRSS")][0]
host, port = sys.argv[2].split(":")
other = Conn((host, int(port)))
other.create("parked")
before = rss()
c = Conn((host, int(port)), timeout=2)
c.send(FETCH, 11, c.fetch_body(11, [("parked", 0, 0)], wait=30000))
try:
    for _ in range(30):
        c.send(API_VERSIONS, 0, bytes([1]) * 900000)
except OSError:
    pass
print("others:", other.api_versions(0)["error"])
grown = rss() - before
print("small" if grown < 8000 else f"{grown} KiB more")
END
is "requests behind a Fetch that waits keep to the memory, and nobody waits for them" \
	"$(cat "$work/out")" "others: 0
small"

if [ "$PLOG_ENGINE" = process ]; then
	stop
	(ulimit -n 240; exec "$plogd" --engine process --set "log.dirs=$data" \
		--set "listeners=PLAINTEXT://127.0.0.1:$port" >"$work/few" 2>&1) &
	pid=$!
	for ((i = 0; i < 100; i++)); do
		grep -q 'plogd: ready' "$work/few" && break
		sleep 0.05
	done
	python3 - "$here" "$broker" <<'END' >"$work/out" 2>&1
import sys
sys.path.insert(0, sys.argv[1])
from wire import Conn, batch
host, port = sys.argv[2].split(":")
c = Conn((host, int(port)))
c.create("rolls", 1, {"segment.bytes": "1048576"})
crowd = [Conn((host, int(port))) for _ in range(225)]
for _ in range(10):
    c.append("rolls", batch([b"x" * 300000]))
print(c.create_topics(5, [("more", 1)])[0]["error"])
END
	is "a crowd of connections leaves descriptors for the logs" "$(cat "$work/out")" 0
	is "and one line says what to do" "$(grep -c 'new ones wait' "$work/few")" 1

	# a disk of 16 MiB, in a mount namespace that ends with plogd
	stop
	mkdir "$work/small"
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount bash -c 'mount -t tmpfs -o size=16M none "$0" && exec "$@"' "$work/small" \
		"$plogd" --engine process --set "log.dirs=$work/small/data" \
		--set "listeners=PLAINTEXT://127.0.0.1:$port" >"$work/full" 2>&1 &
	pid=$!
	for ((i = 0; i < 100; i++)); do
		grep -q 'plogd: ready' "$work/full" && break
		sleep 0.05
	done
	if ! grep -q 'plogd: ready' "$work/full" && [ "$(id -u)" != 0 ]; then
		tests=$((tests + 1))
		echo "ok $tests - a topic is deleted on a full disk # SKIP only root mounts one"
	else
		python3 - "$here" "$broker" <<'END' >"$work/out" 2>&1
import sys
sys.path.insert(0, sys.argv[1])
from wire import Conn, batch
host, port = sys.argv[2].split(":")
c = Conn((host, int(port)))
c.create("keep"), c.create("fat")
for size in (900000, 100):
    while not c.produce(8, "fat", [(0, batch([b"x" * size]))])[0]["error"]:
        pass
print("keep:", c.produce(8, "keep", [(0, batch([b"x"]))])[0]["error"])
print("delete:", c.delete_topics(5, ["fat"])[0]["error"])
print("topics:", sorted(c.metadata(4, None)["topics"]))
print("keep:", c.produce(8, "keep", [(0, batch([b"x"]))])[0]["error"])
END
		is "a topic is deleted on a full disk, and the others go on" \
			"$(cat "$work/out")" "keep: 56
delete: 0
topics: ['keep']
keep: 0"
	fi
fi
finish
