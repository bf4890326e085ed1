#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each ordering edge of the modelled protocols has a counter-example: edges.sh tree
# So has each place in the code that cites one, by the name of its function.
. "${0%/*}/../style/sources.sh"
here=tests/promela
modelled='((LANE|LEASE|LEAVE|MBX|PARK|COLD|EVFD|IRQ)[.][0-9]+|XFER[.][567]|CCIQ[.][13]|EVQ[.]4|FAR[.]2)'

ends() { # of an edge, that are necessary
	sed -n "s/^[a-z]* \($1_[a-z0-9_]*\)\$/\1/p" $here/edges
}

# Print edge and function of citations in functions, not in comments nor structs.
cited() {
	awk -v edge="$modelled" '
		FNR == 1 || /^(struct|enum|union) [a-z0-9_]+ \{/ { f = "" }
		/^[a-z].*[a-z_0-9]\(/ {
			f = $0
			sub(/__attribute__\(\([a-z]*\)\) /, "", f)
			sub(/\(.*/, "", f)
			sub(/.*[ *]/, "", f)
		}
		f && /;.*\/\*|\{.*\/\*/ {
			line = $0; sub(/^[^;{]*[;{]/, "", line)
			while (match(line, edge)) {
				print substr(line, RSTART, RLENGTH), f
				line = substr(line, RSTART + RLENGTH)
			}
		}' $(sources '*.c' '*.h' | grep -E '^(shm|nic|lib/cci)/') | tr . _ | sort -u
}

for edge in $(grep -oE "^\| $modelled" docs/ordering.md | tr -d '| ' | tr . _); do
	[ "$(ends "$edge")" ] || complain "no model shows that $edge is necessary"
done
defined='s/^#define \([A-Z]*_[0-9]_[a-z0-9_]*\).*/\1/p'
for end in $(sed -n "$defined" $here/*.pml $here/*.inc); do
	grep -q " $end\$" $here/edges || complain "not in $here/edges: $end"
done
for end in $(sed -n 's/^[a-z].* //p' $here/edges); do
	grep -q "^#define $end " $here/*.pml $here/*.inc || complain "in no model: $end"
done
[ "$(cited)" ] || complain "the code cites no edge"
cited | while read -r edge function; do
	grep -q " ${edge}_$function\$" $here/edges && continue
	grep -q "^# $edge in $function: " $here/edges && continue
	echo "not in $here/edges: $edge, cited in $function"
done | grep . && status=1
exit $status
