# Completion of tracedump(1) in bash: options, numbers of jobs, names of points, files.
_tracedump() {
	local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local points='command taken park wake lease given execute send take match wait
		deliver drop event answer answered begin end birth death'
	COMPREPLY=()
	case $before in
	--job) mapfile -t COMPREPLY < <(compgen -W "$(pgrep -x yod -u "$UID")" -- "$cur") ;;
	--at) mapfile -t COMPREPLY < <(compgen -W "$points" -- "$cur") ;;
	--node | --peer | --message | --since | --until) ;;
	--output) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	*)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W '--job --json --svg --output --node
				--peer --message --at --since --until --help --version' -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	esac
}
complete -o filenames -F _tracedump tracedump
