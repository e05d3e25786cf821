#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lets Go read what we sign: interop.go over the output of sample.c.
#
#   interop.sh PROGRAM    PROGRAM is sample.c
#
# Needs golang-go and golang-golang-x-mod-dev; nothing comes from the network.
set -eu
sample=$1
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/log"
"$sample" "$dir/log"
HOME=$dir GOPATH=/usr/share/gocode GO111MODULE=off GOFLAGS= GOPROXY=off \
	GOTOOLCHAIN=local GOCACHE="$dir/cache" \
	go build -o "$dir/interop" "$here/interop.go"
"$dir/interop" "$dir/log"
