#!/bin/bash
# SPDX-License-Identifier: MIT
#
# make install below a DESTDIR: the programs run from there, a program builds with the
# library and its header alone, the module's source builds as DKMS would build it, and
# a configuration that is there stays.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT
n=0 bad=0

# ok NAME COMMAND...
ok() {
	local name=$1
	shift
	n=$((n + 1))
	if "$@" >"$dest/out" 2>&1; then
		echo "ok $n - $name"
	else
		bad=1
		echo "not ok $n - $name"
		tail -n 20 "$dest/out" | sed 's/^/# /'
	fi
}

program() {
	cat >"$dest/main.c" <<-END
		#include <linux/plog.h>
		#include <linux/plog_netlink.h>
		#include <plog.h>
		int main(void) { return PLOG_A_MAX < 1; }
	END
	cc -Wall -Werror -isystem "$dest/usr/include" -o "$dest/main" "$dest/main.c" \
		"$dest/usr/lib/libplog.a" && "$dest/main"
}

source_builds() {
	local headers
	headers=$(tools/kernel/kernel path stock headers) || return 1
	make -s -C "$headers" M="$(echo "$dest"/usr/src/plog-*)" modules &&
		/sbin/modinfo "$dest"/usr/src/plog-*/plog.ko | grep "^name: *plog$"
}

keeps() {
	echo 'node.id=7' >"$dest/etc/plog/plogd.properties"
	tools/setup/install "$dest" && grep -x 'node.id=7' "$dest/etc/plog/plogd.properties"
}

echo 1..6
ok 'make install DESTDIR=DIR' make -s install DESTDIR="$dest"
ok 'plogctl runs from there' "$dest/usr/bin/plogctl" --help
ok 'plogd and plogcat do' eval '"$dest/usr/sbin/plogd" --help && "$dest/usr/bin/plogcat" --help'
ok 'a program builds with the headers and the library' program
ok 'the source of the module builds' source_builds
ok 'a configuration that is there stays' keeps
exit $bad
