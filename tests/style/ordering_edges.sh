#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each ordering edge that the code names (LANE.1) is explained in docs/ordering.md, and
# each that is explained there is named in the code.
. "${0%/*}/sources.sh"
doc=docs/ordering.md
name='\b[A-Z]{2,}\.[0-9]+\b'
code=$(sources '*.c' '*.h' | grep -E '^(shm|nic|lib|launcher)/')
cited() {
	grep -hoE "$name" $code | sort -u
}

[ -f $doc ] || complain "there is no $doc"
[ -n "$(cited)" ] || complain "the code names no edge"
for edge in $(cited); do
	grep -qE "\b${edge%.*}\.${edge#*.}\b" $doc 2>/dev/null ||
		complain "not explained in $doc: $edge, named in" \
			$(grep -lE "\b${edge%.*}\.${edge#*.}\b" $code)
done
for edge in $(grep -oE "$name" $doc 2>/dev/null | sort -u); do
	cited | grep -qx "${edge%.*}\.${edge#*.}" ||
		complain "explained in $doc, but named nowhere: $edge"
done
exit $status
