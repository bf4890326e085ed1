/* SPDX-License-Identifier: BSD-3-Clause */
/* PtlXVersion and PtlXStats. */
#include "lib/node/call.h"
#include "portals3x.h"

#include <string.h>

const char *PtlXVersion(void)
{
	return P3_VERSION;
}

static void fill(struct p3_nic *nic, ptlx_stats_t *s)
{
	s->msgs_sent = p3_nic_counter(nic, P3_C_SENT);
	s->msgs_received = p3_nic_counter(nic, P3_C_RECEIVED);
	s->bytes_sent = p3_nic_counter(nic, P3_C_SENT_BYTES);
	s->bytes_received = p3_nic_counter(nic, P3_C_RECEIVED_BYTES);
	s->drops = p3_nic_counter(nic, P3_C_DROPS);
	s->puts_inline = p3_nic_counter(nic, P3_C_PUT_INLINE);
	s->puts_eager = p3_nic_counter(nic, P3_C_PUT_EAGER);
	s->moved_bulk_bytes = p3_nic_counter(nic, P3_C_BULK_BYTES);
	s->moved_cma_bytes = p3_nic_counter(nic, P3_C_CMA_BYTES);
	s->passes = p3_nic_counter(nic, P3_C_PASSES);
	s->passes_drained = p3_nic_counter(nic, P3_C_DRAINED);
	s->pass_overruns = p3_nic_counter(nic, P3_C_OVERRUNS);
	s->lease_host = p3_nic_counter(nic, P3_C_LEASE_HOST);
	s->lease_nic = p3_nic_counter(nic, P3_C_LEASE_NIC);
	s->kicks_sent = p3_nic_counter(nic, P3_C_KICKS);
	s->wakes_sent = p3_nic_counter(nic, P3_C_WAKES);
	s->park_late = p3_nic_counter(nic, P3_C_PARK_LATE);
	s->cma_fallback = p3_nic_counter(nic, P3_C_CMA_FALLBACK);
	s->peers_alive = p3_nic_peers_alive(nic);
	s->lanes_full = p3_nic_counter(nic, P3_C_QUEUED);
	s->hugepages = p3_nic_is_huge(nic);
	s->bad_headers = p3_nic_counter(nic, P3_C_BAD_HEADERS);
	s->moved_direct_bytes = p3_nic_counter(nic, P3_C_DIRECT_BYTES);
	s->wire_resent = p3_nic_wire_counter(nic, P3_W_RESENT);
	s->wire_bad_sums = p3_nic_wire_counter(nic, P3_W_BAD_SUMS);
	s->wire_doubles = p3_nic_wire_counter(nic, P3_W_DOUBLES);
	s->wire_gaps = p3_nic_wire_counter(nic, P3_W_GAPS);
	s->job_alive = p3_nic_job_alive(nic);
	s->interrupts = p3_nic_counter(nic, P3_C_INTERRUPTS);
	s->generic_events = p3_nic_counter(nic, P3_C_GENERIC);
	s->moved_fetched_bytes = p3_nic_wire_counter(nic, P3_W_FETCHED);
	s->truncated = p3_nic_counter(nic, P3_C_TRUNCATED);
}

/* Length of the first version, which programs may have been compiled with. */
#define STATS_LEAST offsetof(ptlx_stats_t, moved_direct_bytes)

int PtlXStats(ptl_handle_ni_t ni_handle, ptlx_stats_t *stats)
{
	ptlx_stats_t s = {.struct_size = sizeof s};
	if (!stats)
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	if (!p3_node_find_ni(p3_node(), ni_handle))
		return PTL_NI_INVALID;
	uint32_t room = stats->struct_size;
	if (room < STATS_LEAST)
		return PTL_FAIL;
	fill(nic, &s);
	memset(stats, 0, room);
	memcpy(stats, &s, room < sizeof s ? room : sizeof s);
	return PTL_OK;
}
