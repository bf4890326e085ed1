/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC control block's gauges: a picture of this node's state and waits, drawn now
 * and then by the lease holder, for tools outside.  Only this file reads the gauges
 * back, and nothing is decided by them.
 */
#define P3_LOG_AREA P3_AREA_NIC
#include "nic/report/mirror.h"
#include "nic/cci/firmware.h"
#include "nic/obj/event.h"
#include "nic/obj/list.h"
#include "nic/obj/table.h"
#include "nic/run/wires.h"
#include "shm/log.h"

#include <sys/syscall.h>
#include <unistd.h>

#define P3_MIRROR_MOST 1000u /* transfers that are counted at most */

static uint32_t length_of(const struct p3_link *list)
{
	uint32_t n = 0;
	for (const struct p3_link *l = list->next; l != list && n < P3_MIRROR_MOST;
		l = l->next)
		n++;
	return n;
}

/* Store a gauge only if its value is new: the peer reads the same line, and a store
 * would take the line away from its CPU. */
static void show(p3_a64 *word, uint64_t value)
{
	if (p3_get(word) != value)
		p3_set(word, value);
}

static bool waits_for(struct p3_peer *p)
{
	return p->nqueued || p->nout ||
	       (p->acked && p3_get(p->req_out.credit) != p->req_out.pos);
}

/* Return a number that changes when the peer takes a message of this node, or answers. */
static uint64_t taken_by(const struct p3_peer *p)
{
	return p->acked ? p3_get(p->req_out.credit) + p->rsp_in.pos : 0;
}

void p3_mirror_peer(struct p3_peer *p, uint64_t now)
{
	uint64_t taken = taken_by(p);
	uint64_t since = p3_get(&p->shown->shown_since);
	if (!waits_for(p))
		since = 0;
	else if (!since || taken != p->taken)
		since = now;
	p->taken = taken;
	show(&p->shown->shown_since, since);
	show(&p->shown->shown_ops, p3_pair(p->nout, p->nqueued));
}

static uint32_t mirror_peers(struct p3_nic *n, uint64_t now)
{
	uint32_t queued = 0;
	for (uint32_t i = 0; i < n->nhot; i++) {
		p3_mirror_peer(n->hot[i], now);
		queued += n->hot[i]->nqueued;
	}
	return queued;
}

static uint64_t pendings_most(const struct p3_nic *n)
{
	uint64_t chunk = sizeof(struct p3_pending) * P3_TABLE_EACH;
	uint64_t chunks = n->conf.pending_limit / chunk;
	return (chunks < P3_TABLE_CHUNKS ? chunks : P3_TABLE_CHUNKS) * P3_TABLE_EACH;
}

void p3_mirror_gauges(struct p3_nic *n, enum p3_lease_holder next)
{
	uint64_t now = p3_now_ns();
	const uint64_t gauge[] = {
		now,
		next,
		n->table[P3_T_ME].live,
		n->table[P3_T_MD].live,
		n->table[P3_T_EQ].live,
		n->table[P3_T_PENDING].live,
		pendings_most(n),
		mirror_peers(n, now),
		length_of(&n->blocked),
		n->nhot,
		p3_get(&n->alive),
		length_of(&n->pulls),
		length_of(&n->sources),
		p3_get(&n->parked),
		p3_get(&n->waiting),
		p3_get(&n->watcher),
		n->arena_used - n->layout.ctl_len,
	};
	_Static_assert(P3_G_NOW_NS + sizeof gauge / sizeof gauge[0] == P3_G_CARVED + 1,
		"one value for each");
	for (uint32_t i = 0; i < sizeof gauge / sizeof gauge[0]; i++)
		p3_set(&n->count[P3_G_NOW_NS + i], gauge[i]);
	if (p3_unlikely(n->cci.shown || n->cci.nendpoints))
		p3_cci_gauges(n, now);
	if (p3_unlikely(n->nwires))
		p3_wires_show(n);
	p3_set(&n->count[P3_C_DRAINED], p3_get(&n->drained));
	p3_count(&n->count[P3_C_HEARTBEAT], 1);
}

void p3_mirror_lost(struct p3_peer *p)
{
	p3_set(&p->shown->shown_since, 0);
	p3_set(&p->shown->shown_ops, 0);
}

static const char *mode_name(enum p3_mode mode)
{
	static const char *const names[] = {"auto", "lease", "dedicated", "park"};
	return names[mode];
}

