#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The README's first command builds all that a user needs, without C++ and without
# tests; the second adds the tests in the same folder: setup.sh source-tree scratch
src=$1 scratch=$2.$$
status=0

complain() {
	printf '%s\n' "$*"
	status=1
}

configure() { # preset, C++ compiler
	rm -rf "$scratch"
	(cd "$src" && CXX=$2 cmake --preset "$1" -B "$scratch") >"$scratch.log" 2>&1 ||
		complain "cmake --preset $1 with CXX=$2 fails: $(cat "$scratch.log")"
}

made() { # what the build in the scratch folder makes
	ninja -C "$scratch" -t targets all | sed 's/: .*//'
}

configure release /bin/false
for file in libportals.so bin/yod bin/ptlstat bin/tracedump bin/portalperf bin/hello bin/filecast; do
	made | grep -q "^$file" || complain "the first command does not make $file"
done
tests=$(made | grep '^tests/' | head -3)
[ -z "$tests" ] || complain "the first command makes tests: $tests"
configure test "${CXX:-c++}"
made | grep -q '^tests/unit/' || complain "the second command makes no tests"

cd "$src" || exit 1
grep -A5 '"name": "test"' CMakePresets.json | grep -q 'sourceDir}/build/release"' ||
	complain "the tests are not built in the folder of the release"
for package in $(sed -n '/^want=/,/"$/p' .ci/packages | tr '"' ' '); do
	case $package in
	g++ | clang | clang-format | valgrind | strace | gdb | spin | libcmocka-dev)
		complain "the first command installs $package, which only tests need" ;;
	esac
done
rm -rf "$scratch" "$scratch.log"
exit $status
