# SPDX-License-Identifier: BSD-3-Clause
#
# The statements of a checklist and their tests.  A suite's table.sh sets the variables
# below, defines preface(), and calls statements "$@":
#
#	table.sh check SOURCES
#		each statement has one test, weak exactly if the statement is
#	table.sh table SOURCES RESULTS LISTED
#		the table, from the TAP results of all jobs in LISTED
#	table.sh judge SOURCES RESULTS LISTED
#		a failure if a statement has no good result, or a bad one
#	table.sh conformance SOURCES RESULTS LISTED COMMITTED BINARY...
#		writes the table to RESULTS; a failure if judge fails, or if COMMITTED is
#		different; skipped (77) if there are no results of some job, or older ones
#		than the BINARYs
#
# SOURCES is the suite's directory.  LISTED has a line for each job: NAME PROGRAM COLUMN; its
# TAP lines are in RESULTS/NAME.tap.
#
#	suite	its name			columns	names of the columns
#	count	number of statements		bad	outcomes that judge refuses
#	prefix	of a statement's number		some	text for "some", an outcome
#	file	name of the table, less .md	keeps	not empty: see keep_cells
#	later	statements that all settings may leave out, or none
#
# preface() prints all of the table that precedes its rows.
# shellcheck shell=bash disable=SC2154
export LC_ALL=C

# statement weak file test
tests() {
	(cd "$sources" && awk '
		match($0, /^(WEAK_)?STATEMENT\([0-9]+, *[a-z0-9_]+[,)]/) {
			split(substr($0, RSTART, RLENGTH), part, /[(), ]+/)
			print part[2], ($0 ~ /WEAK/ ? "W" : "-"), FILENAME, part[3]
		}' *.c | sort -n)
}

check() {
	tests | awk -v suite="$suite" -v total="$count" '
		part == "tests" { count[$1]++; weak[$1] = $2; file[$1] = file[$1] " " $3; next }
		/^#/ { next }
		{ listed[$1]++; flag[$1] = $2 == "W" ? "W" : "-" }
		END {
			for (n = 1; n <= total; n++)
				look(n)
			for (n in count)
				if (n + 0 < 1 || n + 0 > total)
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
		function bad(text) { print "tests/" suite ": " text; wrong = 1 }' \
		part=tests - part=statements "$sources/statements.txt"
}

# A line for each statement: number W file test, then for each column "ok", "some" (of
# several jobs skip it), "skip", "weak" (not ok, but weak), "FAIL", "none" (a result is
# missing) or "-" (no job).
outcomes() {
	{
		echo "@columns"
		cat "$listed"
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
			return skips[n, c] == want ? "skip" : skips[n, c] ? "some" : "ok"
		}'
}

table() {
	preface
	outcomes | awk -v prefix="$prefix" -v some="$some" '
		part == "outcomes" {
			for (i = 5; i <= NF; i++)
				cell[$1] = cell[$1] " | " said($i)
			where[$1] = $3 ": " $4
			next
		}
		/^#/ { next }
		{
			text = $0
			sub(/^[0-9]+ [^ ] /, "", text)
			gsub(/\|/, "\\|", text)
			print "| " prefix $1 " | " ($2 == "W" ? "W" : "") " | " text " | " \
				where[$1] cell[$1] " |"
		}
		function said(word) {
			if (word == "some")
				return some
			if (word == "weak")
				return "not ok (W)"
			return word == "none" || word == "-" ? "" : word
		}' part=outcomes - part=statements "$sources/statements.txt"
}

# Each statement that has jobs has a good result in some column, and a bad one in none.
judge() {
	outcomes | awk -v total="$count" -v bad="$bad" -v later=" ${later-} " '
		BEGIN { n = split(bad, word, " "); for (i = 1; i <= n; i++) refused[word[i]] = 1 }
		{
			good = wrong_here = ran = 0
			for (i = 5; i <= NF; i++) {
				ran += $i != "-"
				good += $i == "ok" || $i == "some"
				wrong_here += $i in refused
			}
			if (wrong_here ||
				(ran && !good && $2 != "W" && !index(later, " " $1 " "))) {
				print "statement " $0
				wrong = 1
			}
		}
		END { if (NR != total) { print NR " rows, not " total; wrong = 1 } exit wrong }'
}

# Print the second table with the first one's cells where it has none, for settings that
# do not run in each build, and in rows of weak statements, whose results vary.
keep_cells() { # committed new
	awk -F '|' -v OFS='|' -v prefix="$prefix" -v k="$(wc -w <<<"$columns")" '
		index($0, "| " prefix) != 1 || $2 !~ /[0-9]/ { if (NR != FNR) print; next }
		NR == FNR { for (i = 1; i <= k; i++) old[$2, i] = $(NF - i); next }
		{
			for (i = 1; i <= k; i++)
				if ((($2, i) in old) && ($(NF - i) ~ /^ *$/ || $3 ~ /W/))
					$(NF - i) = old[$2, i]
			print
		}' "$1" "$2"
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

conformance() { # committed binary...
	local committed=$1 made=$results/$file.md name status=0
	shift
	while read -r name _; do
		[ -f "$results/$name.tap" ] || skip "no results of $name"
		is_fresh "$results/$name.tap" "$@" ||
			skip "the results of $name are older than what it tests"
	done <"$listed"
	table >"$made" || exit 1
	if [ "$keeps" ] && [ -f "$committed" ]; then
		mv "$made" "$made.part"
		keep_cells "$committed" "$made.part" >"$made"
	fi
	judge || status=1
	if ! diff -u "$committed" "$made"; then
		echo "out of date: cp $made $committed"
		status=1
	fi
	exit $status
}

statements() {
	local mode=$1
	sources=$2 results=$3 listed=$4
	case $mode in
	check | table | judge) "$mode" ;;
	conformance) shift 4 && conformance "$@" ;;
	*)
		echo "unknown: $mode" >&2
		exit 2
		;;
	esac
}
