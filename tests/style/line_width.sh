#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# No line of code is wider than 90 columns, tabs being 8; no function outside of tests has
# more than 60 lines; no line of a document has more than 200 characters.
. "${0%/*}/sources.sh"

for file in $(sources '*.c' '*.h' '*.cc'); do
	wide=$(expand -t 8 "$file" | awk 'length > 90 { printf " %d (%d)", NR, length }')
	[ -z "$wide" ] || complain "$file: too wide:$wide"
	case $file in tests/*) continue ;; esac
	long=$(awk '/^[^\t #/}].*[^;]$/ && !head { head = FNR } /^{$/ { open = head }
		/^[ \t]*$/ && !open { head = 0 } /^}/ { head = 0 }
		/^}$/ { if (open && FNR - open > 59) printf " %d (%d)", open, FNR - open + 1; open = 0 }' "$file")
	[ -z "$long" ] || complain "$file: functions of more than 60 lines:$long"
done
for doc in $(find README.md CONTRIBUTING.md NEWS.md docs examples -name '*.md'); do
	# Bytes of a character behind its first one do not count.
	wide=$(LC_ALL=C awk '{ gsub(/[\200-\277]/, "") } length > 200 { printf " %d (%d)", NR, length }' "$doc")
	[ -z "$wide" ] || complain "$doc: more than 200 characters:$wide"
done
[ -n "$(sources '*.c')" ] || complain "no sources in $root"
exit $status
