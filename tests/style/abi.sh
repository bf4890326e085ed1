#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The names, types, sizes and members that programs see are those of the kept dump
# lib/libportals.abi (libabigail):
#	abi.sh source-tree libportals.so		compare
#	abi.sh source-tree libportals.so --renew	write the dump anew
# docs/abi.md says when the dump may be renewed.
set -e
root=${1:?source tree} lib=${2:?library}
kept=$root/lib/libportals.abi

skip() {
	echo "skipped: $*"
	exit 77
}
command -v abidw abidiff >/dev/null || skip "no abidw or abidiff (Debian package abigail-tools)"
readelf -S "$lib" | grep -q '\.debug_info' || skip "$lib has no debug information"
[ "$(uname -m)" = x86_64 ] || skip "the kept dump is that of x86_64"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# Without paths, and without types of which the headers of programs show only the name.
abidw --headers-dir "$root/include" --drop-private-types --exported-interfaces-only \
	--no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed --no-parameter-names \
	--no-write-default-sizes --out-file "$tmp/abi" "$lib"
# abidiff needs a path for each unit; a number tells nothing of the machine.
awk '{ sub(/ path=\047[^\047]*\047/, " path=\047" NR "\047") } 1' "$tmp/abi" >"$tmp/now"
[ "$(grep -c '<elf-symbol ' "$tmp/now")" -gt 50 ] || {
	echo "the dump of $lib has $(grep -c '<elf-symbol ' "$tmp/now") symbols"
	exit 1
}
if [ "$3" = --renew ]; then
	cp "$tmp/now" "$kept"
	echo "renewed: $kept"
	exit 0
fi
status=0
abidiff "$kept" "$tmp/now" >"$tmp/report" || status=$?
[ $status != 0 ] || exit 0
cat "$tmp/report"
cat <<EOF

The library differs from lib/libportals.abi in what programs see (abidiff: $status).  If that
is intended, follow docs/abi.md, and then: tests/style/abi.sh . $lib --renew
EOF
exit 1
