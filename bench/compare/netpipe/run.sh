# SPDX-License-Identifier: BSD-3-Clause
# NetPIPE over Open MPI.  Read by compare.

netpipe_there() { have NPopenmpi && have mpirun.openmpi; }
netpipe_package() { echo "netpipe-openmpi"; }
netpipe_tests() { echo latency,stream; }

# netpipe_one test factor-of-what options...
netpipe_one() {
	local test=$1 rooted=()
	shift
	((EUID)) || rooted=(--allow-run-as-root)
	$limit mpirun.openmpi "${rooted[@]}" --bind-to core -np 2 NPopenmpi -p 0 \
		-u "${sizes##*,}" -n "$([[ $scale = quick ]] && echo 20 || echo 200)" \
		-o "$work/np" "$@" >>"$log" 2>&1 || return 1
	awk -v sizes="$sizes" -v test="$test" '
		BEGIN { n = split(sizes, s, ","); for (i = 1; i <= n; i++) want[s[i]] = 1 }
		$1 in want { printf "netpipe\t%s\t%s\t%g\n", test, $1,
			test == "latency" ? $3 * 1e9 : $2 * 1e6 / 8 / 1e6 }' "$work/np"
}

netpipe_run() {
	if want latency; then
		netpipe_one latency || return 1
	fi
	want stream || return 0
	netpipe_one stream -s
}
