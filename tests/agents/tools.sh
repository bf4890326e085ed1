#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tools that look at a job of yod --hosts: ptlstat, reports, traces.
#
# usage: ../hosts/hosts.sh tools.sh path/to/yod program
#	The program is tests/hosts/ends.c; ptlstat lies beside yod.

yod=${1:?usage: hosts.sh path/to/yod program}
program=$2
only=${*:3}
. "$(dirname "$0")/../support/yod_cases.sh"
bin=$(dirname "$yod")
read -r first second third <<<"$HOSTS"
list=$first:2,$second:2,$third:2
# A host that is cut off is looked at, however long that takes, and not given up.
export PTL3_RSH=$AGENT PTL3_HUGEPAGES=off PTL3_FAR_TIMEOUT=3000

shows() { # pattern in the output of a tool, number of lines
	runs=$((runs + 1))
	[ "$(grep -Ec -- "$1" "$dir/shown")" = "$2" ] || {
		sed 's/^/     shown: /' "$dir/shown" | head -40
		fail "a tool does not say '$1' in $2 lines"
	}
}

tool() { # name, arguments
	"$bin/$1" "${@:2}" >"$dir/shown" 2>&1
	shown=$?
}

# Ranks that get bytes from rank 2, until that fails.
start_gets() { # yod's options
	rm -f "$dir"/v.*
	start --hosts "$list" -sz 6 "$@" "$program" pause "$dir/v" 0
	patiently has_begun || fail "the job does not begin"
}

# The file may be that of a job before; this job's output is made when it starts.
has_begun() {
	[ -s "$dir/v.end" ] && [ "$dir/v.end" -nt "$dir/out" ]
}

answers_are_due() {
	tool ptlstat --hosts why "$pid"
	[ "$(grep -Ec '^each of nodes (0-1|4-5) waits for an answer of .* host silent for' "$dir/shown")" = 2 ]
}

frames_move() { # to and from all hosts
	tool ptlstat --hosts --json "$pid"
	[ "$(grep -c '"far_frames_out":[1-9]' "$dir/shown")" = 3 ]
}

nobody_waits() {
	tool ptlstat --hosts why "$pid"
	[ "$(grep -c 'no node waits for long' "$dir/shown")" = 3 ]
}

case_ptlstat() {
	start_gets
	tool ptlstat --hosts "$pid"
	same "status of ptlstat" 0 $shown
	shows '^host ' 3
	shows '^ +[0-5] +[0-9]+ ' 6
	shows ': 2 nodes of this host, 2 joined' 3
	shows 'fout/s  fin/s resent breaks unack credits silent$' 3
	patiently frames_move
	shows '"far_frames_out":[1-9]' 3
	shows '"host":"'"$second"'","interval"' 1
	patiently nobody_waits
	shows 'no node waits for long; 2 of 2 nodes of this host are alive' 3
	ip -n "$second" link set eth0 down
	patiently answers_are_due || fail "no wait is explained"
	shows "^each of nodes (0-1|4-5) waits for an answer of node 2 on $second, host silent for [0-9.]+ s or more$" 2
	ip -n "$second" link set eth0 up
	tool ptlstat --hosts 1
	same "status without a job" 1 $shown
	shows '^ptlstat: --hosts: 1: no job .*expected the pid of such a yod' 1
	kill "$pid"
	ends
}

# The number of ranks that the reports have a line of; two alike have one line.
ranks_told() {
	awk '/^node [0-5] \(pid/ { n++ } /^each of nodes [0-5]-[0-5]: / { n += 2 } END { print n + 0 }' "$dir/err"
}

# yod's own reports: at a signal, and at the end of the time.
case_report() {
	start_gets
	kill -QUIT "$pid"
	ends
	same status 131 $status
	same hosts 3 "$(grep -c "^yod: host $first:\|^yod: host $second:\|^yod: host $third:" "$dir/err")"
	same nodes 6 "$(ranks_told)"
	rm -f "$dir"/v.*
	start_in_time has_begun --hosts "$list" -sz 6 "$program" pause "$dir/v" 0
	ends
	same status 124 $status
	same nodes 6 "$(ranks_told)"
	run --hosts "$list" -sz 6 --timeout 1 sleep 60
	same "lines about a job without Portals" 1 "$(err_but_waits | wc -l)"
}

# A trace file of each host.  The clock of the third host is 5,000 s ahead.
case_trace() {
	cat >"$dir/rsh" <<-EOF
		#!/bin/bash
		[ "\$1" != "$third" ] ||
			exec "$AGENT" "\$1" "exec unshare --fork --time --monotonic 5000 bash -c \"\$2\""
		exec "$AGENT" "\$@"
	EOF
	chmod +x "$dir/rsh"
	"$AGENT" "$third" "unshare --fork --time --monotonic 5000 true" 2>/dev/null || {
		echo "# no namespaces of time here"
		return
	}
	rm -f "$dir"/v.*
	PTL3_RSH=$dir/rsh run --hosts "$list" -sz 6 --trace "$dir/job.trace" "$program" pause "$dir/v" 50
	same status 0 $status
	tool tracedump "$dir"/job.*.trace
	same "status of tracedump" 0 $shown
	python3 "$(dirname "$0")/clocks.py" "$dir/shown" "$first" 0 "$second" 0 "$third" 5e9 ||
		fail "the clocks are wrong"
	tool tracedump "$dir/job.$first.trace"
	same "status of tracedump, of one host" 0 $shown
	shows '^# node [01]:' 2
	tool tracedump "$dir/job.$first.trace" "$dir/v.end"
	same "status of tracedump, with a wrong file" 1 $shown
}

skipped_case() { # name
	false
}

run_cases
