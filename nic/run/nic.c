/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start and stop of the NIC, its segments, which peers map, and its private tables.
 *
 * Memory ordering:
 *	STOP.1	Dekker: p3_nic_stop stores closing, fences, loads waiting; a host thread
 *		adds to waiting, fences, loads closing.  Without it a command is posted
 *		to a mailbox that will never be emptied.
 *	STOP.2	waiting: a host thread's last step, adding -1, releases -> p3_nic_stop
 *		acquires 0 (it looks at nothing any more)
 *	SEG.1	header state: released when the segment is formatted -> acquired by peers
 */
#define P3_LOG_AREA P3_AREA_NIC
#include "nic/nic.h"
#include "nic/cci/firmware.h"
#include "nic/generic/generic.h"
#include "nic/obj/obj.h"
#include "nic/proto/proto.h"
#include "nic/report/report.h"
#include "nic/run/lease.h"
#include "nic/xfer/xfer.h"
#include "shm/process.h"
#include "shm/log.h"
#include "shm/trace.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define P3_TICK_NS      2000000u
#define P3_CACHED_CELLS 32768u /* 2 MiB */
/* Passes with up to this number of hot lanes poll them as few (P3_DEEPEST).
 * Where nodes share CPUs the number is smaller: the lanes of a pair of nodes. */
#define P3_FEW_LANES         8u
#define P3_FEW_LANES_CROWDED 2u
#define P3_GENERIC_THREADS   3u /* program, firmware, host */
/* from this number of nodes on one CPU on, most of them do not run at a given moment */
#define P3_DENSE 4u

/* ---- segments and tables ---- */

static int nic_make_published(struct p3_nic *n)
{
	int fell_back;
	n->layout = p3_layout_of(n->conf.nnodes);
	uint64_t trace = p3_trace_len(n->conf.trace);
	int rc = p3_seg_create("p3-published",
		n->layout.seg_len + p3_round_up(trace, P3_HUGE),
		n->layout.ctl_len + P3_WINDOW_LEN, n->conf.huge, &n->published,
		&fell_back);
	if (rc)
		return rc;
	trace = p3_round_up(trace, n->published.page);
	if (trace)
		rc = p3_seg_reserve_range(&n->published, n->layout.seg_len, trace);
	if (rc) {
		p3_error("no room for %llu bytes of trace (%s); set PTL3_TRACE to fewer "
			 "records, or to off",
			(unsigned long long)trace, strerror(-rc));
		p3_seg_destroy(&n->published);
		return rc;
	}
	if (fell_back) /* PTL3_HUGEPAGES=auto permits ordinary pages: do not warn */
		p3_log(P3_LOG_INFO, P3_LOG_AREA,
			"no hugepages (%s): ordinary pages are used; portals-info and "
			"yod --plan tell how many there are, and how to get more",
			fell_back == EPERM ? "before Linux 5.13 other processes could "
					     "write to sealed ones"
					   : strerror(fell_back));
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
	n->count = p3_published_at(n, n->layout.counters_off);
	rc = p3_seg_seal(&n->published);
	if (rc)
		p3_seg_destroy(&n->published);
	return rc;
}

/* Make the published segment, the doorbell and the host segment.  Return 0, or -errno if
 * one of them cannot be made: then none is left. */
