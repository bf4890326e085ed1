#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: resets.sh program...
# Run a program in a network of its own, and reset all TCP connections in there every 0.2 s,
# and less often later, so that it gets on where a new connection takes longer than that.
# Run it again if it was over before the first reset.  Print how many ends of connections that
# were; fail if there were none in ten runs, or if the program fails.
if [[ $1 != --inside ]]; then
	unshare -n true 2>/dev/null || { echo "skipped: unshare -n is refused"; exit 77; }
	command -v ss ip >/dev/null || { echo "skipped: there is no ss or ip"; exit 77; }
	exec unshare -n "$0" --inside "$@"
fi
shift
ip link set lo up
broken=0 resets=0 status=0
for ((runs = 0; runs < 10 && broken == 0 && status == 0; runs++)); do
	"$@" &
	program=$!
	while kill -0 $program 2>/dev/null; do
		# pause: between two resets
		sleep $((resets++ / 20)).2
		n=$(ss -K -t dst 127.0.0.1 2>/dev/null | grep -c ESTAB)
		broken=$((broken + n))
	done
	wait $program
	status=$?
done
echo "# broken: $broken ends of connections"
[ $broken -gt 0 ] || { echo "no connection was reset (does the kernel have INET_DIAG_DESTROY?)"; exit 1; }
exit $status
