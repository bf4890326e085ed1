#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each public header compiles alone, and twice, as C99, C11 and C++17, under its own name
# and under the names of other Portals: public_headers.sh tree c-compiler c++-compiler
. "${0%/*}/sources.sh"
cc=$2 cxx=$3
strict='-Wall -Wextra -pedantic-errors -Werror -fsyntax-only'

for compiler in "$cc" "$cxx"; do
	command -v "$compiler" >/dev/null || {
		echo "skipped: no $compiler"
		exit 77
	}
done
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/portals" "$tmp/p3rt"
cp include/*.h "$tmp"
cp include/portals3.h "$tmp/portals/portals3.h"
cp include/portals3_runtime.h "$tmp/p3rt/p3rt.h"

# compile header dir command...
compile() {
	header=$1
	shift
	printf '#include <%s>\n' "$header" "$header" | "$@" - ||
		complain "does not compile alone: <$header> with $*"
}

each_language() {
	compile "$1" "$cc" $strict -Wstrict-prototypes -std=c99 -x c -I "$tmp"
	compile "$1" "$cc" $strict -Wstrict-prototypes -std=c11 -x c -I "$tmp"
	compile "$1" "$cxx" $strict -std=c++17 -x c++ -I "$tmp"
}

for header in portals3.h portals3_runtime.h portals3x.h portals/portals3.h p3rt/p3rt.h; do
	each_language "$header"
done

# Both names in one program are one header.
printf '#include <%s>\n' portals/portals3.h p3rt/p3rt.h portals3.h |
	"$cc" $strict -std=c99 -x c -I "$tmp" - ||
	complain "two names of portals3.h clash"
exit $status
