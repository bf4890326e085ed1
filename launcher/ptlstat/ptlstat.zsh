#compdef ptlstat
# Completion of ptlstat(1) in zsh: options, why and conf, and the numbers of jobs.
_ptlstat_words() {
	local -a jobs what
	jobs=(${(f)"$(ptlstat 2>/dev/null | awk '$1 == "domain" { exit } NR > 1 && $1 ~ /^[0-9]+$/ { print $1 ":a job of " $3 " nodes" }')"})
	what=('why:the calls and nodes that each node waits for' 'conf:the settings and resources of each node')
	_describe -t jobs job jobs
	((CURRENT > 1)) || _describe -t commands 'what to show' what
}
_arguments \
	'(-i --interval)'{-i+,--interval=}'[time that rates are measured over]:seconds:' \
	'(-c --count)'{-c+,--count=}'[number of pictures]:pictures:' \
	'(-d --domain)'{-d+,--domain=}'[the processes of this domain]:name:' \
	'(-j --json)'{-j,--json}'[for programs]' \
	'(-H --hosts)'{-H,--hosts}'[show all hosts of a job of yod --hosts]' \
	'(-b --brief)'{-b,--brief}'[why: conclusions only]' \
	'(- *)'{-h,--help}'[print help]' \
	'(- *)--version[print the version]' \
	'*::job:_ptlstat_words'
