#!/bin/bash
# SPDX-License-Identifier: MIT
# compression.type: whatever a producer sends is stored in the topic's codec, and
# comes back as it was.
. "$(dirname "$0")/lib.sh"

seq 1 3000 | sed 's/$/ some text that can be compressed, compressed, compressed/' >"$work/in"
for stored in producer uncompressed gzip snappy lz4 zstd; do
	start "compression.type=$stored" || { echo "Bail out! plogd did not start"; exit 1; }
	for sent in none gzip snappy lz4 zstd; do
		topic=$stored-$sent
		[ $sent = none ] && z=() || z=(-z $sent)
		# all of it together: what a codec makes no smaller a client sends as it is, as one record
		kc -P -t "$topic" -X linger.ms=300 "${z[@]}" <"$work/in" &&
			kc -C -t "$topic" -o beginning -e -q >"$work/out" &&
			cmp -s "$work/in" "$work/out"
		ok "-P $sent to a topic with $stored, and back" $?
		case $stored in producer) want=$sent ;; uncompressed) want=none ;; *) want=$stored ;; esac
		case $want in none) n=0 ;; gzip) n=1 ;; snappy) n=2 ;; lz4) n=3 ;; zstd) n=4 ;; esac
		# of every batch of the segment: base offset, length, and the codec's bits
		python3 - "$data/$topic-0" $n <<'EOF'
import glob, struct, sys
log = open(glob.glob(sys.argv[1] + "/*.log")[0], "rb").read()
at = batches = 0
while at + 61 <= len(log) and struct.unpack_from(">i", log, at + 8)[0]:
    size = struct.unpack_from(">i", log, at + 8)[0] + 12
    if log[at + 22] & 7 != int(sys.argv[2]):
        sys.exit(f"# batch at {at} has codec {log[at + 22] & 7}")
    at, batches = at + size, batches + 1
sys.exit(not batches)
EOF
		ok "every batch of it is stored as $want" $?
	done
	# a plain text that is small enough when compressed, but not as the topic wants it
	if [ $stored = uncompressed ]; then
		head -c 1500000 /dev/zero | tr '\0' x >"$work/huge"
		kc -P -t large -z gzip -X message.max.bytes=4000000 "$work/huge" 2>"$work/err"
		is "too large without its codec" "$(grep -c -i 'too large' "$work/err")" 1
	fi
	stop
	ok "plogd stops" $?
done
finish
