#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs of yod seen from outside; each function is one test.  usage: jobs.sh NAME [arguments]

. "$(dirname "$0")/mp.sh"

# Beginnings and ends of processes: without yod, with a child, wrapped, absent.
life() {
	life=$MP_BIN/mp_life absent=$MP_BIN/mp_absent

	fine() { # what, how many times, command...
		local what=$1 times=$2
		shift 2
		succeeds "$what" "$@"
		[ "$(grep -cx fine "$dir/out")" = "$times" ] || fail "$what: not all were fine"
		nothing_left
	}

	fine "a job of one without yod" 1 "$life" self
	fine "a job of one" 1 "$P3_YOD" -sz 1 "$life" self
	fine "two and four" 2 "$P3_YOD" -sz 2 "$life" self
	fine "four" 4 "$P3_YOD" -sz 4 "$life" self
	for what in child again; do
		fine "$what without yod" 1 "$life" $what
		fine $what 3 "$P3_YOD" -sz 3 "$life" $what
	done
	for what in leave crash; do
		succeeds "$what without yod" "$life" $what
		succeeds $what "$P3_YOD" -sz 3 "$life" $what
		nothing_left
	done
	# shellcheck disable=SC2016
	fine "a wrapper that executes" 2 "$P3_YOD" -sz 2 sh -c 'exec "$0" self' "$life"
	# shellcheck disable=SC2016
	fine "a wrapper that waits" 2 "$P3_YOD" -sz 2 sh -c '"$0" self; exit $?' "$life"
	# shellcheck disable=SC2016
	fine "one program after another" 4 "$P3_YOD" -sz 2 sh -c '"$0" self && "$0" self' "$life"
	for what in never ended; do
		succeeds "partner $what" "$P3_YOD" -sz 2 "$absent" $what
		says "partner $what" '^all fail$'
	done
	succeeds "partner stays away" "$P3_YOD" -sz 2 -x PTL3_ABSENT=hold:1 "$absent" bound
	says "partner stays away" '^all fail$'
	succeeds "partner lost" "$P3_YOD" -sz 2 -x PTL3_ABSENT=drop "$absent" lost
	says "partner lost" '^answered$'
}

