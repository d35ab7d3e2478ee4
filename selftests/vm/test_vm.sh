#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What tools/vm/vm promises: the command's status and output come out as they
# are, and nothing that went wrong in the kernel looks like success.
#
#	selftests/vm/test_vm.sh [--debug]
#
# --debug tests what only the debug kernel can notice.
set -u

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=selftests/vm
cd "$top" || exit 1
"$top/tools/setup/packages" @vm @build || { echo "Bail out! packages are missing"; exit 1; }

PORT=${PLOG_VM_TEST_PORT:-19100}
dir=$(mktemp -d)
trap 'rm -rf "$dir"; [[ ${background:-} ]] && kill "$background" 2>/dev/null' EXIT
limit=200
nr=0
bad=0

# Runs vm with the arguments; status in $rc, output in $dir/out and $dir/err.
# A limit of its own, so that a broken vm ends the test and not the test run; vm's comes
# first, and after it vm has the time to say what hung.
vm() {
	timeout -k 60 "$limit" tools/vm/vm --timeout $((limit - 50)) "$@" >"$dir/out" 2>"$dir/err" </dev/null
	rc=$?
}

# One result: "ok NAME CONDITION...", the condition being a command.
ok() {
	local name=$1
	shift
	nr=$((nr + 1))
	if "$@"; then
		echo "ok $nr - $name"
		return
	fi
	bad=1
	echo "not ok $nr - $name"
	echo "# status ${rc:-}, failed: $*"
	tail -n 20 "$dir/out" | cat -v | cut -c 1-300 | sed 's/^/# out: /'
	tail -n 40 "$dir/err" | cat -v | cut -c 1-300 | sed 's/^/# err: /'
}

is() { [[ $1 == "$2" ]]; }
out_has() { grep -qE -- "$1" "$dir/out"; }
err_has() { grep -qE -- "$1" "$dir/err"; }
status() { [[ $rc == "$1" ]]; }

faulty() {
	tools/kernel/module --source "$here/faulty" --out build/tests/vm "$1" >&2 || exit 1
	echo "build/tests/vm/$(tools/kernel/kernel path "$1" release)/faulty.ko"
}

finish() {
	echo "1..$nr"
	exit $bad
}

echo "TAP version 13"

if [[ ${1:-} == --debug ]]; then
	limit=900
	module=$(faulty debug) || { echo "Bail out! no module"; exit 1; }
	vm --kernel debug --module "$module" -- sh -c 'echo fine'
	ok 'debug: a healthy run passes, leak check included' status 0
	vm --kernel debug --no-leak-check --module "$module" -- sh -c 'echo u >/proc/faulty; exit 0'
	ok 'debug: a use after free fails the run' status 99
	ok 'debug: and is shown' err_has 'KASAN: .*use-after-free'
	vm --kernel debug --no-leak-check --module "$module" -- sh -c 'echo l >/proc/faulty; exit 0'
	ok 'debug: an inverted lock order fails the run' status 99
	ok 'debug: and is shown' err_has 'possible circular locking'
	vm --kernel debug --module "$module" -- sh -c 'echo m >/proc/faulty; exit 0'
	ok 'debug: lost memory fails the run' status 99
	ok 'debug: and is shown with its origin' err_has 'lose_memory|faulty_write'
	finish
fi

# --- status and output -----------------------------------------------------

rm -f build/vm-test-scratch
vm -- sh -c 'echo out; echo err >&2; echo x >build/vm-test-scratch; cat; exit 3'
ok 'exit status passes through' status 3
ok 'stdout is stdout' is "$(<"$dir/out")" out
ok 'stderr is stderr, and nothing else comes there' is "$(<"$dir/err")" err
ok 'what was written in the tree is thrown away' test ! -e build/vm-test-scratch

vm --env PROBE=yes --smp 3 --mem 1G --load -- sh -c '
	echo "uid $(id -u)"; echo "cwd $PWD"; echo "path $PATH"; echo "kind $PLOG_VM"
	echo "disk $(stat -f -c %T /var/lib/plog) $(ls -A /var/lib/plog | grep -v lost+found | wc -l)"
	echo "tmp $(ls -A /tmp | wc -l)"; echo "probe $PROBE"
	: >/dev/shm/x && : >/tmp/x && : >/run/x && : >/var/lib/plog/x && echo writable
	ls -d /sys/kernel/debug/tracing /sys/fs/cgroup/memory.stat >/dev/null && echo mounts
	ip link show lo | grep -o LOWER_UP; echo "core $(ulimit -c)"
	echo "cpus $(nproc)"; sed -n "s/^MemTotal: */mem /p" /proc/meminfo
	grep -q "^plog " /proc/modules && echo loaded
	modprobe -a veth sch_netem dm-flakey dm-log-writes && echo modules
	kill -9 $$'
