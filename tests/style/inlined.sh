#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Hot functions stay inlined: inlined.sh source-tree libportals.so, of gcc's release
# build.  GCC stops inlining into a function that grew too large, and nothing else
# shows it.  The rare half of a function may lie apart (.part, .cold).
root=${1:?source tree} lib=${2:?library}
status=0

command -v nm >/dev/null || {
	echo "skipped: no nm"
	exit 77
}
there=$(nm "$lib" | awk '$2 ~ /^[tT]$/ { print $3 }' | grep -vE '\.(part|cold)\.?') || exit 1
# A library without its own symbols would pass.
printf '%s\n' "$there" | grep -q '^p3_rx_take' || {
	echo "$lib has no p3_rx_take: stripped, or hidden by another build"
	exit 1
}

while read -r function where what; do
	grep -q "\<$function(" "$root/$where" || {
		echo "$where: $function is not there; expected the names in tests/style/inlined.sh to follow"
		status=1
	}
	out=$(printf '%s\n' "$there" | grep -E "^$function(\.|$)" | head -n 1)
	[ -z "$out" ] || {
		echo "$where: $function lies out of line ($out): $what." \
			"Make its caller smaller (see git log), or move what is rare into a function of its own" \
			"(docs/design/code-of-the-path.md)"
		status=1
	}
done <<LIST
p3_peer_find nic/proto/peer.c each put, get and answer looks up its target with it
p3_lease_take shm/lease.h each call and each pass begins with it
p3_peer_has_room nic/proto/proto.h each message asks it
p3_ring_fits shm/lane.h each message asks it
p3_ring_publish shm/lane.h each message is sent by it
p3_ring_run shm/lane.h each put that leaves at once is sent by it
p3_ring_run_full shm/lane.h each put that leaves at once is sent by it
p3_nic_put nic/host/request.c PtlPut and PtlPutRegion are leaf functions with it
p3_tx_put_now nic/proto/tx.h PtlPut and PtlPutRegion are leaf functions with it
p3_ring_any shm/lane.h each pass looks into each lane with it
p3_match_request nic/match/match.c each request that comes is matched by it
p3_table_named nic/obj/state.h each put looks up its descriptor with it
p3_event_begin nic/obj/obj.h each event begins with it
p3_event_post nic/obj/obj.h each event ends with it
p3_evq_look shm/evq.h each PtlEQGet and PtlEQWait looks with it
LIST
exit $status
