#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each header inside compiles alone, and twice: private_headers.sh tree c-compiler
. "${0%/*}/sources.sh"
cc=$2
flags='-std=gnu11 -D_GNU_SOURCE -I. -Iinclude -Wall -Wextra -Wconversion
	-Wstrict-prototypes -Werror -fsyntax-only'

command -v "$cc" >/dev/null || {
	echo "skipped: no $cc"
	exit 77
}
headers=$(sources '*.h' | grep -E '^(shm|nic|lib|launcher)/')
[ -n "$headers" ] || complain "no headers in $root"
for header in $headers; do
	printf '#include "%s"\n' "$header" "$header" | "$cc" $flags -x c - ||
		complain "does not compile alone with $cc: $header"
done
exit $status
