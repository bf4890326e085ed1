# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by tests of this folder: break the connections between hosts.

# Print the ports of the launcher's own connections of a host, which do not survive.
launchers() { # host
	ip netns exec "$1" ss -Htnp | awk '/"(mpirun|orted)"/ { sub(".*:", "", $4); print $4 }' | sort -u
}

# Reset all other TCP connections between the hosts every 0.2 s, until a process ends or the
# time is over.  Print how many ends there were, and fail if there were few.
break_all() { # pid seconds
	local broken=0 end=$((SECONDS + $2)) n port
	declare -A which
	for host in $HOSTS; do
		which[$host]="dst 10.213.77.0/24"
		for port in $(launchers "$host"); do which[$host]+=" and not sport = :$port"; done
	done
	while kill -0 "$1" 2>/dev/null && [ $SECONDS -lt $end ]; do
		for host in $HOSTS; do
			# shellcheck disable=SC2086
			n=$(ip netns exec "$host" ss -KHt ${which[$host]} | grep -c ESTAB)
			broken=$((broken + n))
		done
		# pause: between two resets
		sleep 0.2
	done
	echo "# broken: $broken ends of connections"
	[ $broken -gt 10 ] || {
		echo "few connections were reset (does the kernel have INET_DIAG_DESTROY?)"
		return 1
	}
}
