#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# yod without the library: its nodes are /bin/sh programs.
#
# usage: test_yod.sh path/to/yod [case...]
#	YOD_NODE	path of yod_node; without it the cases about packets are skipped

yod=${1:?usage: test_yod.sh path/to/yod [case...]}
shift
# shellcheck disable=SC2034
only="$*"
. "$(dirname "$0")/../support/yod_cases.sh"

# ---- exit status ----

case_exit_status() {
	run -sz 3 sh -c 'exit 0'
	same status 0 $status
	same stderr "" "$(cat "$dir/err")"
	run -sz 4 sh -c '[ $PTL_MY_RID != 2 ] || exit 3; sleep 3000'
	same status 3 $status
	says '^yod: rank 2 \(pid [0-9]+\) exited with status 3; ending the job$'
	nothing_left
	run -sz 2 sh -c '[ $PTL_MY_RID = 1 ] || kill -9 $$; sleep 3000'
	same status 137 $status
	says '^yod: rank 0 \(pid [0-9]+\) killed by signal 9 \(Killed\); ending the job$'
	run -sz 2 sh -c 'ulimit -c 0; kill -SEGV $$'
	same status 139 $status
	same lines 2 "$(err_but_waits | wc -l)"
	says '^yod: rank [01]: no core file'
	nothing_left
}

case_keep_going() {
	run -sz 3 --keep-going sh -c \
		'[ $PTL_MY_RID != 1 ] || exit 7; sleep 1; echo late $PTL_MY_RID'
	same status 7 $status
	same survivors 2 "$(grep -c late "$dir/out")"
	says 'rank 1 \(pid [0-9]+\) exited with status 7; the others go on'
}

case_usage() {
	local bad
	for bad in '' '-sz' '-sz 4x true' '-sz -1 true' '-sz 99999999999 true' \
		'-sz 2 --timeout -1 true' '-sz 2 --timeout nan true'; do
		# shellcheck disable=SC2086
		run $bad
		same "status of '$bad'" 2 $status
		same "lines of '$bad'" 1 "$(wc -l <"$dir/err")"
	done
	run --help
	same status 0 $status
	run --version
	same status 0 $status
}

case_size_forms() {
	local form
	for form in '-sz 3' '-np 3' '-n 3' '-n3' '--sz 3' '--np=3' '-sz=3'; do
		# shellcheck disable=SC2086
		run $form sh -c 'echo $PTL_MY_RID'
		same "ranks of $form" "0 1 2" "$(sort "$dir/out" | tr '\n' ' ' | sed 's/ $//')"
	done
	run -sz 1 echo -sz 2 --tag
	same "arguments of the program" "-sz 2 --tag" "$(cat "$dir/out")"
}

# ---- a node's environment ----

case_environment() {
	run -sz 3 --mode park sh -c \
		'echo "$PTL_MY_RID $PTL_NIDMAP $PTL_PIDMAP $PTL_IFACE $PTL3_MODE"'
	same maps "0 10000:10001:10002 100:101:102 0 park" "$(grep '^0' "$dir/out")"
	run -sz 2 --nid-base 0 sh -c 'echo "$PTL_NIDMAP"'
	same "node ids from 0 on" "0:1" "$(sort -u "$dir/out")"
	run -sz 2 sh -c 'ls -l /proc/$$/fd | grep -c "$PTL3_YOD_FD -> socket:"'
	same sockets "1 1" "$(tr '\n' ' ' <"$dir/out" | sed 's/ $//')"
	run -sz 2 sh -c 'for f in 0 1 2 3 4 5 6 7 8 9 100 101; do
			[ ! -e /proc/$$/fd/$f ] || all="$all$f "; done; echo "$all$PTL3_YOD_FD"' 7</dev/null
	same descriptors "0 1 2 100 100" "$(sort -u "$dir/out")"
	run -sz 2 sh -c 'read -r pid comm st ppid pgrp sid rest </proc/$$/stat
		echo $((pgrp == $$)) $sid'
	same "group and session" "1 $(cut -d' ' -f6 /proc/$$/stat)" "$(sort -u "$dir/out")"
}

