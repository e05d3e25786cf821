#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The profile is one for the parser that is here. One before AppArmor 4 knows
# neither its features nor `userns`: it must refuse it, as the package's
# maintainer script relies on that, and take all the rest.
#
#   tests/deploy/apparmor.sh PROFILE
set -eu
profile=$1
parse() {
	apparmor_parser --skip-kernel-load --skip-cache "$1" 2>&1
}
grep -qx '  userns,' "$profile"
grep -qx 'abi <abi/4.0>,' "$profile"
grep -q '^profile sallyport /usr/bin/sallyport flags=(unconfined) {$' "$profile"

version=$(apparmor_parser --version | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
if [ "$version" -ge 4 ]; then
	parse "$profile"
	echo "ok     taken by AppArmor $version"
	exit 0
fi
if parse "$profile"; then
	echo "FAILED an AppArmor before 4 takes it: is it the one we think?"
	exit 1
fi
echo "ok     refused by AppArmor $version"
old=$(mktemp)
trap 'rm -f "$old"' EXIT
sed 's/abi <abi.4.0>/abi <abi\/3.0>/; /^  userns,$/d' "$profile" >"$old"
if ! parse "$old"; then
	echo "FAILED what it says beyond that is wrong"
	exit 1
fi
echo "ok     the rest is taken by AppArmor $version"
# The check does find mistakes.
echo 'profile {' >>"$old"
if parse "$old" >/dev/null; then
	echo "FAILED a broken profile is taken, too"
	exit 1
fi
echo "ok     a broken one is not"
