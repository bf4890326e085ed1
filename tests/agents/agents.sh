#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# yod --hosts: agents whose hosts are all this machine (local.sh), and whose nodes are
# /bin/sh programs, and some programs of Portals.
#
# usage: agents.sh path/to/yod [case...]
#	AGENTS_PROGRAM	a program of Portals that succeeds on 6 nodes, and its arguments

yod=${1:?usage: agents.sh path/to/yod [case...]}
shift
# shellcheck disable=SC2034
only="$*"
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/yod_cases.sh"
export PTL3_RSH=$here/local.sh
unset PTL3_DOMAIN # which ctest sets

no_domain_is_left() {
	local names
	names=$(find "/dev/shm/ptl3-$(id -u)" -mindepth 1 -maxdepth 1 -name "yod-$1-*" 2>/dev/null)
	[ -z "$names" ]
}

clean() { # number of the job
	nothing_left
	patiently no_domain_is_left "$1" ||
		fail "domains left: $(ls "/dev/shm/ptl3-$(id -u)")"
}

# An agent is the child of local.sh, and an inner process is its child.
child_of() { # pid
	cut -d' ' -f1 "/proc/$1/task/$1/children"
}

shell_of() { # number of the host
	cut -d' ' -f"$1" "/proc/$(launcher)/task/$(launcher)/children"
}

agent_of() { # number of the host
	child_of "$(shell_of "$1")"
}

# Print the yod of this run that is no child of another one.
first_yod() {
	local p
	for p in $(marked); do
		[ "$(cat "/proc/$p/comm")" = yod ] || continue
		[ "$(cat "/proc/$(cut -d' ' -f4 "/proc/$p/stat")/comm")" = yod ] || { echo "$p"; return; }
	done
}

# ---- hosts ----

case_placement() {
	run --hosts a,b,c -sz 7 sh -c 'echo $PTL_MY_RID ${PTL3_DOMAIN##*-}'
	same status 0 $status
	same "even blocks" "0 0,1 0,2 0,3 1,4 1,5 2,6 2," "$(sort -n "$dir/out" | tr '\n' ,)"
	run --hosts a:1,b:4,c:9 -sz 6 sh -c 'echo $PTL_MY_RID ${PTL3_DOMAIN##*-}'
	same slots "0 0,1 1,2 1,3 1,4 1,5 2," "$(sort -n "$dir/out" | tr '\n' ,)"
	run --hosts a,b,c -sz 2 sh -c 'echo $PTL_MY_RID ${PTL3_DOMAIN##*-}'
	same "fewer nodes than hosts" "0 0,1 1," "$(sort -n "$dir/out" | tr '\n' ,)"
	run --hosts a -sz 2 sh -c 'echo $PTL_MY_RID $PTL3_DOMAIN'
	same "one host needs no domain" "0,1," "$(sort -n "$dir/out" | tr -d ' ' | tr '\n' ,)"
	run --hosts '[::1]:2,user@b.c' --plan -sz 3 nothing
	same plan "hosts ::1: ranks 0-1, user@b.c: ranks 2-2," \
		"$(sed -n '/^hosts/,$s/  */ /gp' "$dir/out" | tr '\n' ,)"
}

case_hostfile() {
	printf '# two hosts\n\n a:2 # the first\nb\tslots=1\n' >"$dir/hosts"
	run --hostfile "$dir/hosts" -sz 3 sh -c 'echo $PTL_MY_RID ${PTL3_DOMAIN##*-}'
	same "a file" "0 0,1 0,2 1," "$(sort -n "$dir/out" | tr '\n' ,)"
	for line in 'a:0' 'a:x' 'a slots=' 'a slots=2000' 'a:1 slots=1' '-oProxyCommand=x' 'a b' 'a;b'; do
		printf 'c\n%s\n' "$line" >"$dir/hosts"
		run --hostfile "$dir/hosts" -sz 2 true
		same "status of '$line'" 2 $status
		says "^yod: --hostfile: $dir/hosts:2: '$line' is no host; expected"
	done
}

case_refused() {
	for list in '' a,,b a:0,b -x; do
		run --hosts "$list" -sz 2 true
		same "status of '$list'" 2 $status
	done
}

# ---- remote shells that fail ----