# Restartable sequences cost time at each switch: they are off where nodes take turns.
case_tunables() {
	local one all
	unset GLIBC_TUNABLES
	all=$(taskset -cp $$ | sed 's/.*: *//')
	one=${all%%[-,]*}
	run -sz 2 sh -c 'echo $GLIBC_TUNABLES'
	same "room for thread storage" 2 "$(grep -c 'optional_static_tls=' "$dir/out")"
	new_mark
	same "taking turns" 2 "$(P3_TEST_MARK=$mark taskset -c "$one" "$yod" -sz 2 \
		sh -c 'echo $GLIBC_TUNABLES' | grep -c ':glibc.pthread.rseq=0$')"
	new_mark
	same "alone" 0 "$(P3_TEST_MARK=$mark taskset -c "$one" "$yod" -sz 1 \
		sh -c 'echo $GLIBC_TUNABLES' | grep -c rseq)"
	new_mark
	same "said by the user" 2 "$(GLIBC_TUNABLES=glibc.pthread.rseq=1 P3_TEST_MARK=$mark \
		taskset -c "$one" "$yod" -sz 2 sh -c 'echo $GLIBC_TUNABLES' |
		grep -c '^glibc.pthread.rseq=1:[^:]*$')"
	[ "$one" = "$all" ] && return
	run -sz 2 --bind "$all" -VN 2 sh -c 'echo $GLIBC_TUNABLES'
	same "two on one of many" 2 "$(grep -c rseq=0 "$dir/out")"
	run -sz 2 --bind "$all" sh -c 'echo $GLIBC_TUNABLES'
	same "one on each" 0 "$(grep -c rseq "$dir/out")"
}

case_stdin() {
	new_mark
	printf 'one\ntwo\n' | P3_TEST_MARK=$mark "$yod" -sz 3 \
		sh -c 'echo $PTL_MY_RID $(cat)' >"$dir/out" 2>"$dir/err"
	same "what ranks read" "0 one two,1,2," "$(sort "$dir/out" | tr '\n' ',')"
	run -sz 2 sh -c 'echo fine; cat' <&-
	same "without stdin" 0 $status
	new_mark
	P3_TEST_MARK=$mark "$yod" -sz 2 sh -c 'exit 4' <&- >&- 2>&-
	same "without descriptors" 4 $?
}

# A node has those that yod was started with.  The program that starts the test may make it
# ignore signals, as posix_spawn() does with two of the C library.
case_signal_dispositions() {
	# shellcheck disable=SC2016
	local show='grep -E "Sig(Blk|Ign)" /proc/$$/status | tr -d "\n\t"'
	run -sz 1 sh -c "$show"
	same "blocked and ignored" "$(sh -c "$show")" "$(cat "$dir/out")"
}

# ---- ending ----

# The time after SIGTERM, and the line about ranks that have not ended.  The time grows until
# it is enough for the rank that ends.
case_kill_after() {
	local after line='^yod: SIGTERM has not ended ranks? \S+ yet; SIGKILL follows'
	for ((after = 2; after < P3_WAIT; after *= 4)); do
		start -sz 3 --kill-after $after sh -c '[ $PTL_MY_RID != 1 ] || { echo up; exec sleep 3000; }
			trap "" TERM; echo up; while :; do sleep 0.1; done'
		await_lines 3
		kill -TERM $pid
		ends
		grep -q 'ranks 0-2 yet' "$dir/err" || break
	done
	same status 143 $status
	says "^yod: SIGTERM has not ended ranks 0,2 yet; SIGKILL follows $after s after it \(--kill-after\)\$"
	same lines 1 "$(grep -Ec "$line" "$dir/err")"
	nothing_left
	start -sz 2 --kill-after 1000 sh -c "trap '' TERM
		echo up; until [ -e $dir/go ]; do sleep 0.1; done; echo tidy"
	await_lines 2
	kill -TERM $pid
	await "$line" "$dir/err"
	touch "$dir/go"
	ends
	same status 143 $status
	same "tidied up" 2 "$(grep -c tidy "$dir/out")"
	start -sz 2 --kill-after 0 sh -c 'trap "" TERM; echo up; while :; do sleep 0.1; done'
	await_lines 2
	kill -TERM $pid
	ends
	same status 143 $status
	same "lines when killed at once" 0 "$(grep -Ec "$line" "$dir/err")"
	nothing_left
}

case_signals() {
	local sig
	for sig in INT:130 TERM:143 HUP:129 QUIT:131; do
		start -sz 3 sh -c 'ulimit -c 0; echo up; sleep 3000 & wait'
		await_lines 3
		kill -"${sig%:*}" $pid
		ends
		same "status after ${sig%:*}" "${sig#*:}" $status
		nothing_left
	done
	start -sz 2 --kill-after 100000 sh -c 'trap "echo tidy; exit 0" INT; echo up; while :; do sleep 0.1; done'
	await_lines 2
	kill -INT $pid
	ends
	same "tidied up" 2 "$(grep -c tidy "$dir/out")"
	same status 130 $status
}

