#!/bin/zsh -f
# Asks a zsh at a terminal of its own for completions: completion.zsh folder-of-_yod
# Each line of standard input is a command to be completed; a line of words, sorted,
# each.
zmodload zsh/zpty || exit 77
hits=$(mktemp) || exit 1
trap 'zpty -d z 2>/dev/null; rm -f $hits $hits.rc' EXIT
cat >$hits.rc <<END
PS1= PS2= RPS1=
unsetopt zle_bracketed_paste 2>/dev/null; unset zle_bracketed_paste
fpath=($1 \$fpath)
autoload -Uz compinit && compinit -D -u
zstyle ':completion:*' list-grouped false
ptlstat() { (( \$# )) && command ptlstat "\$@" || print -l 'job uid nodes' '4711 0 3' }
compadd() { # what is asked for only is not offered
	if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
		builtin compadd "\$@"
		return
	fi
	local -a is
	builtin compadd -A is "\$@"
	print -rl -- \$is >>$hits
	builtin compadd "\$@"
}
capture() {
	_main_complete
	compstate[insert]= compstate[list]=
	print -r -- ' END' >>$hits
}
zle -C capture complete-word capture
bindkey '^I' capture
print -r -- ' END' >>$hits
END
until_end() { # seconds pass at a terminal that nobody reads
	local said
	local -i end=$((SECONDS + ${P3_WAIT:-120}))
	while ((SECONDS < end)); do
		zpty -rt z said >/dev/null
		[[ -s $hits && "$(tail -n 1 $hits)" == ' END' ]] && return
		sleep 0.01
	done
	print -u2 -r -- "no answer: $1"
	exit 1
}
zpty -b z "TERM=dumb zsh -f -i"
zpty -w z "source $hits.rc"
until_end start
while IFS= read -r command; do
	: >$hits
	zpty -nw z "$command"$'\t'
	until_end "$command"
	print -r -- "$(grep -vE '^( END)?$' $hits | LC_ALL=C sort -u | paste -sd' ' -)"
	zpty -nw z $'\x15'
done