case_no_agent() {
	run --rsh false --hosts a,b -sz 2 touch "$dir/ran"
	same status 125 $status
	says '^yod: host [ab]: false exited with status 1 before an agent of yod has answered; expected that this works: false [ab] /.* --version$'
	same lines 1 "$(err_but_waits | wc -l)"
	printf '#!/bin/sh\nprintf "\\nWelcome\\033[0m\\0\\n\\n"; cat\n' >"$dir/motd"
	chmod +x "$dir/motd"
	run --rsh "$dir/motd" --hosts a -sz 2 true
	same status 125 $status
	says "^yod: host a: '\\\\012Welcome\\\\033\[0m\\\\000' is no frame of an agent of this version; .* as in $dir/motd a true$"
	run --rsh "'" --hosts a -sz 2 true
	same status 125 $status
	says "^yod: --rsh: ''' is no program; expected"
	[ ! -e "$dir/ran" ] || fail "a node has run"
	nothing_left
}

# One of three hosts cannot run the program: no node starts.
case_one_fails() {
	cat >"$dir/rsh" <<-'EOF'
		#!/bin/sh
		[ "$1" != b ] || exit 9
		exec sh -c "$2"
	EOF
	chmod +x "$dir/rsh"
	run --rsh "$dir/rsh" --hosts a,b,c -sz 3 touch "$dir/ran"
	same status 125 $status
	says '^yod: host b: .*/rsh exited with status 9 before an agent of yod has answered'
	[ ! -e "$dir/ran" ] || fail "a node has run"
	run --hosts a,b -sz 2 sh -c 'exit 0' : -sz 1 ./nothing
	same status 127 $status
	says '^yod: [ab]: ./nothing: cannot be run: no such program'
	nothing_left
}

# The host of a rank that crashes tells how to find where that was, once.
case_crash() {
	run --hosts a,b -sz 4 sh -c 'ulimit -c 0; [ $PTL_MY_RID -lt 2 ] || kill -SEGV $$; sleep 3000'
	same "status, and lines" "139 2" "$status $(err_but_waits | wc -l)"
	says '^yod: rank [23] \(pid [0-9]+ on b\) killed by signal 11 .*; ending the job$'
	says '^yod: b: rank [23]: no core file'
	nothing_left
}

# Remote shells start 32 at a time, unless one of them is named after 10 s.
case_many_shells() {
	cat >"$dir/rsh" <<-EOF
		#!/bin/sh
		: >"$dir/begun.\$1"
		[ ! -p "$dir/gate" ] || read -r line <"$dir/gate"
		exec "$here/local.sh" "\$@"
	EOF
	chmod +x "$dir/rsh"
	mkfifo "$dir/gate"
	start --rsh "$dir/rsh" --hosts "$(seq -s, -f h%g 34)" -sz 34 sh -c 'echo $PTL_MY_RID'
	patiently has_files 32 || fail "$(find "$dir" -name 'begun.*' | wc -l) remote shells"
	# pause: time for more of them
	sleep 0.5
	! has_files 33 || grep -q 'has not started an agent for 10 s' "$dir/err" || fail "more than 32 remote shells start at a time"
	mv "$dir/gate" "$dir/gate.open"
	: >"$dir/gate.open"
	ends
	same "status and ranks" "0 34" "$status $(sort -u "$dir/out" | wc -l)"
	nothing_left
}

has_files() { # number
	[ "$(find "$dir" -name 'begun.*' | wc -l)" -ge "$1" ]
}

# A host has no memory for the job: its agent says so, and ends.
case_no_memory() {
	unshare -m true 2>/dev/null || {
		echo "# namespaces of mounts are refused"
		return
	}
	cat >"$dir/rsh" <<-'EOF'
		#!/bin/sh
		[ "$1" = b ] || exec sh -c "$2"
		exec unshare -m sh -c 'mount -t tmpfs -o ro tmpfs /dev/shm; exec sh -c "$0"' "$2"
	EOF
	chmod +x "$dir/rsh"
	run --rsh "$dir/rsh" --hosts a,b -sz 2 true
	same status 125 $status
	says '^yod: b: /dev/shm/ptl3-[0-9]*: Read-only file system; see'
	same lines 2 "$(err_but_waits | wc -l)"
	nothing_left
}

# Bytes of another program come from the agent's host while nodes run.
case_foreign_bytes() {
	cat >"$dir/rsh" <<-EOF
		#!/bin/bash
		"$here/local.sh" "\$@" | { cat & until [ -e "$dir/speak" ]; do sleep 0.1; done; echo a banner; wait; }
	EOF
	chmod +x "$dir/rsh"
	start --rsh "$dir/rsh" --hosts a -sz 2 sh -c "$long"
	await_lines 2
	touch "$dir/speak"
	ends
	same "status and lines" "125 1" "$status $(err_but_waits | wc -l)"
	says "^yod: host a: 'a banner' is no frame of an agent of this version; expected"
	clean $pid
}

