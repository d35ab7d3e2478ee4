#!/bin/bash
# SPDX-License-Identifier: MIT
# What an operator does to plogd, and what it says: configuration, signals, a
# second one beside it, the end with clients connected.
#
# Its clients stay where plogd is, in the guest: a connection that ends while plogd does not read
# it ends the published port's QEMU too (libslirp 4.7, an assertion in soread()).
unset PLOG_FAR
. "$(dirname "$0")/lib.sh"

# client SCRIPT: a client in Python that may ask about plogd and send it signals, see asked
client() {
	asked python3 -u -c "import sys
sys.path.insert(0, sys.argv[1])
host, port = sys.argv[2].split(':')
def ask(what):
    print('?', what)
    return int(input())
def rss():
    return ask('rss')
$1" "$here" "$broker"
}

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
printf 'plog.max.partitions=-1\n' >"$work/max"
run_wrong max "$work/max:1: plog.max.partitions=-1: out of range: must be from 0 to 1048576"
ok "a limit below none" $?
printf '\nplog.max.append.bytes=1000\n' >"$work/max"
run_wrong max "$work/max:2: plog.max.append.bytes=1000: must be 0 (as it is), or from 1024 on"
ok "a limit of appends that no record fits" $?
printf 'plog.max.descriptors=lots\n' >"$work/max"
run_wrong max "$work/max:1: plog.max.descriptors=lots: must be a whole number from 0 to 2147483647"
ok "a limit that is no number" $?
printf 'plog.max.waiters=2000000\n' >"$work/max"
run_wrong max "$work/max:1: plog.max.waiters=2000000: out of range: must be from 0 to 1048576"
ok "a limit above all" $?
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
listeners=PLAINTEXT://$listen:$port
auto.create.topics.enable=true
num.partitions=2
advertised.listeners=PLAINTEXT://127.0.0.1:$port
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
	"$(kc -P -t first -p 0 <"$work/six" 2>&1 | grep -c -i 'too large')" 1
head -c 4000 "$work/six" >"$work/four"
kc -P -t first -p 1 <"$work/four"
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
at "$port"
out=$(timeout 10 "$plogd" --engine "$PLOG_ENGINE" --set "log.dirs=$data" "${where[@]}" 2>&1)
is "a port that is taken" "$?$(grep -c "cannot listen at $listen:$port" <<<"$out")" 11
at $((port + 1))
if [ "$PLOG_ENGINE" = process ]; then
	out=$(timeout 10 "$plogd" --engine process --set "log.dirs=$data" "${where[@]}" 2>&1)
	is "a second plogd on the same directory is refused" \
		"$?$(grep ERROR <<<"$out" | grep -c "$data")" 11
