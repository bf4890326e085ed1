# SPDX-License-Identifier: BSD-3-Clause
# UCX over its shared memory: ucx_perftest, and peer_ucx.c for the patterns that it has not.
# Read by compare.

ucx_there() { have ucx_perftest; }
ucx-sysv_there() { ucx_there; }

ucx_package() { echo "ucx-utils libucx-dev"; }
ucx-sysv_package() { ucx_package; }

# ucx_api: can peer_ucx.c be built?
ucx_api() {
	have cc && printf '#include <ucp/api/ucp.h>\nint main(void) { return 0; }\n' |
		cc -x c - -o /dev/null -lucp -lucs 2>/dev/null
}

ucx_api_tests=ack,get,am,eqget
ucx_tests() {
	if ucx_api; then echo latency,stream,rate,$ucx_api_tests; else echo latency,stream,rate; fi
}
ucx-sysv_tests() { ucx_tests; }

# ucx_one test bytes column factor name transport
ucx_one() {
	local port=$((13400 + RANDOM % 2000)) n
	n=$(iterations "$2")
	[[ $1 = tag_lat ]] || n=$((n * 4))
	UCX_TLS=$6 served ucx_perftest -p $port -- ucx_perftest -p $port -f -v -t "$1" \
		-s "$2" -n "$n" -w $((n / 10 + 1)) -O 64 localhost |
		awk -F, -v c="$3" -v f="$4" -v name="$5" -v x="$2" \
			'NR > 1 && NF > 5 { printf "%s\t%s\t%g\n", name, x, $c * f; n++ }
			END { exit !n }'
}

# By columns of ucx_perftest: 2 median us (half a round trip), 6 MiB/s, 8 messages/s.
ucx_perftests() { # name transport
	local bytes
	for bytes in ${sizes//,/ }; do
		if want latency; then
			ucx_one tag_lat "$bytes" 2 1000 "$1"$'\t'latency "$2" || return 1
		fi
		if want stream; then
			ucx_one tag_bw "$bytes" 6 1.048576 "$1"$'\t'stream "$2" || return 1
		fi
	done
	want rate || return 0
	ucx_one tag_bw 8 8 0.000001 "$1"$'\t'rate "$2"
}

ucx_lacks() {
	ucx_api || echo "$ucx_api_tests of ucx and ucx-sysv: no headers of UCX, or no compiler;" \
		"Debian: apt-get install libucx-dev gcc"
}

ucx_build() {
	[[ ! -x $work/peer_ucx ]] && ucx_api || return 0
	cc -std=gnu11 -D_GNU_SOURCE -O3 "$here/peer.c" "$here"/ucx/*.c -o "$work/peer_ucx" \
		-lucp -lucs 2>"$log" && return
	cat "$log" >&2
	die 1 "peer_ucx.c: cc cannot build it; expected that it can"
}
ucx-sysv_build() { ucx_build; }

ucx_both() { # name transport
	local args=()
	ucx_perftests "$1" "$2" || return 1
	want eqget && args+=(eqget=1)
	want ack && args+=(ack=8)
	want get && args+=(get=8)
	want am && args+=("am=$am_sizes")
	((!${#args[@]})) || UCX_TLS=$2 $limit "$work/peer_ucx" "$1" $scale "${args[@]}" 2>>"$log"
}

ucx_run() { ucx_both ucx posix,self; }
ucx-sysv_run() { ucx_both ucx-sysv sysv,self; }
