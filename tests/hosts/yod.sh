#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh yod.sh [-n ranks] [-p ranks of a host] [-x VARIABLE=value] [-o option]
#	command...
# Run a command by yod --hosts on all hosts, with the options of mpirun.sh.  HOSTS_OPTIONS
# has further options of yod.
set -u
n=6 each=2
read -ra set <<<"${HOSTS_OPTIONS-}"
while getopts +n:p:x:o: option; do
	case $option in
	n) n=$OPTARG ;;
	p) each=$OPTARG ;;
	x) set+=(--env "$OPTARG") ;;
	o) set+=("$OPTARG") ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
list=
for host in $HOSTS; do list+=${list:+,}$host:$each; done
exec "${P3_YOD:?}" --rsh "$AGENT" --hosts "$list" --timeout "${P3_LIMIT:-3000}" "${set[@]}" \
	-sz "$n" "$@"
