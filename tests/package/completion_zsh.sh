#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# zsh offers what --help lists: completion_zsh.sh source-tree yod ptlstat tracedump
#	portals-info
command -v zsh >/dev/null || {
	echo "skipped: zsh is not installed"
	exit 77
}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
status=0
mkdir "$scratch/zsh" "$scratch/some" "$scratch/other"
touch "$scratch/file"
cp "$1/launcher/tools/completion.zsh" "$scratch/zsh/_yod"
export PATH="${2%/*}:$PATH"
cd "$scratch" || exit 1

words() { # what is on standard input, sorted, in a line
	tr -s ' \n' '\n\n' | grep . | LC_ALL=C sort -u | paste -sd' ' -
}

expect() { # command to be completed, words
	printf '%s\n' "$1" >>ask
	printf '%s\n' "$2" >>want
}

# "  -d, --wdir DIR  text" has two of them.
yod=$("$2" --help | sed -nE 's/^  (-[^ ,]+)(, (--[a-z-]+))?.*/\1 \3/p')
expect 'yod -' "$(echo "$yod" -np -n | words)"
expect 'yod -sz 4 --ti' --timeout
expect 'yod --mode p' park
expect 'yod --mode=' 'auto dedicated lease park'
expect 'yod --output-dir o' other
expect 'yod --only-rank 0 --ti' --timeout
expect 'yod --valgrind o' 'off on'
expect 'yod --bind c' core
expect 'yod --load fi' file
expect 'yod -sz 4 --wdir so' some
expect 'yod -sz 4 ls : -sz 2 --wd' --wdir
expect 'yod -sz 4 ls : -sz 2 --mo' ''
expect 'yod -sz 4 ls : -sz 2 cat fi' file
expect 'yod -sz 4 cat fi' file
expect 'yod -sz 4 --plan zs' "$(compgen -c zs | words)"
expect 'ptlstat -' "$("$3" --help | grep -oE '^  -.*' | grep -oE -- '(^| )--?[a-zA-Z]+' | words)"
expect 'ptlstat ' '4711 conf why'
expect 'ptlstat why 47' 4711
expect 'ptlstat -i ' ''
expect 'portals-info -' "$("$5" --help | grep -oE '^  -.*' | grep -oE -- '(^| )--?[a-zA-Z]+' | words)"
expect 'tracedump -' "$("$4" --help | grep -oE '^  -.*' | grep -oE -- '(^| )--?[a-zA-Z]+' | words)"
expect 'tracedump --at d' 'death deliver drop'
expect 'tracedump --node 1 fi' file
zsh -f "$1/tests/package/completion.zsh" "$scratch/zsh" <ask >got || status=1
paste -d'\n' ask want got | while IFS= read -r ask && IFS= read -r want && IFS= read -r got; do
	[ "$want" = "$got" ] || {
		printf 'to "%s" zsh offers:\n%s\nnot:\n%s\n' "$ask" "$got" "$want"
		exit 1
	}
done || status=1
exit $status
