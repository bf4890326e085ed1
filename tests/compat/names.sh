#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The names that headers show beside their own: names.sh source-tree c-compiler
# c++-compiler
. "${0%/*}/../style/sources.sh"
cc=$2 cxx=$3
list=tests/compat/names.txt
own='PTL[A-Z0-9]*_\w+|PORTALS3\w*_H|P3(NAL|API)\w*_H|CNOS_\w+|CRAY_\w+|IFACE_FROM_BRIDGE_AND_NALID'

for compiler in "$cc" "$cxx"; do
	command -v "$compiler" >/dev/null || {
		echo "skipped: no $compiler"
		exit 77
	}
done
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

of_kind() {
	awk -v kind="$1" '$1 == kind { print $2 }' $list
}

in_c() { # flags...; the program is read
	"$cc" -std=c99 -Iinclude -x c "$@" -
}

in_cxx() {
	"$cxx" -std=c++17 -Iinclude -x c++ "$@" -
}

# Print text and macros of the input, one of each a line.
expanded() { # language flags...
	"$@" -E -dD
}

macros() {
	awk '$1 == "#define" { sub(/\(.*/, "", $2); print $2 }' "$@" | sort -u
}

# The list has each header of the tree, and the tree each of the list.  cci.h and gasnet*.h
# are of programs that need not know Portals.
said=$(diff <(of_kind header | sort) \
	<(cd include && find . -name '*.h' ! -name cci.h ! -name 'gasnet*.h' -printf '%P\n' | sort)) ||
	complain "headers listed (<) and there (>): $said"

# They show only macros of our prefixes, and no name that programs define.
never=$(of_kind absent | paste -sd'|')\|$(of_kind hidden | paste -sd'|')
look_at() { # language header...
	local language=$1 said
	shift
	printf '#include <%s>\n' "$@" | expanded "$language" >"$tmp/text"
	macros "$tmp/text" | comm -13 "$tmp/system" - >"$tmp/added"
	[ "$(wc -l <"$tmp/added")" -gt 40 ] || complain "$language: <$*> adds nothing"
	said=$(grep -Evx "$own" "$tmp/added") && complain "$language: <$*> defines $said"
	said=$(grep -Ew "$never" "$tmp/text") && complain "$language: <$*> shows $said"
}

for language in in_cxx in_c; do
	printf '#include <%s>\n' stdint.h stddef.h | expanded $language | macros >"$tmp/system"
	look_at $language $(of_kind header)
done
for header in $(of_kind header); do
	look_at in_c "$header"
done

# Declarations that are not inside of others have no other names than these.
words='char|const|enum|extern|int|struct|typedef|unsigned|void|u?int(32|64)_t'
said=$(printf '#include <%s>\n' $(of_kind header) | in_c -E |
	awk '/^# [0-9]+ "/ { own = $3 ~ /^"include/; next } own' | tr '\n' ' ' |
	sed -E ':a; s/\{[^{}]*\}|\([^()]*\)|"[^"]*"//g; ta' | grep -oE '[A-Za-z_]\w*' | sort -u |
	grep -vxE "$words|(Ptl|ptl_|ptlx_|cnos_)\w+|p3tcp_my_nid")
[ -z "$said" ] || complain "declared: $said"

while read -r _ name macro; do
	echo '#include <portals3.h>' | expanded in_c -D"$name" | macros | grep -qx "$macro" ||
		complain "-D$name does not give $macro"
done < <(grep '^switch ' $list)

# Programs define these again, differently, before or after the header.
cat >"$tmp/again" <<'END'
#define PTL_EQ_HANDLER_NONE (NULL)
#define PTL_PID_ANY (~(ptl_pid_t)0)
#define PTL_NO_ACK_REQ (PTL_NOACK_REQ)
END
echo '#include <portals3.h>' >"$tmp/header"
cat >"$tmp/use" <<'END'
ptl_eq_handler_t handler = PTL_EQ_HANDLER_NONE;
ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
ptl_ack_req_t none = PTL_NO_ACK_REQ;
int same(void);
int same(void) { return none == PTL_NOACK_REQ; }
END
for language in in_c in_cxx; do
	cat "$tmp/header" "$tmp/again" "$tmp/use" | $language -fsyntax-only 2>"$tmp/err" ||
		complain "$language: defined after the header: $(cat "$tmp/err")"
	cat "$tmp/again" "$tmp/header" "$tmp/use" | $language -Werror -fsyntax-only 2>"$tmp/err" ||
		complain "$language: defined before the header: $(cat "$tmp/err")"
	printf '%s\n' '#define PTL_IFACE_DEFAULT 1' '#include <p3nal_utcp.h>' \
		'int its_own[PTL_IFACE_DEFAULT];' | $language -Werror -fsyntax-only ||
		complain "$language: PTL_IFACE_DEFAULT is not the program's"
done

# The names of networks come with each network's header, and mean the existing network.
for header in p3nal_tcp.h p3nal_utcp.h p3nal_ibng.h portals/nal.h p3/nal_types.h; do
	printf '%s\n' "#include <$header>" \
		'int same[PTL_IFACE_UTCP == PTL_IFACE_DEFAULT && PTL_IFACE_UTCP3 == PTL_IFACE_UTCP ? 1 : -1];' |
		in_c -Werror -fsyntax-only || complain "<$header>: PTL_IFACE_UTCP is no PTL_IFACE_DEFAULT"
done

# Old makefiles name the folder that the headers are in.
printf '#include <%s>\n' portals3.h p3nal_utcp.h p3nal_ibng.h p3rt/p3rt.h p3api/debug.h \
	p3api/types.h p3api/api.h p3api/misc.h p3/errno.h p3/nal_types.h |
	in_c -Iinclude/portals -Werror -fsyntax-only || complain "not with -Iinclude/portals"
exit $status
