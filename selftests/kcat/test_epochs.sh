#!/bin/bash
# SPDX-License-Identifier: MIT
# Leader epochs by the protocol: a log whose batches are of the epochs 0, 2 and 5, as a broker
# leaves it that was led by several, is adopted; then the answers of B26.
. "$(dirname "$0")/lib.sh"

start auto.create.topics.enable=true ||
	{ tail "$log" >&2; echo "Bail out! plogd did not start"; exit 1; }
far python3 "$here/test_epochs.py" "$broker" fill
ok "a log of 30 batches" $?
stop
ok "stop" $?
[ "$PLOG_ENGINE" = process ] || "$plogctl" instance stop >/dev/null
python3 "$here/test_epochs.py" "$broker" rewrite "$data/led-0"
ok "batches of three epochs, and no other file that tells" $?
start || { tail "$log" >&2; echo "Bail out! plogd did not start again"; exit 1; }
far python3 "$here/test_epochs.py" "$broker" ask
ok "B26, B8: epochs and where they end" $?
stop
ok "stop again" $?
[ "$PLOG_ENGINE" = process ] || "$plogctl" instance stop >/dev/null
is "leader-epoch-checkpoint is as Kafka writes it" \
	"$(tr '\n' ' ' <"$data/led-0/leader-epoch-checkpoint")" "0 3 0 0 2 100 5 250 "
finish
