#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh tardy.sh program
# A rank calls PtlNIInit only when the others have said that they wait for it: in a job of
# mpirun and in one of yod.
set -u
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
failed=0
line='waits since 10 s until all 6 ranks'
# shellcheck disable=SC2016 # of the inner shell
late='[ "${OMPI_COMM_WORLD_RANK-$PTL_MY_RID}" != 5 ] || until [ -e "$1" ]; do sleep 0.1; done; exec "$0"'
for by in mpirun yod; do
	"$here/$by.sh" -x PTL3_HUGEPAGES=off sh -c "$late" "$1" "$dir/$by.go" >"$dir/$by" 2>&1 &
	declare $by=$!
done
says() { # launcher
	grep -q "$line" "$dir/$1" || ! kill -0 "${!1}" 2>/dev/null
}
for by in mpirun yod; do
	patiently says $by
	touch "$dir/$by.go"
	wait "${!by}" || failed=1
	cat "$dir/$by"
	grep -q "$line" "$dir/$by" || failed=1
done
exit $failed