else
	out=$(timeout 10 "$plogd" --engine process --set "log.dirs=$data" "${where[@]}" 2>&1)
	is "a process engine on the module's directory is refused" \
		"$?$(grep ERROR <<<"$out" | grep -c "$data")" 11
	mkdir -p "$data.other"
	out=$(timeout 10 "$plogd" --engine module --set "log.dirs=$data.other" "${where[@]}" 2>&1)
	is "another directory than the instance's is refused" \
		"$?$(grep -c "the module serves $data" <<<"$out")" 11
	rmdir "$data.other"

	"$plogd" --engine module --set "log.dirs=$data" "${where[@]}" >"$work/second" 2>&1 &
	second=$!
	wait "$pid"
	is "a plogd that is replaced says so and ends" \
		"$?$(grep -c 'another plogd has registered' "$log")" 11
	pid=$second
	for ((i = 0; i < 100; i++)); do
		grep -q 'plogd: ready' "$work/second" && break
		sleep 0.05
	done
	far timeout 20 kcat -b "127.0.0.1:$((port + 1))" -L >/dev/null
	ok "and the new one serves" $?

	# the relay
	"$plogctl" topic create relayed --partitions 3 --config retention.ms=86400000 >/dev/null
	ok "plogctl topic create, through plogd" $?
	is "plogctl topic list" "$("$plogctl" topic list | grep -c relayed)" 1
	is "Metadata has it" "$(far timeout 20 kcat -b "127.0.0.1:$((port + 1))" -L |
		grep -c 'topic "relayed" with 3 partitions')" 1
	"$plogctl" topic create relayed 2>"$work/err"
	is "a topic that exists is refused with the reason" \
		"$?$(grep -c -i exist "$work/err")" 11
	"$plogctl" topic alter relayed --partitions 5 >/dev/null
	ok "plogctl topic alter" $?
	is "five partitions now" "$(far timeout 20 kcat -b "127.0.0.1:$((port + 1))" -L |
		grep -c 'topic "relayed" with 5 partitions')" 1
	"$plogctl" topic delete relayed >/dev/null
	ok "plogctl topic delete" $?
	is "it is gone" "$("$plogctl" topic list | grep -c relayed)" 0

	# records cross between device and clients, also with no daemon
	echo from the device >/dev/plog/first/0
	is "a client reads what the device took" \
		"$(far timeout 20 kcat -b "127.0.0.1:$((port + 1))" -C -t first -p 0 -o beginning -e -q)" \
		"from the device"
	echo from a client | far timeout 20 kcat -b "127.0.0.1:$((port + 1))" -P -t first -p 0
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

# ---- one that is frozen, and another in its place ----

# frozen_append: a Produce that finds plogd frozen, and what becomes of it
frozen_append() {
	far python3 - "$here" "$broker" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from wire import Closed, Conn, batch
host, port = sys.argv[2].split(":")
try:
    error = Conn((host, int(port)), timeout=60).produce(8, "first", [(0, batch([b"frozen"]))])[0]["error"]
    print("not leader" if error == 6 else f"error {error}")
except (Closed, OSError):
    print("closed")
END
}
at $((port + 1))
if [ "$PLOG_ENGINE" = module ]; then
	kill -STOP "$pid"
	frozen_append >"$work/out" 2>&1 &
	client=$!
	sleep 1
	"$plogd" --engine module --set "log.dirs=$data" "${where[@]}" >"$work/third" 2>&1 &
	third=$!
	for ((i = 0; i < 200; i++)); do
		grep -q 'plogd: ready' "$work/third" && break
		sleep 0.05
	done
	ok "a daemon takes the place of one that is frozen" "$([ $i -lt 200 ]; echo $?)"
	echo from the new one | far timeout 20 kcat -b "127.0.0.1:$((port + 1))" -P -t first -p 0
	ok "and appends" $?
	kill -CONT "$pid"
	wait $client
	grep -qx 'not leader\|closed' "$work/out"
	ok "what the old one was to append it does not append: $(cat "$work/out")" $?
	wait "$pid"
	is "it ends" $? 1
	pid=$third port=$((port + 1)) broker=127.0.0.1:$port
	is "the log has the record of the new one, and no other" \
		"$(kc -C -t first -p 0 -o 3 -e -q)" "from the new one"
else
	# at an address that clients reach
	stop
	start
	kc -P -t first -p 0 <<<"before"
	ok "a record before" $?
	had=$(kc -C -t first -p 0 -o beginning -e -q | wc -l)
	kill -STOP "$pid"
	out=$(timeout 10 "$plogd" --engine process --set "log.dirs=$data" "${where[@]}" 2>&1)
	is "nobody takes the place of one that is frozen: its directory is locked" \
		"$?$(grep ERROR <<<"$out" | grep -c "$data")" 11
	frozen_append >"$work/out" 2>&1 &
	client=$!
	sleep 1
	stop_hard
	wait $client
	is "killed, it has appended nothing more" "$(cat "$work/out")" closed
	start
	ok "and another takes its place" $?
	is "with the log as it was" "$(kc -C -t first -p 0 -o beginning -e -q | wc -l)" "$had"
