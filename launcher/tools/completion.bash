# Completion of yod(1), ptlstat(1), tracedump(1) and portals-info(1) in bash, from their
# --help: options, and what an option takes, by the word that --help has for it.
_portals_options() { # print a line for each option: its name, and the word for its value
	"$1" --help 2>/dev/null | awk '/^  -/ {
		sub(/^  /, ""); sub(/  .*/, ""); gsub(/,/, "")
		n = split($0, word, " ")
		for (i = 1; i <= n && word[i] ~ /^-/; i++)
			print word[i], word[n] ~ /^-/ ? "" : word[n]
	}'
	[[ ${1##*/} != yod ]] || printf '%s\n' '-n N' '-np N'
}
_portals_list() { # print the jobs, or with "domain" the domains
	ptlstat 2>/dev/null | awk -v what="$1" \
		'$1 == "job" || $1 == "domain" { on = $1 == what; next } on { print $1 }'
}
_portals_value() { # option, word for its value: complete the value
	case $2:$1 in
	MODE:*) words='auto lease dedicated park' ;;
	HOW:*) words='none core numa' ;;
	WHEN:*) words='auto on off' ;;
	JOB:*) words=$(_portals_list job) ;;
	NAME:--at) words='command taken park wake lease given execute send take match wait
		deliver drop event answer answered begin end birth death' ;;
	NAME:*) words=$(_portals_list domain) ;;
	DIR:*) kind=-d ;;
	FILE:*) kind=-f ;;
	PROGRAM:*) kind=-c ;;
	NAME=VALUE:*) kind=-v ;;
	LIST:-hosts | LIST:--hosts) kind='-A hostname' ;;
	esac
}
_portals() {
	local cur=${COMP_WORDS[COMP_CWORD]} tool=${COMP_WORDS[0]##*/} kind='' words='' name value i
	local -A takes=()
	while read -r name value; do
		words+=" $name" name=${name#-}
		takes[-${name#-}]=$value takes[--${name#-}]=$value
	done < <(_portals_options "${COMP_WORDS[0]}")
	# Find the first word that is no option; for yod, behind the last colon.
	for ((i = COMP_CWORD; i > 1; i--)); do
		[ "${COMP_WORDS[i - 1]}" != : ] || break
	done
	while ((i < COMP_CWORD)) && [[ ${COMP_WORDS[i]} == -* || $tool != yod ]]; do
		name=${COMP_WORDS[i]}
		((i += ${#takes[$name]} > 0 ? 2 : 1))
	done
	COMPREPLY=()
	if ((i > COMP_CWORD)); then
		words=
		_portals_value "$name" "${takes[$name]}"
	elif ((i < COMP_CWORD)); then
		words=
		declare -F _command_offset >/dev/null && _command_offset "$i"
	elif [[ $cur != -* ]]; then
		words=
		case $tool in
		yod) kind='-c -f' ;;
		ptlstat) words="why conf $(_portals_list job)" ;;
		tracedump) kind=-f ;;
		esac
	fi
	# shellcheck disable=SC2086
	[ -z "$kind$words" ] || mapfile -t COMPREPLY < <(compgen $kind -W "$words" -- "$cur" | sort -u)
}
complete -o filenames -F _portals yod ptlstat tracedump portals-info
