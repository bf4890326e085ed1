#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs with a trace, and tracedump's output about them: job.sh
# cast|wire|killed|left|domain|dumped|gcore|hostile|wrong P3_YOD, TRACEDUMP, TRACE_NODE,
# FILECAST are the paths of the programs.
here=${0%/*}
. "$here/../support/patience.sh"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"; [ -z "$yod$other" ] || kill $yod $other 2>/dev/null' EXIT
cd "$scratch" || exit 1
yod= other=

fail() {
	printf '%s\n' "$*" >&2
	tail -n 20 out err >&2 2>/dev/null
	exit 1
}

python3 -c '' 2>/dev/null || {
	echo "skipped: no python3"
	exit 77
}

# A yod without a CPU for some seconds answers tracedump too late.
dump() {
	local end=$((SECONDS + P3_WAIT)) status
	while :; do
		timeout "${P3_LIMIT:-3000}" "$TRACEDUMP" "$@" 2>complaints
		status=$?
		grep -q ' timed out' complaints && [ $SECONDS -lt $end ] || break
	done
	cat complaints >&2
	return $status
}

# has file pattern: the file has a line of it
has() {
	grep -qE -e "$2" "$1" || fail "$1 has no '$2'"
}

# The labels of pictures are apart, in windows of all lengths.  Names of slices lie over the
# arrows, with an edge that sets them off; a long picture may have no room for names.
labels_in_windows() {
	local from to n=0
	awk '$1 ~ /^[0-9.]+:$/ { t[n++] = $1 + 0 }
		END {
			for (k = 1; k < n; k *= 2)
				for (i = 0; i + k < n; i += int(n / 3))
					print t[i], t[i + k]
		}' text >windows
	while read -r from to; do
		n=$((n + 1))
		dump --svg --since "$from" --until "$to" trace >window$n.svg || fail "window $n"
	done <windows
	[ $n -gt 9 ] || fail "$n windows"
	"$here/../support/svg_labels.py" svg window*.svg || fail "labels"
	awk 'FNR == 1 { first = 0 }
		/marker-end/ { arrows++; if (first) wrong = FILENAME }
		/paint-order/ { names++; first = FNR }
		END { exit !(arrows && names) || wrong != "" }' svg window*.svg ||
		fail "no arrows, no names, or names below arrows"
}

# Without a range, a picture shows the 4 us in which most records begin.
busiest() {
	local at
	dump --svg trace >busiest.svg || fail "--svg without a range"
	at=$(grep -o 'begins at [0-9.]*' busiest.svg) || fail "the picture does not tell when it begins"
	awk -v at="${at##* }" '$1 ~ /^[0-9.]+:$/ { t[n++] = $1 * 1000 }
		END {
			for (i = 0; i < n; i++) {
				while (t[i] - t[first] > 4000.5)
					first++
				if (i - first + 1 > most)
					most = i - first + 1
				there += t[i] > at * 1000 - 0.5 && t[i] < at * 1000 + 4000.5
			}
			print there, "records, where", most, "are possible"
			exit there < most
		}' text >said || fail "not the busiest time: $(cat said)"
}

# The names of functions come from the build that was traced.
cast() {
	head -c 700000 /dev/urandom >file
	timeout "${P3_LIMIT:-3000}" "$P3_YOD" -sz 4 --trace trace "$FILECAST" file . >out 2>err || fail filecast
	for rank in 0 1 2 3; do
		cmp -s file $rank || fail "rank $rank has another file"
	done
	dump trace >text 2>err || fail tracedump
	[ -s err ] && fail "complaints"
	[ "$(grep -c '^# node' text)" = 4 ] || fail "not four nodes"
	has text ': [0-9a-f]{8} [a-z_0-9]*(p3|tx|rx)_[a-z_.0-9]*\+[0-9a-f]{4} \([0-9]+ ns\) (send|match)'
	has text 'host [0-9]+ command put node [0-3] '
	awk '$1 ~ /^[0-9.]+:$/ { if ($1 + 0 < last) exit 1; last = $1 + 0 }' text || fail "not by time"
	dump --json --output json trace || fail json
	python3 "$here/check.py" json whole || fail "json is not whole"
	dump --svg --until 1e9 trace >svg || fail svg
	python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' svg || fail "no XML"
	busiest
	labels_in_windows
	# One message: all of its records, and no other's.
	message=$(python3 -c 'import json
for e in json.load(open("json"))["traceEvents"]:
    if e.get("name") == "deliver put": print(e["args"]["message"]); break')
	dump --message "$message" --json trace >one || fail "--message $message"
	[ "$(python3 -c 'import json
print(*{e["args"]["message"] for e in json.load(open("one"))["traceEvents"] if e["ph"] == "X"})')" = \
		"$message" ] || fail "--message shows others"
	python3 "$here/check.py" one whole || fail "one is not whole"
}

# Long messages, gets, responses.
wire() {
	PTL3_TRACE=4M timeout "${P3_LIMIT:-3000}" "$P3_YOD" -sz 3 --trace trace \
		"$TRACE_NODE" put >out 2>err || fail put
	dump --json trace >json || fail "json"
	python3 "$here/check.py" json whole || fail "json"
	dump --at end trace | grep -q 'end ok .*200000 B' || fail "no long transfer"
	dump --at answered trace | grep -q 'answered ack to' || fail "no ACK"
}

begin() { # ranks scene options...
	touch out err
	"$P3_YOD" -sz "$1" "${@:3}" --keep-going --trace trace "$TRACE_NODE" "$2" stop \
		>out 2>err &
	yod=$!
}

finish() {
	touch stop
	timeout "${P3_LIMIT:-3000}" tail --pid=$yod -f /dev/null || fail "the job does not end"
	wait $yod
	status=$?
	yod=
}

# wait_for command...: until it succeeds
wait_for() {
	patiently quietly "$@" || fail "never: $*"
}

quietly() {
	"$@" >/dev/null 2>&1
}

# The last actions of a killed node, while the others run, and in the file.
killed() {
	begin 3 killed
	wait_for grep -q 'rank 1 .*killed by signal 9' err
	wait_for eval 'dump --job $yod --node 0 | grep -q "death died node 1"'
	dump --job $yod >text 2>said || fail "--job"
	has text '^# node 0: .*, runs, '
	has text '^# node 1: .*, died, '
	has text '^# node 2: .*, runs, '
	finish
	[ $status = 137 ] || fail "status $status"
	dump trace >text || fail "the file"
	has text '^# node 1: .*, died, '
	has text '^# node 2: .*, left, '
	dump --node 1 --at send trace | grep -c 'send put to 0 .* 8 B' >n
	[ "$(cat n)" = 501 ] || fail "$(cat n) puts of the dead"
	dump --node 1 --peer 0 --at send trace | tail -n 1 | grep -q 'send put to 0' ||
		fail "the last put of the dead"
	dump --json trace >json || fail json
	python3 "$here/check.py" json || fail "json"
}

# The last actions of a node that has left, while the others run.
left() {
	begin 3 left
	wait_for eval 'dump --job $yod --node 0 | grep -q "death left node 1"'
	dump --job $yod >text 2>said || fail "--job: $(cat said)"
	has text '^# node 0: .*, runs, '
	has text '^# node 1: .*, left, '
	dump --job $yod --node 1 --at send | grep -c 'send put to 0 .* 8 B' >n
	[ "$(cat n)" = 501 ] || fail "$(cat n) puts of the one that left"
	finish
	[ $status = 0 ] || fail "status $status"
}

# The same where ranks are not the nodes' slots in the domain: another job has the first
# of those.
domain() {
	"$P3_YOD" -sz 3 --domain "trace-$$" --keep-going --trace others "$TRACE_NODE" left \
		stop >others.out 2>&1 &
	other=$!
	wait_for eval 'dump --job $other --node 0 | grep -q "death left node 1"'
	begin 3 left --domain "trace-$$"
	wait_for eval 'dump --job $yod --node 0 | grep -q "death left node 1"'
	dump --job $yod --node 1 --at send | grep -c 'send put to 0 .* 8 B' >n
	[ "$(cat n)" = 501 ] || fail "$(cat n) puts of the one that left"
	finish
	wait $other
	other=
	[ $status = 0 ] || fail "status $status"
	dump --node 1 --at send trace | grep -c 'send put to 0 .* 8 B' >n
	[ "$(cat n)" = 501 ] || fail "$(cat n) puts in the file"
	dump --json trace >json || fail "--json"
	python3 "$here/check.py" json || fail "no JSON"
}

skip() {
	echo "skipped: $1"
	exit 77
}

# Compare a core with the file, without the others' records about the dead node.
compare() {
	plain='s/^ *[0-9.]+: //; s/ \([0-9]+ ns\)//'
	dump --node 1 trace | grep -v '^#' | sed -E "$plain" >of_file
	dump "$1" | grep -v '^#' | sed -E "$plain" >of_core
	[ "$(wc -l <of_core)" -gt 2000 ] || fail "$(wc -l <of_core) records"
	cmp of_file of_core || fail "the core has others: $(diff of_file of_core | head -4)"
}

# The kernel's core of a node that dies, with its trace.
dumped() {
	case $(cat /proc/sys/kernel/core_pattern) in
	[\|/]*) skip "core files go elsewhere: $(cat /proc/sys/kernel/core_pattern)" ;;
	esac
	ulimit -c unlimited 2>/dev/null || skip "no core files: ulimit -c $(ulimit -c)"
	begin 3 dumped
	wait_for grep -q 'rank 1 .*killed by signal 11 .*core dumped' err
	finish
	core=$(find . -name 'core*' -size +0)
	[ -n "$core" ] || fail "there is no core"
	[ "$(stat -c %s "$core")" -lt $((64 << 20)) ] || fail "$(stat -c %s "$core") bytes"
	dump "$core" >text 2>said || fail "the core: $(cat said)"
	has text '^# node 1: trace_node, pid [0-9]+, dumped core, '
	has text ': [0-9a-f]{8} [a-z_0-9]*(p3|tx|req)_[a-z_.0-9]*\+[0-9a-f]{4} \([0-9]+ ns\) send put to 0'
	[ "$(dump --at send "$core" | grep -c 'send put to 0 .* 8 B')" = 501 ] || fail "puts"
	compare "$core"
	dump --json "$core" >json || fail json
	python3 "$here/check.py" json || fail "json of a core"
	head -c 100000 "$core" >half
	refused 1 "'half': " "$TRACEDUMP" half
}

# A debugger's core of a node that goes on.
gcore() {
	command -v gdb >/dev/null || skip "gdb is not installed"
	begin 3 left
	wait_for eval 'dump --job $yod --node 2 | grep -q "death left node 1"'
	pid=$(dump --job $yod | sed -nE 's/^# node 2: .* pid ([0-9]+), .*/\1/p')
	gdb -batch -p "$pid" -ex 'gcore core' >said 2>&1
	[ -s core ] || {
		finish
		skip "gdb may not attach: $(grep -m 1 -iE 'ptrace|cannot|could not' said)"
	}
	dump core >text 2>said || fail "gcore: $(cat said)"
	has text '^# node 2: .*, dumped core, '
	has text 'send put to 0 '
	has text 'death left node 1'
	finish
	[ $status = 0 ] || fail "status $status"
}

