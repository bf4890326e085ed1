#compdef portals-info
# Completion of portals-info(1) in zsh: options.
_arguments \
	'(-j --json)'{-j,--json}'[for programs]' \
	'(- *)'{-h,--help}'[print help]' \
	'(- *)--version[print the version]'