static int nic_make_segments(struct p3_nic *n)
{
	int rc = nic_make_published(n);
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

/* Allocate peers, ids, transfers and copies.  Return 0 or -ENOMEM: call
 * nic_drop_tables() then, too. */
static int nic_make_tables(struct p3_nic *n)
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

static void nic_drop_tables(struct p3_nic *n)
{
	p3_ids_drop(n);
	p3_copy_stop(n);
	free(n->peer);
	free(n->hot);
	free(n->xfer);
	free(n->pull);
	n->peer = NULL;
}

static void nic_drop_segments(struct p3_nic *n)
{
	p3_seg_destroy(&n->published);
	p3_seg_destroy(&n->doorbell_seg);
	p3_host_drop(n);
}

/* ---- the state of a life ---- */

/* NICs are kept for reuse and never freed: a thread that still has the pointer to a
 * closed NIC may read it. */
P3_PROCESS_LOCK(nic_kept_lock)
static struct p3_nic *nic_kept;

/* Reserve the tables of handles.  Return false if the address space has no room. */
static bool nic_reserve_handles(struct p3_table *t)
{
	if (p3_table_reserve(&t[P3_T_ME], sizeof(struct p3_me), P3_KIND_ME) == 0 &&
		p3_table_reserve(&t[P3_T_MD], sizeof(struct p3_md), P3_KIND_MD) == 0 &&
		p3_table_reserve(&t[P3_T_EQ], sizeof(struct p3_eq), P3_KIND_EQ) == 0)
		return true;
	p3_table_unreserve(&t[P3_T_ME]);
	p3_table_unreserve(&t[P3_T_MD]);
	return false;
}

static struct p3_nic *nic_alloc(void)
{
	pthread_mutex_lock(&nic_kept_lock);
	struct p3_nic *n = nic_kept;
	if (n)
		nic_kept = n->next_kept;
	pthread_mutex_unlock(&nic_kept_lock);
	if (n)
		return n;
	n = aligned_alloc(P3_PAGE, p3_round_up(sizeof *n, P3_PAGE));
	if (!n)
		return NULL;
	memset(n, 0, sizeof *n);
	if (!nic_reserve_handles(n->table)) {
		free(n);
		return NULL;
	}
	p3_set(&n->lease.word, P3_LEASE_HOST);
	pthread_mutex_init(&n->arena_lock, NULL);
	n->host_seg[0].fd = n->host_seg[1].fd = -1;
	return n;
}

static void nic_keep(struct p3_nic *n)
{
	pthread_mutex_lock(&nic_kept_lock);
	n->next_kept = nic_kept;
	nic_kept = n;
	pthread_mutex_unlock(&nic_kept_lock);
}

static void nic_plan(struct p3_nic *n)
{
	struct p3_nic_conf *c = &n->conf;
	uint32_t cpus = c->cpus ? c->cpus : 1;
	uint32_t crew = c->crew ? c->crew : c->nnodes;
	uint32_t crowd = (crew + cpus - 1) / cpus; /* nodes on one CPU */
	n->may_rest = c->mode == P3_MODE_AUTO;
	if (c->mode == P3_MODE_AUTO)
		c->mode = crew > 1 && cpus >= 2 * crew && !c->domain ? P3_MODE_DEDICATED
								     : P3_MODE_LEASE;
	n->crowded = crowd > 1;
	n->dense = crowd >= P3_DENSE;
	n->few = n->crowded ? P3_FEW_LANES_CROWDED : P3_FEW_LANES;
	n->tight = cpus < 2 * crew;
	n->sparing = (uint64_t)crowd * crew * p3_layout_of(c->nnodes).req_cells >
		     P3_CACHED_CELLS;
	n->idle.spin_ns = n->crowded ? 0 : P3_SPIN_NS;
	n->idle.yield_ns = P3_YIELD_NS;
	/* In generic mode a node's threads hand all work to each other.  Where they share
	 * CPUs, a thread that sleeps is woken sooner than one that yields runs again. */
	bool shares = c->match_on_host && cpus < P3_GENERIC_THREADS * crew;
	if (c->mode == P3_MODE_PARK || shares) {
		n->idle = (struct p3_idle_policy){0, 0};
		c->membarrier = false; /* each sleep would cost a membarrier */
	}
	n->brief = n->idle.spin_ns && n->conf.cpus > 1;
	n->tick_ns = (uint64_t)P3_TICK_NS * crowd;
	n->kick_after_ns = crowd > 1 ? 4ull * P3_KICK_NS * crowd : P3_KICK_NS;
}

/* Make a pseudo-peer: requests in its queue wait for news of their targets. */
static void nic_init_pseudo_peer(struct p3_nic *n, struct p3_peer *p)
{
	*p = (struct p3_peer){.nic = n,
		.index = n->conf.nnodes,
		.state = P3_ABSENT,
		.pid = {P3_JOB_NO_PID, P3_JOB_NO_PID},
		.uid = PTL_UID_ANY,
		.jid = PTL_JID_ANY};
	p3_list_init(&p->queue);
}

/* Reset the state, except parked and waiting: a thread that has yet to return from a call
 * of the NIC's last life may still be counted there. */
static void nic_reset_state(struct p3_nic *n)
{
	struct p3_cmd left = {.op = P3_OP_EQ_RECLAIM};
	p3_set(&n->alive, 0);
	p3_set(&n->closing, 0);
	p3_set(&n->drained, 0);
	p3_set(&n->nic_drained, 0);
	p3_set(&n->brief_looks, 0);
	p3_set(&n->nic_asleep, 0);
	p3_set(&n->watcher, 0);
	p3_set(&n->hogged_until, 0);
	p3_set(&n->stop, 0);
	p3_set(&n->emptied, 0); /* only passes on shared CPUs set it */
	p3_set(&n->lease.want, 0);
	p3_set(&n->hungry, P3_MBX_NONE);
	p3_set(&n->detached, 0);
	n->ntouched = n->nhot = n->turn = 0;
	n->posted = 0;
	n->some_bad = false;
	n->light = n->conf.membarrier;
	/* objects */
	p3_table_init(
		&n->table[P3_T_PENDING], sizeof(struct p3_pending), n->pending_chunk);
	left.eq.dead = p3_host_unreclaimed(n, NULL);
	(void)p3_eq_reclaim(n, &left); /* queues of the last life */
	n->next_link = 0xfffffff0;     /* wraps in every run */
	/* requests */
	p3_list_init(&n->blocked);
	p3_set(&n->settle, 0);
	p3_set(&n->settled, 0);
	p3_set(&n->leaving, 0);
	p3_set(&n->promised, 0);
	p3_set(&n->meeting, 0);
	nic_init_pseudo_peer(n, &n->unresolved);
	nic_init_pseudo_peer(n, &n->absent);
	n->held_most = (uint32_t)(n->conf.pending_limit / 2 / sizeof(struct p3_pending));
	memset(n->come, 0, sizeof n->come);
	memset(n->over, 0, sizeof n->over);
	n->asked = n->told = 0;
	n->settling_until = 0;
	n->nkept = 0;
	/* Transfers.  The first window is there from the start: where the kernel refuses
	 * cross-memory reads, all long transfers need one. */
	n->windows = n->window_free = 1;
	n->window_off[0] = n->layout.ctl_len;
	n->arena_used = n->layout.ctl_len + P3_WINDOW_LEN;
	memset(n->pace, 0, sizeof n->pace);
	n->swapper = NULL;
	n->swapper_until = n->window_ns = n->reserve_ns = 0;
	p3_list_init(&n->pulls);
	p3_list_init(&n->sources);
	p3_cci_reset(n);
}

static void nic_init_peers(struct p3_nic *n)
{
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		struct p3_peer *p = &n->peer[i];
		p->nic = n;
		p->index = i;
		p->mine = p3_published_at(n, p3_entry_off(&n->layout, i));
		p->shown = p->mine;
		p3_list_init(&p->queue);
		p3_list_init(&p->outstanding);
		p3_list_init(&p->serving);
		p3_list_init(&p->blocked_link);
		p3_list_init(&p->bulk_waits);
		p3_cci_reset_peer(p);
	}
}