ok 'a command that a signal ends: 128 + its number' status 137
ok 'it runs as root' out_has '^uid 0$'
ok "it runs in the project's folder" out_has "^cwd $top\$"
ok 'with the built programs first in PATH' out_has "^path $top/build/bin:"
ok 'it is told that it is in a guest' out_has '^kind stock$'
ok 'with an empty log disk' out_has '^disk ext2/ext3 0$'
ok 'with variables that --env names' out_has '^probe yes$'
ok 'with places to write' out_has '^writable$'
ok 'with the file systems that tests need' out_has '^mounts$'
ok "with its kernel's modules to load by name" out_has '^modules$'
ok 'with lo up' out_has '^LOWER_UP$'
ok 'without core dumps' out_has '^core 0$'
ok 'with as many CPUs as --smp says' out_has '^cpus 3$'
ok 'with the memory of --mem, less what the kernel needs' out_has '^mem (9[0-9]{5}|10[0-4][0-9]{4}) kB$'
ok 'with the module, by --load' out_has '^loaded$'

vm -- no-such-command
ok 'no such command: 127' status 127

head -c 3000000 /dev/urandom >"$dir/in"
timeout "$limit" tools/vm/vm --stdin --fs btrfs --disk 300M -- \
	sh -c 'tee /tmp/in; sha256sum </tmp/in >&2; stat -f -c %T /var/lib/plog >&2' \
	<"$dir/in" >"$dir/out" 2>"$dir/err"
rc=$?
ok '--stdin: input reaches the command whole, and its end' \
	is "$(sha256sum <"$dir/in")" "$(head -n 1 "$dir/err")"
ok '--fs btrfs' is "$(tail -n 1 "$dir/err")" btrfs
ok 'output comes out whole' cmp -s "$dir/in" "$dir/out"

# --- what must never look like success ---------------------------------------

