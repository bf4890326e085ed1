#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A machine whose kernel is made for 4,096 CPUs (cpus_shim.c): yod, nodes, portals-info and
# benchmarks see and use the same CPUs as without the shim.

. "$(dirname "$0")/mp.sh"
: "${MP_SHIM:?path of the shim}" "${MP_MANNERS:?path of stress_manners}"
export PTL3_HUGEPAGES=off

# Run a command as it is and with the shim; compare status, output and error lines.
both() { # what command...
	local what=$1 plain
	shift
	tried=$((tried + 1))
	run timeout "${P3_LIMIT:-3000}" "$@"
	plain="status $status $(sort "$dir/out") $(sort "$dir/err")"
	run timeout "${P3_LIMIT:-3000}" env LD_PRELOAD="$MP_SHIM" "$@"
	[ "$plain" = "status $status $(sort "$dir/out") $(sort "$dir/err")" ] ||
		fail "$what: expected '$plain', got 'status $status $(cat "$dir/out")'"
}

# Print what portals-info tells about CPUs, and the mode that follows from their number.
# shellcheck disable=SC2016
info='"$0" --json | tr -d "[:space:]" |
	grep -oE "\"(cpus|usable)\":[^,}]*|\"name\":\"PTL3_MODE\",\"value\":\"[a-z]*\""'

both "a pinned thread's NIC thread" "$P3_YOD" -sz 1 "$MP_BIN/mp_options" cpus
for bind in core numa; do
	both "--bind $bind" "$P3_YOD" --bind $bind -sz 2 \
		sh -c 'echo $PTL_MY_RID $PTL3_NIC_CPUS $(grep Cpus_allowed_list /proc/self/status)'
	both "the plan of --bind $bind" sh -c '"$0" "$@" | grep CPUs' \
		"$P3_YOD" --plan --bind $bind -sz 2 true
done
both "a NIC thread on CPUs that the machine lacks" "$P3_YOD" -x PTL3_NIC_CPUS=1000 -sz 1 true
both "a list with CPUs that the machine lacks" "$P3_YOD" --bind 0,5000 -sz 1 true
both "portals-info" sh -c "$info" "$P3_BIN/portals-info"
both "a program that is pinned, and its NIC thread that is not" "$P3_YOD" -sz 1 \
	sh -c '"$0" pinned >/dev/null' "$MP_MANNERS"
if [ -x "$P3_BIN/cmdperf" ]; then
	both "a benchmark" sh -c '"$@" >/dev/null 2>&1' - "$P3_YOD" -sz 1 "$P3_BIN/cmdperf" --quick
	both "a peer" sh -c '"$@" >/dev/null 2>&1' - "$P3_BIN/peer_raw" quick latency=8
fi
finish many_cpus
