# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# To be sourced: begin_switch program settings log: switch.c takes the place of the kernel's bridge;
# $switch is its process.
begin_switch() {
	local i ports=()
	for i in 1 2 3; do
		ip -n "${HOST_PREFIX}sw" link set "p$i" nomaster || exit 1
		ports+=("p$i")
	done
	ip netns exec "${HOST_PREFIX}sw" "$1" "$2" "${ports[@]}" >"$3" 2>&1 &
	switch=$!
}
