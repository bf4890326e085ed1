# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What scripts of this folder share, to be sourced (support/shell.sh has the rest): processes
# of hosts, and breaks of their network.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../support/shell.sh disable=SC1091
. "$here/../support/shell.sh"

# Print the processes of a program on some hosts.
processes_of() { # program host...
	for host in "${@:2}"; do
		for pid in $(ip netns pids "$host"); do
			[ "$(readlink "/proc/$pid/exe")" != "$1" ] || echo "$pid"
		done
	done
}

# Print the ports of the launcher's own connections of a host, which do not survive.
launchers() { # host
	ip netns exec "$1" ss -Htnp | awk '/"(mpirun|orted)"/ { sub(".*:", "", $4); print $4 }' | sort -u
}

# Reset all other TCP connections between the hosts every 0.2 s, until a process ends.  When
# the time is over and more than ten ends have been reset, write a word to the file, and stop
# 2 s later.  Fail if there were fewer ends.
break_all() { # pid seconds file
	local broken=0 end=$((SECONDS + $2)) n port
	declare -A which
	for host in $HOSTS; do
		which[$host]="dst 10.213.77.0/24"
		for port in $(launchers "$host"); do which[$host]+=" and not sport = :$port"; done
	done
	local last=$((SECONDS + P3_WAIT))
	while kill -0 "$1" 2>/dev/null && [ $SECONDS -lt $last ]; do
		for host in $HOSTS; do
			# shellcheck disable=SC2086
			n=$(ip netns exec "$host" ss -KHt ${which[$host]} | grep -c ESTAB)
			broken=$((broken + n))
		done
		# pause: between two resets
		sleep 0.2
		[ $SECONDS -ge $end ] && [ $broken -gt 10 ] || continue
		[ ! -s "$3" ] || break
		echo 1 >"$3"
		end=$((SECONDS + 2))
	done
	echo 1 >"$3"
	echo "# broken: $broken ends of connections"
	[ $broken -gt 10 ] || {
		echo "few connections were reset (does the kernel have INET_DIAG_DESTROY?)"
		return 1
	}
}

# Let switch.c take the place of the kernel's bridge; $switch is its process.
begin_switch() {
	local i ports=()
	for i in $(seq "$(wc -w <<<"$HOSTS")"); do
		ip -n "${HOST_PREFIX}sw" link set "p$i" nomaster || exit 1
		ports+=("p$i")
	done
	ip netns exec "${HOST_PREFIX}sw" "$1" "$2" "${ports[@]}" >"$3" 2>&1 &
	switch=$!
}
