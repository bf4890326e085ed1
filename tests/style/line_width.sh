#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# No line of code is wider than 90 columns, tabs being 8; no function outside of tests has
# more than 60 lines; no line of a document has more than 200 characters.
. "${0%/*}/sources.sh"

said=$(sources '*.c' '*.h' '*.cc' | xargs awk '
	FNR == 1 { head = open = 0 }
	length > 90 || /\t/ && length > 90 - 7 * gsub(/\t/, "\t") {
		wide = 0
		for (i = 1; i <= length; i++)
			wide += substr($0, i, 1) == "\t" ? 8 - wide % 8 : 1
		if (wide > 90)
			print FILENAME ": too wide: " FNR " (" wide ")"
	}
	FILENAME ~ /^tests\// { next }
	/^[^\t #/}].*[^;]$/ && !head { head = FNR }
	/^{$/ { open = head }
	/^[ \t]*$/ && !open { head = 0 }
	/^}/ { head = 0 }
	/^}$/ {
		if (open && FNR - open > 59)
			print FILENAME ": functions of more than 60 lines: " open " (" FNR - open + 1 ")"
		open = 0
	}')
[ -z "$said" ] || complain "$said"
for doc in $(find README.md CONTRIBUTING.md NEWS.md docs examples -name '*.md'); do
	# Bytes of a character behind its first one do not count.
	wide=$(LC_ALL=C awk '{ gsub(/[\200-\277]/, "") } length > 200 { printf " %d (%d)", NR, length }' "$doc")
	[ -z "$wide" ] || complain "$doc: more than 200 characters:$wide"
done
[ -n "$(sources '*.c')" ] || complain "no sources in $root"
exit $status
