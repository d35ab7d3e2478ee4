#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# probe.sh TESTS OUTPUT CC FLAG...: writes a header with "#define HAVE_NAME 1"
# for each TESTS/name.c that the kernel's own compiler and flags accept.
set -u
tests=$1 out=$2
shift 2

name() {
	basename "$1" .c | tr a-z A-Z
}

{
	echo '/* Made by kmod/compat/probe.sh from the tests beside it. */'
	# A kernel that cannot even compile a test of nothing would look like
	# one that has nothing.
	if ! printf '#include <linux/module.h>\n' |
	     "$@" -Werror -Wno-unused -Wno-missing-prototypes -x c -c -o /dev/null - ; then
		echo "plog: the compile probes do not work with this kernel" >&2
		exit 1
	fi
	for t in "$tests"/*.c; do
		if "$@" -Werror -Wno-unused -Wno-missing-prototypes \
		   -c -o /dev/null "$t" 2>/dev/null; then
			echo "#define HAVE_$(name "$t") 1"
		else
			echo "/* HAVE_$(name "$t"): no */"
		fi
	done
} >"$out.tmp" && mv "$out.tmp" "$out"
