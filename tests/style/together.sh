#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The functions on the path of a message lie on few pages: together.sh source-tree
# libportals.so, of gcc's release build.  A node that shares its CPU with many begins
# each turn with an empty TLB, and waits for each page of code; no other test shows
# that a function has left these pages.
root=${1:?source tree} lib=${2:?library}
most=14 # pages of 4 KiB

command -v nm >/dev/null || {
	echo "skipped: no nm"
	exit 77
}
path=$(sed -n '/^P3_PATH$/{n;s/__attribute__((noinline)) //;s/^[^(]*[ *]\([A-Za-z_0-9]*\)(.*/\1/p;}' \
	"$root"/lib/*.c "$root"/nic/*/*.c | sort -u)
for function in PtlPut PtlPutRegion PtlGet PtlEQWait PtlEQPoll PtlEQGet p3_nic_do p3_nic_eq_get p3_wait_until \
	p3_tx_put p3_lease_leave p3_pass_run p3_rx_take rx_take_any p3_rsp_take p3_region_write; do
	printf '%s\n' "$path" | grep -qx "$function" || {
		echo "$function is not P3_PATH; expected it, or other names in tests/style/together.sh"
		exit 1
	}
done
nm -n "$lib" | awk -v path="$path" -v most=$most '
	BEGIN { n = split(path, name, "\n"); for (i = 1; i <= n; i++) want[name[i]] = 1 }
	function number(hex,  i, v) {
		for (i = 1; i <= length(hex); i++)
			v = 16 * v + index("0123456789abcdef", substr(hex, i, 1)) - 1
		return v
	}
	{
		base = $3
		sub(/\..*/, "", base)
		if ($2 !~ /^[tT]$/ || !(base in want) || $3 ~ /\.(part|cold)/)
			next
		found++
		at = number($1)
		page = int(at / 4096)
		if (!first) first = page
		if (page - first >= most) {
			printf "%s lies %d pages behind the first function of the path, expected" \
				" less than %d: is it P3_PATH, and what does it inline?\n", \
				$3, page - first, most
			bad = 1
		}
	}
	END {
		if (found < 20) { print "only " found + 0 " of the path found: stripped?"; bad = 1 }
		exit bad
	}'
