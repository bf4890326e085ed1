/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a NIC: its segments, which peers map, and its private tables. */
#define P3_LOG_AREA P3_AREA_NIC
#include "nic/run/segments.h"
#include "nic/obj/host.h"
#include "nic/proto/proto.h"
#include "nic/run/wake.h"
#include "shm/log.h"
#include "shm/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* PTL3_HUGEPAGES=auto permits ordinary pages: no reason to warn. */
static void say_small_pages(int why)
{
	p3_log(P3_LOG_INFO, P3_LOG_AREA,
		"no hugepages (%s): ordinary pages are used; portals-info and yod --plan "
		"tell how many there are, and how to get more",
		why == EPERM ? "before Linux 5.13 other processes could write to sealed "
			       "ones"
			     : strerror(why));
}

static int reserve_trace(struct p3_nic *n, uint64_t len)
{
	uint64_t all = p3_round_up(len, n->published.page);
	int rc = p3_seg_reserve_range(&n->published, n->layout.seg_len, all);
	if (rc)
		p3_error("no room for %llu bytes of trace (%s); set PTL3_TRACE to fewer "
			 "records, or to off",
			(unsigned long long)all, strerror(-rc));
	if (rc)
		p3_seg_destroy(&n->published);
	return rc;
}

static int make_published(struct p3_nic *n)
{
	int fell_back;
	n->layout = p3_layout_of(n->conf.nnodes);
	uint64_t trace = p3_trace_len(n->conf.trace);
	int rc = p3_seg_create("p3-published",
		n->layout.seg_len + p3_round_up(trace, P3_HUGE),
		n->layout.ctl_len + P3_WINDOW_LEN, n->conf.huge, &n->published,
		&fell_back);
	if (!rc && trace)
		rc = reserve_trace(n, trace);
	if (rc)
		return rc;
	if (fell_back)
		say_small_pages(fell_back);
	p3_seg_bind_here(&n->published);
	struct p3_seg_header *h = n->published.base;
	h->magic = P3_SEG_MAGIC;
	h->layout = P3_LAYOUT_WORD;
	h->incarnation = n->conf.incarnation;
	h->seg_len = n->published.len;
	h->nnodes = n->conf.nnodes;
	h->ranks = n->conf.job_ranks;
	h->node = n->conf.node;
	h->fences = n->conf.membarrier;
	h->self = (uintptr_t)h;
	n->count = (p3_a64 *)((char *)n->published.base + n->layout.counters_off);
	rc = p3_seg_seal(&n->published);
	if (rc)
		p3_seg_destroy(&n->published);
	return rc;
}

int p3_segments_make(struct p3_nic *n)
{
	int rc = make_published(n);
	if (rc)
		return rc;
	rc = p3_seg_create_doorbell(&n->doorbell_seg);
	if (rc)
		goto drop_published;
	n->doorbell = n->doorbell_seg.base;
	n->asleep = p3_wake_word(n, n->conf.node, n->doorbell);
	p3_set(n->asleep, P3_AWAKE); /* an earlier life may have left any value */
	rc = p3_host_create(n);
	if (!rc)
		return 0;
	p3_seg_destroy(&n->doorbell_seg);
drop_published:
	p3_seg_destroy(&n->published);
	return rc;
}

int p3_segments_make_private(struct p3_nic *n)
{
	n->peer = aligned_alloc(
		P3_LINE, p3_round_up(n->conf.nnodes * sizeof *n->peer, P3_LINE));
	n->hot = calloc(n->conf.nnodes, sizeof *n->hot);
	n->xfer = calloc(n->layout.nxfers, sizeof *n->xfer);
	n->pull = calloc(P3_PULLS, sizeof *n->pull);
	if (!n->peer || !n->hot || !n->xfer || !n->pull || p3_ids_make(n) != 0 ||
		p3_copy_start(n) != 0)
		return -ENOMEM;
	memset(n->peer, 0, n->conf.nnodes * sizeof *n->peer);
	return 0;
}

void p3_segments_drop_private(struct p3_nic *n)
{
	p3_ids_drop(n);
	p3_copy_stop(n);
	free(n->peer);
	free(n->hot);
	free(n->xfer);
	free(n->pull);
	n->peer = NULL;
}

void p3_segments_drop(struct p3_nic *n)
{
	p3_seg_destroy(&n->published);
	p3_seg_destroy(&n->doorbell_seg);
	p3_host_drop(n);
}

/* ---- queries from outside ---- */

unsigned p3_nic_fds(struct p3_nic *n, int fds_out[P3_JOB_FDS])
{
	fds_out[0] = n->published.fd;
	fds_out[1] = n->doorbell_seg.fd;
	fds_out[2] = n->host_seg[0].fd;
	fds_out[3] = n->conf.heap ? p3_heap_offer(n->conf.heap) : -1;
	return fds_out[3] < 0 ? 3 : 4;
}

uint64_t p3_nic_heap_len(struct p3_nic *n)
{
	int fds[P3_JOB_FDS];
	return p3_nic_fds(n, fds) == P3_JOB_FDS ? p3_heap_len(n->conf.heap) : 0;
}

uint64_t p3_nic_seg_len(struct p3_nic *n)
{
	return n->published.len;
}
