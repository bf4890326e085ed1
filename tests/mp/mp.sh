# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Common functions of the drivers of tests/mp, to be sourced.  P3_YOD is yod, MP_BIN the
# folder with the programs of tests/mp.
#
# Every job carries a mark in its environment, by which its processes are found.

: "${P3_YOD:?path of yod}" "${MP_BIN:?folder of the mp_ programs}"
. "$(dirname "${BASH_SOURCE[0]}")/../support/patience.sh"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failures=0
mark=

fail() {
	echo "FAIL $*"
	sed 's/^/     stderr: /' "$dir/err" 2>/dev/null | head -5
	failures=$((failures + 1))
}

new_mark() {
	mark=$$.$RANDOM.$RANDOM
	: >"$dir/out"
	: >"$dir/err"
}

run() { # a command; its status in $status
	new_mark
	MP_MARK=$mark "$@" >"$dir/out" 2>"$dir/err"
	status=$?
}

# shellcheck disable=SC2034
start() { # a command in the background; its pid in $pid
	new_mark
	MP_MARK=$mark "$@" >"$dir/out" 2>"$dir/err" &
	pid=$!
}

# Names below /dev/shm that the library could have made; other programs have files there, too.
ours_in_shm() {
	find /dev/shm -mindepth 1 -maxdepth 1 \( -name 'ptl3*' -o -name 'p3*' \) -printf '%f\n' | sort
}

# Return true once /dev/shm, which is the test's own (p3_dev_shm), has just the given names.
shm_is() { # names
	patiently shm_has "$1"
}

shm_has() {
	[ "$(ours_in_shm)" = "$1" ]
}

marked() { # pids of the job
	grep -slaF "MP_MARK=$mark" /proc/[0-9]*/environ | tr -dc '0-9\n'
}

none_is_marked() {
	[ -z "$(marked)" ]
}

nothing_left() {
	patiently none_is_marked && return 0
	fail "left: $(ps -o pid=,stat=,args= -p "$(marked | paste -sd,)")"
	return 1
}

succeeds() { # what, command...
	local what=$1
	shift
	run timeout "${P3_LIMIT:-3000}" "$@"
	[ $status = 0 ] || fail "$what: status $status"
}

says() { # what, pattern in stdout
	grep -Eq -- "$2" "$dir/out" || fail "$1: no '$2' in: $(head -5 "$dir/out")"
}

finish() {
	echo "$1: $failures failures"
	[ "$failures" = 0 ]
	exit
}