fi
stop
is "SIGTERM: exit status 0" $? 0

# ---- the end with clients ----

start auto.create.topics.enable=true
kc -L -t waiting >/dev/null
client "$(cat <<'END'
import time
from wire import Conn, FETCH, parse_fetch
c = Conn((host, int(port)))
n = c.send(FETCH, 11, c.fetch_body(11, [("waiting", 0, 0)], wait=30000))
time.sleep(0.3)
began = time.time()
ask("kill TERM")
answer = parse_fetch(c.receive(FETCH, 11, n), 11)
print("answered" if answer["error"] == 0 and time.time() - began < 2 else answer)
END
)" >"$work/out" 2>&1
is "a Fetch that waits is answered at SIGTERM" "$(cat "$work/out")" answered
wait $pid
is "and plogd ends with 0" $? 0
pid=

start plog.drain.ms=1000
kc -P -t slow -X message.max.bytes=1000000 < <(head -c 6000000 /dev/zero | tr '\0' x | fold -w 60000)
client "$(cat <<'END'
import time
from wire import Conn, FETCH
c = Conn((host, int(port)))
for _ in range(4):
    c.send(FETCH, 11, c.fetch_body(11, [("slow", 0, 0, 1 << 30)]))
time.sleep(0.5)
ask("kill TERM")
time.sleep(3)
END
)" >"$work/out" 2>&1
wait $pid
is "one who does not read cannot hold up the end" \
	"$?$(tail -n 5 "$log" | grep -c 'they are closed')" 01
pid=

start plog.drain.ms=60000
client "$(cat <<'END'
import time
from wire import Conn, FETCH
c = Conn((host, int(port)))
for _ in range(4):
    c.send(FETCH, 11, c.fetch_body(11, [("slow", 0, 0, 1 << 30)]))
time.sleep(0.5)
ask("kill TERM")
time.sleep(0.5)
ask("kill TERM")
time.sleep(1)
END
)" >"$work/out" 2>&1
wait $pid
is "a second signal ends at once" "$?$(tail -n 1 "$log" | grep -c 'a second signal')" 11
pid=
start
is "and the logs open again" "$?$(kc -Q -t slow:0:-2)" "0slow [0] offset 0"

# ---- a disk that does not take anything for a while ----

if [ "$PLOG_ENGINE" = module ]; then
	stop
	start
	timeout 120 python3 - "$here" "$broker" /var/lib/plog <<'END' >"$work/out" 2>&1
import select, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from wire import PRODUCE, Conn, batch, parse_produce
host, port = sys.argv[2].split(":")
conns = [Conn((host, int(port)), timeout=20) for _ in range(12)]
conns[0].create("stalls", 8)
conns[0].append("stalls", batch([b"before"]))
subprocess.run(["fsfreeze", "-f", sys.argv[3]], check=True)
try:
    body = conns[0].produce_body(8, "stalls", [(i, batch([b"frozen"])) for i in range(8)])
    waiting = [(c, c.send(PRODUCE, 8, body)) for c in conns[:6]]
    time.sleep(1)
    for c in conns[6:]:
        c.metadata(4, ["stalls"])
        if not c.read("stalls", 0)["data"]:
            print("nothing is read")
    print("others are served")
    print(len(select.select([c.s for c, _ in waiting], [], [], 0.5)[0]), "are answered")
finally:
    subprocess.run(["fsfreeze", "-u", sys.argv[3]], check=True)
for c, sent in waiting:
    p = parse_produce(c.receive(PRODUCE, 8, sent), 8)
    if any(part["error"] for part in p.values()):
        print("errors:", p)
print(conns[0].list_offsets(5, "stalls", -1)["offset"])
END
	is "appends wait for a frozen disk, and nobody else does" "$(cat "$work/out")" \
		"others are served
0 are answered
7"
fi

# ---- messages that look like the module's ----

