#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mpi.sh [spawn | hang]: an MPI program (mpi.c) over Open MPI's mtl/ofi and the provider portals.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/shell.sh"
command -v mpicc mpirun >"$dir/has" || skip "no mpicc or mpirun: packages libopenmpi-dev, openmpi-bin"
mpicc -O1 -o "$dir/mpi" "$here/mpi.c" -lpthread || die "mpi.c does not compile"
unset PTL3_DOMAIN FI_PROVIDER
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=false
nodes=3
[ $# = 0 ] || nodes=2
job=(timeout "${P3_LIMIT:-1000}" mpirun -n $nodes --oversubscribe --mca pml cm --mca mtl ofi
	--mca mtl_ofi_provider_include portals --mca btl self -x FI_PROVIDER_PATH)

# As docs/libfabric.md tells: ptlstat and the trace of a job that hangs name the ranks and the tags.
traced() { # lines of the trace, which contain a text
	"${P3_BIN:?}/tracedump" --at "$1" --job "$waiting" >"$dir/trace" 2>"$dir/err" &&
		grep -q "$2" "$dir/trace"
}

explained() {
	waiting=$(sed -n 's/^rank 1 is process //p' "$dir/out")
	[ -n "$waiting" ] && "${P3_BIN:?}/ptlstat" why "$waiting" >"$dir/why" 2>"$dir/err" &&
		grep -q "^node 1 (pid $waiting): waits by libfabric for a message from node 0 with tag 0x2b \
.*; has unexpected from node 0: tag 0x2a, 4 bytes$" "$dir/why" &&
		grep -q "^node 1 waits by libfabric .* what came from node 0 has tag 0x2a" "$dir/why"
}

hangs() {
	traced me_attach ' 1: .* me_attach bits 2b$' &&
		traced match ' 1: .* match hit from 0 .* bits 400000000000002a$'
}

if [ "$*" = hang ]; then
	start_marked "${job[@]}" -x PTL3_TRACE=32768 "$dir/mpi" hang
	patiently explained || die "ptlstat why does not name the tags: $(cat "$dir/why")"
	"$P3_BIN/ptlstat" --json "$waiting" >"$dir/json" || die "ptlstat does not know the job"
	for fact in '"library":"libfabric"' '"tag":"0x2b"' '"tag":"0x2a","bytes":4'; do
		grep -qF "$fact" "$dir/json" || die "ptlstat --json lacks $fact: $(cat "$dir/json")"
	done
	patiently hangs || die "the trace does not name tag 43, and tag 42 of rank 0: $(tail -5 "$dir/trace")"
	"$P3_BIN/tracedump" --json --output "$dir/json" --job "$waiting" || die "no trace for Perfetto"
	grep -q '"traceEvents"' "$dir/json" || die "the trace for Perfetto has no events"
	kill "$pid"
	wait "$pid"
	nothing_left || exit 1
	exit 0
fi
run_marked "${job[@]}" "$dir/mpi" "$@"
# shellcheck disable=SC2154
[ "$status" = 0 ] || die "mpirun ends with $status"
[ "$(cat "$dir/out")" = "all is well" ] || die "it says something else"
nothing_left || exit 1
