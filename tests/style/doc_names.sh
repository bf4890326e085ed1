#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What documentation names is there: files in backticks and links, functions in backticks
# with (), and in a table of functions and files: that function in that file.
. "${0%/*}/sources.sh"
code=$(sources '*.c' '*.h' | grep -E '^(include|lib|nic|shm|launcher|examples)/')

# Definitions, and declarations in headers, begin a line, their name after a type.
defines() {
	name=$1
	shift
	grep -lE "^([a-z].*[ *]|\t*)?$name ?\(" "$@" 2>/dev/null | grep -q .
}

folders='lib|nic|shm|launcher|examples|bench|tests|docs|include|cmake|\.ci'
[ -n "$code" ] || complain "no sources in $root"
for doc in README.md docs/*.md examples/README.md; do
	for file in $(grep -oE "\`($folders)/[A-Za-z0-9_./-]*\`" "$doc" | tr -d '\`' | sort -u); do
		[ -e "$file" ] || complain "$doc names a file that is not there: $file"
	done
	for link in $(grep -oE '\]\([A-Za-z0-9_./-]+\)' "$doc" | sed 's/^](//; s/)$//' | sort -u); do
		[ -e "${doc%"${doc##*/}"}$link" ] || complain "$doc links to nothing: $link"
	done
	for name in $(grep -oE '`[A-Za-z_0-9]+\(\)`' "$doc" | tr -d '`()' | sort -u); do
		case $name in fork) continue ;; esac # of the C library
		defines "$name" $code || complain "$doc names a function that is not there: $name"
	done
	rows=$(sed -nE 's/^\| `([A-Za-z_0-9]+)\(\)` \| `([a-z0-9_./]+)` \|.*/\1:\2/p' "$doc")
	for row in $rows; do
		defines "${row%:*}" "${row#*:}" || complain "$doc: no ${row%:*} in ${row#*:}"
	done
	named=$((${named:-0} + $(printf '%s\n' "$rows" | grep -c .)))
done
[ "${named:-0}" -gt 40 ] || complain "only ${named:-0} functions of a table were looked for"
exit $status