# yod --shared-heap from outside: the nodes' environment, and messages where it cannot
# work.
shared_heap() {
	err_says() { # what, pattern
		grep -Eq -- "$2" "$dir/err" || fail "$1: no '$2' in stderr"
	}

	job() { # what, status, command...
		local what=$1 expected=$2
		shift 2
		run timeout "${P3_LIMIT:-3000}" "$@"
		[ $status = "$expected" ] || fail "$what: status $status, expected $expected"
	}

	scene() { # what, status, scene
		job "$1" "$2" "$P3_YOD" -sz 2 --shared-heap "$MP_BIN/mp_shared" "$3"
	}

	show='echo "$LD_PRELOAD|$MALLOC_CONF|$PTL3_SHARED_HEAP"'
	ours=libjemalloc.so.2
	conf=oversize_threshold:16384,tcache_max:14336,retain:false

	# The nodes' environment; the user's values stand behind yod's.
	job environment 0 "$P3_YOD" -sz 1 --shared-heap sh -c "$show"
	says environment "^$ours\|$conf\|on$"
	LD_PRELOAD=libm.so.6 MALLOC_CONF=narenas:2 \
		job "the user's" 0 "$P3_YOD" -sz 1 --shared-heap sh -c "$show"
	says "the user's" "^$ours:libm.so.6\|$conf,narenas:2\|on$"
	job "no option" 0 "$P3_YOD" -sz 1 sh -c "$show"
	says "no option" '^\|\|$'

	# Without the library: one line, no node runs.
	: >"$dir/$ours"
	LD_LIBRARY_PATH=$dir job "no library" 125 "$P3_YOD" -sz 2 --shared-heap echo ran
	err_says "no library" '^yod: --shared-heap: .*; install the package libjemalloc2$'
	[ "$(wc -l <"$dir/err")" = 1 ] || fail "no library: more than one line"
	[ -s "$dir/out" ] && fail "no library: a node ran"
	LD_LIBRARY_PATH=$dir job "no allocator" 0 "$P3_YOD" -sz 2 "$MP_BIN/mp_shared" ordinary
	err_says "no allocator" 'warn: no allocator for the shared heap: .*; PtlXAlloc gives ordinary memory$'
	rm "$dir/$ours"

	# Where malloc is not jemalloc's, or has other options, everything else works.
	export PTL3_HUGEPAGES=off
	PTL3_SHARED_HEAP=on job "malloc of libc" 0 "$P3_YOD" -sz 2 "$MP_BIN/mp_shared" nothing
	err_says "malloc of libc" "warn: malloc gives ordinary memory: .* not jemalloc's"
	[ "$(wc -l <"$dir/err")" = 1 ] || fail "malloc of libc: more than one line"
	MALLOC_CONF=oversize_threshold:0 scene "no arena" 0 nothing
	err_says "no arena" 'warn: malloc gives ordinary memory: MALLOC_CONF'
	PTL3_SHARED_HEAP=perhaps job "no choice" 2 "$P3_YOD" -sz 2 "$MP_BIN/mp_shared" nothing
	err_says "no choice" "PTL3_SHARED_HEAP is 'perhaps'; expected on, off"

	# Settings that change how jemalloc gets its memory.
	for more in narenas:1 dirty_decay_ms:0 dirty_decay_ms:-1 junk:true \
		background_thread:true percpu_arena:percpu tcache_max:65536; do
		MALLOC_CONF=$more scene "$more, again" 0 again
		case $more in
		narenas* | *thread* | percpu* | tcache*) MALLOC_CONF=$more scene "$more, threads" 0 threads ;;
		esac
	done

	# The end of sharing is reported once a node.
	scene forks 0 forks
	[ "$(grep -c 'fork ends the sharing' "$dir/err")" = 2 ] || fail "forks: not said twice"

}

# A rank that is a loop of programs, each with a shared heap of another length: heaps.c
# checks the address space of the other rank.
heaps() {
	lives=30

	# shellcheck disable=SC2016
	succeeds "heaps of $lives lengths" "$P3_YOD" --timeout "${P3_LIMIT:-3000}" -sz 1 "$MP_BIN/mp_heaps" $lives : \
		-sz 1 sh -c 'i=0
			while [ $i -lt "$1" ]; do
				PTL3_HEAP=$((1024 + 2 * i))M "$0" $i || exit
				i=$((i + 1))
			done' "$MP_BIN/mp_heaps" $lives
	nothing_left
}

# Two processes that both claim to be one rank: under yod, and by a launcher's
# variables.
twins() {
	# shellcheck disable=SC2086 # names
	unset PTL3_DOMAIN PTL3_LAUNCHED ${!OMPI_@} ${!PMI_@} ${!PMIX_@} ${!SLURM_@}
	twins=$MP_BIN/mp_twins
	export PTL3_HUGEPAGES=off

	# shellcheck disable=SC2034
	by_variables() { # scene: two ranks
		local other
		PMI_RANK=1 PMI_SIZE=2 PMI_JOBID=twins-$mark timeout "${P3_LIMIT:-3000}" "$twins" "$1" &
		other=$!
		PMI_RANK=0 PMI_SIZE=2 PMI_JOBID=twins-$mark timeout "${P3_LIMIT:-3000}" "$twins" "$1" &&
			wait $other
	}

	lines() { # file, pattern, how often
		[ "$(grep -Ec -- "$2" "$dir/$1")" = "$3" ] ||
			fail "$what: $1 has not $3 times '$2': $(cat "$dir/out" "$dir/err")"
	}

	for scene in parent child off; do
		for how in yod variables; do
			what="$scene under $how"
			if [ $how = yod ]; then
				run "$P3_YOD" -sz 2 --timeout "${P3_LIMIT:-3000}" "$twins" $scene
				code=PTL_FAIL
			else
				run by_variables $scene
				code=PTL_PID_INVALID
			fi
			[ $status = 0 ] || fail "$what: status $status: $(cat "$dir/out")"
			if [ $scene = off ]; then
				lines out '^second is rank 0 of 1$' 2
				lines err 'already' 0
				continue
			fi
			lines out "^second: $code" 2
			lines err 'rank 0 .*is process [0-9]+ already; .*PTL3_LAUNCHED=off' 1
			lines err 'rank 1 .*is process [0-9]+ already; .*PTL3_LAUNCHED=off' 1
			lines err . 2
		done
	done
}

