#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each header inside compiles alone, and twice: private_headers.sh tree c-compiler
. "${0%/*}/sources.sh"
cc=$2
flags='-std=gnu11 -D_GNU_SOURCE -DGASNET_SEQ -I. -Iinclude -Wall -Wextra -Wconversion
	-Wstrict-prototypes -Werror -fsyntax-only'

command -v "$cc" >/dev/null || {
	echo "skipped: no $cc"
	exit 77
}
headers=$(sources '*.h' | grep -E '^(shm|nic|lib|launcher)/')
[ -n "$headers" ] || complain "no headers in $root"
# One compiler for each CPU: each header is a compilation of its own.
export cc flags
echo "$headers" | xargs -P "$(nproc)" -I '{}' sh -c '
	printf "#include \"%s\"\n" "$1" "$1" | "$cc" $flags -x c - ||
		{ echo "does not compile alone with $cc: $1" >&2; exit 1; }' sh '{}' || status=1
exit $status
