#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes that find rank, size and job in the environment of a launcher other than
# yod: launched.sh domain_rank scene
#	pmi openmpi pmix slurm		four by hand, with that launcher's variables
#	mpirun.openmpi mpiexec.hydra	by that program, if it is installed
#	killed left swept again	how the job's barrier ends, and goes on
#	quiet				four by hand, in one domain, with the defaults: no warning
#	two wrong clash			two jobs; values that make no sense; one rank twice
#	spawned family			two jobs of one mpirun: each by itself, and with one
#					PTL3_DOMAIN
#	kin kin_prrte			three generations of jobs of one mpirun, which reach
#					each other; one is killed, and another takes its
#					place; one is too large.  kin-SETTING: with this setting
set -u
. "$(dirname "$0")/../support/patience.sh"
rank=$1 scene=$2
dir=$(mktemp -d) || exit 1
users=/dev/shm/ptl3-$(id -u)
trap 'rm -rf "$dir"' EXIT
# shellcheck disable=SC2086 # names
unset PTL3_DOMAIN ${!OMPI_@} ${!PMI_@} ${!PMIX_@} ${!SLURM_@} ${!MPI_LOCAL@}
export PTL3_HUGEPAGES=off

fail() {
	echo "$*"
	cat "$dir"/* 2>/dev/null
	exit 1
}

has_files() { # pattern, number
	[ "$(find "$dir" -name "$1" | wc -l)" = "$2" ]
}

# Variables of rank $2 of $3 in job $4 as the launcher $1 sets them.
variables() {
	case $1 in
	pmi) echo PMI_RANK="$2" PMI_SIZE="$3" PMI_JOBID="$4" ;;
	openmpi) echo OMPI_COMM_WORLD_RANK="$2" OMPI_COMM_WORLD_SIZE="$3" \
		OMPI_COMM_WORLD_LOCAL_SIZE="$3" PMIX_RANK="$2" PMIX_NAMESPACE="$4" ;;
	pmix) echo PMIX_RANK="$2" SLURM_NTASKS="$3" SLURM_PROCID=77 SLURM_STEP_ID=1 \
		PMIX_NAMESPACE="slurm.pmix.a-long-name-of-a-job.$4.0@1" ;;
	orte) echo OMPI_COMM_WORLD_RANK="$2" OMPI_COMM_WORLD_SIZE="$3" \
		OMPI_COMM_WORLD_LOCAL_SIZE="$3" OMPI_MCA_orte_ess_jobid="$4" \
		OMPI_MCA_orte_hnp_uri="$hnp" ;;
	slurm) echo SLURM_PROCID="$2" SLURM_NTASKS="$3" SLURM_JOB_ID="$4" SLURM_STEP_ID=0 \
		SLURM_NNODES=1 ;;
	esac
}

# start launcher job size words of rank...: in the background, the last one first
start() {
	local launcher=$1 job=$2 n=$3 i
	shift 3
	for ((i = n - 1; i >= 0; i--)); do
		# shellcheck disable=SC2046 # words without blanks
		env $(variables "$launcher" $i "$n" "$job") \
			timeout -s KILL "${P3_LIMIT:-3000}" "$rank" "$@" >"$dir/$job.$i" 2>&1 &
		started[i]=$!
	done
}

# ends status...: of ranks 0, 1, ...
ends() {
	local i=0 status
	for want; do
		wait "${started[i]}"
		status=$?
		[ $status = "$want" ] || fail "rank $i ends with $status, not $want"
		((i++))
	done
}

left_nothing() {
	local left
	left=$(find "$users" -path "*$1*" 2>/dev/null)
	[ -z "$left" ] || fail "left: $left"
}

# Check that ranks 0 to 2 say once that rank 3 has ended and spoiled their barriers.
names_the_last() {
	local i
	for i in 0 1 2; do
		[ "$(grep -c 'warn: PtlXBarrier: rank 3 has ended' "$dir/$job.$i")" = 1 ] ||
			fail "rank $i does not say once that rank 3 has ended"
	done
}

# Run processes that the launcher itself starts.
by_program() {
	local run=("$@") out
	command -v "$1" >/dev/null || {
		echo "skipped: no $1"
		exit 77
	}
	"${run[@]}" -n 4 "$rank" all 4 "$variable" >"$dir/out" 2>&1 || fail "$scene: $rank"
	[ -n "$P3_BIN" ] && [ -x "$P3_BIN/hello" ] || return
	out=$("${run[@]}" -n 4 "$P3_BIN/hello" 2>"$dir/err" | sort)
	[ "$out" = "$(printf 'hello from rank %d of 4\n' 0 1 2 3)" ] || fail "hello: $out"
	head -c 3000001 /dev/urandom >"$dir/in"
	mkdir "$dir/copies"
	"${run[@]}" -n 4 "$P3_BIN/filecast" "$dir/in" "$dir/copies" >"$dir/out" 2>&1 ||
		{ rm -f "$dir/in"; fail filecast; }
	for i in 0 1 2 3; do
		cmp "$dir/in" "$dir/copies/$i" || fail "rank $i has another file"
	done
	rm -rf "$dir/copies" "$dir/in"
}

# refused words... -- variables...: one line that has all words
refused() {
	local words=() said
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	said=$(env "$@" timeout -s KILL "${P3_LIMIT:-3000}" "$rank" all 2 2>&1) && fail "$*: is not refused"
	[ "$(grep -c 'p3\[' <<<"$said")" = 1 ] || fail "$*: not one line: $said"
	for word in "${words[@]}" PTL3_LAUNCHED=off; do
		grep -qF -- "$word" <<<"$said" || fail "$*: no '$word' in: $said"
	done
}

started=()
job=$scene-$$
case $scene in
pmi | openmpi | pmix | slurm)
	variable=PMI_RANK
	[ "$scene" = openmpi ] && variable=OMPI_COMM_WORLD_RANK
	[ "$scene" = pmix ] && variable=PMIX_RANK
	[ "$scene" = slurm ] && variable=SLURM_PROCID
	start "$scene" "$job" 4 all 4 "$variable"
	ends 0 0 0 0
	left_nothing "$job"
	;;
mpirun.openmpi)
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	export OMPI_MCA_orte_tmpdir_base=$dir # as support/starters.sh explains
	variable=OMPI_COMM_WORLD_RANK
	by_program mpirun.openmpi --oversubscribe
	;;
mpiexec.hydra)
	variable=PMI_RANK
	by_program mpiexec.hydra
	;;
killed)
	start pmi "$job" 4 killed 4
	ends 0 0 0 137
	names_the_last
	;;
left)
	start pmi "$job" 4 left 4
	ends 0 0 0 0
	names_the_last
	left_nothing "$job"
	;;
swept)
	start pmi "$job" 3 swept 3
	ends 0 0 0
	said=$(cat "$dir/$job.2")
	[ "$(grep -c 'has closed descriptors of the domain' <<<"$said")" = 1 ] ||
		fail "not one line: $said"
	;;
again)
	start pmi "$job" 3 again 3
	ends 0 0 0
	left_nothing "$job"
	;;
late)
	start pmi "$job" 2 late 2 "$dir/late"
	ends 0 0
	left_nothing "$job"
	;;
two)
	start pmi "$job.1" 3 all 3 PMI_RANK
	first=("${started[@]}")
	start slurm $$ 2 all 2 SLURM_PROCID
	ends 0 0
	started=("${first[@]}")
	ends 0 0 0
	;;
spawned) # parents and children of one mpirun before there was PMIx, both with a rank 0
	hnp="$$.0;tcp://127.0.0.1:4711"
	start orte "$$.1" 3 all 3 OMPI_COMM_WORLD_RANK
	first=("${started[@]}")
	start orte "$$.2" 2 all 2 OMPI_COMM_WORLD_RANK
	ends 0 0
	started=("${first[@]}")
	ends 0 0 0
	;;
family) # the same, which are to reach each other: in a domain that all are told
	hnp="$$.0;tcp://127.0.0.1:4711"
	export PTL3_DOMAIN=$job
	start orte "$$.1" 3 family 1 0 5
	first=("${started[@]}")
	start orte "$$.2" 2 family 1 3 5
	ends 0 0
	started=("${first[@]}")
	ends 0 0 0
	left_nothing "$job"
	;;
kin*)
	# Ids of Open MPI's jobs: the family in the upper half, the job in the lower one; those
	# of PRRTE end in @job.
	launcher=orte family=$(($$ % 65535 + 1)) domain=
	of() { echo $((family * 65536 + $1)); }
	if [[ $scene == kin_prrte* ]]; then
		launcher=openmpi family=prterun-test-$$ domain=prterun-test-$$
		of() { echo "$family@$1"; }
	fi
	hnp="$(of 0).0;tcp://127.0.0.1:4711"
	[[ $scene != *-* ]] || export "${scene#*-}"
	export PTL3_DOMAIN_NODES=9 # three parents, six children of them and of those
	round=1:3,2:2,3:2 words=("$dir" 1 "1:3,2:2,3:2,4:2")
	for k in 4 2 3; do # the grandchildren may be earlier than the children
		last=("-4:2,$round,5:2")
		[ $k != 4 ] || last=(stay)
		start "$launcher" "$(of $k)" 2 kin 2 "${words[@]}" "${last[@]}"
		eval "job$k=(${started[*]})"
	done
	start "$launcher" "$(of 1)" 3 kin 3 "${words[@]}" "-4:2,$round,5:2"
	parents=("${started[@]}")
	patiently has_files 'r202.*' 9 || fail "the first round"
	said=$(env $(variables "$launcher" 0 3 "$(of 6)") timeout -s KILL "${P3_LIMIT:-3000}" "$rank" stay 3 "$dir/none" 2>&1) &&
		fail "a job that does not fit: $said"
	[ "$(grep -c 'p3\[' <<<"$said")" = 1 ] || fail "not one line: $said"
	grep -q 'error: .*3 ranks.* room for 0.*PTL3_DOMAIN_NODES' <<<"$said" || fail "$said"
	grep -q 'PtlNIInit.*PTL_NO_SPACE' <<<"$said" || fail "$said"
	started=("${job4[@]}")
	touch "$dir/r0.0.0"
	ends 137 137
	start "$launcher" "$(of 5)" 2 kin 2 "$dir" 2 "-4:2,$round,5:2"
	ends 0 0
	started=("${parents[@]}")
	ends 0 0 0
	started=("${job2[@]}")
	ends 0 0
	started=("${job3[@]}")
	ends 0 0
	left_nothing "ompi-${domain:-$(of 0)}"
	;;
wrong)
	refused PMI_RANK "'x'" "from 0 to 1" -- PMI_RANK=x PMI_SIZE=2
	refused PMI_RANK "'2'" "from 0 to 1" -- PMI_RANK=2 PMI_SIZE=2
	refused PMI_RANK "'-1'" -- PMI_RANK=-1 PMI_SIZE=2
	refused PMI_SIZE "not set" -- PMI_RANK=1
	refused PMI_SIZE "'0'" "from 1 to 1024" -- PMI_RANK=0 PMI_SIZE=0
	refused PMI_SIZE "'1025'" "from 1 to 1024" -- PMI_RANK=0 PMI_SIZE=1025
	refused PMI_SIZE "'99999999999999999999'" -- PMI_RANK=0 PMI_SIZE=99999999999999999999
	refused OMPI_COMM_WORLD_SIZE "'2 '" -- OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE='2 '
	refused OMPI_COMM_WORLD_LOCAL_SIZE "is 1" "mpirun" "one host" -- \
		OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1
	refused OMPI_COMM_WORLD_LOCAL_SIZE "is 1" "PTL3_FABRIC, which is 'off'" "one host" -- \
		OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1 \
		PMIX_RANK=0 PMIX_NAMESPACE=x PTL3_FABRIC=off
	refused OMPI_COMM_WORLD_LOCAL_SIZE "is 4294967295" "one host" -- \
		OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=4294967295
	refused OMPI_COMM_WORLD_LOCAL_SIZE "'4294967296'" "from 1 to 4294967295" -- \
		OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=4294967296
	refused SLURM_NNODES "is 2" "one host" "--mpi=pmix" -- SLURM_PROCID=0 SLURM_NTASKS=2 \
		SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_NNODES=2
	refused "not set" -- PMIX_RANK=0 PMIX_NAMESPACE=x
	# No ranks: switched off, in a domain, in a batch script of Slurm.
	for off in "PTL3_LAUNCHED=off PMI_RANK=x" "PTL3_DOMAIN=none PMI_RANK=x" \
		"SLURM_PROCID=0 SLURM_NTASKS=9 SLURM_JOB_ID=1" \
		"SLURM_PROCID=0 SLURM_NTASKS=9 SLURM_JOB_ID=1 SLURM_STEP_ID=4294967291"; do
		# shellcheck disable=SC2086 # words without blanks
		env $off timeout -s KILL "${P3_LIMIT:-3000}" "$rank" left 1 >"$dir/$job" 2>&1 || fail "$off"
	done
	said=$(PTL3_LAUNCHED=no "$rank" all 1 2>&1) && fail "PTL3_LAUNCHED=no"
	grep -q "PTL3_LAUNCHED is 'no'; expected auto, off" <<<"$said" || fail "$said"
	;;
quiet)
	for i in {1..4}; do
		env -u PTL3_HUGEPAGES PTL3_DOMAIN=$job timeout -s KILL "${P3_LIMIT:-3000}" "$rank" together 1 \
			"$dir/go" >"$dir/$job.$i" 2>&1 &
		started[i - 1]=$!
	done
	patiently has_files 'go.*' 4
	touch "$dir/go"
	ends 0 0 0 0
	grep 'warn:\|hugepages' "$dir/$job".* && fail "a run in order prints a warning"
	;;
clash)
	start pmi "$job" 2 stay 2 "$dir/both"
	patiently test -e "$dir/both.there" || fail "the job does not begin"
	# shellcheck disable=SC2046 # words without blanks
	said=$(env $(variables pmi 0 2 "$job") timeout -s KILL "${P3_LIMIT:-3000}" "$rank" stay 2 "$dir/both" 2>&1) &&
		fail "one rank twice: $said"
	grep -q "rank 0 of the job .* is process [0-9]* already" <<<"$said" || fail "$said"
	touch "$dir/both.go"
	ends 0 0
	;;
*) fail "no scene $scene" ;;
esac
echo "# tried: $scene"