# A core file has the node's own state, but not the sparse gigabytes and the peers'
# segments.
core() {
	most=$((64 << 20))

	flags() { # name in /proc/PID/smaps: KiB of it that a core would hold
		awk -v name="$2" '/^[0-9a-f]+-[0-9a-f]+ / { is = index($0, name) > 0 }
			/^Size:/ { kib = $2 }
			/^VmFlags:/ && is && !/ dd/ { sum += kib } END { print sum + 0 }' \
			"/proc/$1/smaps"
	}

	all_are_up() {
		[ "$(grep -c '^up ' "$dir/out")" = 4 ]
	}

	up() {
		patiently all_are_up
		victim=$(awk '$1 == "up" && $2 == 1 { print $3 }' "$dir/out")
		[ -n "$victim" ] || fail "no node is up"
	}

	cd "$dir" || exit 1
	ulimit -c unlimited 2>/dev/null
	start "$P3_YOD" -sz 4 "$MP_BIN/mp_orphan"
	up
	published=$(flags "$victim" p3-published)
	[ "$published" -gt 0 ] || fail "nothing of the published segment would be in a core"
	[ "$published" -le 2048 ] || fail "$published KiB of published segments in a core"
	host=$(flags "$victim" p3-host)
	[ "$host" -gt 0 ] || fail "nothing of the host's segment would be in a core"
	[ "$host" -lt 65536 ] || fail "$host KiB of the host's segment in a core"
	[ "$(flags "$victim" p3-heap)" -lt 65536 ] || fail "the heaps would be in a core"
	kill -SEGV "$victim"
	wait "$pid"
	case $(cat /proc/sys/kernel/core_pattern) in
	[\|/]*)
		why="core files go elsewhere: $(cat /proc/sys/kernel/core_pattern)" ;;
	*)
		[ "$(ulimit -c)" = unlimited ] || why="no core files: ulimit -c $(ulimit -c)" ;;
	esac
	[ -z "$why" ] || echo "# no core was looked at: $why"
	if [ -z "$why" ]; then
		core=$(find "$dir" -name 'core*' -size +0 | head -1)
		[ -n "$core" ] || fail "there is no core file"
		size=$(stat -c %s "${core:-/dev/null}")
		echo "# core of a node of four: $((size >> 10)) KiB; published $published KiB, host $host KiB"
		[ "$size" -lt $most ] || fail "a core file of $size bytes, more than $most"
		grep -q ', core dumped; ending the job' "$dir/err" || fail "yod does not name the core"
		command=$(sed -n 's/^yod: rank 1: \(gdb .*\) shows where it crashed$/\1/p' "$dir/err")
		[ -n "$command" ] || fail "yod does not tell how to look at the core"
		! command -v gdb >/dev/null || eval "$command" 2>&1 | grep -q ' main (' ||
			fail "$command shows no function"
	fi
}