/* ---- the end of a life ---- */

static void nic_wake_everybody(struct p3_nic *n)
{
	p3_wake_hosts(n, ~0u);
	p3_set(n->asleep, P3_AWAKE);
	p3_futex_wake(n->asleep, ~0u, true);
	p3_add32(&n->doorbell->kick, 1);
	p3_futex_wake(&n->doorbell->kick, ~0u, true);
}

/* Wait until all threads of this process have left the NIC's calls, and answer posted
 * commands meanwhile.  Return with the lease, which this thread then never gives up. */
static void nic_drain_threads(struct p3_nic *n)
{
	bool held = false;
	for (;;) {
		nic_wake_everybody(n);
		if (!held)
			held = n->generic ? p3_lease_enter_reserved(n, P3_LEASE_HOST)
					  : p3_lease_enter(n, P3_LEASE_HOST);
		else if (p3_mbx_any(n->mailbox))
			p3_command_take_posted(n);
		if (held && !p3_acquire(&n->waiting)) /* STOP.2 */
			return;
		sched_yield();
	}
}

/* ---- start ---- */

int p3_nic_start(const struct p3_nic_conf *conf, struct p3_nic **nic_out)
{
	struct p3_nic *n = nic_alloc();
	if (!n)
		return -ENOMEM;
	n->conf = *conf;
	if (!n->conf.hold)
		n->conf.hold_ns = 0; /* no thread would end requests whose time is over */
	nic_plan(n);
	n->conf.membarrier = n->conf.membarrier && p3_fence_join();
	int rc = nic_make_segments(n);
	if (rc)
		goto keep;
	rc = nic_make_tables(n);
	if (rc)
		goto drop;
	nic_reset_state(n);
	nic_init_peers(n);
	p3_xfer_start(n);
	p3_trace_start(n);
	rc = p3_wires_start(n);
	if (rc)
		goto drop;
	rc = p3_generic_prepare(n);
	if (rc)
		goto unwire;
	n->odd_life = (n->generic ? P3_ODD_GENERIC : 0u) |
		      (n->traced ? P3_ODD_TRACED : 0u) | (n->wired ? P3_ODD_WIRED : 0u) |
		      (n->conf.nnodes > P3_ALL_HOT ? P3_ODD_NODES : 0u);
	p3_odd_settle(n);
	p3_mirror_conf(n);
	FAULT_POINT("init.formatted");
	p3_release(&((struct p3_seg_header *)n->published.base)->state,
		P3_SEG_LIVE); /* SEG.1 */
	p3_release(&n->lease.word, n->generic ? P3_LEASE_RESERVED : P3_LEASE_FREE);
	FAULT_POINT("init.live");
	rc = p3_generic_start(n);
	if (rc)
		goto close;
	rc = p3_thread_start(n);
	if (rc)
		goto silence;
	*nic_out = n;
	return 0;
silence:
	p3_generic_stop(n);
close: /* threads with handles of an earlier life may be in a call: answer them */
	p3_set(&n->closing, 1);
	p3_fence(); /* STOP.1 */
	nic_drain_threads(n);
	p3_generic_drop_all(n);
unwire:
	p3_wires_stop(n);
drop:
	nic_drop_tables(n);
	nic_drop_segments(n);
keep:
	nic_keep(n);
	return rc;
}

