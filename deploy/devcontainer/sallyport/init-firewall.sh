#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The development container's firewall: started by postStartCommand, at the
# place of the script that many know, with its exit status: 0 when the firewall
# is up and has passed its test (a denied host can't be reached, an allowed one
# can), else 1.
#
# Whoever may run this by sudo is who it keeps in: it takes no argument and
# nothing of the environment. What there is to say says install.sh, in a file
# of root's.
set -eu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH LC_ALL=C HOME=/root
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY \
	no_proxy NO_PROXY CURL_HOME XDG_CONFIG_HOME WGETRC SALLYPORT_POLICY \
	LD_PRELOAD LD_LIBRARY_PATH
settings=/etc/sallyport/init-firewall.conf

fail() {
	echo "ERROR: $*" >&2
	exit 1
}

# 0 if only root can change $1 or put another file there.
roots_own() {
	path=$(readlink -f "$1") && [ -e "$path" ] || return 1
	while :; do
		mode=$(stat -c '%u %a' "$path") || return 1
		case $mode in
		"0 "*[2367]? | "0 "*[2367]) return 1 ;; # group's, others'
		"0 "*) ;;
		*) return 1 ;;
		esac
		[ "$path" != / ] || return 0
		path=$(dirname "$path")
	done
}

state() {
	sallyport guard status --json 2>/dev/null || true
}

# Rules without a gate: nothing leaves, not even a question for a name. The
# next start of this script puts a gate behind them.
close_it() {
	sallyport guard up --policy /etc/sallyport/closed.yaml --quiet || true
	pid=$(state | sed -n 's/.*"pid":\([0-9]*\).*/\1/p')
	case $(state) in
	*'"serving":true'*) kill "$pid" ;;
	esac
	case $(state) in
	*'"rules":true'*) fail "$*: nothing leaves this container now" ;;
	*) fail "$*. THIS CONTAINER IS OPEN: is NET_ADMIN there (capAdd)?" ;;
	esac
}

# start POLICY
start() {
	set -- --policy "$1"
	for server in $(echo "$DNS" | tr , ' '); do
		set -- "$@" --upstream "$server"
	done
	sallyport guard up "$@"
}

bring_up() {
	ours="$POLICY must be there, and root's alone, with all directories above"
	if sallyport guard status >/dev/null 2>&1; then
		roots_own "$POLICY" || fail "$ours"
		sallyport reload || fail "the policy could not be read again"
		echo "The firewall was up; its policy is read again"
		return
	fi
	roots_own "$POLICY" || close_it "$ours"
	start "$POLICY" || close_it "the firewall did not start"
	sallyport guard status >/dev/null ||
		fail "the firewall is not as it should be: sallyport guard status"
	echo "Firewall configuration complete"
}

# 0 if anything at all comes back from $1. More words: options of curl's.
reached() {
	url=$1
	shift
	if command -v curl >/dev/null; then
		curl -q -sS --connect-timeout 5 --max-time 15 -o /dev/null "$@" "$url"
		return
	fi
	# An error that a server has sent came from there, too.
	said=$(timeout 15 wget -O /dev/null "$url" 2>&1) && return 0
	case $said in
	*"server returned error"* | *" ERROR "[1-5][0-9][0-9]*) return 0 ;;
	esac
	return 1
}

test_it() {
	command -v curl >/dev/null || command -v wget >/dev/null ||
		fail "neither curl nor wget is here to test the firewall with"
	echo "Verifying firewall rules..."
	# Whoever it was that answered.
	if reached "$DENIED" --insecure >/dev/null 2>&1; then
		fail "Firewall verification failed - was able to reach $DENIED"
	fi
	echo "Firewall verification passed - unable to reach $DENIED as expected"
	reached "$ALLOWED" ||
		fail "Firewall verification failed - unable to reach $ALLOWED"
	echo "Firewall verification passed - able to reach $ALLOWED as expected"
}

[ $# = 0 ] || fail "init-firewall.sh takes no arguments"
[ "$(id -u)" = 0 ] || fail "init-firewall.sh needs root: sudo $0"
roots_own "$settings" || fail "$settings must be there, and root's alone"
. "$settings"
bring_up
test_it
