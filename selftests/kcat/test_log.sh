#!/bin/bash
# SPDX-License-Identifier: MIT
# The daemon's log operations by themselves (selftests/log), over either engine.
. "$(dirname "$0")/lib.sh"

[ -n "${PLOG_VM-}" ] || make -s -C "$top/selftests/log" >&2 || exit 1
"$top/build/bin/test_log" "$PLOG_ENGINE" "$data"
