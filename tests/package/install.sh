#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs the build into a prefix, and uses it from outside the tree: install.sh
# source-tree build-tree scratch.  77: skipped.
set -e
src=$1 build=$2 scratch=$3
prefix=$scratch/prefix
export PTL3_HUGEPAGES=off

fail() {
	echo "$*"
	exit 1
}

quietly() {
	"$@" >"$scratch/log" 2>&1 || {
		cat "$scratch/log"
		fail "failed: $*"
	}
}

rm -rf "$scratch"
mkdir -p "$scratch/cmake" "$scratch/make"
command -v pkg-config make >/dev/null || {
	echo "skipped: no make or no pkg-config"
	exit 77
}

# Each component by itself has its part, and together they are everything.
for component in runtime tools development gasnet gasnet_development libfabric; do
	quietly cmake --install "$build" --prefix "$prefix" --component $component
done
quietly cmake --install "$build" --prefix "$scratch/whole"
(cd "$prefix" && find . | sort) >"$scratch/parts"
(cd "$scratch/whole" && find . | sort) | diff - "$scratch/parts" ||
	fail "the components are not all that is installed"

for tool in yod ptlstat tracedump portals-info; do
	for file in bash-completion/completions/$tool zsh/site-functions/_yod man/man1/$tool.1; do
		[ -f "$prefix/share/$file" ] || fail "share/$file is not installed"
	done
done

# No installed file names the source or build tree.
grep -rlI -e "$build" -e "$src" "$prefix" && fail "paths of the build are installed"
for file in "$prefix"/bin/*; do
	head -c 2 "$file" | grep -q '#!' && continue
	readelf -d "$file" | grep -E 'R(UN)?PATH' | grep -v '\[$ORIGIN/\.\./lib[^:]*\]' &&
		fail "$file: a path that is not relative"
done
mv "$prefix" "$scratch/moved"
prefix=$scratch/moved
"$prefix/bin/yod" -sz 1 echo valgrind 2>&1 |
	grep -q "nodes use $prefix/.*/portals/valgrind/libportals.so" ||
	fail "the library for valgrind is not installed"
"$prefix/bin/yod" -sz 2 "$prefix/bin/portalperf" --quick --sizes 8 >/dev/null ||
	fail "the installed portalperf does not run where it was moved to"

run() {
	said=$("$prefix/bin/yod" -sz 3 "$1") || fail "$1: $said"
	[ "$said" = "libportals $version: 3 ranks" ] || fail "$1 said: $said"
	ldd "$1" | grep libportals | grep -v "$prefix" && fail "$1 found another library"
	:
}

libdir=$(dirname "$(find "$prefix" -name libportals.so)")
export PKG_CONFIG_PATH="$libdir/pkgconfig"
version=$(pkg-config --modversion portals3)
[ "$("$prefix/bin/yod" --version)" = "yod (libportals $version, Portals 3.3)" ] ||
	fail "yod and portals3.pc are of different versions"
[ -e "$libdir/libportals.so.${version%%.*}" ] || fail "no libportals.so.${version%%.*}"

quietly cmake -S "$src/tests/package/consumer" -B "$scratch/cmake" -DCMAKE_BUILD_TYPE=Release \
	-DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER_WORKS=1 -DCMAKE_CXX_COMPILER_WORKS=1
quietly cmake --build "$scratch/cmake"
quietly make -C "$scratch/make" -f "$src/tests/package/consumer/Makefile"
(cd "$scratch/make" && quietly "$src/tests/package/consumer/gasnet_configure.sh" \
	--with-gasnet="$prefix" --with-gasnet-mode=par && quietly make -f gasnet_configured.mk)
