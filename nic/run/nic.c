/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start and stop of the NIC.
 *
 * Memory ordering:
 *	STOP.1	Dekker: p3_nic_stop stores closing, fences, loads waiting; a host thread
 *		adds to waiting, fences, loads closing.  Without it a command is posted
 *		to a mailbox that will never be emptied.
 *	STOP.2	waiting: a host thread's last step, adding -1, releases -> p3_nic_stop
 *		acquires 0 (it looks at nothing any more)
 *	SEG.1	header state: released when the segment is formatted -> acquired by peers
 */
#include "nic/nic.h"
#include "nic/cci/lose.h"
#include "nic/generic/host.h"
#include "nic/obj/eq.h"
#include "nic/obj/host.h"
#include "nic/obj/table.h"
#include "nic/proto/close.h"
#include "nic/proto/peer.h"
#include "nic/report/mirror.h"
#include "nic/report/trace.h"
#include "nic/report/why.h"
#include "nic/run/lease.h"
#include "nic/run/odd.h"
#include "nic/run/ringer.h"
#include "nic/run/segments.h"
#include "nic/run/thread.h"
#include "nic/run/wait.h"
#include "nic/run/wake.h"
#include "nic/run/wires.h"
#include "nic/xfer/xfer.h"
#include "shm/process.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define P3_TICK_NS      2000000u
#define P3_CACHED_CELLS 32768u /* 2 MiB */
/* Passes with up to this number of hot lanes poll them as few (P3_DEEPEST in pass.c).
 * Where nodes share CPUs the number is smaller: the lanes of a pair of nodes. */
#define P3_FEW_LANES         8u
#define P3_FEW_LANES_CROWDED 2u
#define P3_GENERIC_THREADS   3u /* program, firmware, host */
/* from this number of nodes on one CPU on, most of them do not run at a given moment */
#define P3_DENSE 4u

/* ---- the state of a life ---- */

/* NICs are kept for reuse and never freed: a thread that still has the pointer to a
 * closed NIC may read it. */
P3_PROCESS_LOCK(kept_lock)
static struct p3_nic *kept;

/* Reserve the tables of handles.  Return false if the address space has no room. */
static bool reserve_tables(struct p3_table *t)
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
	pthread_mutex_lock(&kept_lock);
	struct p3_nic *n = kept;
	if (n)
		kept = n->next_kept;
	pthread_mutex_unlock(&kept_lock);
	if (n)
		return n;
	n = aligned_alloc(P3_PAGE, p3_round_up(sizeof *n, P3_PAGE));
	if (!n)
		return NULL;
	memset(n, 0, sizeof *n);
	if (!reserve_tables(n->table)) {
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
	pthread_mutex_lock(&kept_lock);
	n->next_kept = kept;
	kept = n;
	pthread_mutex_unlock(&kept_lock);
}

static void plan(struct p3_nic *n)
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
static void init_pseudo_peer(struct p3_nic *n, struct p3_peer *p)
{
	*p = (struct p3_peer){.nic = n,
		.index = n->conf.nnodes,
		.state = P3_ABSENT,
		.pid = {P3_JOB_NO_PID, P3_JOB_NO_PID},
		.uid = PTL_UID_ANY,
		.jid = PTL_JID_ANY};
	p3_list_init(&p->queue);
}

static void reset_run(struct p3_nic *n)
{
	p3_set(&n->alive, 0);
	p3_set(&n->closing, 0);
	p3_set(&n->drained, 0);
	p3_set(&n->nic_drained, 0);
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
}

static void reset_objects(struct p3_nic *n)
{
	struct p3_cmd left = {.op = P3_OP_EQ_RECLAIM};
	p3_table_init(
		&n->table[P3_T_PENDING], sizeof(struct p3_pending), n->pending_chunk);
	left.eq.dead = p3_host_unreclaimed(n, NULL);
	(void)p3_eq_reclaim(n, &left); /* queues of the last life */
	n->next_link = 0xfffffff0;     /* wraps in every run */
}

static void reset_proto(struct p3_nic *n)
{
	p3_list_init(&n->blocked);
	p3_set(&n->settle, 0);
	for (unsigned i = 0; i < P3_WIRE_IDS; i++)
		p3_set(&n->settled[i], 0);
	p3_set(&n->leaving, 0);
	p3_set(&n->promised, 0);
	p3_set(&n->meeting, 0);
	init_pseudo_peer(n, &n->unresolved);
	init_pseudo_peer(n, &n->absent);
	n->held_most = (uint32_t)(n->conf.pending_limit / 2 / sizeof(struct p3_pending));
	memset(n->come, 0, sizeof n->come);
	memset(n->over, 0, sizeof n->over);
	n->asked = n->told = 0;
	n->settling_until = 0;
}

