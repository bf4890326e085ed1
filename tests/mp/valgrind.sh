#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# yod -n 2 valgrind ./a.out: reports are about the program, whose faults are found.
# P3_LONG=1: every tool, mode and fault.

. "$(dirname "$0")/mp.sh"
command -v valgrind >/dev/null || skip "no valgrind"
checked=$MP_BIN/mp_checked
told='^yod: valgrind: nodes use /.*/libportals.so.0, which tells it about atomics'
export PTL3_HUGEPAGES=off

# ---- the library: a fake valgrind prints its arguments ----

mkdir "$dir/bin"
printf '#!/bin/sh\necho "got ${LD_LIBRARY_PATH%%%%:*}"\n' >"$dir/bin/valgrind"
chmod +x "$dir/bin/valgrind"

chooses() { # what, yes or no, arguments of yod...
	local what=$1 want=$2 got=no
	shift 2
	PATH=$dir/bin:$PATH run "$P3_YOD" -sz 2 "$@"
	grep -Eq '^got /.*/portals/valgrind$' "$dir/out" && got=yes
	[ $got = "$want" ] || fail "$what: the library for valgrind is chosen: $got"
	[ "$(grep -Ec "$told" "$dir/err")" = $((${#want} - 2)) ] ||
		fail "$what: yod does not say once what it chose"
}
chooses "the program" yes valgrind ./a.out
chooses "a path" yes "$dir/bin/valgrind" --tool=drd ./a.out
chooses "behind env" yes env X=1 valgrind ./a.out
chooses "behind env, which loses PATH" yes env X=1 "$dir/bin/valgrind" ./a.out
chooses "in a script" yes sh -c 'cd /;valgrind ./a.out'
LD_LIBRARY_PATH=/elsewhere chooses "before what is set" yes valgrind ./a.out
run "$P3_YOD" -sz 1 --valgrind off "$dir/bin/valgrind"
says "refused" '^got $'
run "$P3_YOD" -sz 1 echo "$dir/bin/valgrind/x" not-valgrind
[ -s "$dir/err" ] && fail "another word is taken for valgrind"
run "$P3_YOD" -sz 1 --valgrind on sh -c 'echo "got $LD_LIBRARY_PATH"'
says "asked for" '^got /.*/portals/valgrind$'
run "$P3_YOD" -sz 1 --valgrind yes true
[ $status = 2 ] || fail "--valgrind yes: status $status"

# ---- the real one ----

reports() {
	grep -Ec 'Possible data race|Conflicting (load|store)|uninitialised|definitely lost' "$1"
}

# finds fault tool mode nodes wanted [pattern]: this number of reports, each with that
# function
finds() {
	local log=$dir/$1.$2.$3 full=
	[ "$2" = memcheck ] && full=--leak-check=full
	PTL3_MODE=$3 timeout "${P3_LIMIT:-3000}" "$P3_YOD" -sz "$4" valgrind -q --tool="$2" $full \
		"$checked" "$1" >"$log" 2>&1 || echo "$1 $2 $3: status $?"
	[ "$(grep -cx fine "$log")" = "$4" ] || echo "$1 $2 $3: not all were fine"
	local found
	found=$(reports "$log")
	if [ "$5" = 0 ]; then
		[ "$found" = 0 ] || echo "$1 $2 $3: $found reports"
		[ "$(grep -c == "$log")" = 0 ] || grep == "$log" | head -5
	else
		[ "$found" -gt 0 ] || echo "$1 $2 $3: nothing is found"
		[ "$(grep -c "$6 (checked.c" "$log")" -ge "$found" ] ||
			echo "$1 $2 $3: something else is found"
	fi
}

foreign() { # the usual library says that it is the wrong one
	timeout "${P3_LIMIT:-3000}" "$P3_YOD" -sz 1 --valgrind off valgrind -q "$checked" clean \
		>"$dir/foreign" 2>&1
	grep -q 'warn: under valgrind with a libportals that does not talk to it' \
		"$dir/foreign" || echo "the usual library says nothing"
}

all_at_once() { # lines of arguments of finds, as many at a time as there are CPUs
	local n=0
	while read -r line; do
		# shellcheck disable=SC2086
		finds $line &
		((++n % 2)) || wait
	done
	wait
}

{
	if [ -n "$P3_LONG" ]; then
		foreign
		for mode in lease dedicated park; do
			for tool in memcheck helgrind drd; do
				echo clean $tool $mode 2 0
			done
			echo race helgrind $mode 2 1 count
			echo race drd $mode 2 1 count
			echo leak memcheck $mode 2 1 lose_memory
			echo undefined memcheck $mode 2 1 decide_by_nothing
		done | all_at_once
	else
		all_at_once <<-END
			clean helgrind dedicated 2 0
			leak memcheck dedicated 1 1 lose_memory
			race helgrind lease 1 1 count
		END
	fi
} >"$dir/said"
while read -r line; do
	fail "$line"
done <"$dir/said"
finish valgrind
