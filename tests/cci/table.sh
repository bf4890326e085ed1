#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The statements of the checklist of CCI and their tests.
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
# SOURCES is this directory.  LISTED has a line for each job: NAME PROGRAM SETTING; its TAP
# lines are in RESULTS/NAME.tap.
export LC_ALL=C
mode=$1 sources=$2 results=$3 listed=$4 committed=$5

# statement weak file test
tests() {
	(cd "$sources" && awk '
		match($0, /^STATEMENT\([0-9]+, *[a-z0-9_]+,.*\)/) {
			split(substr($0, RSTART, RLENGTH), part, /[(), ]+/)
			print part[2], ($0 ~ /WEAK/ ? "W" : "-"), FILENAME, part[3]
		}' *.c | sort -n)
}

check() {
	tests | awk '
		part == "tests" { count[$1]++; weak[$1] = $2; file[$1] = file[$1] " " $3; next }
		/^#/ { next }
		{ listed[$1]++; flag[$1] = $2 }
		END {
			for (n = 1; n <= 138; n++)
				look(n)
			for (n in count)
				if (n + 0 < 1 || n + 0 > 138)
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
		function bad(text) { print "tests/cci: " text; wrong = 1 }' \
		part=tests - part=statements "$sources/statements.txt"
}

# A line for each statement: number W file test, then for each column "ok", "skip",
# "weak" (not ok, but weak), "FAIL", or "none".
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
			split("lease dedicated one_cpu faulty by_hand", name, " ")
			for (i = 1; i <= count; i++) {
				n = numbers[i]
				program = file[n]
				sub(/\.c$/, "", program)
				line = n " " weak[n] " " file[n] " " test[n]
				for (k = 1; k <= 5; k++)
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
			return skips[n, c] ? "skip" : "ok"
		}'
}

table() {
	cat <<'END'
# Conformance of CCI

This table shows that the library does what the Common Communication Interface, API 2, asks for. A
checklist divides it into 138 statements; each statement is one test in `tests/cci`. Names of return
codes, options and events are shortened: RNR is `CCI_ERR_RNR`, RECV is `CCI_EVENT_RECV`.

The columns are settings: `PTL3_MODE=lease` and `PTL3_MODE=dedicated` on two CPUs; lease on one CPU,
with all processes of the test; the wire with faults ([testing.md](testing.md)); and processes of a
domain that are started by hand, without yod. *skip* marks a test that means nothing in a setting, and
says why when it runs. A W marks a statement that the specification supports weakly only: its test may fail.
Tests that run in ctest do a part of the rounds that the checklist names; `CCI_SHARE=1` does all of them.

`tests/cci/table.sh` writes the table from the results of `ctest -L cci`. The test `cci_table`
fails if the table is out of date, or if a test without W fails.

| no. | W | statement | test | lease | dedicated | one CPU | faults | by hand |
|--:|:-:|---|---|---|---|---|---|---|
END
	outcomes | awk '
		part == "outcomes" {
			for (i = 5; i <= 9; i++)
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
	table >"$results/conformance-cci.md" || exit 1
	outcomes | awk '
		{ good = bad = 0
		for (i = 5; i <= 9; i++) {
			good += $i == "ok" || $i == "weak"
			bad += $i == "FAIL" || $i == "none"
		}
		if (bad || !good) {
			print "statement " $1 " (" $3 ": " $4 "): " $5, $6, $7, $8, $9
			wrong = 1
		} }
		END { if (NR != 138) { print NR " rows, not 138"; wrong = 1 } exit wrong }' ||
		status=1
	if ! diff -u "$committed" "$results/conformance-cci.md"; then
		echo "out of date: cp $results/conformance-cci.md $committed"
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
