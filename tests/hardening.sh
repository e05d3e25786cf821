#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The binary has what the compiler was asked for.
#
#   tests/hardening.sh BINARY
set -eu
binary=$1
failed=0
expect() { # what, command...
	what=$1
	shift
	if "$@" >/dev/null 2>&1; then
		echo "ok      $what"
	else
		echo "FAILED  $what"
		failed=1
	fi
}
has() { # readelf option, pattern
	readelf "$1" -W "$binary" | grep -Eq "$2"
}
stack_is_data() {
	readelf -lW "$binary" | grep GNU_STACK | grep -vq 'RWE'
}
expect "position independent" has -h 'Type: +DYN'
expect "relocations read-only" has -l GNU_RELRO
expect "bound at start" has -d 'BIND_NOW|FLAGS.*NOW'
expect "stack not executable" stack_is_data
expect "stack protector" has -s '__stack_chk_fail'
expect "no run-time search path" sh -c "! readelf -dW '$binary' | grep -Eq 'RPATH|RUNPATH'"
if readelf -sW "$binary" | grep -q __asan_init; then
	echo "        (sanitized: without _FORTIFY_SOURCE)"
else
	expect "fortified calls" has -s '__(memcpy|snprintf|vsnprintf|read|recv)_chk'
fi
exit $failed
