#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Names that libraries export and import.  usage: symbols.sh exported|gasnet|imported ARGUMENTS
command -v nm >/dev/null || {
	echo "skipped: no nm"
	exit 77
}
status=0
complain() {
	echo "$*"
	status=1
}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C

# The library exports the names that its linker map lists and no other, and the map has no
# patterns: symbols.sh exported libportals.so libportals.map
exported() {
	lib=${1:?library} map=${2:?map}
	names=$(nm -D --defined-only "$lib") || exit 1
	printf '%s\n' "$names" | awk '$2 != "A" { sub("@.*", "", $NF); print $NF }' | sort >"$tmp/found"
	sed -n '/global:/,/local:\|}/s/^[[:space:]]*\([^:;}]*\);.*/\1/p' "$map" | sort >"$tmp/listed"
	for pattern in $(grep '[*?[]' "$tmp/listed"); do
		complain "$map: the pattern $pattern exports names that nobody has listed"
	done
	for name in $(uniq -d "$tmp/listed"); do
		complain "$map: $name is listed twice"
	done
	for name in $(comm -23 "$tmp/found" "$tmp/listed"); do
		complain "exported, but not in the map: $name"
	done
	for name in $(comm -13 "$tmp/found" "$tmp/listed"); do
		complain "in the map, but not exported: $name"
	done
	for name in $(grep -Evx 'Ptl[A-Z][A-Za-z]*|ptl_err_str|ptl_event_str|cnos_[a-z_]+|cci_[a-z_]+|p3tcp_my_nid' \
		"$tmp/listed"); do
		complain "in the map, but no name of the API: $name"
	done
	[ "$(wc -l <"$tmp/found")" -gt 50 ] || complain "only $(wc -l <"$tmp/found") names are exported"
}

# A shared library of GASNet exports the functions and objects that its headers declare, the
# mode's gasnet_init and gasnet_attach, its link words, and no other name:
# symbols.sh gasnet include-directory library.so...
gasnet() {
	include=${1:?include directory}
	shift

	# The headers' own lines, without comments and without bodies of inline functions.
	for header in gasnet.h gasnet_coll.h gasnet_tools.h; do
		echo "#include <$header>"
	done | cc -E -DGASNET_SEQ -I "$include" -x c - |
		awk '/^# / { ours = /gasnet[a-z_]*\.h"/; next } ours' | tr '\n' ' ' |
		sed 's/__attribute__ *(([^()]*\(([^()]*)\)*))//g; s/[;{}]/&\n/g' |
		grep -v -e '^ *typedef' -e static -e ' return ' |
		sed -nE -e 's/^.*[ *](gasne[a-z]*_[A-Za-z0-9_]+) *\(.*;$/\1/p' \
			-e 's/^ *extern [^(]*[ *](gasne[a-z]*_[A-Za-z0-9_]+) *;$/\1/p' |
		grep -vE '^gasnetc_(init|attach)_|^gasneti_link' | sort -u >"$tmp/declared"
	[ "$(wc -l <"$tmp/declared")" -gt 100 ] ||
		complain "only $(wc -l <"$tmp/declared") names are declared in $include"

	for lib; do
		mode=$(basename "$lib" | sed 's/^libgasnet-portals-//; s/\.so.*//; s/-debug$//' | tr a-z A-Z)
		nm -D --defined-only "$lib" | awk '{ sub("@.*", "", $NF); print $NF }' | sort >"$tmp/found"
		grep -vxE "gasnetc_(init|attach)_$mode|gasneti_linkconfig_idiotcheck_[A-Z_0-9]+" \
			"$tmp/found" >"$tmp/others"
		[ "$(comm -12 "$tmp/found" "$tmp/others" | wc -l)" -eq $(($(wc -l <"$tmp/found") - 6)) ] ||
			complain "$lib: not the mode's two functions and four link words"
		for name in $(comm -23 "$tmp/others" "$tmp/declared"); do
			complain "$lib: exported, but not in a public header: $name"
		done
		for name in $(comm -13 "$tmp/others" "$tmp/declared"); do
			complain "$lib: declared, but not exported: $name"
		done
	done
}

# The library ends no process and touches no signal handler: symbols.sh imported
# libportals.so.  _exit is allowed in a forked child that cannot have its copy of the
# shared heap (shm/heap.h), kill in a node whose yod was killed (lib/job/yod.c), and exit
# in a process whose own threads have all ended (shm/process.c).
imported() {
	lib=${1:?library}
	never='abort|quick_exit|_Exit|__assert_fail|__assert|__libc_fatal|raise|tgkill|pthread_kill|signal|__sysv_signal|bsd_signal|sigaction|sigset|siginterrupt|atexit|on_exit|longjmp|siglongjmp|setitimer|alarm'

	names=$(nm -D --undefined-only "$lib" | awk '{ sub("@.*", "", $NF); print $NF }') || exit 1
	for name in $(printf '%s\n' "$names" | grep -Ex "$never"); do
		echo "imported, but a library must not: $name"
		status=1
	done
	for name in kill pthread_create recvmsg; do
		printf '%s\n' "$names" | grep -qx $name || {
			echo "not imported, is this the library? $name"
			status=1
		}
	done
}

what=$1
shift
$what "$@"
exit $status