/* ---- stop ---- */

void p3_nic_stop(struct p3_nic *n)
{
	p3_set(&n->closing, 1);
	p3_set(&n->stop, 1);
	p3_fence(); /* STOP.1 */
	nic_wake_everybody(n);
	FAULT_POINT("fini.closing");
	pthread_join(n->thread, NULL);
	p3_generic_stop(n);
	nic_drain_threads(n);
	p3_xfer_revoke_all(n);
	p3_why_sum(n);
	FAULT_POINT("fini.revoked");
	struct p3_seg_header *h = n->published.base;
	p3_release(&h->state, P3_SEG_FINISHED); /* SEG.1 */
	p3_close_all(n);
	p3_cci_free_all(n);
	p3_evfd_close_all(n);
	p3_nic_free_iovs();
	FAULT_POINT("fini.finished");
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		struct p3_peer_info info;
		p3_peer_unmapped(&n->peer[i], &info);
		n->peer[i].wire->unmap(&info);
	}
	p3_wires_stop(n);
	p3_generic_drop_all(n);
	nic_drop_tables(n);
	nic_drop_segments(n);
	nic_keep(n);
}

void p3_nic_forget(struct p3_nic *n)
{
	p3_wire_thread_forget(n);
}

/* ---- queries from outside ---- */

uint64_t p3_nic_counter(struct p3_nic *n, enum p3_counter c)
{
	return c == P3_C_DRAINED ? p3_get(&n->drained)
	       : c == P3_G_ALIVE ? p3_get(&n->alive)
				 : p3_get(&n->count[c]);
}

uint32_t p3_nic_job_alive(struct p3_nic *n)
{
	return p3_get(&n->job_alive);
}

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
