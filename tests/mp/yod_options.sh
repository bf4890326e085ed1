#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Options of yod with real nodes: programs, directories, environment, places, the NIC
# thread's CPUs, the plan and the sums at the end.

. "$(dirname "$0")/mp.sh"
options=$MP_BIN/mp_options
echo_rank='echo "$PTL_MY_RID $0 $A $(pwd)"'
export PTL3_HUGEPAGES=off

same() { # what, expected, got
	tried=$((tried + 1))
	[ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

yod() {
	run timeout "${P3_LIMIT:-3000}" "$P3_YOD" "$@"
}

ranks() {
	sort -n "$dir/out" | tr '\n' ','
}

# ---- programs ----

yod -sz 2 -x A=1 -d /usr sh -c "$echo_rank" one : -n 1 --env A=2 sh -c "$echo_rank" two : \
	-np 2 -d /usr/bin sh -c "$echo_rank" three
same status 0 "$status"
same "programs of the command line" \
	"0 one 1 /usr,1 one 1 /usr,2 two 2 $PWD,3 three  /usr/bin,4 three  /usr/bin," "$(ranks)"

cat >"$dir/load" <<-'LOAD'
	# two programs
	-sz 2 sh -c 'echo "$PTL_MY_RID $0 $A $(pwd)"' "a 'b'\"" # and a comment

	-sz 1 -d /usr --env A='x  y' \
		sh -c 'echo "$PTL_MY_RID $0 $A $(pwd)"' c\ d#e
LOAD
yod -d /usr/bin -x A=base -F "$dir/load"
same "programs of a load file" \
	"0 a 'b'\" base /usr/bin,1 a 'b'\" base /usr/bin,2 c d#e x  y /usr," "$(ranks)"

PATH=/usr/bin:/bin yod -sz 1 sh -c 'echo started' : -sz 1 no-such-program-anywhere
same "status with a missing program" 127 "$status"
same "nothing has started" "" "$(cat "$dir/out")"
grep -q '^yod: no-such-program-anywhere: cannot be run' "$dir/err" || fail "it is not named"

mkdir "$dir/bin"
printf '#!/bin/sh\necho relative\n' >"$dir/bin/prog"
chmod +x "$dir/bin/prog"
yod -sz 1 -d "$dir" bin/prog : -sz 1 -x PATH="$dir/bin:$PATH" prog : -sz 1 -d "$dir/bin" -x PATH=: prog
same "paths of a program's own" "relative,relative,relative," "$(ranks)"

yod --mode park -sz 1 sh -c 'echo $PTL3_MODE' : -sz 1 -x PTL3_MODE=lease sh -c 'echo $PTL3_MODE'
same "a program's own setting" "lease,park," "$(ranks)"

# Ranks are numbered across programs, and messages go between them.
yod --timeout "${P3_LIMIT:-3000}" -sz 1 "$options" count 10 : -sz 2 "$options" count 10
same "two programs, one job" 0 "$status"
same "messages of three ranks" 3 "$(grep -c ': 11 65616 11 65616$' "$dir/out")"

# ---- places ----

mask=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
cpus=($(tr ',' '\n' <<<"$mask" | awk -F- '{for (i = $1; i <= $NF; i++) print i}'))
first=${cpus[0]} second=${cpus[1]:-}

own_and_nic() { # rank
	sed -n "s/^rank $1 own \(.*\) nic \(.*\)$/\1 \2/p" "$dir/out"
}

yod -sz 1 "$options" cpus
same "a pinned thread's NIC is where yod may be" "$first $mask" "$(own_and_nic 0)"
yod -sz 1 -x PTL3_NIC_CPUS="$first" "$options" cpus
same "explicit CPUs" "$first $first" "$(own_and_nic 0)"
if [ -n "$second" ]; then
	yod -sz 1 -x PTL3_NIC_CPUS="$second" --bind "$first" "$options" cpus
	same "explicit CPUs before the plan" "$first $second" "$(own_and_nic 0)"
	yod -sz 1 --bind "$second" "$options" cpus
	same "a list without a spare CPU" "$second $second" "$(own_and_nic 0)"
	yod -sz 1 --bind "$second" -x PTL3_NIC_CPUS=auto "$options" cpus
	same "the plan, asked for" "$second $second" "$(own_and_nic 0)"
	run timeout "${P3_LIMIT:-3000}" taskset -c "$first" "$P3_YOD" -sz 1 "$options" cpus
	same "yod's own mask" "$first $first" "$(own_and_nic 0)"
	run timeout "${P3_LIMIT:-3000}" taskset -c "$first,$second" "$P3_YOD" --bind "$second,$first" -sz 2 sh -c \
		'echo $PTL_MY_RID $(grep -h Cpus_allowed_list /proc/self/status)'
	same "a CPU of a list each" \
		"0 Cpus_allowed_list: $first,1 Cpus_allowed_list: $second," "$(ranks)"
	run timeout "${P3_LIMIT:-3000}" taskset -c "$first,$second" "$P3_YOD" --bind "$first,$second" -VN2 -sz 3 sh -c \
		'echo $PTL_MY_RID $(grep -h Cpus_allowed_list /proc/self/status)'
	same "two on each" "0 Cpus_allowed_list: $first,1 Cpus_allowed_list: $first,2 \
Cpus_allowed_list: $second," "$(ranks)"
	same "the list is put on one CPU" 125 "$(taskset -c "$first" "$P3_YOD" --bind "$second" \
		-sz 1 true 2>/dev/null; echo $?)"
fi
same "-VN that does not fit" 125 "$(taskset -c "$first" "$P3_YOD" -VN 2 -sz 3 true 2>/dev/null
	echo $?)"

# ---- the plan ----

footprint=$MP_BIN/../stress/stress_footprint
[ -x "$footprint" ] || echo "skipped: the plan's bytes, no $footprint"
for n in 2 5; do
	[ -x "$footprint" ] || break
	yod --timeout "${P3_LIMIT:-3000}" -sz $n "$footprint"
	measured=$(sed -n 's/.* descriptors, \([0-9]*\) bytes$/\1/p' "$dir/out")
	fds=$(sed -n 's/.*each node \([0-9]*\) descriptors.*/\1/p' "$dir/out")
	yod --plan -sz $n "$footprint"
	same "status of a plan" 0 "$status"
	same "a plan starts nothing" "" "$(grep measured "$dir/out")"
	same "planned KiB of $n" $((measured / 1024)) \
		"$(sed -n 's/^memory *each node \([0-9]*\) KiB.*/\1/p' "$dir/out")"
	same "planned KiB of all $n" $((measured * n / 1024)) \
		"$(sed -n 's/^ *all nodes \([0-9]*\) KiB.*/\1/p' "$dir/out")"
	same "planned descriptors" "$fds" \
		"$(sed -n 's/^descriptors *each node \([0-9]*\),.*/\1/p' "$dir/out")"
done
# Several programs: each has its own settings, and sums are over all nodes.
if [ -x "$footprint" ]; then
	mine=(-sz 2 -x PTL3_HUGEPAGES=off -x PTL3_TRACE=4096 -x PTL3_HEAP=8M "$footprint")
	theirs=(-sz 3 -x PTL3_HUGEPAGES=off -x PTL3_HEAP=16M "$footprint")
	yod --timeout "${P3_LIMIT:-3000}" "${mine[@]}" : "${theirs[@]}" # rank 0 is measured
	traced=$(sed -n 's/.* descriptors, \([0-9]*\) bytes$/\1/p' "$dir/out")
	yod --timeout "${P3_LIMIT:-3000}" "${theirs[@]}" : "${mine[@]}"
	plain=$(sed -n 's/.* descriptors, \([0-9]*\) bytes$/\1/p' "$dir/out")
	yod --plan "${mine[@]}" : "${theirs[@]}"
	same "planned KiB of each" "0-1 $((traced / 1024)) 2-4 $((plain / 1024))" "$(paste -sd' ' < <(
		sed -n 's/^.*each node of ranks \([0-9-]*\) \([0-9]*\) KiB.*/\1 \2/p' "$dir/out"))"
	same "planned KiB of all" $(((2 * traced + 3 * plain) / 1024)) \
		"$(sed -n 's/^ *all nodes \([0-9]*\) KiB.*/\1/p' "$dir/out")"
	same "planned heaps" "8192 16.0" "$(paste -sd' ' < <(
		sed -n 's/^ *shared heap of.*addresses for \([0-9.]*\) [KM]iB.*/\1/p' "$dir/out"))"
