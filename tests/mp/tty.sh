#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# yod at a terminal: its keys, its shell's jobs, its input, and the terminal's state
# afterwards.  YOD_TTY: path of yod_tty.

. "$(dirname "$0")/mp.sh"
: "${YOD_TTY:?path of yod_tty}"
yod=$P3_YOD
export PS1='> '

# tty what status steps... -- command...
tty() {
	local what=$1 want=$2
	shift 2
	run timeout "${P3_LIMIT:-3000}" "$YOD_TTY" "$@"
	if [ "$status" != "$want" ]; then
		fail "$what: status $status"
		sed 's/^/     terminal: /' "$dir/out" | cat -v
	fi
	nothing_left
}

shell=(bash --norc --noprofile -i)
node='trap "echo asked" INT; echo up; while :; do sleep 0.1; done'
loop='echo up; while :; do sleep 0.1; done'

interrupt() {
	tty "^C" 130 await:up await:up type:^C await:asked await:asked -- "$yod" -n 2 sh -c "$node"
	says "^C" 'signal 2 \(Interrupt\); ending the job'
}

second_interrupt() {
	tty "^C twice" 130 await:up await:up type:^C await:ending type:^C -- \
		"$yod" -n 2 --kill-after "$P3_LIMIT" sh -c 'trap "" INT TERM; echo up; while :; do sleep 0.1; done'
	ulimit -c 0
	tty "^\\" 131 await:up "type:^\\" -- "$yod" -n 1 sh -c "$loop"
}

stop() {
	tty "^Z and fg" 0 'await:> ' "type:$yod -n 2 sh -c 'while :; do printf %s%s o n; sleep 0.2; done'
" await:onon type:^Z await:Stopped 'type:jobs
' await:Stopped nap:300 'type:echo si''lence
' await:silence 'type:fg
' await:onon type:^C await:ending 'await:> ' 'type:exit 0
' -- "${shell[@]}"
}

background() {
	tty "a job in the background" 0 'await:> ' "type:$yod -n 2 sh -c 'sleep 1; echo do''ne' &
" await:done 'type:wait
' 'type:echo still he''re
' await:here 'type:exit
' -- "${shell[@]}"
}

# A job in the background that reads waits without being stopped, takes none of the
# shell's input, and gets typed input once it is in the foreground.
background_reader() {
	tty "a reader in the background" 0 'await:> ' "type:$yod -n 2 sh -c 'cat; echo end of \$PTL_MY_RID' &
" 'await:end of 1' nap:500 'type:jobs
' await:Running 'type:echo to the sh''ell
' 'await:to the shell' 'type:fg
' 'await:end of $PTL_MY_RID' 'type:to rank zero
' 'await:to rank zero' 'await:to rank zero' type:^D 'await:end of 0' 'await:> ' 'type:exit 0
' -- "${shell[@]}"
}

keys_and_size() {
	tty "a new size" 0 await:up size:50 await:resized -- "$yod" -n 2 sh -c \
		'trap "echo resized; exit 0" WINCH; [ $PTL_MY_RID = 0 ] || exec sleep 1
		echo up; while :; do sleep 0.1; done'
	tty "input of a job without a reader" 0 await:up 'type:unread
' -- "$yod" -n 1 sh -c 'exec <&-; echo up; sleep 1'
}

# Another process, such as a pager, takes a line that yod has seen come.
taken() {
	[ -e "$MP_BIN/libyod_shim.so" ] || return 0
	tty "a line that another process takes" 0 await:up 'type:taken
' -- env YOD_SHIM_FAIL=tcgetpgrp:1:0 LD_PRELOAD="$MP_BIN/libyod_shim.so" "$yod" -n 1 sh -c 'echo up; sleep 1'
}

restored() {
	tty "the terminal afterwards" 0 'await:> ' "type:$yod -n 1 sh -c 'trap \"\" TTOU
stty -echo -icanon </dev/tty; kill -KILL \$\$'; stty -a
" 'await: icanon' 'await: echo ' 'type:exit 0
' -- "${shell[@]}"
	tty "a node that sets the terminal" 130 \
		'await:is stopped: it wants to set the terminal' type:^C -- \
		"$yod" -n 1 sh -c 'exec stty -echo </dev/tty'
	tty "a node that reads the terminal" 130 \
		'await:is stopped: it wants to read the terminal' type:^C -- \
		"$yod" -n 1 sh -c 'exec cat /dev/tty'
}

pipes() {
	local tag
	for tag in '' --tag; do
		new_mark
		# shellcheck disable=SC2086
		MP_MARK=$mark "$yod" -n 2 $tag yes 2>"$dir/err" | head -1 >"$dir/out"
		[ "${PIPESTATUS[0]}" = 141 ] || fail "yod $tag | head: status ${PIPESTATUS[0]}"
		grep -Eq '^yod: rank [01] \(pid [0-9]+\) killed by signal 13 \(Broken pipe\)' \
			"$dir/err" || fail "yod $tag | head: no cause"
		nothing_left
	done
	head -c 3000000 /dev/urandom >"$dir/in"
	for tag in '' '--only-rank 0'; do
		# shellcheck disable=SC2086
		cat "$dir/in" | "$yod" -n 2 $tag cat | cmp - "$dir/in" || fail "3 MB of input"
		# shellcheck disable=SC2086
		"$yod" -n 2 $tag cat <"$dir/in" | cmp - "$dir/in" || fail "3 MB from a file"
	done
}

parts='interrupt second_interrupt stop background background_reader keys_and_size
	taken restored pipes'
for part in $parts; do
	( # each in a folder of its own, all at once
		dir=$dir/$part
		mkdir "$dir"
		failures=0
		$part
		exit $failures
	) >"$dir/$part.said" 2>&1 &
	pids[$!]=$part
done
for pid in "${!pids[@]}"; do
	wait "$pid" || fail "$(cat "$dir/${pids[$pid]}.said")"
done
echo "# tried: 12 sessions"
finish tty
