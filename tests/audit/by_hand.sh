#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks what we sign with nothing but openssl, sha256sum and sed, and lets
# openssl make a key for us.
#
#   by_hand.sh PROGRAM    PROGRAM is sample.c
set -eu
sample=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "by_hand: $*" >&2; exit 1; }

verify() { # body, signature
	openssl pkeyutl -verify -pubin -inkey pub.pem -rawin -in "$1" \
		-sigfile "$2" >/dev/null 2>&1
}

# bytes after an escape, so that nobody's echo changes them
leaf() { (printf '\0'; sed -n "$1p" audit.jsonl | tr -d '\n') |
	openssl dgst -sha256 -binary; }

check() { # everything in ., whoever made key.pem
	openssl pkey -in key.pem -pubout -out pub.pem

	# Checkpoint: the text up to the empty line; the signature less its id.
	sed '/^$/,$d' checkpoint.13 >body
	sed -n 's/^— [^ ]* //p' checkpoint.13 | openssl base64 -d -A >blob
	tail -c +5 blob >sig
	[ "$(wc -c <sig)" = 64 ] || fail "the signature is not 64 bytes"
	verify body sig || fail "openssl does not verify a checkpoint"
	sed 's/^13$/12/' body >other
	verify other sig && fail "openssl verifies another size"

	# The id of the key, in the note and in the public file.
	name=$(sed -n 1p body)
	(printf '%s\n\001' "$name"
	 openssl pkey -pubin -in pub.pem -outform DER | tail -c 32) |
		openssl dgst -sha256 -binary | head -c 4 >id
	head -c 4 blob | cmp -s - id || fail "another key id in the note"
	hex=$(od -An -tx1 id | tr -d ' ')
	grep -qF "$name+$hex+" key.vkey || fail "another key id in key.vkey"

	# The roots of one record and of two.
	leaf 1 | openssl base64 -A >root
	[ "$(sed -n 3p checkpoint.1)" = "$(cat root)" ] || fail "root of 1"
	(printf '\001'; leaf 1; leaf 2) | openssl dgst -sha256 -binary |
		openssl base64 -A >root
	[ "$(sed -n 3p checkpoint.2)" = "$(cat root)" ] || fail "root of 2"

	# Receipt: DSSE signs type and body.
	sed 's/.*"payload":"\([^"]*\)".*/\1/' receipt.json |
		openssl base64 -d -A >payload
	sed 's/.*"sig":"\([^"]*\)".*/\1/' receipt.json |
		openssl base64 -d -A >sig
	(printf 'DSSEv1 28 application/vnd.in-toto+json %d ' \
		"$(wc -c <payload)"; cat payload) >pae
	verify pae sig || fail "openssl does not verify the receipt"
	verify payload sig && fail "the receipt is signed without its type"
	return 0
}

mkdir "$dir/ours" "$dir/theirs"
(umask 077; openssl genpkey -algorithm ed25519 -out "$dir/theirs/key.pem")
for who in ours theirs; do
	"$sample" "$dir/$who"
	(cd "$dir/$who" && check) || exit 1
done
echo "by_hand: openssl agrees"