# A shell prints no frame, and goes on without its connection: yod waits for it without
# taking a CPU, and kills it.
case_garbage_and_on() {
	printf '#!/bin/sh\nexec <&-\necho a banner that is no frame of an agent\nexec >&-\nexec sleep 3000\n' >"$dir/rsh"
	chmod +x "$dir/rsh"
	times >"$dir/before"
	run --rsh "$dir/rsh" --hosts a -sz 1 --timeout "$P3_LIMIT" true
	times >"$dir/after"
	same "status and lines" "125 1" "$status $(err_but_waits | wc -l)"
	same "CPU time above 0.5 s" "" "$(sed -sn '2s/[ms]/ /gp' "$dir/before" "$dir/after" |
		awk '{t[NR] = 60 * ($1 + $3) + $2 + $4} END {if (t[2] - t[1] > 0.5) print t[2] - t[1]}')"
	nothing_left
}

# Part of an agent's first frame comes, and then nothing: after the time-out one line says
# so, and the job ends.
case_part_of_a_frame() {
	printf '#!/bin/sh\nprintf "\\004FP3\\022"; exec sleep 3000\n' >"$dir/rsh"
	chmod +x "$dir/rsh"
	PTL3_FAR_TIMEOUT=1 run --rsh "$dir/rsh" --hosts a -sz 1 --timeout "$P3_LIMIT" true
	same "status and lines" "125 1" "$status $(err_but_waits | wc -l)"
	says "^yod: host a: $dir/rsh brings part of a frame, and then nothing for 1 s \(PTL3_FAR_TIMEOUT\) before an agent of yod has answered; expected"
	nothing_left
}

# An agent says HELLO and nothing more.
case_silent_agent() {
	printf '#!/bin/sh\n"%s/local.sh" "$@" </dev/null 2>/dev/null | head -c 32; exec sleep 3000\n' "$here" >"$dir/rsh"
	chmod +x "$dir/rsh"
	PTL3_FAR_TIMEOUT=1 run --rsh "$dir/rsh" --hosts a -sz 1 --keep-going --timeout "$P3_LIMIT" true
	same status 125 "$status"
	says "^yod: host a is lost, with ranks 0-0: $dir/rsh brings no frame for 1 s \(PTL3_FAR_TIMEOUT\); ending"
	nothing_left
}

case_versions() {
	printf '\005FP3 the rest' | "$yod" --agent >"$dir/out" 2>"$dir/err"
	same "status of an agent" 125 $?
	same "first word" "04 46 50 33" "$(head -c4 "$dir/out" | od -An -tx1 | tr -s ' ' | sed 's/^ //')"
	# An order that is cut off, and one of noise.
	printf '\004FP3\001\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\020\0\0\0\0\0\0\0short' |
		"$yod" --agent >"$dir/out" 2>"$dir/err"
	same "status of a short order" 125 $?
	printf '\004FP3\001\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\020\0\0\0\0\0\0\0sixteenbytesofno' |
		"$yod" --agent >"$dir/out" 2>"$dir/err"
	same "status of noise" 125 $?
	says 'standard input has no order'
}

# ---- the environment of nodes ----

case_environment() {
	mkdir "$dir/a dir"
	cd "$dir/a dir" || exit 1
	(umask 031
	 ODD=$'a "b\n'"'c" run --hosts a,b -sz 2 --env X="it's" sh -c \
		'printf "%s|%s|%s|%s|%s\n" "$PWD" "$ODD" "$X" "$(umask)" "$*"' - 'one two' '$x;')
	same "environment" "2 'c|it's|0031|one two \$x;,2 $dir/a dir|a \"b," \
		"$(LC_ALL=C sort "$dir/out" | uniq -c | sed 's/^ *//' | tr '\n' ,)"
	cd - >/dev/null || exit 1
	run --hosts a,b -sz 2 sh -c 'tr "\0" " " </proc/$PPID/cmdline; echo'
	same "words of the agents" "$yod --agent ,$yod --agent ," "$(tr '\n' , <"$dir/out")"
	run --hosts a,b -sz 4 sh -c 'echo $PTL_NIDMAP $PTL_PIDMAP $PTL_IFACE'
	same maps 1 "$(sort -u "$dir/out" | wc -l)"
	same maps "10000:10001:10002:10003 100:101:102:103 0" "$(head -1 "$dir/out")"
}

