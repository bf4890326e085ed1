# Completion of portals-info(1) in bash: options.
_portals-info() {
	local cur=${COMP_WORDS[COMP_CWORD]}
	mapfile -t COMPREPLY < <(compgen -W '-j --json -h --help --version' -- "$cur")
}
complete -F _portals-info portals-info
