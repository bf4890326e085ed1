#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Manual pages: every exported function has one, with every return code of its header,
# and no tool complains.  man.sh source-tree man-directory libportals.so.  77: skipped.
src=$1 man=$2 lib=$3
status=0

complain() {
	printf '%s\n' "$*"
	status=1
}

for tool in groff mandoc man nm; do
	command -v $tool >/dev/null || {
		echo "skipped: no $tool"
		exit 77
	}
done
cd "$man" || exit 1

# Functions that programs can call, and those that have a page
exported() {
	nm -D --defined-only "$lib" | awk '{ sub("@.*", "", $NF); print $NF }' | grep -E '^(Ptl|cnos_|p3tcp_|cci_)'
}
[ "$(exported | wc -l)" -gt 50 ] || complain "too few functions in $lib"
types='ptl_event_t ptl_md_t ptl_ni_limits_t cci_event_type_str' # and what is inline
pages() {
	ls man3 | sed 's/\.3$//' | sort
}
said=$(diff <({ exported; printf '%s\n' $types; } | sort) <(pages | grep -iv '^gasnett\?_')) ||
	complain "functions (<) and pages (>): $said"

# GASNet: functions and macros with arguments in its headers.  Macros for the compiler, and
# those without effect, need no page.
gasnet_names() {
	cd "$src/include" &&
		sed -nE -e 's/^#define ((gasnett?|GASNETT?)_[A-Za-z0-9_]+)\(.*/\1/p' \
			-e 's/^#define (gasnet_(AM|init|attach)[A-Za-z0-9]*) .*/\1/p' \
			-e '/^[a-z]/s/.*[ *](gasnett?_[A-Za-z0-9_]+)\(.*/\1/p' gasnet*.h |
		grep -vE '^(GASNETT_(INLINE|NORETURNP|FORMAT_PRINTF|IDENT|TRACE_.*|STATS_.*)|gasnett_(constant_p|debug_.*|freeze.*|.*_assert.*|(strong)?atomic[36].*|strongatomic.*))$' |
		sort -u
	printf 'gasnett_atomic_%s\n' add compare_and_swap decrement decrement_and_test increment \
		read set subtract swap # which a macro makes
	echo gasnett_fatalerror
}
[ "$(gasnet_names | wc -l)" -gt 250 ] || complain "too few names in gasnet*.h"
said=$(diff <(gasnet_names | sort) <(pages | grep -i '^gasnett\?_')) ||
	complain "names of GASNet (<) and pages (>): $said"
for name in gasnet_AMRequestMedium0 gasnet_AMReplyLong16 gasnet_put_nb_bulk gasnett_atomic_add; do
	[ -f "man3/$name.3" ] || complain "$name has no page"
done
said=$(grep -L -e '^\.so' -e '^\.Sh THREADS AND BLOCKING' man3/gasnet* man3/GASNET*)
[ -z "$said" ] || complain "pages of GASNet do not say who may call, and what blocks: $said"
settings=$(sed -n '/^## Settings/,/^## Statistics/p' "$src/docs/gasnet.md" | grep -o '^| `[^|]*' | grep -o 'GASNET_[A-Z_]*')
for name in $settings; do
	grep -q "^\.It Ev.*\b$name\b" man7/gasnet.7 || complain "gasnet(7): no $name"
done