case_stubborn() {
	start -sz 2 sh -c 'trap "" TERM INT; echo up; while :; do sleep 0.2; done'
	await_lines 2
	kill -TERM $pid
	ends
	same status 143 $status
	runs=$((runs + 1))
	[ "$took" -ge 4 ] || fail "killed after $took s, expected 5"
	nothing_left
}

case_second_interrupt() {
	start -sz 2 --kill-after 100000 sh -c 'trap "" TERM; trap "echo asked" INT; echo up
		while :; do sleep 0.2; done'
	await_lines 2
	kill -INT $pid
	await_lines 4
	kill -INT $pid
	ends
	same status 130 $status
	nothing_left
}

case_timeout() {
	local took
	run --timeout 1 -sz 2 sleep 3000
	same status 124 $status
	says '^yod: timeout: the job has run for 1 s \(--timeout\); ending the job$'
	nothing_left
	run --timeout "$P3_LIMIT.5" -sz 2 true
	same status 0 $status
}

case_stopped_node() {
	start -sz 2 sh -c '[ $PTL_MY_RID = 0 ] && kill -STOP $$
		sleep 1; exit 5'
	ends
	same status 5 $status
	nothing_left
}

case_user_signals() {
	start -sz 2 sh -c 'trap "echo one" USR1; trap "echo two; exit 0" USR2; echo up
		while :; do sleep 0.1; done'
	await_lines 2
	kill -USR1 $pid
	await_lines 4
	kill -USR2 $pid
	ends
	same status 0 $status
	same counts "2 2" "$(grep -c one "$dir/out") $(grep -c two "$dir/out")"
}

# Print the states of yod and of the processes that have printed their numbers.
states() {
	local p
	for p in $pid $(cat "$dir/out"); do state_of "$p"; done | tr -d '\n'
}

all_are_stopped() {
	[ "$(states)" = TTT ]
}

none_is_stopped() {
	[[ $(states) != *T* ]]
}

# Return true once all are stopped.
stops() {
	has_lines 2 && kill -TSTP "$pid" 2>/dev/null
	all_are_stopped
}

case_stop_and_continue() {
	# A shell that is stopped between vfork and exec would be in state D.
	start_in_time stops -sz 2 sh -c 'echo $$; exec sleep 3000'
	# pause: longer than the time-out, which does not count this time
	sleep $((in_time + 1))
	same "states when stopped" TTT "$(states)"
	kill -CONT $pid
	patiently none_is_stopped || fail "some are stopped: $(states)"
	ends
	same "timeout goes on counting" 124 $status
	nothing_left
}

# ---- no leftovers ----

spawner='sleep 3000 & (setsid sleep 3000 &) ; (setsid sh -c "sleep 3000 & sleep 3000" &)
	echo up; '

case_killed_yod() {
	start -sz 3 sh -c "$spawner"'sleep 3000'
	await_lines 3
	kill -KILL $pid
	ends
	same status 137 $status
	nothing_left
}

case_killed_launcher() {
	start -sz 3 sh -c "$spawner"'sleep 3000'
	await_lines 3
	kill -KILL "$(launcher)"
	ends
	same status 137 $status
	says 'launcher \(pid [0-9]+\) was killed by signal 9'
	nothing_left
}

case_killed_both() {
	local inner
	start -sz 3 sh -c 'echo up; exec sleep 3000'
	await_lines 3
	inner=$(launcher)
	kill -KILL $pid "$inner"
	ends
	nothing_left
}

case_background_child() {
	start -sz 2 sh -c "$spawner"'exit 0'
	ends
	same status 0 $status
	nothing_left
	start -sz 2 sh -c "$spawner"'kill -KILL $$'
	ends
	same status 137 $status
	nothing_left
}

