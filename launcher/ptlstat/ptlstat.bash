# Completion of ptlstat(1) in bash: options, why and conf, and the numbers of jobs.
_ptlstat() {
	local cur=${COMP_WORDS[COMP_CWORD]}
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	-i | --interval | -c | --count) return ;;
	-d | --domain)
		mapfile -t COMPREPLY < <(compgen -W "$(ptlstat 2>/dev/null |
			awk 'on { print $1 } $1 == "domain" { on = 1 }')" -- "$cur")
		return
		;;
	esac
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W '-i --interval -c --count -d --domain -j --json -b --brief -H --hosts -h --help
			--version' -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -W "why conf $(ptlstat 2>/dev/null |
			awk '$1 == "domain" { exit } NR > 1 { print $1 }')" -- "$cur")
	fi
}
complete -F _ptlstat ptlstat
