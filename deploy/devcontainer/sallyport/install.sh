#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Puts sallyport, a policy and init-firewall.sh into a development container's
# image. Run as root when it is built; the options of devcontainer-feature.json
# come as variables. Loads nothing: the program is beside this script (`pack`
# puts it there), or in the image already, from the Debian package.
set -eu
umask 022
here=$(cd "$(dirname "$0")" && pwd)
POLICY=${POLICY-claude-code} ALLOW=${ALLOW-} DNS=${DNS-} VERSION=${VERSION:-any}
DENIEDURL=${DENIEDURL:-https://example.com}
ALLOWEDURL=${ALLOWEDURL:-https://api.github.com/zen}
SUDO=${SUDO:-true} user=${_REMOTE_USER:-root}
script=/usr/local/bin/init-firewall.sh

fail() {
	echo "sallyport: $*" >&2
	exit 1
}

# only WHAT TEXT CHARACTERS: TEXT is written into files that root reads.
only() {
	case $2 in
	*[!$3]*) fail "$1: only $3, not '$2'" ;;
	esac
}

install_program() {
	if [ -e "$here/bin/sallyport" ]; then
		mkdir -p /usr/local/bin /usr/local/lib/sallyport
		cp "$here/bin/sallyport" /usr/local/bin/
		cp "$here"/lib/*.so* /usr/local/lib/sallyport/
		chmod 755 /usr/local/bin/sallyport /usr/local/lib/sallyport/*
		# After the image's own, so that those are never hidden.
		mkdir -p /etc/ld.so.conf.d
		echo /usr/local/lib/sallyport >/etc/ld.so.conf.d/zz-sallyport.conf
		ldconfig || fail "no ldconfig: an image with glibc is needed"
		suffixes=/usr/share/publicsuffix
		[ -e $suffixes/public_suffix_list.dafsa ] || {
			mkdir -p $suffixes
			cp "$here/public_suffix_list.dafsa" $suffixes/
		}
	fi
	command -v sallyport >/dev/null || fail "the program is neither in" \
		"this Feature (deploy/devcontainer/pack puts it there) nor in the image"
	told=$(sallyport version) ||
		fail "the program does not run here: it needs the C library of" \
			"the system that it was built on, or a newer one"
	case $VERSION in
	any | "${told#sallyport }") ;;
	*) fail "this is $told, not version $VERSION" ;;
	esac
}

# as_list KEY TEXT: a list with commas, as one of YAML.
as_list() {
	[ -n "$2" ] || return 0
	printf '%s:\n' "$1"
	printf '%s\n' "$2" | tr -d ' ' | tr , '\n' | sed '/^$/d
		s/^\([^:]*\):\([0-9]*\)$/  - { host: "\1", ports: [\2] }/
		/^  - /!s/.*/  - "&"/'
}

write_policy() {
	mkdir -p /etc/sallyport
	case $POLICY in
	/*)
		only policy "$POLICY" 'A-Za-z0-9/._+-'
		[ -z "$ALLOW" ] || fail "allow: say it in $POLICY"
		# It may be mounted later.
		[ ! -e "$POLICY" ] || sallyport check "$POLICY"
		path=$POLICY
		return ;;
	esac
	only policy "$POLICY" 'a-z0-9, -'
	only allow "$ALLOW" 'A-Za-z0-9.:*_, -'
	path=/etc/sallyport/devcontainer.yaml
	{
		printf 'version: 1\nname: devcontainer\n'
		as_list extends "$POLICY"
		as_list allow "$ALLOW"
	} >$path
	sallyport check $path
}

write_settings() {
	# For a start with a policy that can't be read: nothing is allowed.
	printf 'version: 1\nname: closed\n' >/etc/sallyport/closed.yaml
	only dns "$DNS" '0-9a-fA-F.:, '
	only deniedUrl "$DENIEDURL" 'A-Za-z0-9:/._-'
	only allowedUrl "$ALLOWEDURL" 'A-Za-z0-9:/._-'
	printf '# Read by %s.\nPOLICY=%s\nDENIED=%s\nALLOWED=%s\nDNS="%s"\n' \
		$script "$path" "$DENIEDURL" "$ALLOWEDURL" "$DNS" >/etc/sallyport/init-firewall.conf
}

# The "" is: without arguments.
let_user() {
	[ "$SUDO" = true ] && [ "$user" != root ] || return 0
	only _REMOTE_USER "$user" 'A-Za-z0-9._-'
	mkdir -p /etc/sudoers.d
	rule=/etc/sudoers.d/sallyport-init-firewall
	printf '%s ALL=(root) NOPASSWD: %s ""\n' "$user" $script >$rule
	chmod 440 $rule
	command -v sudo >/dev/null ||
		echo "sallyport: no sudo in this image: $script has to be run by root" >&2
}

[ "$(id -u)" = 0 ] || fail "install.sh needs root"
install_program
write_policy
write_settings
cp "$here/init-firewall.sh" $script
chmod 755 $script
let_user
command -v curl >/dev/null || command -v wget >/dev/null ||
	fail "init-firewall.sh tests the firewall with curl or wget: install one"
echo "sallyport: $told, policy $path"