children() { # of the launcher
	cat /proc/"$(launcher)"/task/*/children | wc -w
}

has_one_child() {
	[ "$(children)" = 1 ]
}

case_orphans_are_reaped() {
	start -sz 1 sh -c "for i in 1 2 3 4 5 6 7 8; do (sleep 0.1 &) ; done; echo up
		until [ -e $dir/reaped ]; do sleep 0.1; done"
	await_lines 1
	patiently has_one_child || fail "$(children) children, with orphans that have ended"
	touch "$dir/reaped"
	ends
	same status 0 $status
}

# ---- packets (shm/job.h) ----

sorted_out() {
	sort "$dir/out" | tr '\n' ','
}

case_said_died() {
	run -sz 3 --keep-going "$YOD_NODE" hello join barrier 1:die:9 wait:DIED drop leave
	same status 137 $status
	same heard "0 DIED 1 9,0 released 0,1 released 0,2 DIED 1 9,2 released 0," \
		"$(sorted_out)"
	run -sz 2 --keep-going "$YOD_NODE" hello join barrier 1:exit:3 wait:DIED drop leave
	same heard "0 DIED 1 768,0 released 0,1 released 0," "$(sorted_out)"
}

reaped_in_time() {
	run -sz 2 --keep-going "$YOD_NODE" hello join barrier 1:die:15 wait:DIED \
		nap:100 state drop gone leave
	! grep -q 'state late' "$dir/out"
}

case_said_reaped_late() {
	patiently reaped_in_time || fail "no look is in time"
	same states "0 state -,0 state Z," "$(sorted_out | grep -o '0 state.*' |
		sed 's/1 rel.*//')"
	run -sz 2 --keep-going "$YOD_NODE" hello join barrier 1:die:15 wait:DIED \
		gone leave
	same "state without an answer" "0 state -," "$(sorted_out | grep -o '0 state.*' |
		sed 's/1 rel.*//')"
}

# ---- output ----

untag() { # rank
	sed -n "s/^\[$1\] //p" "$dir/out"
}

case_tags() {
	run -sz 3 --tag sh -c 'echo out $PTL_MY_RID; echo; echo err $PTL_MY_RID >&2'
	same status 0 $status
	same stdout "[0] ,[0] out 0,[1] ,[1] out 1,[2] ,[2] out 2," \
		"$(sort "$dir/out" | tr '\n' ',')"
	same stderr "[0] err 0,[1] err 1,[2] err 2," "$(sort "$dir/err" | tr '\n' ',')"
}

case_tag_partial_lines() {
	run -sz 1 --tag sh -c 'printf a; sleep 0.6; printf b; sleep 0.1; echo c; printf d'
	same bytes "[0] abc,[0] d" "$(tr '\n' ',' <"$dir/out")"
	start -sz 1 --tag sh -c "printf prompt; until [ -e $dir/went ]; do sleep 0.1; done; echo"
	await prompt
	same "partial line is out" "[0] prompt" "$(cat "$dir/out")"
	touch "$dir/went"
	ends
	run -sz 2 --tag sh -c "said() { until grep -q \$1 $dir/out; do sleep 0.1; done; }
		[ \$PTL_MY_RID = 1 ] && said begin && echo other && exit 0
		printf begin; said other; echo end"
	same "another node in between" "[0] begin,[1] other,[0] end," \
		"$(tr '\n' ',' <"$dir/out")"
}

case_tag_bytes() {
	local r
	for r in 0 1; do
		head -c 300000 /dev/urandom >"$dir/in$r"
		echo >>"$dir/in$r"
	done
	run -sz 2 --tag sh -c "cat $dir/in\$PTL_MY_RID"
	for r in 0 1; do
		LC_ALL=C sed -n "s/^\[$r\] //p" "$dir/out" | cmp -s - "$dir/in$r" ||
			fail "bytes of rank $r differ"
		runs=$((runs + 1))
	done
}

# One process writes the whole line: a writer that pauses has its part of a line shown.
case_tag_long_lines() {
	local r
	for r in 0 1 2; do
		{ head -c 1048576 /dev/zero | tr "\0" $r && printf '\nshort\n'; } >"$dir/in$r"
	done
	run -sz 3 --tag sh -c "cat $dir/in\$PTL_MY_RID; kill -KILL \$\$"
	same status 137 $status
	run -sz 3 --tag --keep-going sh -c "cat $dir/in\$PTL_MY_RID; kill -KILL \$\$"
	same lines 6 "$(wc -l <"$dir/out")"
	same lengths "[0] 1048576,[1] 1048576,[2] 1048576," \
		"$(awk 'length($0) > 100 {print $1, length($2)}' "$dir/out" | sort | tr '\n' ',')"
	same "what was written before the crash" 3 "$(grep -c short "$dir/out")"
}

