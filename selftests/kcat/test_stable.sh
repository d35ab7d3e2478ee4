#!/bin/bash
# SPDX-License-Identifier: MIT
# Reading committed records: a log with a transaction that nobody has ended is adopted, as a
# broker leaves it that was killed. Its readers wait for the last stable offset, and hear when
# that moves with the log end where it was.
. "$(dirname "$0")/lib.sh"

step() {
	# what is not the client's part is done where the broker is
	case $1 in
	rewrite | ends) timeout 60 python3 "$here/test_stable.py" "$broker" "$@" ;;
	*) far timeout 60 python3 "$here/test_stable.py" "$broker" "$@" ;;
	esac
}
adopt() {
	stop
	[ "$PLOG_ENGINE" = process ] || "$plogctl" instance stop >/dev/null
	step rewrite "$data/held-0" && start
}

start || { tail "$log" >&2; echo "Bail out! plogd did not start"; exit 1; }
step fill
ok "a log of ten records" $?
adopt
ok "the sixth is of a transaction, and the broker was killed" $?
step bounds 5
ok "committed records end there, the others do not" $?
step append
ok "a Fetch of committed records does not end with an append" $?
if [ "$PLOG_ENGINE" = module ]; then
	step ends
	ok "and ends with the records when the transaction is over" $?
	adopt
	ok "once more from the beginning" $?
fi
step deleted
ok "it ends when DeleteRecords has taken the transaction's beginning" $?
step bounds 8
ok "from then on nothing below the log start holds anybody up" $?
stop
ok "stop" $?
finish