fds_in() { # list of ls, without the one that it has made
	sed -n "s,/fds.*,,; s,.* \\([0-9]*\\) -> \\([a-z/A-Z.0-9]*\\).*,\\1 \\2,p" "$1" | grep -v /proc |
		sort -n | tr '\n' ,
}

case_files() {
	run --hosts a,b -sz 2 sh -c 'ls -l /proc/self/fd >"$0.$PTL_MY_RID"' "$dir/fds"
	same "descriptors of rank 0" "0 pipe,1 $dir,2 pipe,100 socket," "$(fds_in "$dir/fds.0")"
	same "descriptors of rank 1" "0 /dev/null,1 $dir,2 pipe,100 socket," "$(fds_in "$dir/fds.1")"
}

# ---- output and input ----

case_output() {
	run --hosts a,b -sz 4 --tag sh -c 'echo one; echo two >&2; printf three'
	same stdout "[0] one,[0] three,[1] one,[1] three,[2] one,[2] three,[3] one,[3] three," \
		"$(grep . "$dir/out" | sort | tr '\n' ,)"
	same stderr "[0] two,[1] two,[2] two,[3] two," "$(sort "$dir/err" | tr '\n' ,)"
	run --hosts a,b -sz 4 --only-rank 1-2 sh -c 'echo $PTL_MY_RID'
	same "only ranks" "1,2," "$(sort "$dir/out" | tr '\n' ,)"
	run --hosts a,b -sz 3 --output-dir "$dir/o" sh -c 'seq 100000; echo err $PTL_MY_RID >&2'
	same "files" "$(seq 100000 | md5sum)" "$(md5sum <"$dir/o/rank2.out")"
	same "files" "err 1" "$(cat "$dir/o/rank1.err")"
	same "bytes of one rank, untagged" "$(seq 300000 | head -c -1 | md5sum)" \
		"$("$yod" --hosts a,b -sz 2 sh -c '[ $PTL_MY_RID = 0 ] || seq 300000 | head -c -1' | md5sum)"
	run --hosts a,b -sz 2 --stats sh -c 'exit 0'
	same "statistics" 4 "$(err_but_waits | grep -c '^yod: ')"
}

# seq writes whole lines: yod pushes a part of a line that stays alone for a while.
case_slow_reader() {
	local n
	same "tagged lines through a slow reader" "[0] 300000 [1] 300000 [2] 300000" \
		"$("$yod" --hosts a,b --tag -sz 3 stdbuf -oL seq -f %.0f 300000 | (sleep 1; count_lines ' '))"
	same "lines through a slow reader" "0 300000 1 300000 2 300000" \
		"$("$yod" --hosts a,b -sz 3 sh -c 'stdbuf -oL seq -f $PTL_MY_RID:%.0f 300000' | (sleep 1; count_lines :))"
	n=$("$yod" --hosts a,b -sz 2 --tag sh -c 'yes | head -c 1000000' | (sleep 2; wc -l))
	same "lines through a slow reader" 1000000 "$n"
	new_mark
	n=$(P3_TEST_MARK=$mark "$yod" --hosts a,b -sz 2 --tag sh -c 'echo first; yes' \
		2>"$dir/err" | head -1 | cut -c5-)
	same "a reader that leaves" first "$n"
	nothing_left
	# A reader that sleeps holds up no node that is silent, and no signal.
	new_mark
	(P3_TEST_MARK=$mark exec "$yod" --hosts a,b -sz 2 sh -c \
		'[ $PTL_MY_RID = 1 ] || yes; until [ -e "$0" ]; do sleep 0.1; done; touch "$0.seen"; exec sleep 3000' \
		"$dir/go" 2>"$dir/err") | sh -c 'read -r x; touch "$0"; exec sleep 3000' "$dir/read" &
	local reader=$!
	patiently test -e "$dir/read" || fail "no output comes"
	# pause: the pipe is filled
	sleep 1
	touch "$dir/go"
	patiently test -e "$dir/go.seen" || fail "a slow reader holds up another node"
	interrupt_all "$(first_yod)"
	kill $reader
	wait
}

# A rank that pauses within a line shows what it has written.
case_partial_lines() {
	start --hosts a,b -sz 1 --tag sh -c 'printf prompt; until [ -e "$0" ]; do sleep 0.1; done; echo more' "$dir/went"
	await prompt
	same "partial line" "[0] prompt" "$(cat "$dir/out")"
	touch "$dir/went"
	ends
	same "its rest" "[0] promptmore" "$(cat "$dir/out")"
}

