#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# C files are as clang-format leaves them.
. "${0%/*}/sources.sh"
format=${CLANG_FORMAT:-clang-format}

command -v "$format" >/dev/null || {
	echo "skipped: no $format"
	exit 77
}
for file in $(sources '*.c' '*.h' | xargs -P 4 -n 16 "$format" --dry-run -Werror 2>&1 |
	sed -nE 's/^([^: ]+):[0-9]+:[0-9]+: error:.*/\1/p' | sort -u); do
	complain "$file: differs from $format in" \
		"$("$format" "$file" | diff "$file" - | grep -c '^[<0-9]') lines"
done
exit $status
