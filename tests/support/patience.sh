# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Limits of waits inside of tests, counted as on an idle machine, as patience.h does it for
# C; to be sourced.
#
# P3_LIMIT: seconds after which a process ends that tests/support/bounded could not end, ten
# times the limit of the test; P3_SCALE: the factor by which the build is slower than others.

: "${P3_LIMIT:=3000}" "${P3_SCALE:=1}"
patience_cpus=$(nproc)

# Set patience_load to the threads that want a CPU for each CPU: 1 to 10.
patience_look() {
	local minute running
	read -r minute _ _ running _ </proc/loadavg
	running=$((${running%%/*} - 1)) minute=${minute%.*}
	[ "$running" -ge "$minute" ] || running=$minute
	patience_load=$(((running + patience_cpus - 1) / patience_cpus))
	[ "$patience_load" -ge 1 ] || patience_load=1
	[ "$patience_load" -le 10 ] || patience_load=10
}

# Begin to count.
patience_begin() {
	patience_us=${EPOCHREALTIME/[.,]/} patience_ms=0
}

# Add the time since the last call to patience_ms.
patience_count() {
	local now=${EPOCHREALTIME/[.,]/}
	patience_look
	patience_ms=$((patience_ms + (now - patience_us) / 1000 / patience_load / P3_SCALE))
	patience_us=$now
}

# patiently SECONDS COMMAND...: wait until it succeeds; return 1 if the time is over.
patiently() {
	local most=$(($1 * 1000))
	shift
	patience_begin
	until "$@"; do
		sleep 0.05
		patience_count
		[ $patience_ms -lt $most ] || return 1
	done
}