# Rank 1 writes random words over its trace, its header included with four ranks.
hostile() {
	for size in 3 4; do
		rm -f stop
		begin $size hostile
		wait_for eval 'dump --job $yod --node 2 | grep -q "send put to 0"'
		for ((i = 0; i < 3; i++)); do
			dump --job $yod >text 2>said || fail "--job: $(cat said)"
			has text '^# node 0: trace_node, .*runs'
			has text ': 2: .*send put to 0'
		done
		dump --job $yod --json >json 2>said || fail "--json: $(cat said)"
		python3 "$here/check.py" json loose || fail "no JSON"
		dump --job $yod --svg >svg 2>said || fail "--svg: $(cat said)"
		finish
		[ $status = 0 ] || fail "status $status"
		dump trace >text 2>said || fail "the file: $(cat said)"
		has text ': 2: .*send put to 0'
	done
}

# refused status pattern command...: one line tells the reason
refused() {
	local want=$1 pattern=$2
	shift 2
	timeout "${P3_LIMIT:-3000}" "$@" >out 2>err </dev/null
	[ $? = "$want" ] || fail "not $want: $*"
	[ "$(wc -l <err)" = 1 ] || fail "not one line: $*"
	has err "$pattern"
}

wrong() {
	refused 125 "--trace: '/nowhere/x' cannot be written: No such file" \
		"$P3_YOD" -sz 1 --trace /nowhere/x true
	refused 2 "--trace: '' is no file" "$P3_YOD" -sz 1 --trace= true
	refused 0 "trace is empty: no node had a trace" "$P3_YOD" -sz 1 --trace trace true
	refused 1 "'trace': no node was traced" "$TRACEDUMP" trace
	refused 1 "'nothing': No such file" "$TRACEDUMP" nothing
	refused 1 "'\.': a directory" "$TRACEDUMP" .
	refused 1 "it is something else" "$TRACEDUMP" "$0"
	refused 1 "an ELF file, but no core" "$TRACEDUMP" "$TRACEDUMP"
	printf '\177ELF' >elf
	refused 1 "an ELF file, but no core" "$TRACEDUMP" elf
	refused 1 "--job 1: " "$TRACEDUMP" --job 1
	refused 2 "--job: 'x' is no job; expected" "$TRACEDUMP" --job x
	refused 2 "--node: '3-1' is no list of nodes" "$TRACEDUMP" --node 3-1 trace
	refused 2 "--since: 'now' is no time" "$TRACEDUMP" --since now trace
	refused 2 "expected a file, or --job" "$TRACEDUMP"
	refused 2 "expected a file, or --job" "$TRACEDUMP" --job 7 trace
	refused 2 "--jbo: not an option" "$TRACEDUMP" --jbo
	for value in on 63 16777217 2T 6K -1; do
		PTL3_TRACE=$value timeout "${P3_LIMIT:-3000}" "$P3_YOD" -sz 2 "$TRACE_NODE" put >out 2>err
		[ $? = 0 ] && fail "PTL3_TRACE=$value is taken"
		has err "PTL3_TRACE is '$value'; expected off, a number of records from 64 to 16777216"
	done
	PTL3_TRACE=64 timeout "${P3_LIMIT:-3000}" "$P3_YOD" -sz 2 --trace trace "$TRACE_NODE" put >out 2>err ||
		fail "the smallest"
	[ "$(dump trace | grep -vc '^#')" -le 192 ] || fail "more records than there are"
	head -c 3000 trace >half
	refused 1 "'half': it ends in the middle" "$TRACEDUMP" half
}

"$1"
