#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# No line of code is wider than 90 columns, tabs being 8.
. "${0%/*}/sources.sh"

for file in $(sources '*.c' '*.h' '*.cc'); do
	wide=$(expand -t 8 "$file" | awk 'length > 90 { printf " %d (%d)", NR, length }')
	[ -z "$wide" ] || complain "$file: too wide:$wide"
done
[ -n "$(sources '*.c')" ] || complain "no sources in $root"
exit $status
