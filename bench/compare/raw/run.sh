# SPDX-License-Identifier: BSD-3-Clause
# The machine's limits, and the bare design: no library.  Read by compare.

raw_limits() {
	local args=()
	want latency && args+=("latency=$sizes")
	want stream && args+=("stream=$sizes")
	want rate && args+=(rate=8)
	want ack && args+=(ack=8)
	want get && args+=(get=8)
	((!${#args[@]})) || $limit "$bin/peer_raw" $scale "${args[@]}" 2>>"$log"
}

raw_sketch() {
	local args=()
	want latency && args+=(latency=8)
	want rate && args+=(rate=8)
	want ack && args+=(ack=8)
	want get && args+=(get=8)
	want am && args+=("am=$am_sizes")
	want eqget && args+=(eqget=1)
	want alltoall && args+=("alltoall=$nodes")
	((!${#args[@]})) || $limit "$bin/peer_sketch" $scale "${args[@]}" 2>>"$log"
}

raw_run() {
	raw_limits && raw_sketch
}
