# Completion of yod(1) in bash: options before the program, then what the program takes.
_yod() {
	local cur=${COMP_WORDS[COMP_CWORD]} i=1
	while ((i < COMP_CWORD)) && [[ ${COMP_WORDS[i]} == -* ]]; do
		case ${COMP_WORDS[i]} in
		-sz | --sz | -np | --np | -n | -timeout | --timeout | -mode | --mode) ((i += 2)) ;;
		*) ((i++)) ;;
		esac
	done
	if ((i < COMP_CWORD)); then
		declare -F _command_offset >/dev/null && _command_offset "$i"
	elif ((i > COMP_CWORD)); then
		[[ ${COMP_WORDS[COMP_CWORD - 1]} == *-mode ]] &&
			mapfile -t COMPREPLY < <(compgen -W 'auto lease dedicated park' -- "$cur")
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W '-sz -np -n --keep-going --tag --timeout
			--mode --shared-heap --help --version' -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -c -f -- "$cur" | sort -u)
	fi
}
complete -o filenames -F _yod yod