# Print "function code" for the codes in comments in front of declarations ...
promised() {
	awk '
		/^\/\*/ { codes = "" }
		/^ \* (PTL|CCI|GASNET)_[A-Z_0-9]+\t/ { codes = codes " " $2 }
		{ sub(/^CCI_DECLSPEC /, "") }
		/^(int|void|unsigned int|const char) .*(Ptl|cnos_|p3tcp_|cci_|gasnet_)[A-Za-z_]+\(/ {
			match($0, /(Ptl|cnos_|p3tcp_|cci_|gasnet_)[A-Za-z_]+\(/)
			name = substr($0, RSTART, RLENGTH - 1)
			if (/^int/ && name ~ /^Ptl/)
				print name, "PTL_OK"
			if (/^int/ && name ~ /^cci_/) {
				print name, "CCI_SUCCESS"
				print name, "CCI_ERROR"
			}
			n = split(codes, code, " ")
			for (i = 1; i <= n; i++)
				print name, code[i]
		}' "$src"/include/*.h | sort -u
}

# ... and for those in the pages.
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

# Options, events and registers: explained in the page of their type, and where they are used.
constants() { # prefix
	grep -oE "^(#define |	)$1[A-Z_0-9]+" "$src/include/portals3.h" | grep -oE "$1.*" | sort -u
}
explained() { # page
	awk '/^\.It/ { gsub(/"/, ""); name = $NF; next } name ~ /^PTL_/ && /^[^.]/ { print name; name = "" }' \
		"man3/$1.3" | sort -u
}
of_others='PTL_MD_(THRESH_INF|FLAG_AUTO|LUSTRE|LOCAL|PHYS|INVALID|IN_USE|NO_UPDATE|ILLEGAL)'
[ "$(constants PTL_EVENT_ | wc -l)" = 12 ] || complain "not 12 kinds of events in portals3.h"
for pair in PTL_MD_:ptl_md_t PTL_EVENT_:ptl_event_t PTL_SR_:PtlNIStatus; do
	said=$(comm -23 <(constants "${pair%:*}" | grep -vE "$of_others|PTL_SR_INDEX_INVALID") \
		<(explained "${pair#*:}"))
	[ -z "$said" ] || complain "not explained in ${pair#*:}(3): $said"
done
for pair in PtlPut:PTL_EVENT_SEND_END PtlPut:PTL_EVENT_ACK PtlMDAttach:PTL_MD_MANAGE_REMOTE \
	PtlGet:PTL_EVENT_REPLY_END PtlMDBind:PTL_MD_OP_PUT; do
	explained "${pair%:*}" | grep -qx "${pair#*:}" || complain "${pair%:*}(3) does not explain ${pair#*:}"
done
for member in $(sed -n '/^	int max_mes/,/^}/s/^	int \(.*\);$/\1/p' "$src/include/portals3.h"); do
	grep -q "^\.It \"$member\"" man3/ptl_ni_limits_t.3 || complain "ptl_ni_limits_t(3): no $member"
done

# Settings have a meaning and a default, tools refer to each other, calls are shown in use.
settings=$(grep -c '^| `PTL3_' "$src/docs/settings.md")
[ "$(sed -n '/^\.Sh ENVIRONMENT/,/^\.Sh EXAMPLES/p' man7/portals3.7 | grep -cE '^[^.].*\.$')" -ge \
	$((2 * settings)) ] || complain "portals3(7): not each setting has a meaning and a default"
[ "$(grep -c '^Default: .' man7/portals3.7)" = "$settings" ] || complain "portals3(7): defaults are missing"
for page in man1/*.1; do
	[ -f "$page" ] || continue
	tool=$(basename "$page" .1)
	for other in man7/portals3.7 man1/*.1; do
		[ "$other" = "$page" ] || sed -n '/^\.S[hH] "*SEE ALSO/,$p' "$other" | grep -q "\b$tool\b" ||
			complain "$other does not refer to $tool"
	done
done
[ "$(grep -l '^\.Sh EXAMPLES' man3/* | wc -l)" -ge 20 ] || complain "too few pages have an example"
for name in PtlPut PtlGet PtlMDAttach PtlMDBind PtlEQWait PtlNIInit ptl_md_t ptl_event_t; do
	grep -q '^\.Sh EXAMPLES' "man3/$name.3" || complain "$name(3) has no example"
done
for page in portals3 cci gasnet; do
	sed -n '/^\.Sh COMPILING/,/^\.Sh [^C]/p' man7/$page.7 | grep -q '^cc .*pkg-config --cflags' ||
		complain "$page(7) does not tell how to compile"
done
grep -q '^\.Sh ORDER OF COMPLETIONS' man7/portals3.7 || complain "portals3(7) does not tell the order of events"
grep -q 'int main' man7/portals3.7 || complain "portals3(7) has no whole program"

for page in man1/*.1; do
	[ -f "$page" ] || continue # made by help2man, which need not be there
	grep -q '^\.SH SYNOPSIS' "$page" && grep -q -- '-help' "$page" ||
		complain "$page: no synopsis, or no options"
done

# Settings stand as a shell takes them.
for page in portals3 cci; do
	man -l man7/$page.7 | grep -q ' PKG_CONFIG_PATH=DIR/lib/pkgconfig ' || complain "$page(7): no setting of PKG_CONFIG_PATH"
done

# Each reference of a page names a page that exists, and SEE ALSO names the calls of the comment.
references() { # print "page reference" for each
	grep -HoE '^\.Xr [^ ]+ [0-9]|^\.BR [^ ]+ \([0-9]\)' man[137]/* |
		sed -E 's/:\.(Xr|BR) ([^ ]+) \(?([0-9])\)?/ man\3\/\2.\3/'
}
[ "$(references | wc -l)" -gt 500 ] || complain "too few references"
said=$(references | while read -r page other; do [ -f "$other" ] || echo "$page refers to $other"; done)
[ -z "$said" ] || complain "$said"
for pair in PtlMEMDPost:PtlMDUpdate PtlEQGet:PtlEQPoll cci_connect:cci_accept gasnet_AMPoll:gasnet_attach; do
	grep -qs "^\.Xr ${pair#*:} 3" "man3/${pair%:*}.3" || complain "${pair%:*}(3) does not refer to ${pair#*:}(3)"
done

# Pages that are further names of others lead to these.
pages=$(grep -L '^\.so' man[137]/*)
said=$(comm -23 <(sed -n 's/^\.so //p' man[137]/* | sort -u) <(printf '%s\n' "$pages" | sort))
[ -z "$said" ] || complain "led to, but no page with a text: $said"
# As man --warnings, which starts groff for each page.
# shellcheck disable=SC2086
said=$(LC_ALL=C.UTF-8 groff -Tutf8 -k -t -mandoc -w mac -rLL=80n -z $pages 2>&1)
[ -z "$said" ] || complain "$said"
# Those of help2man are for the man(7) of GNU.
grep -L '^\.so' man3/* man7/* | xargs mandoc -Tlint -Wwarning || status=1
exit $status
