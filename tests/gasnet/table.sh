#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The statements of the checklist of GASNet and their tests.
#
#	table.sh check SOURCES
#		each statement has one test, weak exactly if the statement is
#	table.sh table SOURCES RESULTS LISTED
#		the table, from the TAP results of all jobs in LISTED
#	table.sh judge SOURCES RESULTS LISTED
#		a failure if a statement has no good result, or a bad one
#	table.sh conformance SOURCES RESULTS LISTED COMMITTED BINARY...
#		writes the table to RESULTS; a failure if a statement has no good result,
#		or a bad one, or if COMMITTED is different; skipped (77) if there are no
#		results of some job, or older ones than the BINARYs
#
# SOURCES is this directory.  LISTED has a line for each job: NAME PROGRAM COLUMN; its TAP
# lines are in RESULTS/NAME.tap.
export LC_ALL=C
mode=$1 sources=$2 results=$3 listed=$4 committed=$5
columns="seq parsync par dedicated faulty debug"

# statement weak file test
tests() {
	(cd "$sources" && awk '
		match($0, /^(WEAK_)?STATEMENT\([0-9]+, *[a-z0-9_]+\)/) {
			split(substr($0, RSTART, RLENGTH), part, /[(), ]+/)
			print part[2], (part[1] == "STATEMENT" ? "-" : "W"), FILENAME,
				part[3]
		}' *.c | sort -n)
}

check() {
	tests | awk '
		part == "tests" { count[$1]++; weak[$1] = $2; file[$1] = file[$1] " " $3; next }
		/^#/ { next }
		{ listed[$1]++; flag[$1] = $2 == "W" ? "W" : "-" }
		END {
			for (n = 1; n <= 167; n++)
				look(n)
			for (n in count)
				if (n + 0 < 1 || n + 0 > 167)
					bad("there is no statement " n ":" file[n])
			exit wrong
		}
		function look(n) {
			if (listed[n] != 1)
				bad("statement " n " is " listed[n] + 0 " times in statements.txt")
			if (count[n] != 1)
				bad("statement " n " has " count[n] + 0 " tests" file[n])
			if (listed[n] && count[n] && weak[n] != flag[n])
				bad("statement " n " is " flag[n] " in statements.txt, " \
					weak[n] " in" file[n])
		}
		function bad(text) { print "tests/gasnet: " text; wrong = 1 }' \
		part=tests - part=statements "$sources/statements.txt"
}

# A line for each statement: number W file test, then for each column "ok", "skip",
# "weak" (not ok, but weak), "FAIL", "none" (a result is missing) or "-" (no job).
outcomes() {
	{
		echo "@columns"
		awk '{print $1, $2, $3}' "$listed"
		echo "@tests"
		tests
		echo "@results"
		while read -r name _; do
			[ -f "$results/$name.tap" ] && sed "s/^/$name /" "$results/$name.tap"
		done <"$listed"
	} | awk -v columns="$columns" '
		/^@/ { part = $1; next }
		part == "@columns" {
			column[$1] = $3
			jobs[$2, $3]++
			next
		}
		part == "@tests" {
			n = $1
			weak[n] = $2
			file[n] = $3
			test[n] = $4
			numbers[++count] = n
			next
		}
		$2 == "ok" || ($2 == "not" && $3 == "ok") {
			n = $2 == "ok" ? $3 : $4
			c = column[$1]
			seen[n, c]++
			if ($2 == "not" && weak[n] == "W")
				soft[n, c]++
			else if ($2 == "not")
				hard[n, c]++
			else if ($0 ~ / # SKIP /)
				skips[n, c]++
		}
		END {
			k_n = split(columns, name, " ")
			for (i = 1; i <= count; i++) {
				n = numbers[i]
				program = file[n]
				sub(/\.c$/, "", program)
				line = n " " weak[n] " " file[n] " " test[n]
				for (k = 1; k <= k_n; k++)
					line = line " " word(n, name[k], jobs[program, name[k]])
				print line
			}
		}
		function word(n, c, want) {
			if (hard[n, c])
				return "FAIL"
			if (!want)
				return "-"
			if (seen[n, c] < want)
				return "none"
			if (soft[n, c])
				return "weak"
			return skips[n, c] == want ? "skip" : "ok"
		}'
}

table() {
	cat <<'END'
# Conformance of GASNet

This table shows that GASNet over libportals does what specification 1.8 says. A checklist divides
the specification into 167 statements, the last twelve about the conduit; each statement is one
test in `tests/gasnet`. Names of return codes are shortened: BAD_ARG is `GASNET_ERR_BAD_ARG`.

The columns are settings: the libraries for GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR, then that for
GASNET_PAR with `PTL3_MODE=dedicated`, with faults on the wire, and with checks (GASNET_DEBUG). In
each of them jobs of several sizes run: of 1, 2, 3 and 8 nodes in the first three, of 2 and 3 in the
others. *skip* marks a statement of threads or of checks where there are none. A W marks a statement
with weak evidence: its test may fail.

`tests/gasnet/table.sh` writes the table from the results of `ctest -L gasnet` in a build with
`P3_GASNET_WHOLE=ON`. The test `gasnet_conformance` fails if the table is out of date, or if a test
without W fails; in other builds it compares the settings that run there.

| no. | W | statement | test | SEQ | PARSYNC | PAR | dedicated | faults | debug |
|--:|:-:|---|---|---|---|---|---|---|---|
END
	outcomes | awk '
		part == "outcomes" {
			for (i = 5; i <= NF; i++)
				cell[$1] = cell[$1] " | " said($i)
			where[$1] = $3 ": " $4
			next
		}
		/^#/ { next }
		{
			text = $0
			sub(/^[0-9]+ [-Wdp] /, "", text)
			gsub(/\|/, "\\|", text)
			print "| GN." $1 " | " ($2 == "W" ? "W" : "") " | " text " | " \
				where[$1] cell[$1] " |"
		}
		function said(word) {
			if (word == "weak")
				return "not ok (W)"
			return word == "-" ? "" : word
		}' part=outcomes - part=statements "$sources/statements.txt"
}

skip() {
	echo "skipped: $*"
	exit 77
}

is_fresh() { # TAP-file binary...
	local tap=$1 binary
	shift
	for binary; do
		[ "$tap" -nt "$binary" ] || return 1
	done
}

# Each statement that has jobs here has a good result in some column, and a bad one in none.
judge() {
	outcomes | awk '
		{
			good = bad = ran = ""
			for (i = 5; i <= NF; i++) {
				ran = ran ($i == "-" ? "" : " " $i)
				good = good ($i == "ok" ? " ok" : "")
				bad = bad ($i == "FAIL" || $i == "none" ? " " $i : "")
			}
			if (bad != "" || (ran != "" && good == "" && $2 != "W")) {
				print "statement " $0
				wrong = 1
			}
		}
		END { if (NR != 167) { print NR " rows, not 167"; wrong = 1 } exit wrong }'
}

# Print the second table with the first one's cells where it has none, for settings that
# run only with P3_GASNET_WHOLE, and in rows of weak statements, whose results vary.
keep_cells() { # committed new
	awk -F '|' -v OFS='|' '
		!/^[|] GN[.]/ { if (NR != FNR) print; next }
		NR == FNR { for (i = 1; i <= 6; i++) old[$2, i] = $(NF - i); next }
		{
			for (i = 1; i <= 6; i++)
				if ((($2, i) in old) && ($(NF - i) ~ /^ *$/ || $3 ~ /W/))
					$(NF - i) = old[$2, i]
			print
		}' "$1" "$2"
}

conformance() {
	local name status=0
	while read -r name _; do
		[ -f "$results/$name.tap" ] || skip "no results of $name"
		is_fresh "$results/$name.tap" "$@" ||
			skip "the results of $name are older than what it tests"
	done <"$listed"
	table >"$results/conformance-gasnet.part" || exit 1
	[ -f "$committed" ] || committed=$results/conformance-gasnet.part
	keep_cells "$committed" "$results/conformance-gasnet.part" \
		>"$results/conformance-gasnet.md"
	judge || status=1
	if ! diff -u "$committed" "$results/conformance-gasnet.md"; then
		echo "out of date: cp $results/conformance-gasnet.md $committed"
		status=1
	fi
	exit $status
}

case $mode in
check) check ;;
table) table ;;
judge) judge ;;
conformance) shift 5 && conformance "$@" ;;
*)
	echo "unknown: $mode" >&2
	exit 2
	;;
esac
