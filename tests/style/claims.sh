#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each number in tests/style/claims.txt stands in its document, and its constant in the code.
. "${0%/*}/sources.sh"

# Whether the file has the words on one line, with any white space between them.
has() {
	tr -s ' \t' ' ' <"$1" | grep -qF -- "$2"
}

trim() {
	printf '%s' "$1" | sed 's/^ *//; s/ *$//'
}

seen=0
while IFS='|' read -r doc words file code; do
	case $doc in '#'* | '') continue ;; esac
	doc=$(trim "$doc") words=$(trim "$words") file=$(trim "$file") code=$(trim "$code")
	has "$doc" "$words" || complain "$doc does not say \"$words\" any more: change tests/style/claims.txt, too"
	has "$file" "$code" || complain "$doc says \"$words\", but $file does not say \"$code\": change the document"
	seen=$((seen + 1))
done <tests/style/claims.txt
[ $seen -ge 20 ] || complain "only $seen claims were compared"
exit $status