# forge: the event that the instance was stopped, to each port of generic netlink there is
forge() {
	python3 - <<'END'
import socket
import struct

def attr(kind, data):
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)

def message(kind, command, body):
    return struct.pack("=IHHIIBBH", 20 + len(body), kind, REQUEST, 1, 0, command, 1, 0) + body

GENERIC, REQUEST = 16, 1
GETFAMILY, FAMILY_ID, FAMILY_NAME = 3, 1, 2
INSTANCE_NTF, INSTANCE, STATE, STOPPED = 4, 1, 1, 3
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, GENERIC)
s.settimeout(10)
s.sendto(message(16, GETFAMILY, attr(FAMILY_NAME, b"plog\0")), (0, 0))
answer = s.recv(8192)
family, at = None, 20
while at < len(answer) and not family:
    size, kind = struct.unpack_from("=HH", answer, at)
    if kind == FAMILY_ID:
        family, = struct.unpack_from("=H", answer, at + 4)
    at += size + 3 & ~3
event = message(family, INSTANCE_NTF, attr(INSTANCE, attr(STATE, struct.pack("=I", STOPPED))))
own, sent = s.getsockname()[0], 0
with open("/proc/net/netlink") as f:
    for _, protocol, port in (line.split()[:3] for line in f.readlines()[1:]):
        if int(protocol) == GENERIC and int(port) not in (0, own):
            s.sendto(event, (int(port), 0))
            sent += 1
print("three or more" if sent >= 3 else sent)
END
}
if [ "$PLOG_ENGINE" = module ]; then
	is "events that another process made up are sent to plogd" "$(forge 2>&1)" "three or more"
	sleep 0.5
	is "which does not believe them" "$(kc -L -J | jq '.brokers | length'
		grep -c 'instance was stopped' "$log")" "1
0"
fi

# ---- limits of the instance ----

stop
start plog.max.partitions=9 plog.max.append.bytes=2000 plog.max.waiters=77 plog.max.descriptors=9999
ok "plogd starts with limits" $?
if [ "$PLOG_ENGINE" = module ]; then
	is "the module has them" "$("$plogctl" instance show --json |
		jq -c '[.max_partitions, .max_append_bytes, .max_waiters, .max_descriptors]')" \
		"[9,2000,77,9999]"
	is "what it serves it goes on to serve, though that is more" \
		"$("$plogctl" topic list --json | jq 'map(.partitions) | add > 9')$(tail -n 30 "$log" |
		grep -c 'stays out of service')" true0
	"$plogctl" topic delete stalls >/dev/null
fi
far python3 - "$here" "$broker" <<'END' >"$work/out" 2>&1
import sys
sys.path.insert(0, sys.argv[1])
from wire import Conn, batch
host, port = sys.argv[2].split(":")
c = Conn((host, int(port)))
had = sum(len(t["partitions"]) for t in c.metadata(4, None)["topics"].values())
t, = c.create_topics(5, [("fits", 9 - had)])
print(t["error"])
t, = c.create_topics(5, [("beyond", 1)])
print(t["error"], "partitions" in t["message"] and "max" in t["message"] or t["message"])
print(sorted(c.metadata(4, None)["topics"]).count("beyond"))
for size in 3000, 100:
    print(c.produce(8, "fits", [(0, batch([b"x" * size]))])[0]["error"])
print(c.delete_topics(5, ["fits"])[0]["error"])
t, = c.create_topics(5, [("beyond", 1)])
print(t["error"])
END
is "partitions and appends beyond them are refused, and say why" "$(tr '\n' ' ' <"$work/out")" \
	"0 44 True 0 10 0 0 0 "
# without the keys limits of the module stay as they are
[ "$PLOG_ENGINE" = process ] || "$plogctl" instance set --max-partitions 20000 --max-waiters 4096 \
	--max-append-bytes 67108864 --max-descriptors 65536 >/dev/null

# ---- max.connections ----

