#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The runner counts what it is given, and nothing that ends badly counts as a
# pass. Each case is a suite of one line; the runner's last line and status are
# what has to come of it.
cd "$(dirname "$0")/../.." || exit 1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
n=0

# case NAME EXPECTED-LAST-LINE EXPECTED-STATUS COMMAND [SECONDS]
case_() {
	local last status
	n=$((n + 1))
	echo "case-$$ | check | ${5:-10} | $4" >"$dir/suites"
	selftests/run --suites "$dir/suites" "case-$$" >"$dir/out" 2>&1
	status=$?
	last=$(tail -n 1 "$dir/out")
	if [ "$last" = "$2" ] && [ "$status" = "$3" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		sed 's/^/# /' "$dir/out"
	fi
}

echo 1..12
case_ "passes are counted" "2 passed, 0 failed, 0 skipped" 0 "printf '1..2\nok 1\nok 2 - x\n'"
case_ "a plan may come last" "1 passed, 0 failed, 0 skipped" 0 "printf 'ok 1\n1..1\n'"
case_ "streams add up" "3 passed, 0 failed, 0 skipped" 0 \
	"printf '1..2\nok 1\nok 2\n1..1\nok 1\n'"
case_ "a failed test" "1 passed, 1 failed, 0 skipped" 1 "printf '1..2\nok 1\nnot ok 2 - y\n'"
case_ "a skipped test" "0 passed, 0 failed, 1 skipped" 0 "printf '1..1\nok 1 - z # SKIP no zstd\n'"
case_ "a skipped suite" "0 passed, 0 failed, 1 skipped" 0 "exit 4"
case_ "tests missing from a plan" "1 passed, 1 failed, 0 skipped" 1 "printf '1..3\nok 1\n'"
case_ "the first of two streams cut" "2 passed, 1 failed, 0 skipped" 1 \
	"printf '1..2\nok 1\n1..1\nok 1\n'"
case_ "no plan" "1 passed, 1 failed, 0 skipped" 1 "printf 'ok 1\n'"
case_ "no test" "0 passed, 1 failed, 0 skipped" 1 "true"
case_ "exit status without a failed test" "1 passed, 1 failed, 0 skipped" 1 \
	"printf '1..1\nok 1\n'; exit 3"
case_ "out of time" "1 passed, 1 failed, 0 skipped" 1 "printf '1..1\nok 1\n'; sleep 20" 1
rm -f "build/check/case-$$.log"