# Its clock beside ours on the way: fast is a guest that mismeasures its TSC.
begin=$SECONDS first='' last=''
while read -r word; do
	[[ $word == a ]] && first=$EPOCHREALTIME
	[[ $word == b ]] && last=$EPOCHREALTIME
	[[ $word == status=* ]] && rc=${word#*=}
done < <(timeout -k 10 "$limit" tools/vm/vm --timeout 12 -- \
	sh -c 'echo a; sleep 4; echo b; exec sleep 1000' 2>"$dir/err" </dev/null
	echo "status=$?")
: >"$dir/out"
ok "the guest's clock does not run fast" test $(((${last/./} - ${first/./}) / 1000)) -ge 3800
ok 'a hang ends at the timeout with 124' status 124
ok 'within a reasonable time of it' test $((SECONDS - begin)) -lt 60
ok 'and shows what hung' err_has 'process .*\(sleep\)'

vm -- sh -c 'echo before; echo c >/proc/sysrq-trigger; sleep 100'
ok 'an oops: 99' status 99
ok 'and the kernel log is shown' err_has 'sysrq triggered crash'

module=$(faulty stock) || { echo "Bail out! no module"; exit 1; }
vm --module "$module" -- sh -c 'echo w >/proc/faulty; dmesg -C; echo after'
ok 'a WARN: 99, though the command succeeded and cleared the log' status 99
ok 'and the command ran to its end' out_has '^after$'
ok 'and the warning is shown' err_has 'faulty_write'

vm -- sh -c 'poweroff -f; sleep 100'
ok 'a guest that ends before its command: 99' status 99

vm --kernel 6.12 --no-disk --module "$module" -- true
ok 'a module of another kernel is refused: 125' status 125
ok 'and the message names both releases' err_has "is for kernel .* the guest has 6\.12"

# --- the log disk ------------------------------------------------------------

vm --image "$dir/kept.img" --disk 512M --fs xfs -- sh -c 'stat -f -c %T /var/lib/plog; echo one >/var/lib/plog/f'
ok '--image: made when there is none' test -s "$dir/kept.img"
ok '--fs xfs' out_has '^xfs$'

# A second guest on a kept image; the first is ended by SIGTERM.
# Without -k, which would kill vm while it still ends the guest.
timeout "$limit" tools/vm/vm --image "$dir/kept.img" -- bash -c '
	trap "echo two >>/var/lib/plog/f; echo ending; exit 7" TERM
	cat /var/lib/plog/f; echo up; while :; do sleep 0.1; done' >"$dir/first" 2>&1 </dev/null &
background=$!
for ((i = 0; i < 600; i++)); do
	grep -q '^up$' "$dir/first" && break
	sleep 0.1
done
ok 'two guests at once' is "$(sed -n 2p "$dir/first")" up
vm --image "$dir/kept.img" -- true
ok 'an image in use is refused: 125' status 125
ok 'and the message says so' err_has 'another guest is using it'
# timeout passes the signal on to vm.
kill -TERM "$background"
wait "$background"
rc=$?
background=
cp "$dir/first" "$dir/out"
ok 'SIGTERM goes to the command, whose status counts' status 7
vm --image "$dir/kept.img" -- sh -c 'cat /var/lib/plog/f; mount | grep /var/lib/plog; dmesg | grep -i recovery'
ok 'what was written is there in the next run' is "$(head -n 2 "$dir/out" | tr '\n' ' ')" 'one two '
ok 'and the file system was left clean' test -z "$(grep -i recovery "$dir/out")"
vm --image "$dir/kept.img" --fs btrfs -- true
ok 'an image with another file system is refused' err_has 'holds xfs, but --fs says btrfs'

# --- the rest ------------------------------------------------------------------

timeout -k 10 "$limit" tools/vm/vm --publish "$PORT:9092" --answer '7:sed -u s/in/out,/' \
	--fs tmpfs --disk 300M -- python3 -c '
import os, socket, subprocess
disk = os.statvfs("/var/lib/plog")
print(subprocess.check_output(["stat", "-f", "-c", "%T", "/var/lib/plog"], text=True).strip(),
      disk.f_blocks * disk.f_frsize >> 20)
s = socket.create_server(("", 9092))
print("up", flush=True)
c, peer = s.accept()
c.sendall(b"hello " + c.recv(100))
c.close()
try:
    socket.create_connection(("10.0.2.2", int("'"$PORT"'")), 3)
    print("escaped")
except OSError:
    print("confined")
for _ in range(2):
    s = socket.create_connection(("10.0.2.100", 7))
    s.sendall(b"in " + str(os.getpid()).encode() + b"\n")
    print(s.makefile().readline().split()[0])
' >"$dir/out" 2>"$dir/err" </dev/null &
background=$!
for ((i = 0; i < 600; i++)); do
	grep -q '^up$' "$dir/out" && break
	sleep 0.1
done
answer=$(python3 -c '
import socket, sys
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
c.sendall(b"world")
print(c.makefile().read(), end="")' "$PORT")
wait "$background"
rc=$?
background=
ok '--publish: the port reaches the guest' is "$answer" 'hello world'
ok 'and the guest reaches nothing outside' out_has '^confined$'
ok '--answer: a command of this machine answers each connection' \
	is "$(grep -c '^out,$' "$dir/out")" 2
ok '--fs tmpfs, of that size' is "$(head -n 1 "$dir/out")" 'tmpfs 300'

# The least of some: what else the guest does on its one CPU counts as instructions, too.
vm --icount -- sh -c 'nproc; python3 -c "
import time
def cost(n):
    best = 1 << 62
    for _ in range(7):
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        for i in range(n): pass
        best = min(best, time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - begin)
    return best
cost(1000)
print(\"ratio\", cost(200000) / cost(100000))"'
ok '--icount: one CPU' is "$(head -n 1 "$dir/out")" 1
ok '--icount: twice the work takes twice the time' out_has '^ratio (1\.9|2\.0)'

for wrong in '' '--fs ext3 -- true' '--smp x -- true' '--disk -- true' '--publish 1 -- true' \
	'--what -- true' '--answer 7 -- true' '--fs tmpfs --image x -- true'; do
	# shellcheck disable=SC2086
	vm $wrong
	ok "wrong options are refused with 2 and a word: $wrong" eval 'status 2 && err_has "^vm: "'
done

finish