stop
start max.connections=2
far python3 - "$here" "$broker" <<'END' >"$work/out" 2>&1
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
	plog.request.arrival.ms=2000
far python3 - "$here" "$broker" <<'END' >"$work/out" 2>&1
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
time.sleep(4.5)
a.close(), b.close()
time.sleep(0.7)
c.send_raw(frame[100:])
print("answered", c.receive(API_VERSIONS, 0).i16())
END
is "waiting for memory is not held against a peer" "$(cat "$work/out" | tail -n 1)" "answered 0"

client "$(cat <<'END'
from wire import API_VERSIONS, Conn, FETCH
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
)" >"$work/out" 2>&1
is "requests behind a Fetch that waits keep to the memory, and nobody waits for them" \
	"$(cat "$work/out")" "others: 0
small"

# What requests are decoded into counts too: of a Fetch ten times its bytes, for as long as it
# waits. The bytes alone would let twenty of these be held, with 200 MB.
stop
start socket.request.max.bytes=1000000 queued.max.request.bytes=16000000
client "$(cat <<'END'
import time
from wire import Conn, FETCH, W, parse_fetch
other = Conn((host, int(port)))
other.metadata(4, ["parked"])
before = rss()
n = 30000
w = W().i32(-1).i32(4000).i32(1).i32(1 << 30).i8(0).i32(0).i32(-1).count(1).string("parked").count(n)
part = bytes(W().i32(0).i32(-1).i64(0).i64(-1).i32(1000).b)
body = bytes(w.raw(part * n).count(0).string("").b)
conns = [Conn((host, int(port)), timeout=60) for _ in range(30)]
sent = [(c, c.send(FETCH, 11, body)) for c in conns]
time.sleep(2)
grown = rss() - before
print("others:", other.api_versions(0)["error"])
answers = [c.receive(FETCH, 11, s) for c, s in sent]
size = len(answers[0].d)
parse_fetch(answers[0], 11)
print(sum(len(a.d) == size for a in answers), "answers")
print("small" if grown < 110000 else f"{grown} KiB more")
END
)" >"$work/out" 2>&1
is "what they are decoded into is counted, and all are answered" "$(cat "$work/out")" \
	"others: 0
30 answers
small"

# A signal while it starts, which somebody holds up who changes topics of the directory.
stop
exec 7<"$data"
flock 7
before=$(grep -c "plogd: plogd .* starts on" "$log")
at "$port"
"$plogd" --engine "$PLOG_ENGINE" --set "log.dirs=$data" "${where[@]}" >>"$log" 2>&1 7<&- &
pid=$!
for ((i = 0; i < 600; i++)); do
	[ "$(grep -c "plogd: plogd .* starts on" "$log")" = "$before" ] || break
	sleep 0.05
done
kill -HUP "$pid"
kill -TERM "$pid"
exec 7<&-
wait "$pid"
is "SIGTERM during the start: exit status 0" $? 0
pid=
start
ok "and it starts the next time" $?

# Answers that nobody takes hold a cursor for each partition, with the module a descriptor: of
# those there are fewer than would be asked for.
stop
printf '#!/bin/bash\nulimit -n 240\nexec %q "$@"\n' "$plogd" >"$work/few-files"
chmod +x "$work/few-files"
all=$plogd plogd=$work/few-files
start
plogd=$all
client "$(cat <<'END'
import socket
from wire import Conn, FETCH, batch, parse_fetch
c = Conn((host, int(port)), timeout=60)
c.create("thirsty", 40)
for p in range(40):
    c.append("thirsty", batch([b"x" * 100000]), partition=p)
slow = [Conn((host, int(port)), timeout=60) for _ in range(20)]
want = [("thirsty", p, 0) for p in range(40)]
for s in slow:
    s.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.n = s.send(FETCH, 11, s.fetch_body(11, want, wait=1000))
