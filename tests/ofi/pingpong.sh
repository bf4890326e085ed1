#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# pingpong.sh: libfabric's own fi_pingpong over the provider portals, as two processes that
# are started by hand; and over the list of providers that libfabric chooses from.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/shell.sh"
command -v fi_pingpong >/dev/null || skip "no fi_pingpong: package libfabric-bin"
export PTL3_DOMAIN=pingpong.$$ FI_PROVIDER=portals
port=$((20000 + $$ % 20000))

listens() { ! kill -0 "$server" 2>/dev/null || grep -qi ":$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp; }

pingpong() { # kind
	port=$((port + 1))
	fi_pingpong -e rdm -p portals -m "$1" -c -I 50 -B $port >"$dir/server" 2>&1 &
	server=$!
	patiently listens $port || die "the server does not listen"
	timeout "${P3_LIMIT:-1000}" fi_pingpong -e rdm -p portals -m "$1" -c -I 50 -P $port 127.0.0.1 \
		>"$dir/out" 2>"$dir/err"
	local status=$?
	wait "$server" || status=$?
	[ $status = 0 ] || { cat "$dir/server"; die "$1 ends with $status"; }
	[ "$(grep -cE '^[0-9]+[mk]? ' "$dir/out")" -ge 3 ] || die "$1: too few lines"
}

pingpong msg
pingpong tagged
