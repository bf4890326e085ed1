#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each public header compiles alone, and twice, as C99, C11 and C++17, also
# those under the names of other Portals; gasnet.h wants a mode: public_headers.sh tree c-compiler c++-compiler
. "${0%/*}/sources.sh"
cc=$2 cxx=$3
strict='-Wall -Wextra -pedantic-errors -Werror -fsyntax-only -DGASNET_SEQ'

for compiler in "$cc" "$cxx"; do
	command -v "$compiler" >/dev/null || {
		echo "skipped: no $compiler"
		exit 77
	}
done
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cp -R include/. "$tmp"
headers=$(cd include && find . -name '*.h' | sed 's,^\./,,' | sort)
[ "$(echo "$headers" | wc -l)" -gt 3 ] || complain "too few headers in $root"

# compile header dir command...
compile() {
	header=$1
	shift
	{ printf '#include <%s>\n' "$header" "$header" && echo 'extern int any;'; } | "$@" - ||
		complain "does not compile alone: <$header> with $*"
}

each_language() {
	compile "$1" "$cc" $strict -Wstrict-prototypes -std=c99 -x c -I "$tmp"
	compile "$1" "$cc" $strict -Wstrict-prototypes -std=c11 -x c -I "$tmp"
	compile "$1" "$cxx" $strict -std=c++17 -x c++ -I "$tmp"
}

for header in $headers; do
	each_language "$header"
done

# Both names in one program are one header.
printf '#include <%s>\n' portals/portals3.h p3rt/p3rt.h portals3.h |
	"$cc" $strict -std=c99 -x c -I "$tmp" - ||
	complain "two names of portals3.h clash"
exit $status