# A full disk loses output, and ends no rank, as on one host.
case_full_disk() {
	mkdir -p "$dir/full"
	ln -s /dev/full "$dir/full/rank1.out"
	ln -s /dev/full "$dir/full/rank2.err"
	run --hosts a,b -sz 3 --output-dir "$dir/full" sh -c \
		'for i in 1 2 3; do seq 50000; done; echo err >&2; touch "$0.$PTL_MY_RID"' "$dir/through"
	same "status, and ranks that go on" "125 3" "$status $(find "$dir" -name 'through.*' | wc -l)"
	says "^yod: --output-dir: cannot write $dir/full/rank(1.out|2.err): No space left on device; bytes that do not fit are lost, and the rank goes on; see df$"
	says "^yod: --output-dir: the files of ranks 1-2 in $dir/full lack output$"
	same lines 2 "$(err_but_waits | wc -l)"
	same "a file with room" 150000 "$(wc -l <"$dir/full/rank2.out")"
	(ulimit -f 100; run --hosts a -sz 1 --output-dir "$dir/limit" sh -c 'seq 50000; echo err >&2'; exit $status)
	same "status, and bytes, with a file that is too long" "125 102400" "$? $(stat -c %s "$dir/limit/rank0.out")"
	says "^yod: --output-dir: cannot write $dir/limit/rank0.out: File too large; bytes that do not fit are lost, and the rank goes on; see df$"
	same "the other file" err "$(cat "$dir/limit/rank0.err")"
}

# yod prints what agents say as its reader takes it, and counts the lines that find no room.
case_many_lines() {
	printf '#!/bin/sh\nexec "%s/frames.py" "%s/local.sh" "$@"\n' "$here" "$here" >"$dir/rsh"
	chmod +x "$dir/rsh"
	FRAMES_SAY=20000 FRAMES_SAID=$dir/said start_paused --rsh "$dir/rsh" --hosts a -sz 1 \
		sh -c 'until [ -e "$0" ]; do sleep 0.1; done' "$dir/last"
	patiently test -e "$dir/said" || fail "lines of an agent hold up yod"
	touch "$dir/last"
	resume_pager
	ends
	wait $pager_pid
	same status 0 $status
	same "lines, with those that a line tells of" 20000 "$(awk 'length($0) < 120 && $2 == "a:" && $3 == "line" {n++; next}
		/^yod: [0-9]+ lines of yod are missing here/ {n += $2; next} {print} END {print n}' "$dir/err")"
	says '^yod: [0-9]+ lines of yod are missing here: the reader of standard error paused$'
}

case_stdin() {
	run --hosts a,b -sz 2 cat <"$0"
	same "a file" "$(md5sum <"$0")" "$(md5sum <"$dir/out")"
	seq 1000000 >"$dir/long"
	# shellcheck disable=SC2002
	same "a pipe" "$(md5sum <"$dir/long")" \
		"$(cat "$dir/long" | "$yod" --hosts a,b -sz 2 cat | md5sum)"
	run --hosts a,b -sz 2 cat </dev/null
	same "no input" "0 0" "$status $(wc -c <"$dir/out")"
	same "a rank that leaves its input" y \
		"$(yes | "$yod" --hosts a,b -sz 2 sh -c '[ $PTL_MY_RID = 1 ] || head -1; exit 0')"
	run --hosts a,b -sz 2 true <&-
	same "closed input" 0 $status
}

# The frame that starts the nodes and those behind it come to an agent at once.
case_frames_at_once() {
	cat >"$dir/rsh" <<-EOF
		#!/bin/bash
		python3 -c 'import os, time
		while True:
		    time.sleep(1)
		    got = os.read(0, 1 << 20)
		    if not got: break
		    os.write(1, got)' | "$here/local.sh" "\$@"
	EOF
	chmod +x "$dir/rsh"
	PTL3_FAR_TIMEOUT=never run --rsh "$dir/rsh" --hosts a -sz 1 --timeout "$P3_LIMIT" cat <<<"a line"
	same "status and output" "0 a line" "$status $(cat "$dir/out")"
	nothing_left
}

# ---- ends ----

case_status() {
	run --hosts a,b -sz 2 sh -c '[ $PTL_MY_RID = 0 ] || kill -9 $$; sleep 3000'
	same status 137 $status
	says '^yod: rank 1 \(pid [0-9]+ on b\) killed by signal 9 \(Killed\); ending the job$'
	run --hosts a,b,c -sz 3 --keep-going sh -c \
		'[ $PTL_MY_RID != 1 ] || exit 7; sleep 1; echo late $PTL_MY_RID'
	same "status of --keep-going" "7 2" "$status $(grep -c late "$dir/out")"
	says 'rank 1 \(pid [0-9]+ on b\) exited with status 7; the others go on'
	nothing_left
}