static void reset_transfers(struct p3_nic *n)
{
	/* The first window is there from the start: where the kernel refuses
	 * cross-memory reads, all long transfers need one. */
	n->windows = n->window_free = 1;
	n->window_off[0] = n->layout.ctl_len;
	n->arena_used = n->layout.ctl_len + P3_WINDOW_LEN;
	memset(n->pace, 0, sizeof n->pace);
	n->swapper = NULL;
	n->swapper_until = n->window_ns = 0;
	p3_list_init(&n->pulls);
	p3_list_init(&n->sources);
}

/* Reset the state, except parked and waiting: a thread that has yet to return from a call
 * of the NIC's last life may still be counted there. */
static void reset_state(struct p3_nic *n)
{
	reset_run(n);
	reset_objects(n);
	reset_proto(n);
	reset_transfers(n);
	p3_cci_reset(n);
}

static void init_peers(struct p3_nic *n)
{
	char *base = n->published.base;
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		struct p3_peer *p = &n->peer[i];
		p->nic = n;
		p->index = i;
		p->mine = (struct p3_peer_entry *)(base + p3_entry_off(&n->layout, i));
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

static void wake_everybody(struct p3_nic *n)
{
	p3_wake_hosts(n, ~0u);
	p3_set(n->asleep, P3_AWAKE);
	p3_futex_wake(n->asleep, ~0u, true);
	p3_add32(&n->doorbell->kick, 1);
	p3_futex_wake(&n->doorbell->kick, ~0u, true);
}

static bool enter_to_stop(struct p3_nic *n)
{
	return n->generic ? p3_lease_enter_reserved(n, P3_LEASE_HOST)
			  : p3_lease_enter(n, P3_LEASE_HOST);
}

/* Wait until all threads of this process have left the NIC's calls, and answer posted
 * commands meanwhile.  Return with the lease, which this thread then never gives up. */
static void drain_threads(struct p3_nic *n)
{
	bool held = false;
	for (;;) {
		wake_everybody(n);
		if (!held)
			held = enter_to_stop(n);
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
	plan(n);
	n->conf.membarrier = n->conf.membarrier && p3_fence_join();
	int rc = p3_segments_make(n);
	if (rc)
		goto keep;
	rc = p3_segments_make_private(n);
	if (rc)
		goto drop;
	reset_state(n);
	init_peers(n);
	p3_xfer_start(n);
	p3_trace_start(n);
	rc = p3_wires_start(n);
	if (rc)
		goto drop;
	rc = p3_generic_prepare(n);
	if (rc)
		goto unwire;
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
	drain_threads(n);
	p3_generic_drop_all(n);
unwire:
	p3_wires_stop(n);
drop:
	p3_segments_drop_private(n);
	p3_segments_drop(n);
keep:
	nic_keep(n);
	return rc;
}

/* ---- stop ---- */

static void unmap_peers(struct p3_nic *n)
{
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		struct p3_peer *p = &n->peer[i];
		struct p3_peer_info info;
		p3_peer_unmapped(p, &info);
		p->wire->unmap(&info);
	}
}

void p3_nic_stop(struct p3_nic *n)
{
	p3_set(&n->closing, 1);
	p3_set(&n->stop, 1);
	p3_fence(); /* STOP.1 */
	wake_everybody(n);
	FAULT_POINT("fini.closing");
	pthread_join(n->thread, NULL);
	p3_generic_stop(n);
	drain_threads(n);
	p3_xfer_revoke_all(n);
	p3_why_sum(n);
	FAULT_POINT("fini.revoked");
	struct p3_seg_header *h = n->published.base;
	p3_release(&h->state, P3_SEG_FINISHED); /* SEG.1 */
	p3_close_all(n);
	p3_cci_free_all(n);
	p3_nic_free_iovs();
	FAULT_POINT("fini.finished");
	unmap_peers(n);
	p3_wires_stop(n);
	p3_generic_drop_all(n);
	p3_segments_drop_private(n);
	p3_segments_drop(n);
	nic_keep(n);
}

void p3_nic_forget(struct p3_nic *n)
{
	p3_ringer_forget(n);
}

/* ---- queries from outside ---- */

uint64_t p3_nic_counter(struct p3_nic *n, enum p3_counter c)
{
	return c == P3_C_DRAINED ? p3_get(&n->drained) : p3_get(&n->count[c]);
}

uint64_t p3_nic_wire_counter(struct p3_nic *n, unsigned c)
{
	return p3_get(&n->wire_count[c]);
}

bool p3_nic_is_huge(struct p3_nic *n)
{
	return n->published.page == P3_HUGE;
}

uint32_t p3_nic_peers_alive(struct p3_nic *n)
{
	return p3_get(&n->alive);
}

uint32_t p3_nic_job_alive(struct p3_nic *n)
{
	return p3_get(&n->job_alive);
}
