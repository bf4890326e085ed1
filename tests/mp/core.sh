#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A core file has the node's own state, but not the sparse gigabytes and the peers'
# segments.

. "$(dirname "$0")/mp.sh"
most=$((64 << 20))

flags() { # name in /proc/PID/smaps: KiB of it that a core would hold
	awk -v name="$2" '/^[0-9a-f]+-[0-9a-f]+ / { is = index($0, name) > 0 }
		/^Size:/ { kib = $2 }
		/^VmFlags:/ && is && !/ dd/ { sum += kib } END { print sum + 0 }' \
		"/proc/$1/smaps"
}

all_are_up() {
	[ "$(grep -c '^up ' "$dir/out")" = 4 ]
}

up() {
	patiently all_are_up
	victim=$(awk '$1 == "up" && $2 == 1 { print $3 }' "$dir/out")
	[ -n "$victim" ] || fail "no node is up"
}

cd "$dir" || exit 1
ulimit -c unlimited 2>/dev/null
start "$P3_YOD" -sz 4 "$MP_BIN/mp_orphan"
up
published=$(flags "$victim" p3-published)
[ "$published" -gt 0 ] || fail "nothing of the published segment would be in a core"
[ "$published" -le 2048 ] || fail "$published KiB of published segments in a core"
host=$(flags "$victim" p3-host)
[ "$host" -gt 0 ] || fail "nothing of the host's segment would be in a core"
[ "$host" -lt 65536 ] || fail "$host KiB of the host's segment in a core"
[ "$(flags "$victim" p3-heap)" -lt 65536 ] || fail "the heaps would be in a core"
kill -SEGV "$victim"
wait "$pid"
case $(cat /proc/sys/kernel/core_pattern) in
[\|/]*)
	why="core files go elsewhere: $(cat /proc/sys/kernel/core_pattern)" ;;
*)
	[ "$(ulimit -c)" = unlimited ] || why="no core files: ulimit -c $(ulimit -c)" ;;
esac
[ -z "$why" ] || echo "# no core was looked at: $why"
if [ -z "$why" ]; then
	core=$(find "$dir" -name 'core*' -size +0 | head -1)
	[ -n "$core" ] || fail "there is no core file"
	size=$(stat -c %s "${core:-/dev/null}")
	echo "# core of a node of four: $((size >> 10)) KiB; published $published KiB, host $host KiB"
	[ "$size" -lt $most ] || fail "a core file of $size bytes, more than $most"
	grep -q ', core dumped; ending the job' "$dir/err" || fail "yod does not name the core"
	command=$(sed -n 's/^yod: rank 1: \(gdb .*\) shows where it crashed$/\1/p' "$dir/err")
	[ -n "$command" ] || fail "yod does not tell how to look at the core"
	! command -v gdb >/dev/null || eval "$command" 2>&1 | grep -q ' main (' ||
		fail "$command shows no function"
fi
finish core
