# SPDX-License-Identifier: BSD-3-Clause
# Open MPI and MPICH: peer_mpi.c, built with the mpicc of each.  Read by compare.

# mpi_there name: can a program be built with it?
mpi_there() {
	have "mpicc.$1" && have "mpirun.$1" &&
		printf '#include <mpi.h>\nint main(void) { return MPI_Finalize(); }\n' |
		"mpicc.$1" -x c - -o /dev/null 2>/dev/null
}
openmpi_there() { mpi_there openmpi; }
mpich_there() { mpi_there mpich; }

openmpi_package() { echo "openmpi-bin libopenmpi-dev"; }
mpich_package() { echo "mpich libmpich-dev"; }

mpi_tests=latency,stream,rate,match,alltoall,eqget,eqpoll,ack,get,am,queues,threads
openmpi_tests() { echo $mpi_tests; }
mpich_tests() { echo $mpi_tests; }

mpi_build() { # name
	"mpicc.$1" -std=gnu11 -D_GNU_SOURCE -O3 "$here/peer.c" "$here"/mpi/*.c \
		-o "$work/peer_mpi.$1" -lpthread 2>"$log" && return
	cat "$log" >&2
	die 1 "peer_mpi.c: mpicc.$1 cannot build it; expected that it can"
}
openmpi_build() { mpi_build openmpi; }
mpich_build() { mpi_build mpich; }

# mpi_label name n: MPICH with the device ch4 does not yield with any setting (4.0.2):
# with more nodes than CPUs its figures are those of time slices.
mpi_label() {
	if [[ $1 = mpich ]] && (($2 > $(nproc))) &&
		[[ $(mpichversion 2>/dev/null) = *ch4* ]]; then
		echo mpich-spins
	else
		echo "$1"
	fi
}

# mpi_start name n yield args...: pinned by the program itself, as ours are
mpi_start() {
	local name=$1 n=$2 yield=$3 rooted=() label
	label=$(mpi_label "$1" "$2")
	shift 3
	((EUID)) || rooted=(--allow-run-as-root)
	if [[ $name = openmpi ]]; then
		OMPI_MCA_mpi_yield_when_idle=$yield $limit mpirun.openmpi "${rooted[@]}" \
			--bind-to none --oversubscribe -np "$n" "$work/peer_mpi.$name" \
			"$label" $scale "$@" 2>>"$log"
	else
		MPIR_CVAR_POLLS_BEFORE_YIELD=$((yield ? 1 : 1000)) $limit mpirun.mpich \
			-bind-to none -np "$n" "$work/peer_mpi.$name" "$label" $scale "$@" \
			2>>"$log"
	fi
}

mpi_run() { # name
	local args=() n yield=0
	[[ $scale != quick ]] || yield=1 # a test has no CPU for itself
	want latency && args+=("latency=$sizes")
	want stream && args+=("stream=$sizes")
	want rate && args+=(rate=8)
	want match && args+=("match=$depths")
	want eqget && args+=(eqget=1)
	want eqpoll && args+=("eqpoll=$polled")
	want ack && args+=(ack=8)
	want get && args+=(get=8)
	want am && args+=("am=$am_sizes")
	want queues && args+=("queues=$queue_counts")
	((!${#args[@]})) || mpi_start "$1" 2 "$yield" "${args[@]}" || return 1
	! want threads || mpi_start "$1" 2 1 "threads=$thread_counts" || return 1
	want alltoall || return 0
	for n in ${nodes//,/ }; do
		mpi_start "$1" "$n" 1 "alltoall=$n" || return 1
	done
}
openmpi_run() { mpi_run openmpi; }
mpich_run() { mpi_run mpich; }
