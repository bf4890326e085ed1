#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# pingpong.sh: libfabric's own fi_pingpong over the provider portals, as two processes that
# are started by hand; and over the list of providers that libfabric chooses from.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/shell.sh"
command -v fi_pingpong >/dev/null || skip "no fi_pingpong: package libfabric-bin"
export PTL3_DOMAIN=pingpong.$$ FI_PROVIDER=portals

# Set port to that on which the server listens, in hexadecimal, once it does or has ended.
listens() {
	local sockets
	sockets=$(find "/proc/$server/fd" -lname 'socket:*' -printf '%l ' 2>/dev/null)
	port=$(awk -v sockets="$sockets" '$4 == "0A" && index(sockets, "[" $10 "]") {
		sub(/.*:/, "", $2); print $2; exit }' /proc/net/tcp)
	[ "$port" ] || ! kill -0 "$server" 2>/dev/null
}

pingpong() { # kind
	port=
	until [ "$port" ]; do # one that no other program has
		fi_pingpong -e rdm -p portals -m "$1" -c -I 50 -B $((20000 + RANDOM % 12000)) >"$dir/server" 2>&1 &
		server=$!
		patiently listens
		[ "$port" ] || grep -q 'Address already in use' "$dir/server" ||
			{ cat "$dir/server"; die "the server does not listen"; }
	done
	timeout "${P3_LIMIT:-1000}" fi_pingpong -e rdm -p portals -m "$1" -c -I 50 -P $((16#$port)) 127.0.0.1 \
		>"$dir/out" 2>"$dir/err"
	local status=$?
	wait "$server" || status=$?
	[ $status = 0 ] || { cat "$dir/server"; die "$1 ends with $status"; }
	[ "$(grep -cE '^[0-9]+[mk]? ' "$dir/out")" -ge 3 ] || die "$1: too few lines"
}

pingpong msg
pingpong tagged
