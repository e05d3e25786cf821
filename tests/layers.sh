#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Who may include whom: cmd -> launch, firewall, audit, proxy, dns -> policy
# -> base. The five in the middle do not know each other.
set -eu
cd "${1:-$(dirname "$0")/..}"
bad=0
check() { # folder, allowed prefixes as a regex
	found=$(grep -rnE '#include "' "$1" --include='*.c' --include='*.h' |
		grep -vE "#include \"($2)/" || true)
	if [ -n "$found" ]; then
		printf '%s may only include %s:\n%s\n' "$1" "$2" "$found"
		bad=1
	fi
}
check base 'base'
check policy 'policy|base'
for folder in dns proxy firewall audit launch; do
	check "$folder" "$folder|policy|base"
done
check cmd 'cmd|launch|firewall|audit|proxy|dns|policy|base'

# Neither a shell, nor what can't be bounded.
found=$(grep -rnE '\b(system|popen|strcpy|strcat|sprintf|gets|alloca|atoi) ?\(' \
	base policy dns proxy firewall audit launch cmd --include='*.c' \
	--include='*.h' || true)
if [ -n "$found" ]; then
	printf 'calls that are not used here:\n%s\n' "$found"
	bad=1
fi
[ "$bad" = 0 ] && echo "layers: every include points downwards"
exit "$bad"
