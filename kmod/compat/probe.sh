#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# probe.sh DIR OUTPUT VERSION CC FLAG...: writes a header with
# "#define HAVE_NAME 1" for each DIR/tests/name.c that the kernel's own compiler
# and flags accept.  VERSION is the kernel's; DIR/kernels says which ones plog
# is for.
set -u
dir=$1 out=$2 version=$3
shift 3

name() {
	basename "$1" .c | tr a-z A-Z
}

limit() {
	sed -n "s/^$1 //p" "$dir/kernels"
}

# at_most A B: is version A, to its first two numbers, B or before?
at_most() {
	a=$(echo "$1" | cut -d. -f1,2 | cut -d- -f1)
	[ "$(printf '%s\n%s\n' "$a" "$2" | sort -V | head -n 1)" = "$a" ]
}

if ! at_most "$(limit min)" "$(echo "$version" | cut -d. -f1,2)"; then
	echo "plog: Linux $version is too old: plog needs $(limit min) or later" >&2
	exit 1
fi
if ! at_most "$version" "$(limit max)"; then
	echo "plog: warning: Linux $version is newer than $(limit max), the newest that plog was tried on" >&2
fi

{
	echo '/* Made by kmod/compat/probe.sh from the tests beside it. */'
	# A kernel that cannot even compile a test of nothing would look like
	# one that has nothing.
	if ! printf '#include <linux/module.h>\n' |
	     "$@" -Werror -Wno-unused -Wno-missing-prototypes -x c -c -o /dev/null - ; then
		echo "plog: the compile probes do not work with this kernel" >&2
		exit 1
	fi
	for t in "$dir"/tests/*.c; do
		if "$@" -Werror -Wno-unused -Wno-missing-prototypes \
		   -c -o /dev/null "$t" 2>/dev/null; then
			echo "#define HAVE_$(name "$t") 1"
		else
			echo "/* HAVE_$(name "$t"): no */"
		fi
	done
} >"$out.tmp" && mv "$out.tmp" "$out"
