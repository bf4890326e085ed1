#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Completions offer what --help lists: completion.sh source-tree yod ptlstat tracedump
#	portals-info
. "$1/launcher/tools/completion.bash"
PATH=${2%/*}:$PATH
status=0

# offers words...: print the completions of the last word
offers() {
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	_portals
	printf '%s\n' "${COMPREPLY[@]}" | sort -u
}

expect() {
	[ "$1" = "$2" ] || {
		printf 'offered:\n%s\nnot:\n%s\n' "$1" "$2"
		status=1
	}
}

# "  -d, --wdir DIR  text" has two of them.
help=$("$2" --help | sed -nE 's/^  (-[^ ,]+)(, (--[a-z-]+))?.*/\1 \3/p')
expect "$(offers yod -)" "$(printf '%s\n' $help -np -n | sort)"
expect "$(offers yod -sz 4 --ti)" --timeout
expect "$(offers yod --mode p)" park
expect "$(offers yod --mode '')" "$(printf '%s\n' auto lease dedicated park | sort)"
expect "$(offers yod --output-dir /et)" /etc
expect "$(offers yod --only-rank 0 --ti)" --timeout
expect "$(offers yod --valgrind o)" "$(printf '%s\n' off on)"
expect "$(offers yod --bind c)" core
expect "$(offers yod --load /etc/host)" "$(compgen -f /etc/host | sort)"
expect "$(offers yod -sz 4 --wdir /us)" /usr
expect "$(offers yod -sz 4 ls : -sz 2 --wd)" --wdir
expect "$(offers yod -sz 4 ls : -sz 2 /etc/host)" "$(compgen -f /etc/host | sort)"
expect "$(offers yod -sz 4 /etc/host)" "$(compgen -f /etc/host | sort)"
expect "$(offers yod -sz 4 ls --ti)" ""

ptlstat() {
	[ "$*" != --help ] || command ptlstat "$@"
	[ $# != 0 ] || printf 'job uid\n4711 0\ndomain user\nthere me\n'
}
help=$("$3" --help | grep -oE '^  -.*' | grep -oE -- '(^| )--?[a-zA-Z]+' | tr -d ' ')
expect "$(offers ptlstat -)" "$(printf '%s\n' $help | sort -u)"
expect "$(offers ptlstat '')" "$(printf '%s\n' 4711 conf why)"
expect "$(offers ptlstat why 47)" 4711
expect "$(offers ptlstat -i '')" ""
expect "$(offers ptlstat --domain '')" there

expect "$(offers tracedump -)" "$("$4" --help | grep -oE '^  -.*' |
	grep -oE -- '(^| )--?[a-zA-Z]+' | tr -d ' ' | sort)"
expect "$(offers tracedump --at 'd')" "$(printf '%s\n' death deliver drop)"
expect "$(offers portals-info -)" "$("$5" --help | grep -oE '^  -.*' |
	grep -oE -- '(^| )--?[a-zA-Z]+' | tr -d ' ' | sort)"

for tool in yod ptlstat tracedump portals-info utcp_nid portalperf matchperf cciperf \
	gasnetrun_portals; do
	tool=$(dirname "$2")/$tool
	[ ! -x "$tool" ] || expect "" "$("$tool" --help | awk 'length > 80')"
done
exit $status
