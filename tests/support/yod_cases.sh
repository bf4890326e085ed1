# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Running yod, and looking at what comes of it; to be sourced by a test whose functions
# case_NAME are its cases, and which ends with run_cases.
#
#	yod	path of yod
#	only	names of the cases to run; none: all
#
# After each case no process of a run may be left (shell.sh).

. "$(dirname "${BASH_SOURCE[0]}")/shell.sh"
runs=0

same() { # what, expected, got
	runs=$((runs + 1))
	[ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

says() { # pattern in stderr
	runs=$((runs + 1))
	grep -Eq -- "$1" "$dir/err" || fail "stderr does not say '$1'"
}

none_is_there() { # pids
	local p
	for p; do
		! kill -0 "$p" 2>/dev/null || return 1
	done
}

run() { # yod's arguments; status in $status
	run_marked "$yod" "$@"
}

# Print what a run has written to stderr, but for the lines about a remote shell, or ranks
# that end, which take long: beside much load each may.
err_but_waits() {
	grep -Ev 'has not started an agent for .* yod waits|SIGTERM has not ended' "$dir/err"
}

start() { # in the background; its pid in $pid
	start_marked "$yod" "$@"
}

# As start, with a --timeout that is over only after a condition holds, however slow the
# machine is.
start_in_time() { # condition, yod's arguments; seconds of the time-out in $in_time
	for ((in_time = 2; in_time < P3_WAIT; in_time *= 2)); do
		start --timeout $in_time "${@:2}"
		until "$1" || has_timed_out; do sleep 0.05; done
		has_timed_out || return 0
		ends
	done
	fail "the time-out is always over before: $1"
}

has_timed_out() {
	grep -q '^yod: timeout: ' "$dir/err"
}

# As start, but stderr is a full pipe, which is read from resume_pager on.
start_paused() { # yod's arguments
	new_mark
	[ -p "$dir/pager" ] || mkfifo "$dir/pager"
	exec {pager}<>"$dir/pager"
	yes '' | dd of="$dir/pager" oflag=nonblock bs=4096 2>/dev/null
	P3_TEST_MARK=$mark "$yod" "$@" >"$dir/out" 2>"$dir/pager" {pager}>&- &
	pid=$!
}

resume_pager() { # what comes goes to the file of stderr
	exec {reader}<"$dir/pager" {pager}>&-
	sed '/^$/d' <&$reader >"$dir/err" &
	pager_pid=$!
	exec {reader}<&-
}

# Count the lines of numbers of each rank, and those that are torn, merged or missing.
count_lines() { # separator
	awk -F "$1" '$2 != n[$1] + 1 {bad++} {n[$1] = $2} END {for (i in n) print i, n[i]; if (bad) print bad, "bad"}' |
		sort | head -5 | tr '\n' ' ' | sed 's/ $//'
}

await() { # pattern in stdout, or in a file
	patiently grep -Eqs -- "$1" "${2:-$dir/out}" && return
	fail "nodes never printed '$1'"
}

has_lines() {
	[ "$(wc -l <"$dir/out")" -ge "$1" ]
}

await_lines() {
	patiently has_lines "$1" && return
	fail "nodes never printed $1 lines"
}

ends() { # collect $pid; status in $status, seconds in $took
	local before=$SECONDS
	wait "$pid"
	status=$?
	took=$((SECONDS - before))
}

# Interrupt a process twice, or more often if it had no time to take the first signal, until
# nothing is left of the run.
interrupt_all() { # pid
	kill -INT "$1"
	patiently interrupted "$1"
	nothing_left
}

interrupted() { # pid
	sleep 0.3
	kill -INT "$1" 2>/dev/null
	none_is_marked
}

launcher() { # the inner process of yod $pid
	cat "/proc/$pid/task/$pid/children" | tr -d ' '
}

state_of() { # pid
	sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null
}

# Run the cases, but those for which skipped_case succeeds.
run_cases() {
	local before began
	case $yod in
	/*) ;;
	*) yod=$PWD/$yod ;;
	esac
	for case_name in $(declare -F | sed -n 's/^declare -f case_//p'); do
		! skipped_case "$case_name" || continue
		[ -z "$only" ] || [[ " $only " == *" $case_name "* ]] || continue
		before=$failures
		began=$SECONDS
		"case_$case_name"
		[ "$failures" = "$before" ] && echo "ok   $case_name ($((SECONDS - began)) s)"
	done
	echo "$runs checks, $failures failures"
	[ "$failures" = 0 ]
}