case_tag_slow_reader() {
	new_mark
	took=$(P3_TEST_MARK=$mark "$yod" -sz 2 --tag sh -c 'yes | head -c 4000000' \
		2>"$dir/err" | (sleep 3; wc -l))
	same "lines through a slow reader" 4000000 "$took"
	same "lines of numbers through a slow reader" "[0] 300000 [1] 300000" \
		"$("$yod" -sz 2 --tag stdbuf -oL seq -f %.0f 300000 | (sleep 1; count_lines ' '))"
	new_mark
	took=$(P3_TEST_MARK=$mark "$yod" -sz 2 --tag sh -c 'echo first; yes' 2>"$dir/err" |
		head -1 | cut -c5-)
	same "a reader that leaves" first "$took"
	nothing_left
	new_mark
	(echo $BASHPID >"$dir/pid"; P3_TEST_MARK=$mark exec "$yod" -sz 2 --tag yes 2>"$dir/err") |
		sh -c "read -r x; touch $dir/read; until [ -e $dir/done ]; do sleep 0.1; done" &
	patiently test -e "$dir/read" || fail "the reader reads nothing"
	pid=$(<"$dir/pid")
	kill -INT "$pid"
	await 'ending the job' "$dir/err"
	kill -INT "$pid" 2>/dev/null
	patiently none_is_marked
	same "interrupted with a reader that sleeps" "" "$(marked | tr '\n' ' ')"
	touch "$dir/done"
	wait
}

# A reader of stderr that pauses holds up neither yod nor its guard.
case_paused_pager() {
	local nodes
	start_paused -sz 2 sh -c 'exec 2>/dev/null; if [ $PTL_MY_RID = 0 ]; then until [ -e $0.up ]; do sleep 0.1; done; exit 3; fi
		trap "touch $0.asked; exit 0" TERM; touch $0.up; while :; do sleep 0.1; done' "$dir/paused"
	patiently test -e "$dir/paused.asked" || fail "a paused pager keeps yod from ending the job"
	resume_pager
	ends
	wait $pager_pid
	same status 3 $status
	says '^yod: rank 0 \(pid [0-9]+\) exited with status 3; ending the job$'
	same lines 1 "$(err_but_waits | wc -l)"
	start_paused -sz 2 sh -c 'echo $$; exec sleep 3000'
	await_lines 2
	nodes=$(tr '\n' ' ' <"$dir/out")
	kill -KILL "$(launcher)"
	# shellcheck disable=SC2086
	patiently none_is_there $nodes || fail "a paused pager keeps the guard from the sweep"
	resume_pager
	ends
	wait $pager_pid
	same "status with a killed launcher" 137 $status
	says 'launcher \(pid [0-9]+\) was killed by signal 9'
	start_paused -sz 2 --tag sh -c 'echo up; exec sleep 3000'
	await_lines 2
	interrupt_all $pid
	ends
	resume_pager
	wait $pager_pid
	same "status of an interrupted job" 130 $status
	start_paused -sz 2 --stats true
	# pause: longer than yod waits at its end in a hurry, or after a failed start
	sleep 11
	resume_pager
	ends
	wait $pager_pid
	same "statistics that a pager shows late" "0 4" "$status $(grep -c '^yod: ' "$dir/err")"
	start_paused -sz 2 --stats sh -c 'touch "$0.$PTL_MY_RID"' "$dir/ended"
	patiently test -e "$dir/ended.0" -a -e "$dir/ended.1"
	interrupt_all $pid
	ends
	resume_pager
	wait $pager_pid
}

case_tag_grandchild() {
	start -sz 1 --tag sh -c '(while kill -0 $$ 2>/dev/null; do sleep 0.05; done; echo late) & echo early'
	ends
	same output "[0] early,[0] late," "$(tr '\n' ',' <"$dir/out")"
	start -sz 1 --tag sh -c 'sleep 3000 & echo early'
	ends
	same status 0 $status
	nothing_left
	start -sz 1 --tag sh -c 'yes >&2 & echo early'
	ends
	nothing_left
}

# Check that a file has the output of yod_chunks for this rank.
same_bytes() { # what, rank, file
	runs=$((runs + 1))
	[ -s "$dir/chunks$2" ] || "$YOD_CHUNKS" "$2" exit >"$dir/chunks$2"
	cmp -s "$dir/chunks$2" "$3" || fail "$1: bytes of rank $2 differ"
}

