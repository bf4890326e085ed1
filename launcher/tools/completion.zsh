#compdef yod ptlstat tracedump portals-info
# Completion of yod(1), ptlstat(1), tracedump(1) and portals-info(1) in zsh, from their
# --help: options with their texts, and what an option takes, by the word that --help has
# for it.
_portals_list() { # jobs, or with "domain" domains
	compadd -- $(ptlstat 2>/dev/null | awk -v what=$1 \
		'$1 == "job" || $1 == "domain" { on = $1 == what; next } on { print $1 }')
}
_portals_env() { # NAME=VALUE
	if compset -P '*='; then
		_default
	else
		_parameters -g '*export*' -qS=
	fi
}
_portals_program() { # a lone - is a command, too, but none for here
	[[ $PREFIX == -* ]] || _command_names -e
}
_portals_what() {
	_portals_list job
	((CURRENT > 1)) || compadd why conf
}
_portals() {
	local curcontext=$curcontext tool=${words[1]:t} line text name value
	local -i i k=1
	local -a specs left
	local -A does=(MODE '(auto lease dedicated park)' HOW '(none core numa)'
		WHEN '(auto on off)' JOB '{_portals_list job}' NAME '{_portals_list domain}'
		DIR _directories FILE _files PROGRAM '_command_names -e'
		NAME=VALUE _portals_env LIST '')
	[[ $tool != tracedump ]] || does[NAME]='(command taken park wake lease given execute send
		take match wait deliver drop event answer answered begin end birth death)'
	for ((i = 2; i < CURRENT && tool[1] == "y"; i++)); do
		[[ $words[i] != : ]] || k=i
	done
	"$words[1]" --help 2>/dev/null | while IFS= read -r line; do
		[[ $line == '  -'* ]] || continue
		left=(${=${line[3,-1]%%  *}//,/})
		text=${${${line[3,-1]#*  }## #}//(#m)[\[\]:]/\\$MATCH} value=
		[[ $left[-1] == -* ]] || value=$left[-1] left[-1]=()
		# options of the whole job are behind no colon
		((k == 1)) || [[ $left[1] == (-sz|-d|-x) ]] || continue
		[[ $left[1] != -sz ]] || left+=(-np -n)
		[[ $left[1] == -x ]] && name='*' || name="($left)"
		[[ $text != print\ (this|the\ (version|settings))* ]] || name='(- *)'
		for i in {1..$#left}; do
			line=$left[i]
			[[ -z $value || $line != --* ]] || line+==
			[[ -z $value || $line != -? ]] || line+=+
			specs+=("$name${line}[$text]${value:+:${value//:/}:$does[$value]}")
		done
	done
	case $tool in
	yod)
		if ((k > 1)); then # another program, with nodes of its own
			words=(yod "${(@)words[k + 1,-1]}")
			((CURRENT -= k - 1))
		fi
		_arguments $specs '(-)1:program:_portals_program' '*::arguments:_normal'
		;;
	ptlstat) _arguments $specs '*::job:_portals_what' ;;
	tracedump) _arguments $specs '*:file:_files' ;;
	*) _arguments $specs ;;
	esac
}
_portals "$@"
