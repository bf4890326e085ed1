#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Connections between yod and its agents that are silent, and the ends of programs between
# them: nothing may be left, and all are told in time.
#
# usage: silent.sh path/to/yod [case...]

yod=${1:?usage: silent.sh path/to/yod}
only=${*:2}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/yod_cases.sh"
TIMEOUT=8 # the programs that nobody stops may have no CPU for shorter times
export PTL3_FAR_TIMEOUT=$TIMEOUT

# A remote shell whose bytes go through two programs, which can be stopped as a network
# can be silent.
cat >"$dir/rsh" <<EOF
#!/bin/bash
echo \$\$ >"$dir/shell.\$1"
cat | "$here/local.sh" "\$@" | cat
EOF
chmod +x "$dir/rsh"
export PTL3_RSH=$dir/rsh

start_job() { # yod's options
	rm -f "$dir"/shell.*
	start --hosts a,b -sz 4 "$@" sh -c '(setsid sleep 300 &) ; echo up; exec sleep 300'
	await_lines 4
}

cats() { # host
	pgrep -P "$(cat "$dir/shell.$1")" -x cat
}

agents() { # the agents of the job, and their guards
	local p
	for p in $(marked); do
		[[ "$(tr '\0' ' ' <"/proc/$p/cmdline")" != *"yod --agent " ]] || echo "$p"
	done 2>/dev/null
}

are_agents() { # number
	[ "$(agents | wc -l)" = "$1" ]
}

sleepers() {
	local p
	for p in $(marked); do
		[ "$(cat "/proc/$p/comm" 2>/dev/null)" != sleep ] || echo "$p"
	done
}

are_asleep() { # number
	[ "$(sleepers | wc -l)" = "$1" ]
}

case_network() {
	start_job
	# shellcheck disable=SC2046
	kill -STOP $(cats b)
	patiently grep -q 'host b is lost' "$dir/err" || fail "the lost host is not named"
	ends
	same status 137 $status
	says "^yod: host b is lost, with ranks 2-3: $dir/rsh brings no frame for $TIMEOUT s \(PTL3_FAR_TIMEOUT\); ending the job$"
	nothing_left
}

# A reader of yod's stderr that pauses does not make its agents end their ranks.
case_pager() {
	start_paused --hosts a,b -sz 2 --keep-going sh -c \
		"[ \$PTL_MY_RID = 1 ] || exit 3; sleep $((TIMEOUT + 2)); echo lives"
	patiently grep -q lives "$dir/out" || fail "ranks end when nobody reads yod's stderr"
	resume_pager
	ends
	wait $pager_pid
	same status 3 $status
	says '^yod: rank 0 \(pid [0-9]+ on a\) exited with status 3; the others go on$'
	same lines 1 "$(err_but_waits | wc -l)"
}

case_keep_going() {
	start_job --keep-going
	# shellcheck disable=SC2046
	kill -STOP $(cats b)
	patiently grep -q 'host b is lost' "$dir/err" || fail "the lost host is not named"
	kill -TERM "$pid"
	ends
	nothing_left
}

# An agent whose yod is silent ends its nodes.
case_stopped_yod() {
	start_job
	local inner nodes
	inner=$(launcher)
	patiently are_asleep 8 || fail "not all nodes sleep, and their children"
	nodes=$(sleepers)
	kill -STOP "$inner"
	# shellcheck disable=SC2086
	patiently none_is_there $nodes || fail "the nodes go on without yod"
	kill -CONT "$inner"
	ends
	same status 137 $status
	nothing_left
}

# Return true if the agent of a has gone to yod's directory, as its order says.
has_its_order() {
	local p
	for p in $(agents); do
		[ "/proc/$p/cwd" -ef . ] && return
	done
	return 1
}

# The same before the nodes start, while another host has not answered.
case_stopped_early() {
	cat >"$dir/half" <<-EOF
		#!/bin/sh
		[ "\$1" = b ] && exec sleep 300
		cd /proc && exec "$here/local.sh" "\$@"
	EOF
	chmod +x "$dir/half"
	start --rsh "$dir/half" --hosts a,b -sz 2 true
	patiently has_its_order || fail "no agent gets an order"
	local inner both
	inner=$(launcher) both=$(agents)
	kill -STOP "$inner"
	# shellcheck disable=SC2086
	patiently none_is_there $both || fail "the agent waits without yod"
	kill -CONT "$inner"
	ends
	same status 125 $status
	says '^yod: host a is lost, with ranks 0-0: '
	nothing_left
}

case_short_stops() {
	start --hosts a,b -sz 4 sh -c 'echo up; exec sleep 5'
	await_lines 4
	local who
	who="$(launcher) $(agents | tr '\n' ' ')"
	# shellcheck disable=SC2086
	kill -STOP $who
	# pause: shorter than the time-out
	sleep $((TIMEOUT - 1))
	# shellcheck disable=SC2086
	kill -CONT $who
	ends
	same "status and stderr" "0 " "$status $(err_but_waits)"
}

case_never() {
	PTL3_FAR_TIMEOUT=never start_job
	# shellcheck disable=SC2046
	kill -STOP $(cats b)
	# pause: longer than the time-out of the other cases
	sleep $((TIMEOUT + 2))
	same stderr "" "$(cat "$dir/err")"
	# shellcheck disable=SC2046
	kill -CONT $(cats b)
	kill -TERM "$pid"
	ends
	nothing_left
}

# Each program of the chain is killed.
case_killed() {
	local what victim
	for what in guard yod both shell agent; do
		start_job
		case $what in
		guard) victim=$pid ;;
		yod) victim=$(launcher) ;;
		both) victim="$pid $(launcher)" ;;
		shell) victim=$(cat "$dir/shell.b") ;;
		agent) victim=$(agents | tail -1) ;;
		esac
		# shellcheck disable=SC2086
		kill -KILL $victim
		ends
		same "status after kill of $what" 137 $status
		nothing_left
		same "files after kill of $what" "" "$(find /dev/shm -name "*yod-$pid-*" 2>/dev/null)"
	done
}

skipped_case() { # name
	false
}

run_cases
