#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# yod's completion offers what yod --help lists: completion.sh source-tree yod
. "$1/launcher/yod.bash"
status=0

# offers words...: what completes the last of them
offers() {
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	_yod
	printf '%s\n' "${COMPREPLY[@]}" | sort -u
}

expect() {
	[ "$1" = "$2" ] || {
		printf 'offered:\n%s\nnot:\n%s\n' "$1" "$2"
		status=1
	}
}

help=$("$2" --help | grep -oE '^  -[a-z-]+' | tr -d ' ')
expect "$(offers yod -)" "$(printf '%s\n' $help -np -n | sort)"
expect "$(offers yod -sz 4 --ti)" --timeout
expect "$(offers yod --mode p)" park
expect "$(offers yod --mode '')" "$(printf '%s\n' auto lease dedicated park | sort)"
expect "$(offers yod --output-dir /et)" /etc
expect "$(offers yod --only-rank 0 --ti)" --timeout
expect "$(offers yod --valgrind o)" "$(printf '%s\n' off on)"
expect "$(offers yod -sz 4 /etc/host)" "$(compgen -f /etc/host | sort)"
expect "$(offers yod -sz 4 ls --ti)" ""
exit $status