# An agent tells the end of a rank before others can fail because of it, so yod hears of the
# first failure first.
case_first_failure() {
	printf '#!/bin/sh\nFRAMES_ENDS="%s/ends.$1" exec "%s/frames.py" "%s/local.sh" "$@"\n' "$dir" "$here" "$here" >"$dir/rsh"
	chmod +x "$dir/rsh"
	run --rsh "$dir/rsh" --hosts a,b --keep-going -sz 4 sh -c 'exit 5'
	same status 5 $status
	for host in a b; do
		same "ends of $host, and those told before their status" "2 0" \
			"$(awk '{ told[$0] } $1 == "GONE" { n++; early += !("ENDED " $2 in told) } END { print n + 0, early + 0 }' "$dir/ends.$host")"
	done
	nothing_left
}

case_signals() {
	local sig
	for sig in INT TERM HUP QUIT; do
		start --hosts a,b -sz 4 --kill-after 100000 sh -c "trap 'echo got $sig; exit 0' $sig; echo up; while :; do sleep 0.1; done"
		await_lines 4
		kill -$sig $pid
		ends
		same "status of $sig" $((128 + $(kill -l $sig))) $status
		same "nodes that got $sig" 4 "$(grep -c "got $sig" "$dir/out")"
		same "lines of $sig" 1 "$(err_but_waits | grep -c '^yod')"
	done
	start --hosts a,b -sz 2 sh -c "trap 'echo got' USR1; echo up; while :; do sleep 0.1; done"
	await_lines 2
	kill -USR1 $pid
	await_lines 4
	kill -INT $pid
	kill -INT $pid 2>/dev/null
	ends
	same "status of two" 130 $status
	nothing_left
}

# Start a job on two hosts.  The second one answers when answer_late tells it to.
start_late() { # program
	cat >"$dir/late" <<-EOF
		#!/bin/bash
		yod=\$(cut -d' ' -f4 /proc/\$PPID/stat)
		if [ "\$1" = b ]; then
			touch "$dir/asked.\$yod"
			until [ -e "$dir/answer.\$yod" ]; do sleep 0.05; done
		fi
		exec "$here/local.sh" "\$@"
	EOF
	chmod +x "$dir/late"
	start --rsh "$dir/late" --hosts a,b -sz 2 "$@"
	patiently test -e "$dir/asked.$pid" || fail "no remote shell"
	# pause: the agent of a gets its order
	sleep 0.5
}

answer_late() {
	touch "$dir/answer.$pid"
	ends
}

send_signals() { # signals
	local sig
	for sig; do
		kill -"$sig" $pid
		# pause: they come one by one
		sleep 0.1
	done
}

# A signal that comes before one of the hosts has answered waits for the nodes, and ends
# the job as on one host.
case_early_signals() {
	local sig
	start_late true
	send_signals WINCH CONT TSTP CONT
	answer_late
	same "status and stderr" "0 " "$status $(err_but_waits)"
	for sig in INT TERM; do
		start_late true
		send_signals $sig
		answer_late
		same "status of $sig" $((128 + $(kill -l $sig))) $status
		same "lines of $sig" 1 "$(err_but_waits | wc -l)"
	done
	start_late sh -c 'echo $$; exec sleep 3000'
	send_signals TSTP CONT USR1
	answer_late
	same "status of USR1" 138 $status
	says '^yod: rank [01] \(pid [0-9]+ on [ab]\) killed by signal 10'
	nothing_left
}

# A question does not disturb the start.
case_early_question() {
	start_late true
	"$(dirname "$yod")/ptlstat" --hosts "$pid" >"$dir/shown" 2>&1
	answer_late
	same "hosts without a report" 2 "$(grep -c 'no report: its ranks have not started yet' "$dir/shown")"
	same "status and stderr" "0 " "$status $(err_but_waits)"
}

is_in_state() { # state, pid
	[ "$(state_of "$2")" = "$1" ]
}

are_in_state() { # state, of the nodes that have printed their process ids
	local p
	for p in $(cat "$dir/out"); do [ "$(state_of "$p")" = "$1" ] || return 1; done
}

case_stop() {
	start --hosts a,b -sz 2 sh -c 'echo $$; exec sleep 3000'
	await_lines 2
	kill -TSTP $pid
	patiently are_in_state T || fail "the nodes are not stopped"
	patiently is_in_state T $pid || fail "yod is not stopped"
	kill -CONT $pid
	patiently are_in_state S || fail "the nodes do not go on"
	kill -TERM $pid
	ends
	same status 143 $status
}

