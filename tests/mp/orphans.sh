#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Deaths of every process in jobs of every kind, all at once, as a table.  In each case
# no process of the job is left, the exit status and the one line of yod
# tell the reason, and the nodes' earlier output is complete.

. "$(dirname "$0")/mp.sh"
ulimit -c 0
kinds='plain tags wrapper forks deaf stopped-node stopped-guard stopped-launcher'
deaths='yod-KILL yod-INT yod-TERM yod-HUP launcher-KILL node-exit node-SEGV node-KILL'
node=$MP_BIN/mp_orphan
base=$$.$RANDOM

status_of() {
	case $1 in
	yod-INT) echo 130 ;;
	yod-TERM) echo 143 ;;
	yod-HUP) echo 129 ;;
	node-exit) echo 3 ;;
	node-SEGV) echo 139 ;;
	*) echo 137 ;;
	esac
}

cause_of() {
	case $1 in
	yod-KILL) echo 'yod was killed; ending the job' ;;
	yod-*) echo 'signal [0-9]+ \([A-Za-z]+\); ending the job' ;;
	launcher-KILL) echo 'the launcher \(pid [0-9]+\) was killed by signal 9' ;;
	*) echo 'rank 1 \(pid [0-9]+\) (killed by signal|exited with status) [0-9]+.*; ending the job' ;;
	esac
}

start_cell() { # kind: a job in the background, its process in $yod
	local command=("$node")
	case $1 in
	tags) set -- "$1" --tag ;;
	# shellcheck disable=SC2016
	wrapper) command=(sh -c '"$0"; exit $?' "$node") ;;
	forks) command=("$node" forks) ;;
	deaf) command=("$node" deaf) ;;
	esac
	shift
	"$P3_YOD" -sz 3 "$@" "${command[@]}" >"$cell.out" 2>"$cell.err" &
	yod=$!
}

ups() {
	grep -c 'up ' "$cell.out"
}

pid_of_rank() {
	awk -v rank="$1" '{ sub(/.*up /, "") } $1 == rank { print $2 }' "$cell.out"
}

strike() { # death
	case $1 in
	yod-*) kill -"${1#*-}" "$yod" ;;
	launcher-*) kill -KILL "$launcher" ;;
	node-exit) kill -USR1 "$(pid_of_rank 1)" ;;
	node-*) kill -"${1#*-}" "$(pid_of_rank 1)" ;;
	esac
}

all_are_up() {
	[ "$(ups)" = 3 ]
}

cell() { # kind, death
	local yod launcher cell=$dir/$1.$2
	export MP_MARK=$base.$1.$2.
	: >"$cell.out"
	start_cell "$1"
	patiently all_are_up
	launcher=$(tr -d ' ' <"/proc/$yod/task/$yod/children")
	case $1 in
	stopped-node) kill -STOP "$(pid_of_rank 0)" ;;
	stopped-guard) kill -STOP "$yod" ;;
	stopped-launcher) kill -STOP "$launcher" ;;
	esac
	strike "$2"
	: >"$cell.hit"
	case $1.$2 in # as a shell does behind kill; and what waits for yod's word
	stopped-guard.* | stopped-launcher.node-*)
		sleep 0.5
		kill -CONT "$yod" "$launcher" 2>/dev/null
		;;
	esac
	wait "$yod"
	echo $? >"$cell.status"
}

# Print the marks of processes that are left.
left() {
	cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | sed -n "s/^MP_MARK=$base\.//p" |
		sort -u
}

cells() {
	local kind death
	for kind in $kinds; do
		for death in $deaths; do echo "$kind $death"; done
	done
}

# Return true if a file names the nodes that ignore SIGTERM, in a line of their own.  On
# a busy machine the line may name others, too.
names_the_deaf() { # kind, death, file
	case $1.$2 in
	deaf.yod-KILL | deaf.launcher-KILL) ;;
	deaf.*) grep -q "^yod: $slow" "$3" ;;
	esac
}

verdict() { # kind, death; those left in $dir/left
	local cell=$dir/$1.$2 why= lines slow='SIGTERM has not ended rank'
	grep -q "^$1\.$2\.\$" "$dir/left" && why=left,
	[ "$(cat "$cell.status" 2>/dev/null)" = "$(status_of "$2")" ] ||
		why=${why}status:$(cat "$cell.status" 2>/dev/null || echo none),
	names_the_deaf "$1" "$2" "$cell.err" || why=${why}deaf,
	lines=$(grep '^yod: ' "$cell.err" | grep -Evc "^yod: ($slow|rank 1: .* where it crashed)")
	[ "$lines" = 1 ] || why=${why}lines:$lines,
	grep -Eq "^yod: $(cause_of "$2")" "$cell.err" || why=${why}cause,
	[ "$(ups)" = 3 ] || why=${why}output,
	echo "${why:-ok}"
}

while read -r kind death; do
	cell "$kind" "$death" 2>/dev/null &
done < <(cells)
all_are_hit() {
	[ "$(find "$dir" -name '*.hit' | wc -l)" = "$(cells | wc -l)" ]
}

none_is_left() {
	left >"$dir/left"
	! [ -s "$dir/left" ]
}

patiently all_are_hit
patiently none_is_left

printf '%-17s' ''
# shellcheck disable=SC2086
printf '%-14s' $deaths
for kind in $kinds; do
	printf '\n%-17s' "$kind"
	for death in $deaths; do
		cell=$dir/$kind.$death
		why=$(verdict "$kind" "$death")
		printf '%-14s' "$why"
		[ "$why" = ok ] || echo "$kind, $death: $why $(grep -m3 '^yod' "$cell.err")" >>"$dir/bad"
	done
done
printf '\n'
while read -r line; do
	fail "$line"
done < <(cat "$dir/bad" 2>/dev/null)
for pid in $(grep -slaF "MP_MARK=$base." /proc/[0-9]*/environ | tr -dc '0-9\n'); do
	kill -KILL "$pid"
done
echo "# tried: $(cells | wc -l) ends of jobs"
finish orphans
