#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two processes that both claim to be one rank: under yod, and by a launcher's
# variables.
. "$(dirname "$0")/mp.sh"
# shellcheck disable=SC2086 # names
unset PTL3_DOMAIN PTL3_LAUNCHED ${!OMPI_@} ${!PMI_@} ${!PMIX_@} ${!SLURM_@}
twins=$MP_BIN/mp_twins
export PTL3_HUGEPAGES=off

# shellcheck disable=SC2034
by_variables() { # scene: two ranks
	local other
	PMI_RANK=1 PMI_SIZE=2 PMI_JOBID=twins-$mark timeout "${P3_LIMIT:-3000}" "$twins" "$1" &
	other=$!
	PMI_RANK=0 PMI_SIZE=2 PMI_JOBID=twins-$mark timeout "${P3_LIMIT:-3000}" "$twins" "$1" &&
		wait $other
}

lines() { # file, pattern, how often
	[ "$(grep -Ec -- "$2" "$dir/$1")" = "$3" ] ||
		fail "$what: $1 has not $3 times '$2': $(cat "$dir/out" "$dir/err")"
}

for scene in parent child off; do
	for how in yod variables; do
		what="$scene under $how"
		if [ $how = yod ]; then
			run "$P3_YOD" -sz 2 --timeout "${P3_LIMIT:-3000}" "$twins" $scene
			code=PTL_FAIL
		else
			run by_variables $scene
			code=PTL_PID_INVALID
		fi
		[ $status = 0 ] || fail "$what: status $status: $(cat "$dir/out")"
		if [ $scene = off ]; then
			lines out '^second is rank 0 of 1$' 2
			lines err 'already' 0
			continue
		fi
		lines out "^second: $code" 2
		lines err 'rank 0 .*is process [0-9]+ already; .*PTL3_LAUNCHED=off' 1
		lines err 'rank 1 .*is process [0-9]+ already; .*PTL3_LAUNCHED=off' 1
		lines err . 2
	done
done
finish twins