fi
yod --trace "$dir/trace" --plan -sz 1 -x PTL3_TRACE=off true : -sz 1 true
same "a trace of one program" 1 "$(grep -c 'each node of ranks 0-0 ' "$dir/out")"
same "is no other's" 1 "$(grep -c 'each node of ranks 1-1 ' "$dir/out")"
yod --plan -sz 2 true : -sz 1 -x PTL3_MODE=park true
same "programs that take alike" 1 "$(grep -c '^memory *each node [0-9]' "$dir/out")"
yod --plan -sz 1 -x PTL3_HUGEPAGES=off true : -sz 2 -x PTL3_HUGEPAGES=on true
same "hugepages of the program that wants them" 4 \
	"$(sed -n 's/^hugepages *\([0-9]*\) of.*0-0 is off: .*1-2 is on: hugepages$/\1/p' "$dir/out")"
yod --plan --bind "$first" -sz 2 true
same "a planned place" "CPUs $first, NIC thread $first" \
	"$(sed -n 's/^ *rank 1: //p' "$dir/out")"
yod --plan -sz 1024 true
same "a plan of the largest job" "nodes         1024" "$(sed -n 1p "$dir/out")"
page_tables() { # at the start, when each has talked to all
	paste -sd' ' < <(sed -n 's/^ *page tables .* about \(.*iB\) at.*/\1/p;s/^ *\(.*iB\) when each.*/\1/p' "$dir/out")
}
same "its page tables" "9523 KiB 9523.0 MiB" "$(page_tables)"
published() {
	echo $(($(sed -n 's/^memory.*published \([0-9]*\) KiB,.*/\1/p' "$dir/out") * 1024))
}
large=$(published) source=$(sed -n 's/^sources *each node 1024 of \([0-9]*\) bytes,.*/\1/p' "$dir/out")
yod --plan -sz 64 true
more=$((large - $(published)))
same "bytes of 960 more sources, within two pages" 1 \
	$((more - 960 * source < 8192 && 960 * source - more < 8192))