# A whole job of two on one CPU: hosts, NIC threads and yod.  A waiting thread must give
# the CPU to a thread that can go on, in every mode: one that spins until the kernel takes
# its CPU away uses milliseconds of CPU time for each round trip, in place of 4 to 20 us.
# CPU time is the job's own, whatever else the machine does.
one_cpu() {
	command -v taskset >/dev/null || skip "taskset is not installed"
	cpu=$(taskset -cp $$ | sed 's/.*: *//; s/[,-].*//')
	trips=${1:-20000}
	most_us=600 # of CPU time for each round trip
	TIMEFORMAT='%U %S'

	for mode in auto lease dedicated park; do
		used=$({ time run taskset -c "$cpu" "$P3_YOD" -sz 2 --timeout "$P3_LIMIT" --mode $mode \
			"$MP_BIN/mp_pingpong" "$trips" >/dev/null && echo "$status" >"$dir/status"; } 2>&1)
		status=$(cat "$dir/status") out=$(cat "$dir/out")
		[ "$status" = 0 ] || fail "$mode: status $status"
		awk -v used="$used" -v trips="$trips" -v most=$most_us -v name="$mode: $out" 'BEGIN {
			split(used, s, " ")
			us = (s[1] + s[2]) * 1e6 / trips
			printf "%s; %.1f us of CPU time each, %d expected at most\n", name, us, most
			exit us > most
		}' || fail "$mode: CPU time"
	done
}

# A machine whose kernel is made for 4,096 CPUs (cpus_shim.c): yod, nodes, portals-info and
# benchmarks see and use the same CPUs as without the shim.
many_cpus() {
	: "${MP_SHIM:?path of the shim}" "${MP_MANNERS:?path of stress_manners}"
	export PTL3_HUGEPAGES=off

	# Run a command as it is and with the shim; compare status, output and error lines.
	both() { # what command...
		local what=$1 plain
		shift
		tried=$((tried + 1))
		run timeout "${P3_LIMIT:-3000}" "$@"
		plain="status $status $(sort "$dir/out") $(sort "$dir/err")"
		run timeout "${P3_LIMIT:-3000}" env LD_PRELOAD="$MP_SHIM" "$@"
		[ "$plain" = "status $status $(sort "$dir/out") $(sort "$dir/err")" ] ||
			fail "$what: expected '$plain', got 'status $status $(cat "$dir/out")'"
	}

	# Print what portals-info tells about CPUs, and the mode that follows from their number.
	# shellcheck disable=SC2016
	info='"$0" --json | tr -d "[:space:]" |
		grep -oE "\"(cpus|usable)\":[^,}]*|\"name\":\"PTL3_MODE\",\"value\":\"[a-z]*\""'

	both "a pinned thread's NIC thread" "$P3_YOD" -sz 1 "$MP_BIN/mp_options" cpus
	for bind in core numa; do
		both "--bind $bind" "$P3_YOD" --bind $bind -sz 2 \
			sh -c 'echo $PTL_MY_RID $PTL3_NIC_CPUS $(grep Cpus_allowed_list /proc/self/status)'
		both "the plan of --bind $bind" sh -c '"$0" "$@" | grep CPUs' \
			"$P3_YOD" --plan --bind $bind -sz 2 true
	done
	both "a NIC thread on CPUs that the machine lacks" "$P3_YOD" -x PTL3_NIC_CPUS=1000 -sz 1 true
	both "a list with CPUs that the machine lacks" "$P3_YOD" --bind 0,5000 -sz 1 true
	both "portals-info" sh -c "$info" "$P3_BIN/portals-info"
	both "a program that is pinned, and its NIC thread that is not" "$P3_YOD" -sz 1 \
		sh -c '"$0" pinned >/dev/null' "$MP_MANNERS"
	if [ -x "$P3_BIN/cmdperf" ]; then
		# Show what a failed one has said.
		# shellcheck disable=SC2016
		quietly='said=$("$@" 2>&1) || { s=$?; echo "$said"; exit $s; }'
		both "a benchmark" sh -c "$quietly" - "$P3_YOD" -sz 1 "$P3_BIN/cmdperf" --quick
		both "a peer" sh -c "$quietly" - "$P3_BIN/peer_raw" quick latency=8
	fi
}

name=$1
shift
"$name" "$@"
finish "$name"