# who asks for a topic meanwhile gets it, and whoever reads is told of no error
print("create:", c.create_topics(5, [("meanwhile", 1)])[0]["error"])
print("append:", c.append("meanwhile", batch([b"v"])))
for s in slow:
    s.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
print("errors:", c.read("meanwhile", 0)["error"], *{p["error"] for s in slow
      for p in parse_fetch(s.receive(FETCH, 11, s.n), 11)["parts"].values()})
print("then:", len(c.read("meanwhile", 0)["data"]) > 0)
c.delete_topics(5, ["thirsty"])
END
)" >"$work/out" 2>&1
is "answers that nobody takes leave descriptors for the others" "$(cat "$work/out")" "create: 0
append: 0
errors: 0 0
then: True"

if [ "$PLOG_ENGINE" = process ]; then
	stop
	(ulimit -n 240; exec "$plogd" --engine process --set "log.dirs=$data" \
		--set "listeners=PLAINTEXT://127.0.0.1:$port" >"$work/few" 2>&1) &
	pid=$!
	for ((i = 0; i < 100; i++)); do
		grep -q 'plogd: ready' "$work/few" && break
		sleep 0.05
	done
	far python3 - "$here" "$broker" <<'END' >"$work/out" 2>&1
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

	# Look-ups that take seconds for each of 300 partitions, all in the only thread of the
	# pool: others have their turn, and the end does not wait for what nobody waits for.
	stop
	start num.io.threads=1 plog.drain.ms=500
	client "$(cat <<'END'
import zlib
from wire import Conn, batch, varint
c = Conn((host, int(port)), timeout=200)
c.create("small"), c.create("bombs", 300)
def record(index, time, size):
    head = b"\0" + varint(time) + varint(index) + varint(-1) + varint(size)
    return varint(len(head) + size + 1) + head
pack, piece = zlib.compressobj(9, zlib.DEFLATED, 31), bytes(1 << 20)
body = pack.compress(record(0, 0, 400 << 20))
body += b"".join(pack.compress(piece) for _ in range(400))
body += pack.compress(b"\0" + record(1, 1000, 1) + b"x\0") + pack.flush()
c.append("bombs", batch([b"", b""], times=[10**12, 10**12 + 1000], codec=1, body=body))
c.append("small", batch([b"x"], times=[10**12], codec=1))
print(c.list_offsets(5, "bombs", 10**12 + 1)["offset"])
END
)" >"$work/out" 2>&1
	is "a batch of 400 MiB that takes long to look through" "$(cat "$work/out")" 1
	stop
	for ((i = 1; i < 300; i++)); do
		cp "$data/bombs-0/"* "$data/bombs-$i/"
	done
	start num.io.threads=1 plog.drain.ms=500
	client "$(cat <<'END'
import time
from wire import Conn, LIST_OFFSETS, W
long = Conn((host, int(port)))
w = W().i32(-1).i8(0).count(1).string("bombs").count(300)
for i in range(300):
    w.i32(i).i32(-1).i64(10**12 + 1)
long.send(LIST_OFFSETS, 5, w.b)
time.sleep(0.5)
other = Conn((host, int(port)), timeout=60)
print(other.list_offsets(5, "small", 10**12)["offset"])
long.s.setblocking(False)
try:
    print(len(long.s.recv(1)), "bytes of the other answer")
except BlockingIOError:
    print("first")
END
)" >"$work/out" 2>&1
	is "a long request gives way to others" "$(cat "$work/out")" "0
first"
	kill -TERM "$pid"
	(sleep 60; kill -KILL "$pid") 2>/dev/null &
	limit=$!
	wait "$pid"
	is "and does not keep plogd from its end" $? 0
	kill "$limit" 2>/dev/null
	wait "$limit" 2>/dev/null
	pid=

	# a disk of 16 MiB, in a mount namespace that ends with plogd
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
		far python3 - "$here" "$broker" <<'END' >"$work/out" 2>&1
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
