#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh mpirun.sh [-n ranks] [-p ranks of a host] [-x VARIABLE=value] [-o option]
#	command...
# Run a command by mpirun from the first host on all of them: 6 ranks, 2 on each.
set -u
n=6 each=2 set=()
while getopts +n:p:x:o: option; do
	case $option in
	n) n=$OPTARG ;;
	p) each=$OPTARG ;;
	x) set+=(-x "$OPTARG") ;;
	o) set+=("$OPTARG") ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
command -v mpirun >/dev/null || {
	echo "skipped: there is no mpirun"
	exit 77
}
[ -z "${PTL3_FABRIC-}" ] || set+=(-x PTL3_FABRIC)
list=
for host in $HOSTS; do list+=${list:+,}$host:$each; done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec "$ONHOST" "${HOST_PREFIX}1" mpirun --mca plm_rsh_agent "$AGENT" --bind-to none \
	--host "$list" -n "$n" "${set[@]}" "$@"