case_stubborn() {
	start --hosts a,b -sz 2 --kill-after 1 sh -c \
		'trap "" TERM INT; (trap "" TERM INT; exec sleep 3000) & echo up; wait; exec sleep 3000'
	await_lines 2
	kill -TERM $pid
	ends
	same status 143 $status
	says '^yod: [ab]: SIGTERM has not ended rank [01] yet; SIGKILL follows 1 s after it'
	nothing_left
}

# ---- deaths ----

long='(setsid sleep 3000 &) ; echo up; exec sleep 3000'

case_killed_yod() {
	start --hosts a,b,c -sz 6 sh -c "$long"
	await_lines 6
	kill -KILL $pid
	ends
	clean $pid
	start --hosts a,b,c -sz 6 sh -c "$long"
	await_lines 6
	kill -KILL "$(launcher)"
	ends
	same status 137 $status
	says 'launcher \(pid [0-9]+\) was killed by signal 9'
	clean $pid
}

case_killed_agent() {
	start --hosts a,b,c -sz 6 sh -c "$long"
	await_lines 6
	kill -KILL "$(agent_of 2)"
	ends
	same "status with the agent's guard" 137 $status
	clean $pid
	start --hosts a,b,c -sz 6 sh -c "$long"
	await_lines 6
	kill -KILL "$(child_of "$(agent_of 2)")"
	ends
	same "status with the agent" 137 $status
	says '^yod: host b is lost, with ranks 2-3: .*local.sh exited with status 137; ending the job$'
	clean $pid
}

case_killed_shell() {
	start --hosts a,b,c -sz 6 sh -c "$long"
	await_lines 6
	kill -KILL "$(shell_of 3)"
	ends
	same status 137 $status
	says '^yod: host c is lost, with ranks 4-5: .*local.sh killed by signal 9 \(Killed\); ending the job$'
	clean $pid
}

case_lost_host_and_others() {
	start --hosts a,b,c -sz 3 --keep-going sh -c \
		'echo up; [ $PTL_MY_RID != 1 ] || exec sleep 3000; until [ -e "$0" ]; do sleep 0.1; done; echo end' "$dir/go"
	await_lines 3
	kill -KILL "$(child_of "$(agent_of 2)")"
	await 'host b is lost, with ranks 1-1: .*; the others go on' "$dir/err"
	touch "$dir/go"
	ends
	same "status and ends" "137 2" "$status $(grep -c end "$dir/out")"
	clean $pid
}

# A remote shell stays although its agent has ended, as an ssh does that serves other connections.
case_sticky_shell() {
	cat >"$dir/rsh" <<-EOF
		#!/bin/sh
		"$here/local.sh" "\$@"
		[ "\$1" != b ] || sleep 3000
	EOF
	chmod +x "$dir/rsh"
	start --rsh "$dir/rsh" --hosts a,b -sz 2 true
	ends
	same "status and stderr" "0 " "$status $(err_but_waits)"
	nothing_left
	# Its agent is killed, and the others go on and end.
	start --rsh "$dir/rsh" --hosts a,b -sz 2 --keep-going sh -c \
		'echo up; [ $PTL_MY_RID = 0 ] || exec sleep 3000; until [ -e "$0" ]; do sleep 0.1; done' "$dir/go.on"
	await_lines 2
	kill -KILL "$(child_of "$(child_of "$(shell_of 2)")")"
	touch "$dir/go.on"
	ends
	same status 137 $status
	nothing_left
}

cpu_ticks() { # pid
	local stat
	stat=$(sed 's/.*) //' "/proc/$1/stat")
	# shellcheck disable=SC2086
	set -- $stat
	echo $((${12} + ${13}))
}

costs_no_cpu() {
	local inner before ticks
	inner=$(launcher) before=$(cpu_ticks "$(launcher)")
	sleep 2
	ticks=$(($(cpu_ticks "$inner") - before))
	same "more than 20 ticks of a CPU" no "$([ $ticks -gt 20 ] && echo "$ticks ticks" || echo no)"
}

# A remote shell that reads nothing costs yod no CPU time.
case_deaf_shell() {
	printf '#!/bin/sh\nexec <&-\necho x >"%s"\nexec sleep 3000\n' "$dir/deaf" >"$dir/rsh"
	chmod +x "$dir/rsh"
	start --rsh "$dir/rsh" --env "LONG=$(head -c 100000 /dev/zero | tr '\0' x)" --hosts a -sz 1 true
	patiently test -e "$dir/deaf" || fail "no remote shell"
	costs_no_cpu
	kill -TERM $pid
	ends
	same status 143 $status
	nothing_left
}

