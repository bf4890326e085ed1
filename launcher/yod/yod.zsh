#compdef yod
# Completion of yod(1) in zsh: options before each program, then the program's own
# completion.
_yod_env() { # NAME=VALUE
	if compset -P '*='; then
		_default
	else
		_parameters -g '*export*' -qS=
	fi
}
_yod_program() { # a lone - is a command, too, but none for here
	[[ $PREFIX == -* ]] || _command_names -e
}
_yod() {
	local curcontext=$curcontext
	local -i i k=1
	local -a once
	for ((i = 2; i < CURRENT; i++)); do
		[[ $words[i] != : ]] || k=i
	done
	if ((k > 1)); then # what follows is another program, with nodes of its own
		words=(yod "${(@)words[k + 1,-1]}")
		((CURRENT -= k - 1))
	else
		once=(
			'(-F --load)'{-F+,--load=}'[programs are in FILE]:load file:_files'
			'--bind=[where nodes run]:CPUs, as in 0,2-3:(none core numa)'
			'-VN[N nodes share a core]:nodes:'
			'(--hostfile)--hosts=[run on these hosts]:hosts, as in c1\:4,c2:_hosts'
			'(--hosts)--hostfile=[hosts are in FILE]:file of hosts:_files'
			'--rsh=[remote shell]:program:_command_names -e'
			'--keep-going[a failing node does not end the others]'
			'--timeout=[end the job after SEC seconds]:seconds:'
			'--kill-after=[kill nodes that SIGTERM has not ended after SEC seconds]:seconds:'
			'--why-after=[say why when a barrier lasts for SEC seconds]:seconds:'
			'--mode=[how NICs run]:mode:(auto lease dedicated park)'
			'--domain=[nodes also meet those of other jobs there]:name:'
			'--nid-base=[node id of rank 0]:number:'
			"--shared-heap[malloc's long blocks lie where other nodes read them]"
			'--valgrind=[nodes use a library for valgrind]:when:(auto on off)'
			'--tag[put \[rank\] before each line that a node prints]'
			'--only-rank=[drop what other ranks print]:ranks, as in 0,2-3:'
			'--output-dir=[nodes print into DIR/rankN.out and .err]:directory:_directories'
			'--line-buffered[nodes print line by line]'
			'--stats[a summary of each node at the end]'
			'--trace=[the last actions of each NIC, for tracedump]:file:_files'
			'--plan[memory, CPUs and limits of the job, and start nothing]'
			'(- *)'{-h,--help}'[print help]'
			'(- *)--help-env[print the settings of the library]'
			'(- *)--version[print the version]'
		)
	fi
	_arguments $once \
		'(-sz -np -n)'{-sz,-np,-n}'[run N nodes of the program]:nodes:' \
		'(-d --wdir)'{-d+,--wdir=}'[run the program in DIR]:directory:_directories' \
		'*'{-x+,--env=}'[set it for the program]:NAME=VALUE:_yod_env' \
		'(-)1:program:_yod_program' \
		'*::arguments:_normal'
}
_yod "$@"