void p3_mirror_conf(struct p3_nic *n)
{
	const struct p3_nic_conf *c = &n->conf;
	p3_set(&n->count[P3_G_MODE], c->match_on_host ? P3_MODE_GENERIC : c->mode);
	p3_set(&n->count[P3_G_PAGE], n->published.page);
	p3_set(&n->count[P3_G_NUMA], (uint64_t)(p3_seg_numa_node(&n->published) + 1));
	p3_set(&n->count[P3_G_CPUS], c->cpus);
	p3_set(&n->count[P3_G_CMA], c->cma);
	p3_set(&n->count[P3_G_BULK], c->bulk);
	p3_set(&n->count[P3_G_MEMBARRIER], c->membarrier);
	p3_set(&n->count[P3_G_BASE_LANES], c->base_lanes_only);
	p3_set(&n->count[P3_G_WIRE], n->nwires != 0);
	p3_set(&n->count[P3_G_HEAP], c->heap ? p3_heap_len(c->heap) : 0);
	p3_set(&n->count[P3_G_SPIN], n->idle.spin_ns);
	p3_set(&n->count[P3_G_NOW_NS], p3_now_ns());
	p3_set(&n->count[P3_G_ALIVE], p3_get(&n->alive));
	p3_log(P3_LOG_INFO, P3_LOG_AREA,
		"node %u of %u: mode %s, %u CPUs, pages of %llu bytes, cross-memory "
		"reads "
		"%s, windows %s, membarrier %s, shared heap of %llu bytes",
		c->node, c->nnodes, mode_name(c->mode), c->cpus,
		(unsigned long long)n->published.page, c->cma ? "on" : "off",
		c->bulk ? "on" : "off", c->membarrier ? "on" : "off",
		(unsigned long long)(c->heap ? p3_heap_len(c->heap) : 0));
}

/* ---- event queues ---- */

static struct p3_queue_line *queue_line(struct p3_nic *n, const struct p3_eq *eq)
{
	char *base = n->published.base;
	struct p3_queue_line *lines =
		(struct p3_queue_line *)(base + n->layout.queues_off);
	return p3_obj_index(&eq->o) < P3_QUEUES_SHOWN ? &lines[p3_obj_index(&eq->o)]
						      : NULL;
}

void p3_mirror_queue(struct p3_nic *n, const struct p3_eq *eq)
{
	struct p3_queue_line *line = queue_line(n, eq);
	uint64_t at = (uint64_t)((char *)eq->tx.ring - (char *)n->host_seg[0].base);
	if (!line)
		return;
	p3_set(&line->how, p3_pair(p3_handle_gen(p3_get(&eq->o.name)), eq->n));
	p3_set(&line->at, at < n->host_seg[0].len ? at + 1 : 0);
}

void p3_mirror_no_queue(struct p3_nic *n, const struct p3_eq *eq)
{
	struct p3_queue_line *line = queue_line(n, eq);
	if (line)
		p3_set(&line->at, 0);
}

/* ---- waits of threads ---- */

static struct p3_wait_line *claim(struct p3_nic *n, uint32_t tid)
{
	char *base = n->published.base;
	struct p3_wait_line *lines = (struct p3_wait_line *)(base + n->layout.waits_off);
	for (uint32_t i = 0; i < P3_WAITS; i++) {
		uint32_t none = 0;
		if (!p3_get(&lines[i].tid) && p3_cas32(&lines[i].tid, &none, tid))
			return &lines[i];
	}
	return NULL;
}

struct p3_wait_line *p3_mirror_wait(struct p3_nic *n, const struct p3_wants *wants,
	uint64_t since_ns, uint64_t deadline_ns)
{
	struct p3_wait_line *line = claim(n, (uint32_t)syscall(SYS_gettid));
	if (!line)
		return NULL;
	p3_set(&line->kind, wants->kind);
	p3_set(&line->since_ns, since_ns);
	p3_set(&line->deadline_ns, deadline_ns);
	p3_set(&line->received, p3_get(&n->count[P3_C_RECEIVED]));
	p3_set(&line->n, wants->n);
	for (uint32_t i = 0; i < wants->n && i < P3_WAIT_HANDLES; i++)
		p3_set(&line->handle[i], wants->handles[i]);
	return line;
}

struct p3_wait_line *p3_nic_show_barrier(struct p3_nic *n)
{
	const struct p3_wants wants = {P3_WAIT_BARRIER, 0, NULL};
	return p3_mirror_wait(n, &wants, p3_now_ns(), UINT64_MAX);
}

void p3_nic_left_barrier(struct p3_wait_line *line)
{
	p3_mirror_waited(line);
}

void p3_mirror_waited(struct p3_wait_line *line)
{
	if (!line)
		return;
	p3_set(&line->kind, 0);
	p3_set(&line->tid, 0);
}