# A client for whom yod has no descriptor costs it none either, and is served later.
case_no_descriptor() {
	local inner client
	start --hosts a -sz 1 sh -c 'echo up; exec sleep 3000'
	await_lines 1
	inner=$(launcher)
	prlimit --pid "$inner" --nofile=3:
	"$(dirname "$yod")/ptlstat" --hosts "$pid" >"$dir/shown" 2>&1 &
	client=$!
	costs_no_cpu
	prlimit --pid "$inner" --nofile=100:
	wait $client
	same "status of the client" 0 $?
	kill -TERM $pid
	ends
	nothing_left
}

# ---- Portals ----

case_portals() {
	# Both hosts are this machine; the names are addresses that it has.
	export PTL3_FABRIC_NET=lo PTL3_HUGEPAGES=off
	# shellcheck disable=SC2086
	run --hosts 127.0.0.1,127.0.0.2,localhost -sz 6 $AGENTS_PROGRAM
	same status 0 $status
	same "lines of stderr" "" "$(cat "$dir/err")"
	# A rank that never calls PtlNIInit ends the wait of the others.
	# shellcheck disable=SC2086
	run --hosts 127.0.0.1,localhost --keep-going -sz 1 sh -c 'exit 5' : -sz 2 $AGENTS_PROGRAM
	same "status with a rank that leaves" 5 $status
	says 'rank 0 has ended before it could tell how to reach it'
	# shellcheck disable=SC2086
	run --hosts localhost -sz 4 $AGENTS_PROGRAM
	same "status on one host" 0 $status
	unset PTL3_FABRIC_NET PTL3_HUGEPAGES
}

# A barrier that lasts is reported once, with the hosts whose ranks have not all come.
case_why_after() {
	export PTL3_FABRIC_NET=lo PTL3_HUGEPAGES=off
	local after
	for after in 0.5 2 8 32; do # within a short time the others may not have come
		start --why-after $after --hosts 127.0.0.1,127.0.0.2,localhost -sz 3 "${AGENTS_PROGRAM%%mp_alltoall*}mp_hang" barrier
		patiently grep -q 'which have not all come: ' "$dir/err" || fail "no report: $(cat "$dir/err")"
		! grep -q 'not all of these hosts: 127.0.0.2;' "$dir/err" || break
		kill -TERM $pid
		ends
	done
	says "^yod: ranks wait in PtlXBarrier for $after s \\(--why-after\\), not all of these hosts: 127.0.0.2;"
	says 'which have not all come: 127.0.0.2$'
	sleep 1.5 # a second report would follow after 1 s
	kill -TERM $pid
	ends
	same "status" 143 $status
	same "reports" 1 "$(grep -c '^yod: ranks wait in PtlXBarrier' "$dir/err")"
	nothing_left
	unset PTL3_FABRIC_NET PTL3_HUGEPAGES
}

# Traces are sent as yod has room for them.
case_trace_room() {
	printf '#!/bin/sh\nFRAMES_TRACED="%s/traced.$1" exec "%s/frames.py" "%s/local.sh" "$@"\n' "$dir" "$here" "$here" >"$dir/rsh"
	chmod +x "$dir/rsh"
	export PTL3_FABRIC_NET=lo PTL3_HUGEPAGES=off
	# shellcheck disable=SC2086
	run --rsh "$dir/rsh" --hosts 127.0.0.1,localhost -sz 6 --trace "$dir/job.trace" $AGENTS_PROGRAM
	unset PTL3_FABRIC_NET PTL3_HUGEPAGES
	same "status and stderr" "0 " "$status $(err_but_waits)"
	local host sent most
	for host in 127.0.0.1 localhost; do
		read -r sent most <"$dir/traced.$host"
		same "bytes of the file of $host" "$sent" "$(stat -c %s "$dir/job.$host.trace")"
		[ "$sent" -gt 65536 ] || fail "$sent bytes need no room"
		[ "$most" -le 65536 ] || fail "$most bytes of traces under way"
	done
}

case_many() {
	run --hosts a,b,c,d -sz 200 sh -c 'echo $PTL_MY_RID'
	same status 0 $status
	same lines 200 "$(sort -u "$dir/out" | wc -l)"
}

skipped_case() { # name
	[[ $1 = portals || $1 = trace_room || $1 = why_after ]] && [ -z "$AGENTS_PROGRAM" ]
}

run_cases
