#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The library exports the names that its linker map lists and no other, and the map has no
# patterns: exported_symbols.sh libportals.so libportals.map
lib=${1:?library} map=${2:?map}

command -v nm >/dev/null || {
	echo "skipped: no nm"
	exit 77
}
status=0
complain() {
	echo "$*"
	status=1
}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C

names=$(nm -D --defined-only "$lib") || exit 1
printf '%s\n' "$names" | awk '$2 != "A" { sub("@.*", "", $NF); print $NF }' | sort >"$tmp/found"
sed -n '/global:/,/local:\|}/s/^[[:space:]]*\([^:;}]*\);.*/\1/p' "$map" | sort >"$tmp/listed"
for pattern in $(grep '[*?[]' "$tmp/listed"); do
	complain "$map: the pattern $pattern exports names that nobody has listed"
done
for name in $(uniq -d "$tmp/listed"); do
	complain "$map: $name is listed twice"
done
for name in $(comm -23 "$tmp/found" "$tmp/listed"); do
	complain "exported, but not in the map: $name"
done
for name in $(comm -13 "$tmp/found" "$tmp/listed"); do
	complain "in the map, but not exported: $name"
done
for name in $(grep -Evx 'Ptl[A-Z][A-Za-z]*|ptl_err_str|ptl_event_str|cnos_[a-z_]+|cci_[a-z_]+|p3tcp_my_nid' \
	"$tmp/listed"); do
	complain "in the map, but no name of the API: $name"
done
[ "$(wc -l <"$tmp/found")" -gt 50 ] || complain "only $(wc -l <"$tmp/found") names are exported"
exit $status
