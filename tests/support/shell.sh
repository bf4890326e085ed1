# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What test scripts share, to be sourced: a folder $dir that goes when the script ends, limits
# of waits (patience.sh), failures, and jobs that leave no process.
#
#	case_name	the case that runs, if there are cases; fail() says it
#
# Each command of run_marked and start_marked carries a mark in its environment, by which its
# processes are found.

. "$(dirname "${BASH_SOURCE[0]}")/patience.sh"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failures=0
mark=
case_name=

fail() {
	echo "FAIL ${case_name:+$case_name: }$*"
	sed 's/^/     stderr: /' "$dir/err" 2>/dev/null | head -5
	failures=$((failures + 1))
}

# Show what a job has printed, and end the test.
die() {
	cat "$dir/out" "$dir/err" 2>/dev/null
	echo "$*"
	exit 1
}

skip() {
	echo "skipped: $*"
	exit 77
}

new_mark() {
	mark=$$.$RANDOM.$RANDOM
	: >"$dir/out"
	: >"$dir/err"
}

run_marked() { # a command; its status in $status
	new_mark
	P3_TEST_MARK=$mark "$@" >"$dir/out" 2>"$dir/err"
	status=$?
}

# shellcheck disable=SC2034
start_marked() { # a command in the background; its pid in $pid
	new_mark
	P3_TEST_MARK=$mark "$@" >"$dir/out" 2>"$dir/err" &
	pid=$!
}

marked() { # pids of the last command
	grep -lsxz "P3_TEST_MARK=$mark" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\n'
}

none_is_marked() {
	! grep -qsxz "P3_TEST_MARK=$mark" /proc/[0-9]*/environ 2>/dev/null
}

nothing_left() {
	patiently none_is_marked && return 0
	fail "left: $(ps -o pid=,stat=,args= -p "$(marked | paste -sd,)")"
	return 1
}

# Wait until a process has ended, or a file has a first byte.
until_there() { # pid file
	until [ -s "$2" ] || ! kill -0 "$1" 2>/dev/null; do sleep 0.05; done
}
