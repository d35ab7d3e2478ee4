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

echo 1..25
case_ "passes are counted" "2 passed, 0 failed, 0 skipped" 0 "printf '1..2\nok 1\nok 2 - x\n'"
case_ "a plan may come last" "1 passed, 0 failed, 0 skipped" 0 "printf 'ok 1\n1..1\n'"
case_ "streams add up" "3 passed, 0 failed, 0 skipped" 0 \
	"printf '1..2\nok 1\nok 2\n1..1\nok 1\n'"
case_ "a failed test" "1 passed, 1 failed, 0 skipped" 1 "printf '1..2\nok 1\nnot ok 2 - y\n'"
case_ "a skipped test" "0 passed, 0 failed, 1 skipped" 0 "printf '1..1\nok 1 - z # SKIP no zstd\n'"
case_ "a failed test that says skip" "0 passed, 1 failed, 0 skipped" 1 \
	"printf '1..1\nnot ok 1 - z # SKIP no zstd\n'"
case_ "and so says lib/tap" "1 passed, 0 failed, 0 skipped" 0 \
	"selftests/lib/tap \"a=echo 1..1; echo 'not ok 1 - z # SKIP'\" >/dev/null || printf '1..1\nok 1\n'"
case_ "a skipped suite" "0 passed, 0 failed, 1 skipped" 0 "exit 4"
case_ "tests missing from a plan" "1 passed, 1 failed, 0 skipped" 1 "printf '1..3\nok 1\n'"
case_ "the first of two streams cut" "2 passed, 1 failed, 0 skipped" 1 \
	"printf '1..2\nok 1\n1..1\nok 1\n'"
case_ "no plan" "1 passed, 1 failed, 0 skipped" 1 "printf 'ok 1\n'"
case_ "no test" "0 passed, 1 failed, 0 skipped" 1 "true"
case_ "exit status without a failed test" "1 passed, 1 failed, 0 skipped" 1 \
	"printf '1..1\nok 1\n'; exit 3"
case_ "out of time" "1 passed, 1 failed, 0 skipped" 1 "printf '1..1\nok 1\n'; sleep 20" 1
case_ "out of time, with a word at the end" "1 passed, 1 failed, 0 skipped" 1 \
	"trap 'echo ok 1 - was at x; exit 1' TERM; echo 1..1; sleep 20 & wait" 1

case_ "out of time, and a group of its own" "1 passed, 1 failed, 0 skipped" 1 \
	"printf '1..1\nok 1\n'; timeout 10 bash -c 'sleep 3; touch $dir/left' & sleep 20" 1
n=$((n + 1))
sleep 3
if [ -e "$dir/left" ]; then
	echo "not ok $n - which ends too"
else
	echo "ok $n - which ends too"
fi

# shown NAME WHAT COMMAND: WHAT, with a hundred tests that passed behind it, is in what the
# runner says of a suite that failed, and that has no more than some 100 lines
shown() {
	n=$((n + 1))
	echo "case-$$ | check | 10 | $3; for i in \$(seq 100); do echo ok \$i - fine; done; exit 3" \
		>"$dir/suites"
	selftests/run --suites "$dir/suites" "case-$$" >"$dir/out" 2>&1
	if grep -q "^    | .*$2" "$dir/out" && [ "$(wc -l <"$dir/out")" -lt 110 ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		sed 's/^/# /' "$dir/out"
	fi
}

shown "a failure shows the log before it" "expected 5, got 6" \
	"echo 1..101; echo '# expected 5, got 6'; echo not ok 1 - sum"
shown "so does what a sanitizer says, and its stack" "#3 in culprit" \
	"echo 1..100; echo WARNING: ThreadSanitizer: data race; for i in 1 2 3; do echo \"  #\$i in culprit\"; done"
shown "and a program's exit status" "program: exit status 66" \
	"echo 1..1; echo 'not ok 1 - program: exit status 66'; echo 1..100"
shown "of a thousand failures the first" "not ok 1 - bad" \
	"seq -f 'not ok %g - bad' 1000; echo 1..1000; echo 1..100"

n=$((n + 1))
if tail -n 8 "$dir/out" | grep -q "^failed: case-$$: bad"; then
	echo "ok $n - and the last lines name them again"
else
	echo "not ok $n - and the last lines name them again"
	tail -n 8 "$dir/out" | sed 's/^/# /'
fi

tries=100
# meet NAME OTHER: a suite that passes if the other one runs at the same time
meet() {
	echo "printf '1..1\\n'; touch $dir/$1; for i in \$(seq $tries); do [ -e $dir/$2 ] &&" \
		"{ sleep 0.3; rm $dir/$2; echo ok 1 - met; exit 0; }; sleep 0.1; done;" \
		"rm $dir/$1; echo not ok 1 - alone; exit 1"
}

# together NAME EXPECTED-LAST-LINE GROUP-OF-THE-SECOND [OPTION]...: two suites that meet
together() {
	local last name=$1 want=$2 group=$3
	shift 3
	n=$((n + 1))
	{
		echo "case-$$ | check | 20 | $(meet a b)"
		echo "case2-$$ | $group | 20 | $(meet b a)"
	} >"$dir/suites"
	last=$(selftests/run "$@" --suites "$dir/suites" check | tee "$dir/out" | tail -n 1)
	if [ "$last" = "$want" ]; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' "$dir/out"
	fi
	rm -f "$dir/a" "$dir/b"
}

together "two suites at a time" "2 passed, 0 failed, 0 skipped" check
together "and one of those that can wait" "2 passed, 0 failed, 0 skipped" "check beside" --jobs 1
tries=10
together "but one, where one is wanted" "0 passed, 2 failed, 0 skipped" check --jobs 1
rm -f "build/check/case-$$.log" "build/check/case2-$$.log"
