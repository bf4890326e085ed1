#compdef tracedump
# Completion of tracedump(1) in zsh: options, numbers of jobs, names of points, files.
_tracedump_jobs() {
	compadd -- ${(f)"$(pgrep -x yod -u "$UID")"}
}
_arguments \
	'(1)--job=[of this job]:job:_tracedump_jobs' \
	'(--svg)--json[for ui.perfetto.dev or chrome://tracing]' \
	'(--json)--svg[a picture of the range, or of the busiest 4 us]' \
	'--output=[there instead of standard output]:file:_files' \
	'--node=[of these nodes only]:nodes, as in 0,2-3:' \
	'--peer=[about this node only]:node:' \
	'--message=[of one message]:from-to\:#, as in 0-1\:17:' \
	'--at=[at this point only]:point:(command taken park wake lease given execute send take match wait deliver drop event answer answered begin end birth death)' \
	'--since=[no records before that time]:microseconds:' \
	'--until=[nor after that one]:microseconds:' \
	'(- 1)--help[print help]' \
	'(- 1)--version[print the version]' \
	'(--job)1:file of yod --trace, or core:_files'
