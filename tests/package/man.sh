#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Manual pages: every exported function has one, with all that belongs in it, and no tool
# complains.  man.sh source-tree man-directory libportals.so.  77: skipped.
src=$1 man=$2 lib=$3
status=0

complain() {
	printf '%s\n' "$*"
	status=1
}

for tool in mandoc man nm; do
	command -v $tool >/dev/null || {
		echo "skipped: no $tool"
		exit 77
	}
done
cd "$man" || exit 1
functions=$(nm -D --defined-only "$lib" | awk '{ sub("@.*", "", $NF); print $NF }' | grep '^Ptl')
[ -n "$functions" ] || complain "no functions in $lib"

# Codes that the comment in front of the function's declaration lists
codes() {
	awk -v name="$1" '
		/^\/\*/ { codes = "" }
		/^ \* PTL_[A-Z_0-9]+\t/ { codes = codes " " $2 }
		$0 ~ "^[a-z].*[ *]" name "\\(" { print codes; exit }' "$src"/include/portals3*.h
}

for name in $functions; do
	page=man3/$name.3
	[ -f "$page" ] || {
		complain "no page: $name"
		continue
	}
	shown=$(mandoc -T ascii "$page" 2>/dev/null | col -b)
	for word in NAME SYNOPSIS "$name(" $(codes "$name"); do
		printf '%s\n' "$shown" | grep -qF "$word" || complain "$page: no $word"
	done
	grep -qE "^int $name\(" "$src"/include/*.h || continue
	printf '%s\n' "$shown" | grep -q "^RETURN VALUES" || complain "$page: no return values"
done
for page in man3/*.3; do
	printf '%s\n' "$functions" | grep -qx "$(basename "$page" .3)" ||
		complain "$page: of no function that there is"
done

for page in man1/*.1; do
	[ -f "$page" ] || continue # made by help2man, which need not be there
	grep -q '^\.SH SYNOPSIS' "$page" && grep -q -- '-help' "$page" ||
		complain "$page: no synopsis, or no options"
done

said=$(MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -l man[137]/* 2>&1 >/dev/null)
[ -z "$said" ] || complain "$said"
# Those of help2man are for the man(7) of GNU.
grep -L '^\.so' man3/* man7/* | xargs mandoc -Tlint -Wwarning || status=1
exit $status
