#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A shared library of GASNet exports the functions and objects that its headers declare, the
# mode's gasnet_init and gasnet_attach, its link words, and no other name:
# gasnet_symbols.sh include-directory library.so...
include=${1:?include directory}
shift
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

# The headers' own lines, without comments and without bodies of inline functions.
for header in gasnet.h gasnet_coll.h gasnet_tools.h; do
	echo "#include <$header>"
done | cc -E -DGASNET_SEQ -I "$include" -x c - |
	awk '/^# / { ours = /gasnet[a-z_]*\.h"/; next } ours' | tr '\n' ' ' |
	sed 's/__attribute__ *(([^()]*\(([^()]*)\)*))//g; s/[;{}]/&\n/g' |
	grep -v -e '^ *typedef' -e static -e ' return ' |
	sed -nE -e 's/^.*[ *](gasne[a-z]*_[A-Za-z0-9_]+) *\(.*;$/\1/p' \
		-e 's/^ *extern [^(]*[ *](gasne[a-z]*_[A-Za-z0-9_]+) *;$/\1/p' |
	grep -vE '^gasnetc_(init|attach)_|^gasneti_link' | sort -u >"$tmp/declared"
[ "$(wc -l <"$tmp/declared")" -gt 100 ] ||
	complain "only $(wc -l <"$tmp/declared") names are declared in $include"

for lib; do
	mode=$(basename "$lib" | sed 's/^libgasnet-portals-//; s/\.so.*//; s/-debug$//' | tr a-z A-Z)
	nm -D --defined-only "$lib" | awk '{ sub("@.*", "", $NF); print $NF }' | sort >"$tmp/found"
	grep -vxE "gasnetc_(init|attach)_$mode|gasneti_linkconfig_idiotcheck_[A-Z_0-9]+" \
		"$tmp/found" >"$tmp/others"
	[ "$(comm -12 "$tmp/found" "$tmp/others" | wc -l)" -eq $(($(wc -l <"$tmp/found") - 6)) ] ||
		complain "$lib: not the mode's two functions and four link words"
	for name in $(comm -23 "$tmp/others" "$tmp/declared"); do
		complain "$lib: exported, but not in a public header: $name"
	done
	for name in $(comm -13 "$tmp/others" "$tmp/declared"); do
		complain "$lib: declared, but not exported: $name"
	done
done
exit $status
