# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Limits of waits inside of tests, to be sourced; cmake/limits.cmake sets both.
#
# P3_WAIT: seconds until a wait fails; P3_LIMIT: seconds until a process ends that hangs.

: "${P3_WAIT:=120}" "${P3_LIMIT:=600}"

# patiently COMMAND...: wait until it succeeds; return 1 if the limit is over.
patiently() {
	local end=$((SECONDS + P3_WAIT))
	until "$@"; do
		sleep 0.05
		[ $SECONDS -lt $end ] || return 1
	done
}
