#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Manual pages: every exported function has one, with every return code of its header, and
# no tool complains.  man.sh source-tree man-directory libportals.so.  77: skipped.
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

# Functions that programs can call, and those that have a page
exported() {
	nm -D --defined-only "$lib" | awk '{ sub("@.*", "", $NF); print $NF }' | grep -E '^(Ptl|cnos_|p3tcp_)'
}
[ "$(exported | wc -l)" -gt 50 ] || complain "too few functions in $lib"
said=$(diff <(exported | sort) <(ls man3 | sed 's/\.3$//' | sort)) ||
	complain "functions (<) and pages (>): $said"

# "function code": what the comments in front of the declarations list ...
promised() {
	awk '
		/^\/\*/ { codes = "" }
		/^ \* PTL_[A-Z_0-9]+\t/ { codes = codes " " $2 }
		/^(int|void|unsigned int|const char) .*(Ptl|cnos_|p3tcp_)[A-Za-z_]+\(/ {
			match($0, /(Ptl|cnos_|p3tcp_)[A-Za-z_]+\(/)
			name = substr($0, RSTART, RLENGTH - 1)
			if (/^int/ && name ~ /^Ptl/)
				print name, "PTL_OK"
			n = split(codes, code, " ")
			for (i = 1; i <= n; i++)
				print name, code[i]
		}' "$src"/include/*.h | sort -u
}

# ... and what the pages do
written() {
	awk '
		FNR == 1 { split("", names) }
		/^\.Fn / { names[$2] }
		/^\.It Dv / { for (name in names) print name, $3 }' man3/*.3 | sort -u
}
[ "$(promised | wc -l)" -gt 200 ] || complain "too few return codes in the headers"
said=$(comm -23 <(promised) <(written))
[ -z "$said" ] || complain "not in the pages: $said"
said=$(grep -L -e '^\.Sh SYNOPSIS' -e '^\.so' man3/*)
[ -z "$said" ] || complain "no synopsis: $said"

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