case_chunks() {
	local r how
	for how in exit die; do
		run -sz 3 --keep-going --only-rank 1 "$YOD_CHUNKS" rank $how
		same_bytes "one rank, $how" 1 "$dir/out"
		run -sz 3 --keep-going --only-rank 2 --tag "$YOD_CHUNKS" rank $how
		LC_ALL=C sed 's/^\[2\] //' <"$dir/out" >"$dir/untagged"
		same_bytes "one rank with tags, $how" 2 "$dir/untagged"
		rm -rf "$dir/files"
		run -sz 3 --keep-going --output-dir "$dir/files" "$YOD_CHUNKS" rank $how
		for r in 0 1 2; do
			same_bytes "files, $how" $r "$dir/files/rank$r.out"
		done
	done
	run -sz 2 --tag --only-rank 1 sh -c '"$0" rank exit >&2' "$YOD_CHUNKS"
	LC_ALL=C sed 's/^\[1\] //' <"$dir/err" >"$dir/untagged"
	same_bytes "stderr with tags" 1 "$dir/untagged"
}

case_only_rank() {
	run -sz 5 --only-rank 1,3-4 sh -c 'echo out $PTL_MY_RID; echo err $PTL_MY_RID >&2'
	same status 0 $status
	same stdout "out 1,out 3,out 4," "$(sort "$dir/out" | tr '\n' ',')"
	same stderr "err 1,err 3,err 4," "$(sort "$dir/err" | tr '\n' ',')"
	run -sz 3 --keep-going --only-rank 0 --tag sh -c 'echo out; exit $PTL_MY_RID'
	same "status of one that is not shown" 1 $((status == 1 || status == 2))
	same stdout "[0] out" "$(cat "$dir/out")"
	local bad
	for bad in 3 0-3 1- -1 2-1 0,,1 '' x 99999999999; do
		run -sz 3 --only-rank "$bad" true
		same "status of '$bad'" 2 $status
		same "lines of '$bad'" 1 "$(wc -l <"$dir/err")"
	done
}

case_output_dir() {
	run -sz 3 --output-dir "$dir/o" sh -c 'echo out $PTL_MY_RID; echo err $PTL_MY_RID >&2'
	same status 0 $status
	same "beside the files" "" "$(cat "$dir/out" "$dir/err")"
	same files "rank0.err rank0.out rank1.err rank1.out rank2.err rank2.out" \
		"$(ls "$dir/o" | tr '\n' ' ' | sed 's/ $//')"
	same bytes "err 0,out 0,err 1,out 1,err 2,out 2," "$(cat "$dir"/o/* | tr '\n' ',')"
	run -sz 2 --output-dir "$dir/o" --only-rank 1 echo again
	same "a second run, of one rank" ",again" "$(cat "$dir/o/rank0.out"),$(cat "$dir/o/rank1.out")"
	start -sz 2 --output-dir "$dir/o" sh -c 'echo up; exec sleep 3000'
	await up "$dir/o/rank0.out"
	await up "$dir/o/rank1.out"
	kill -KILL $pid
	ends
	same "written before yod was killed" "up up" "$(echo $(cat "$dir"/o/rank[01].out))"
	nothing_left
	local bad
	for bad in /proc/none ''; do
		run -sz 4 --output-dir "$bad" echo ran
		same "status of '$bad'" 125 $status
		same "lines of '$bad'" 1 "$(cat "$dir/err" "$dir/out" | wc -l)"
	done
}

case_untagged_is_direct() {
	run -sz 1 sh -c 'readlink /proc/$$/fd/1'
	same "stdout is yod's" "$dir/out" "$(cat "$dir/out")"
}

case_many_nodes() {
	run -sz 100 sh -c 'echo $PTL_MY_RID'
	same status 0 $status
	same lines 100 "$(sort -u "$dir/out" | wc -l)"
	run -sz 100 --tag sh -c 'echo $PTL_MY_RID'
	same lines 100 "$(sort -u "$dir/out" | wc -l)"
}

case_no_files() {
	mkdir "$dir/empty"
	ls -A /dev/shm >"$dir/shm"
	cd "$dir/empty" || exit 1
	TMPDIR=$dir/empty HOME=$dir/empty run -sz 1 sh -c 'ls -A; ls -A /dev/shm >&2'
	same "names in /dev/shm while it runs" "$(cat "$dir/shm")" "$(cat "$dir/err")"
	same "files while it runs" "" "$(cat "$dir/out")"
	cd - >/dev/null || exit 1
}

skipped_case() { # name
	case $1 in
	said_*) [ -z "$YOD_NODE" ] ;;
	chunks) [ -z "$YOD_CHUNKS" ] ;;
	*) false ;;
	esac
}

run_cases
