#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: slurm.sh srun.sh [-n ranks] [-p ranks of a host] [-x VARIABLE=value] [-o option]
#	command...
# Run a command by srun from the first host on all of them, with the options of mpirun.sh.
set -u
n=6 each=2 set=() export=ALL
while getopts +n:p:x:o: option; do
	case $option in
	n) n=$OPTARG ;;
	p) each=$OPTARG ;;
	x) export+=,$OPTARG ;;
	o) set+=("$OPTARG") ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
exec "$ONHOST" "${HOST_PREFIX}1" srun --mpi=pmix -N $((n / each)) --ntasks-per-node="$each" \
	--export="$export" "${set[@]}" "$@"
