# SPDX-License-Identifier: BSD-3-Clause
# libportals: the programs of bench/, and peer_portals; and the same programs with the
# library and yod of an older build.  Read by compare.

# Shorter ones go through the lane, from any buffers.
long_sizes() {
	tr , '\n' <<<"$sizes" | awk '$1 >= 16384' | paste -sd,
}

# portals sz program args...: start it with the build that $portals names
portals() {
	local sz=$1 program=$2
	shift 2
	if [[ $portals = old ]]; then
		LD_LIBRARY_PATH=$old_library $limit "$old/yod" -sz "$sz" "$bin/$program" "$@" \
			2>>"$log"
	else
		$limit "$bin/yod" -sz "$sz" "$bin/$program" "$@" 2>>"$log"
	fi
}

# rows name sz program options...: the lines of a program of bench/
rows() {
	local name=$1
	shift
	portals "$@" $quick --json - | "$bin/pick" "$name"
}

rows_perf() {
	local of= short=
	want latency && of=put
	want stream && of=$of${of:+,}stream
	want rate && of=$of${of:+,}rate
	want ack && short=ack
	want get && short=$short${short:+,}get
	[[ -z $of ]] || rows $portals 2 portalperf --no-raw --test $of --sizes $sizes || return 1
	[[ -z $short ]] || rows $portals 2 portalperf --no-raw --test $short --sizes 8
}

rows_in_heap() { # test sizes
	[[ -z $2 ]] ||
		rows ${portals}_heap 2 portalperf --no-raw --test "$1" --heap --sizes "$2"
}

rows_match() { # hit name
	rows "$2" 2 matchperf --depth $depths --list exact --hit "$1"
}

rows_calls() {
	! want eqget || rows $portals 2 cmdperf --calls "EQGet, empty" || return 1
	! want eqpoll || rows $portals 2 cmdperf --calls "EQPoll of $polled, empty"
}

rows_alltoall() {
	local n
	for n in ${nodes//,/ }; do
		rows $portals "$n" oversub || return 1
	done
}

rows_of_peer() {
	local args=()
	want am && args+=("am=$am_sizes")
	want queues && args+=("queues=$queue_counts")
	want threads && args+=("threads=$thread_counts")
	((!${#args[@]})) || portals 2 peer_portals $portals $scale "${args[@]}"
}

portals_run() { # ours, or old
	local portals=$1
	rows_perf && rows_calls && rows_of_peer || return 1
	! want stream || rows_in_heap stream $sizes || return 1
	! want latency || rows_in_heap put "$(long_sizes)" || return 1
	! want match || { rows_match end $portals && rows_match random ${portals}_random; } ||
		return 1
	! want alltoall || rows_alltoall
}

ours_run() { portals_run ours; }

old_tests() { echo "$tests"; }
old_run() { portals_run old; }

# find_old: the library of --old, beside its programs or one folder up
find_old() {
	local folder
	old=$(cd "$old" 2>/dev/null && pwd) && [[ -x $old/yod ]] ||
		die 77 "--old: no yod there; expected the bin folder of a build"
	for folder in "$old/.." "$old/../lib" "$old"; do
		[[ ! -e $folder/libportals.so.0 ]] || old_library=$(cd "$folder" && pwd)
	done
	[[ -n $old_library ]] ||
		die 77 "--old: no libportals.so.0 in or beside $old; expected a build's bin folder"
}

# See that programs take that library: those with an RPATH would run with the new one.
old_build() {
	local portals=old
	LD_DEBUG=libs portals 1 cmdperf --quick --calls "EQGet, empty" >/dev/null
	grep -q "calling init: $old_library/libportals.so.0" "$log" ||
		die 1 "--old: cmdperf does not run with the library in $old_library; see its RUNPATH"
}