same "bytes of all pendings" 67108608 "$(awk '/^pendings/ {print $6 * $8}' "$dir/out")"
PTL3_ATTACH=start yod --plan -sz 1024 true
same "those of nodes that map all" "9523.0 MiB 9523.0 MiB" "$(page_tables)"

# ---- sums at the end ----

# Print the sums that a node printed itself: sent, bytes, received, bytes.
counted() { # rank
	sed -n "s/^rank $1: //p" "$dir/out"
}
told() { # rank
	awk -v rank="$1" '$1 == "yod:" && $2 == rank {print $3, $4, $5, $6}' "$dir/err"
}
end_of() { # rank
	awk -v rank="$1" '$1 == "yod:" && $2 == rank {print $19, $20}' "$dir/err"
}
yod --stats --keep-going --timeout "${P3_LIMIT:-3000}" -sz 3 "$options" count 100 2 1
same "status" 137 "$status"
for rank in 0 1 2; do
	same "sums of rank $rank" "202 132672 202 132672" "$(counted $rank)"
	same "yod's sums of rank $rank" "$(counted $rank)" "$(told $rank)"
done
same "yod's sums of all" "606 398016 606 398016" "$(told all)"
same "ends" "status 0,signal 9,status 0" "$(end_of 0),$(end_of 1),$(end_of 2)"
moved=$(awk '$2 == "all" {print $11 + $12 + $13}' "$dir/err")
same "bytes that movers moved" $((6 * 65536)) "$moved"
yod --stats --keep-going -sz 3 "$MP_BIN/mp_drops"
same "truncated messages" "0 2 2" \
	"$(awk '$1 == "yod:" && $2 ~ /^(0|1|all)$/ {print $8}' "$dir/err" | paste -sd' ')"
yod --stats -sz 2 true
same "nodes that never joined" 2 "$(grep -c 'status 0, never joined$' "$dir/err")"

# ---- output of a killed node ----

yod -sz 1 "$MP_BIN/mp_unflushed"
same "printed into a full buffer" "" "$(cat "$dir/out")"
yod -sz 1 --line-buffered "$MP_BIN/mp_unflushed"
same status 137 "$status"
same "printed line by line" "before PtlInit,after PtlInit," "$(tr '\n' ',' <"$dir/out")"
run env PTL3_STDOUT=lines PTL3_DOMAIN=none "$MP_BIN/mp_unflushed"
same "printed by hand" "before PtlInit,after PtlInit," "$(tr '\n' ',' <"$dir/out")"

echo "# tried: $tried options"
finish yod_options
