# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Common functions of the drivers of tests/mp, to be sourced.  P3_YOD is yod, MP_BIN the
# folder with the programs of tests/mp.
# support/shell.sh has the rest.

: "${P3_YOD:?path of yod}" "${MP_BIN:?folder of the mp_ programs}"
. "$(dirname "${BASH_SOURCE[0]}")/../support/shell.sh"

run() { # a command; its status in $status
	run_marked "$@"
}

start() { # a command in the background; its pid in $pid
	start_marked "$@"
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
