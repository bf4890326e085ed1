#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Every message of yod, provoked: yod's output is that of yod_errors.txt, to the
# letter.  usage: yod_errors.sh [--print] [case...]; --print writes the table as yod
# does it today, for a change of messages that is meant.
#
#	case: STATUS NAME
#	needs: root		or it is skipped
#	run: commands of bash	$yod, $node (yod_node), $tty (yod_tty), $shim (for
#				LD_PRELOAD), $cpu (one that may be used), $here (a remote shell that stays here;
#				PTL3_RSH names it), in an empty directory
#	out: line of stdout	in this order
#	err: line of stderr
#
# Numbers of processes are PID, the directory DIR, that CPU CPU.

print=
[ "$1" != --print ] || {
	print=yes
	shift
}
only="$*"
table=$(dirname "$(readlink -f "$0")")/yod_errors.txt
. "$(dirname "$0")/mp.sh"
export yod=$P3_YOD node=$MP_BIN/yod_node tty=$MP_BIN/yod_tty shim=$MP_BIN/libyod_shim.so
cpu=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)
here=$(dirname "$table")/../agents/local.sh
export cpu here PTL3_RSH=$here LC_ALL=C
unset PTL3_MODE PTL3_HUGEPAGES
cases=0

plain() { # file, word: its lines behind the word, without what differs from run to run
	sed -E "s#$dir/cwd#DIR#g; s#$MP_BIN/##g; s#${P3_YOD%/bin/yod}/#BUILD/#g; s#$here#HERE#g; s/\(pid [0-9]+/(pid PID/g
		s/process [0-9]+/process PID/g; s/some of $cpu /some of CPU /; s/\x00//g; s/^/$2: /" "$1"
}

perform() { # commands: prints them and what came of them
	rm -rf "$dir/cwd"
	mkdir "$dir/cwd"
	cd "$dir/cwd" || exit 1
	run timeout "${P3_LIMIT:-3000}" bash -c "$1" </dev/null
	cd - >/dev/null || exit 1
	echo "run: $1"
	plain "$dir/out" out
	plain "$dir/err" err
}

# The lines of a case behind its name.
check() { # name, needs, wanted status, wanted lines
	local got slow
	[ -z "$only" ] || [[ " $only " == *" $1 "* ]] || return
	if [ "$2" = root ] && [ "$(id -u)" != 0 ]; then
		echo "skipped: $1 needs root"
		return
	fi
	perform "$(sed -n 's/^run: //p' <<<"$4")" >"$dir/got"
	got=$(<"$dir/got")
	for slow in 'SIGTERM has not ended' 'has not started an agent'; do # beside much load
		[ "$print" ] || [[ $4 == *"$slow"* ]] || got=$(grep -v "$slow" <<<"$got")
	done
	cases=$((cases + 1))
	if [ "$print" ]; then
		printf 'case: %s %s\n%s%s\n\n' $status "$1" "${2:+needs: $2$'\n'}" "$got"
	elif [ "$status $got" != "$3 $4" ]; then
		fail "$1: expected (<) and got (>), with status $3 and $status:"
		diff <(echo "$4") <(echo "$got") | sed 's/^/     /'
	fi
	nothing_left >&2
}

read_table() {
	local line name='' needs='' wanted='' lines=''
	while IFS= read -r line || [ -n "$line" ]; do
		case $line in
		'#'*) [ -z "$print" ] || echo "$line" ;;
		'case: '*)
			read -r wanted name <<<"${line#case: }"
			needs='' lines=''
			;;
		'needs: '*) needs=${line#needs: } ;;
		'') [ -z "$name" ] || check "$name" "$needs" "$wanted" "$lines"; name= ;;
		*) lines+=${lines:+$'\n'}$line ;;
		esac
	done <"$table"
	[ -z "$name" ] || check "$name" "$needs" "$wanted" "$lines"
}
read_table
[ -z "$print" ] || exit 0
echo "# tried: $cases messages"
finish yod_errors
