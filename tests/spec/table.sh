#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The statements of the checklist and their tests.
#
#	table.sh check SOURCES
#		each statement has one test, weak exactly if the statement is
#	table.sh table SOURCES RESULTS LISTED
#		the table, from the TAP results of all jobs in LISTED
#	table.sh conformance SOURCES RESULTS LISTED COMMITTED BINARY...
#		writes the table to RESULTS; a failure if a statement has no result, or a
#		bad one, or if COMMITTED is different; skipped (77) if there are no
#		results of some job, or older ones than the BINARYs
#
# SOURCES is this directory.  LISTED has a line for each job: NAME PROGRAM NODES SETTING;
# its TAP lines are in RESULTS/NAME.tap.
export LC_ALL=C
mode=$1 sources=$2 results=$3 listed=$4 committed=$5

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
		{ listed[$1]++; flag[$1] = $2 }
		END {
			for (n = 1; n <= 267; n++)
				look(n)
			for (n in count)
				if (n + 0 < 1 || n + 0 > 267)
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
		function bad(text) { print "tests/spec: " text; wrong = 1 }' \
		part=tests - part=statements "$sources/statements.txt"
}

# A line for each statement: number W file test, then for each column "ok", "skip",
# "weak" (not ok, but weak), "FAIL", or "none".
outcomes() {
	{
		echo "@columns"
		awk '{print $1, $2, ($3 == 4 ? "four" : $4)}' "$listed"
		echo "@tests"
		tests
		echo "@results"
		while read -r name _; do
			[ -f "$results/$name.tap" ] && sed "s/^/$name /" "$results/$name.tap"
		done <"$listed"
	} | awk '
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
			split("lease dedicated cma_off four", name, " ")
			for (i = 1; i <= count; i++) {
				n = numbers[i]
				program = file[n]
				sub(/\.c$/, "", program)
				line = n " " weak[n] " " file[n] " " test[n]
				for (k = 1; k <= 4; k++)
					line = line " " word(n, name[k], jobs[program, name[k]])
				print line
			}
		}
		function word(n, c, want) {
			if (hard[n, c])
				return "FAIL"
			if (!want || seen[n, c] < want)
				return "none"
			if (soft[n, c])
				return "weak"
			return skips[n, c] == want ? "skip" : skips[n, c] ? "some" : "ok"
		}'
}

table() {
	cat <<'END'
# Conformance

This table shows that libportals does what the Portals 3.3 document says. A checklist divides the
document into 267 statements; each statement is one test in `tests/spec`. Names of return codes,
options and events are shortened: SEGV is `PTL_SEGV`, UNLINK is `PTL_UNLINK` or `PTL_EVENT_UNLINK`.

The columns are settings: `PTL3_MODE=lease`, `PTL3_MODE=dedicated` and `PTL3_CMA=off`, each in jobs
of one node (which sends to itself) and of two nodes, then jobs of four nodes with default settings.
*ok (2)* marks a test that needs two nodes, and was left out in jobs of one. A W marks a statement
that the document supports weakly only: its test may fail.

Statement 129 sets no time. A conditional update returns NO_UPDATE until the operation on the
descriptor has ended; while that operation waits for a process of the job that has not called
`PtlNIInit`, this takes up to 300 s, or as long as PTL3_ABSENT says. The test `mp_life*`
checks this.

`tests/spec/table.sh` writes the table from the results of `ctest -L spec`. The test
`spec_conformance` fails if the table is out of date, or if a test without W fails.

| no. | W | statement | test | lease | dedicated | no CMA | 4 nodes |
|--:|:-:|---|---|---|---|---|---|
END
	outcomes | awk '
		part == "outcomes" {
			for (i = 5; i <= 8; i++)
				cell[$1] = cell[$1] " | " said($i)
			where[$1] = $3 ": " $4
			next
		}
		/^#/ { next }
		{
			text = $0
			sub(/^[0-9]+ [-W] /, "", text)
			print "| " $1 " | " ($2 == "W" ? "W" : "") " | " text " | " \
				where[$1] cell[$1] " |"
		}
		function said(word) {
			if (word == "some")
				return "ok (2)"
			if (word == "weak")
				return "not ok (W)"
			return word == "none" ? "" : word
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

conformance() {
	local name status=0
	while read -r name _; do
		[ -f "$results/$name.tap" ] || skip "no results of $name"
		is_fresh "$results/$name.tap" "$@" ||
			skip "the results of $name are older than what it tests"
	done <"$listed"
	table >"$results/conformance.md" || exit 1
	outcomes | awk '
		{ for (i = 5; i <= 8; i++) if ($i == "FAIL" || $i == "none" || $i == "skip") {
			print "statement " $1 " (" $3 ": " $4 "): " $5, $6, $7, $8
			wrong = 1
			next
		} }
		END { if (NR != 267) { print NR " rows, not 267"; wrong = 1 } exit wrong }' ||
		status=1
	if ! diff -u "$committed" "$results/conformance.md"; then
		echo "out of date: cp $results/conformance.md $committed"
		status=1
	fi
	exit $status
}

case $mode in
check) check ;;
table) table ;;
conformance) shift 5 && conformance "$@" ;;
*)
	echo "unknown: $mode" >&2
	exit 2
	;;
esac
