#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Start a server and its clients by hand, as in two shells: by_hand.sh echo|file BIN [WORK]
set -e
scene=$1 bin=$2 work=${3:-$(mktemp -d)}
given=$3
log=$work/cci_$scene.log
server=
cleanup() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || :
	[ "$given" ] || rm -rf "$work"
}
trap cleanup EXIT

# Start the server, and wait for the line with its address: not that of an earlier run,
# which the server's shell may not have removed yet.
serve() {
	: >"$log"
	"$@" >"$log" &
	server=$!
	until uri=$(sed -n 's/^Opened //p' "$log") && [ "$uri" ]; do
		kill -0 "$server" || exit 1
		sleep 0.05 # pause: between two looks
	done
}

# refused LINE COMMAND...: the command must fail with that line on standard error
refused() {
	line=$1
	shift
	"$@" 2>"$log.refused" && fail "$* succeeded"
	grep -qxF "$line" "$log.refused" || fail "$* said: $(cat "$log.refused")"
}

# The server must end by itself, in success.
await_server() {
	wait "$server"
	server=
}

fail() {
	echo "$*" >&2
	exit 1
}

case $scene in
echo)
	refused "nowhere: CCI_EINVAL; expected the address that a running server has \
printed, as in portals://default/0/71363" "$bin/cci_echo_client" nowhere hello
	serve "$bin/cci_echo_server"
	said=$("$bin/cci_echo_client" "$uri" hello world)
	[ "$said" = "$(printf 'hello\nworld')" ] || fail "the echo was: $said"
	"$bin/cci_echo_client" "$uri" once more bye >"$log.client"
	await_server
	"$bin/cci_echo_client" "$uri" late 2>"$log.late" && fail "a dead server answered"
	grep -q CCI_ECONNREFUSED "$log.late" || fail "$(cat "$log.late")"
	;;
file)
	head -c 10000001 /dev/urandom >"$work/cci_file.in"
	rm -f "$work/cci_file.out"
	refused "$work: Invalid argument; expected a regular file with bytes" \
		"$bin/cci_file" serve "$work"
	serve "$bin/cci_file" serve "$work/cci_file.in"
	refused "$work/none/copy: No such file or directory; expected a file that can be \
written" "$bin/cci_file" fetch "$uri" "$work/none/copy"
	"$bin/cci_file" fetch "$uri" "$work/cci_file.out"
	await_server
	cmp "$work/cci_file.in" "$work/cci_file.out"
	;;
esac