for program in "$scratch"/*/consumer_*; do
	run "$program"
	ran=$((${ran:-0} + 1))
done
[ "$ran" = 6 ] || fail "$ran consumers, not 6"

# Programs of CCI, by hand and as a rank.
for program in "$scratch/cmake/cci" "$scratch/make/cci" "$scratch/make/cci_static"; do
	for yod in "" "$prefix/bin/yod -sz 1"; do
		said=$(PTL3_DOMAIN=install$$ $yod "$program") || fail "$yod $program: $said"
		[ "$said" = "cci works" ] || fail "$yod $program said: $said"
	done
done
ldd "$scratch/make/cci" | grep -q "$prefix.*libportals" || fail "-lcci is another library"

# Programs of GASNet, in each mode, under each launcher.
for program in "$scratch"/cmake/gasnet_* "$scratch"/make/gasnet_*; do
	[ -x "$program" ] || continue
	programs="$programs $program"
	linked=$(ldd "$program" | grep -E 'lib(portals|gasnet)' | grep -v "$prefix") &&
		fail "$program found another library: $linked"
	case $program in
	*static*) ldd "$program" | grep -q 'lib\(portals\|gasnet\)' && fail "$program is not static" ;;
	esac
done
[ "$(echo $programs | wc -w)" = 15 ] || fail "not 15 programs of GASNet: $programs"
"$src/tests/package/consumer/gasnet.sh" "$prefix/bin" $programs || fail "GASNet does not run"

# The fragments and the files for pkg-config have the same names, with the same values.
for mode in seq par parsync seq-debug par-debug parsync-debug; do
	fragment=$prefix/include/portals-conduit/portals-$mode.mak
	for name in CC CXX LD DEFINES INCLUDES OPT_CFLAGS MISC_CFLAGS MISC_CPPFLAGS CFLAGS CPPFLAGS \
		CXXFLAGS CXXCPPFLAGS LDFLAGS LIBS SPAWNER_DEFAULT; do
		grep -q "^GASNET_$name =" "$fragment" || fail "$fragment: no GASNET_$name"
		by_make=$(printf 'include %s\nall:;@echo $(GASNET_%s)\n' "$fragment" $name |
			make -s -f -)
		by_pkg=$(pkg-config --variable=GASNET_$name gasnet-portals-$mode)
		[ "$(echo $by_make)" = "$(echo $by_pkg | sed "s,$libdir/pkgconfig/\(\.\./\)*\.\.,$prefix,g")" ] ||
			fail "GASNET_$name of $mode: make has '$by_make', pkg-config '$by_pkg'"
	done
done

# A wrong command line of the starter is one line that names the remedy.
refused() {
	said=$("$prefix/bin/gasnetrun_portals" "$@" 2>&1) && fail "gasnetrun_portals $*: succeeds"
	[ "$(echo "$said" | wc -l)" = 1 ] || fail "gasnetrun_portals $*: not one line: $said"
	echo "$said" | grep -q '^gasnetrun_portals: .*\(expected\|lists all\)' ||
		fail "gasnetrun_portals $*: $said"
}
refused
refused true
refused -n
refused -n 0 true
refused -n x true
refused -n 1025 true
refused -n 2
refused -n 2 -N 0 true
refused -n 2 -N
refused -n 2 -E 'A B' true
refused -n 2 -E
refused -n 2 --nonsense true
"$prefix/bin/gasnetrun_portals" -v -n 1 true 2>&1 | grep -q "^gasnetrun_portals: .*yod -sz 1 true$" ||
	fail "gasnetrun_portals -v does not print the command"

# Examples and tutorial are there as sources, and compile as their README says.
examples=$prefix/share/doc/libportals/examples
mkdir -p "$scratch/examples"
for source in "$examples"/*.c "$examples"/tutorial/*.c; do
	built=$scratch/examples/$(basename "$source" .c)
	quietly cc -std=gnu11 "$source" -o "$built" $(pkg-config --cflags --libs portals3) \
		-Wl,-rpath,"$libdir"
done
for source in "$examples"/gasnet/*.c; do
	quietly cc "$source" -o "$scratch/examples/$(basename "$source" .c)" \
		$(pkg-config --cflags --libs gasnet-portals-seq) -Wl,-rpath,"$libdir"
done
for program in hello halo 1 6 7 8 9 ring stencil table; do
	quietly "$prefix/bin/yod" -sz 3 "$scratch/examples/$program"
done
grep -q "pkg-config" "$examples/README.md" || fail "the examples' README does not say how"

# The README's function compiles.
{
	sed -n '/^```c$/,/^```$/p' "$src/README.md" | grep -v '^```'
} >"$scratch/readme.c"
grep -q PtlPut "$scratch/readme.c" || fail "the README has no program"
quietly cc -std=gnu11 -Wall -Wextra -Werror -c "$scratch/readme.c" -o "$scratch/readme.o" \
	$(pkg-config --cflags portals3)

# Documents are there, and no link in them is dead.
docs=$prefix/share/doc/libportals
for page in tutorial operation settings porting many-hosts cci gasnet completions; do
	[ -f "$docs/docs/$page.md" ] || fail "docs/$page.md is not installed"
	grep -q "docs/$page.md" "$docs/README.md" || fail "the list of documents has no $page.md"
done
links() { # print "page target" for each link
	(cd "$docs" && find . -name '*.md' | while read -r page; do
		grep -oE '\]\([^ ()]+\)' "$page" | sed -E "s,..(.*).,$page \1,; s/#.*//"
	done)
}
[ "$(links | wc -l)" -gt 40 ] || fail "too few links in the documents"
links | while read -r page to; do
	case $to in
	'' | http*) ;;
	*) [ -e "$docs/$(dirname "$page")/$to" ] || echo "$page has a dead link to $to" ;;
	esac
done >"$scratch/dead"
[ ! -s "$scratch/dead" ] || fail "$(cat "$scratch/dead")"
grep -rIl 'on one machine' "$prefix/lib" "$prefix"/share/man/man7 2>/dev/null &&
	fail "a description limits Portals to one machine"

# Old configure scripts: DIR/include, DIR/lib, and libraries that are not installed by
# default.
[ "$libdir" = "$prefix/lib" ] || ln -s "$libdir" "$prefix/lib"
old="-lp3utcp -lp3api -lp3lib -lp3rt -lpct"
configured() {
	quietly env -C "$scratch" "$src/tests/package/configure.sh" --with-portals="$prefix" "$@"
	quietly "$prefix/bin/yod" -sz 2 "$scratch/conftest"
}
configured
[ -e "$prefix/lib/libp3api.a" ] && fail "libp3api.a is installed, and nobody asked for it"
quietly cmake --install "$build" --prefix "$prefix" --component old
configured --with-portals-libs="$old"
configured --with-portals-libs="$old" --static
