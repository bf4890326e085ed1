# Completion of yod(1) in bash: options before the program, then what the program takes.
_yod() {
	local cur=${COMP_WORDS[COMP_CWORD]} i=1 words=
	while ((i < COMP_CWORD)) && [[ ${COMP_WORDS[i]} == -* ]]; do
		case ${COMP_WORDS[i]} in
		-sz | --sz | -np | --np | -n | -timeout | --timeout | -mode | --mode | \
			-valgrind | --valgrind | -only-rank | --only-rank | \
			-output-dir | --output-dir) ((i += 2)) ;;
		*) ((i++)) ;;
		esac
	done
	if ((i < COMP_CWORD)); then
		declare -F _command_offset >/dev/null && _command_offset "$i"
	elif ((i > COMP_CWORD)); then
		case ${COMP_WORDS[COMP_CWORD - 1]} in
		*-mode) words='auto lease dedicated park' ;;
		*-valgrind) words='auto on off' ;;
		*-output-dir)
			mapfile -t COMPREPLY < <(compgen -d -- "$cur")
			return
			;;
		esac
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W '-sz -np -n --keep-going --tag --timeout
			--only-rank
			--output-dir --mode --shared-heap --valgrind --help --version' -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -c -f -- "$cur" | sort -u)
	fi
}
complete -o filenames -F _yod yod
