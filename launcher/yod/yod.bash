# Completion of yod(1) in bash: options before each program, then files for the
# program.
_yod_value() { # option: completes what it takes; false: it takes nothing, or anything
	case $1 in
	-mode | --mode) mapfile -t COMPREPLY < <(compgen -W 'auto lease dedicated park' -- "$cur") ;;
	-bind | --bind) mapfile -t COMPREPLY < <(compgen -W 'none core numa' -- "$cur") ;;
	-valgrind | --valgrind) mapfile -t COMPREPLY < <(compgen -W 'auto on off' -- "$cur") ;;
	-d | -wdir | --wdir | -output-dir | --output-dir) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	-F | -load | --load | -trace | --trace | -hostfile | --hostfile) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	-hosts | --hosts) mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur") ;;
	-rsh | --rsh) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	-x | -env | --env) mapfile -t COMPREPLY < <(compgen -v -- "$cur") ;;
	esac
}
_yod() {
	local cur=${COMP_WORDS[COMP_CWORD]} i k=1
	for ((i = 1; i < COMP_CWORD; i++)); do
		[ "${COMP_WORDS[i]}" != : ] || k=$((i + 1))
	done
	i=$k
	while ((i < COMP_CWORD)) && [[ ${COMP_WORDS[i]} == -* ]]; do
		case ${COMP_WORDS[i]} in
		-sz | --sz | -np | --np | -n | -timeout | --timeout | -kill-after | --kill-after | -why-after | --why-after | -mode | --mode | -bind | --bind | \
			-VN | --VN | -F | -load | --load | -d | -wdir | --wdir | -x | -env | --env | \
			-valgrind | --valgrind | -only-rank | --only-rank | -output-dir | --output-dir | \
			-hosts | --hosts | -hostfile | --hostfile | -rsh | --rsh | \
			-trace | --trace | -domain | --domain | -nid-base | --nid-base) ((i += 2)) ;;
		*) ((i++)) ;;
		esac
	done
	if ((i < COMP_CWORD)); then
		declare -F _command_offset >/dev/null && _command_offset "$i"
	elif ((i > COMP_CWORD)); then
		_yod_value "${COMP_WORDS[COMP_CWORD - 1]}"
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W '-sz -np -n -F --load -d --wdir -x --env --bind -VN --hosts --hostfile --rsh
			--keep-going --timeout --kill-after --why-after --mode --domain --nid-base --shared-heap --valgrind --tag --only-rank
			--output-dir --line-buffered --stats --trace --plan -h --help
			--help-env --version' -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -c -f -- "$cur" | sort -u)
	fi
}
complete -o filenames -F _yod yod
