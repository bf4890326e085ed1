/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pictures of this node: gauges for tools outside, and tables as text for people.
 *
 * The lease holder writes the gauges, lines of queues and lines of waits into the NIC
 * control block now and then.  Only this file reads them back, and nothing is decided by
 * them.
 */
#define P3_LOG_AREA P3_AREA_NIC
#include "nic/cci/firmware.h"
#include "nic/obj/obj.h"
#include "nic/proto/proto.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "shm/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define P3_MIRROR_MOST 1000u /* transfers that are counted at most */

static uint32_t mirror_list_length(const struct p3_link *list)
{
	uint32_t n = 0;
	for (const struct p3_link *l = list->next; l != list && n < P3_MIRROR_MOST;
		l = l->next)
		n++;
	return n;
}

/* Store a gauge only if its value is new: the peer reads the same line, and a store
 * would take the line away from its CPU. */
static void mirror_set(p3_a64 *word, uint64_t value)
{
	if (p3_get(word) != value)
		p3_set(word, value);
}

void p3_mirror_peer(struct p3_peer *p, uint64_t now)
{
	/* a number that changes when the peer takes a message of this node, or answers */
	uint64_t taken = p->acked ? p3_get(p->req_out.credit) + p->rsp_in.pos : 0;
	uint64_t since = p3_get(&p->shown->shown_since);
	bool waits = p->nqueued || p->nout ||
		     (p->acked && p3_get(p->req_out.credit) != p->req_out.pos);
	if (!waits)
		since = 0;
	else if (!since || taken != p->taken)
		since = now;
	p->taken = taken;
	mirror_set(&p->shown->shown_since, since);
	mirror_set(&p->shown->shown_ops, p3_pair(p->nout, p->nqueued));
}

void p3_mirror_gauges(struct p3_nic *n, enum p3_lease_holder next)
{
	uint64_t now = p3_now_ns();
	uint64_t chunk = sizeof(struct p3_pending) * P3_TABLE_EACH;
	uint64_t chunks = n->conf.pending_limit / chunk;
	uint32_t queued = 0;
	for (uint32_t i = 0; i < n->nhot; i++) {
		p3_mirror_peer(n->hot[i], now);
		queued += n->hot[i]->nqueued;
	}
	const uint64_t gauge[] = {
		now,
		next,
		n->table[P3_T_ME].live,
		n->table[P3_T_MD].live,
		n->table[P3_T_EQ].live,
		n->table[P3_T_PENDING].live,
		(chunks < P3_TABLE_CHUNKS ? chunks : P3_TABLE_CHUNKS) * P3_TABLE_EACH,
		queued,
		mirror_list_length(&n->blocked),
		n->nhot,
		p3_get(&n->alive),
		mirror_list_length(&n->pulls),
		mirror_list_length(&n->sources),
		p3_get(&n->parked),
		p3_get(&n->waiting),
		p3_get(&n->watcher),
		n->arena_used - n->layout.ctl_len,
		n->nkept,
	};
	_Static_assert(P3_G_NOW_NS + sizeof gauge / sizeof gauge[0] == P3_G_KEPT + 1,
		"one value for each");
	for (uint32_t i = 0; i < sizeof gauge / sizeof gauge[0]; i++)
		p3_set(&n->count[P3_G_NOW_NS + i], gauge[i]);
	if (p3_unlikely(n->cci.shown || n->cci.nendpoints))
		p3_cci_gauges(n, now);
	if (p3_unlikely(n->wired))
		p3_wire_far.show(n);
	p3_set(&n->count[P3_C_DRAINED], p3_get(&n->drained));
	p3_count(&n->count[P3_C_HEARTBEAT], 1);
}

void p3_mirror_lost(struct p3_peer *p)
{
	p3_set(&p->shown->shown_since, 0);
	p3_set(&p->shown->shown_ops, 0);
}

void p3_mirror_conf(struct p3_nic *n)
{
	static const char *const modes[] = {"auto", "lease", "dedicated", "park"};
	const struct p3_nic_conf *c = &n->conf;
	p3_set(&n->count[P3_G_MODE], c->match_on_host ? P3_MODE_GENERIC : c->mode);
	p3_set(&n->count[P3_G_PAGE], n->published.page);
	p3_set(&n->count[P3_G_NUMA], (uint64_t)(p3_seg_numa_node(&n->published) + 1));
	p3_set(&n->count[P3_G_CPUS], c->cpus);
	p3_set(&n->count[P3_G_CMA], c->cma);
	p3_set(&n->count[P3_G_BULK], c->bulk);
	p3_set(&n->count[P3_G_MEMBARRIER], c->membarrier);
	p3_set(&n->count[P3_G_BASE_LANES], c->base_lanes_only);
	p3_set(&n->count[P3_G_HOSTS], n->wired);
	p3_set(&n->count[P3_G_HEAP], c->heap ? p3_heap_len(c->heap) : 0);
	p3_set(&n->count[P3_G_SPIN], n->idle.spin_ns);
	p3_set(&n->count[P3_G_NOW_NS], p3_now_ns());
	p3_set(&n->count[P3_G_ALIVE], p3_get(&n->alive));
	p3_log(P3_LOG_INFO, P3_LOG_AREA,
		"node %u of %u: mode %s, %u CPUs, pages of %llu bytes, cross-memory "
		"reads %s, windows %s, membarrier %s, shared heap of %llu bytes",
		c->node, c->nnodes, modes[c->mode], c->cpus,
		(unsigned long long)n->published.page, c->cma ? "on" : "off",
		c->bulk ? "on" : "off", c->membarrier ? "on" : "off",
		(unsigned long long)(c->heap ? p3_heap_len(c->heap) : 0));
}

/* ---- event queues ---- */

static struct p3_queue_line *mirror_queue_line(struct p3_nic *n, const struct p3_eq *eq)
{
	struct p3_queue_line *lines = p3_published_at(n, n->layout.queues_off);
	return p3_obj_index(&eq->o) < P3_QUEUES_SHOWN ? &lines[p3_obj_index(&eq->o)]
						      : NULL;
}

/* Return the line of the queue, which may just have been killed, or of NULL a free line.
 * Return NULL if there is none. */
static struct p3_poll_line *mirror_poll_line(struct p3_nic *n, const struct p3_eq *eq)
{
	struct p3_poll_line *lines = p3_published_at(n, n->layout.polls_off);
	for (uint32_t i = 0; i < P3_POLLS; i++) {
		uint64_t shown = p3_get(&lines[i].w[0]);
		if (eq ? shown && p3_handle_index(shown) == p3_obj_index(&eq->o) : !shown)
			return &lines[i];
	}
	return NULL;
}

/* Return the slot of the peer with this pid:nid, or P3_NONE. */
static uint32_t mirror_slot_of(struct p3_nic *n, uint64_t who)
{
	const ptl_process_id_t id = {(uint32_t)who, (uint32_t)(who >> 32)};
	const struct p3_peer *p = p3_peer_find(n, id);
	return p && p->index < n->conf.nnodes ? p->index : P3_NONE;
}

int p3_mirror_poll(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_poll poll = c->poll;
	const struct p3_eq *eq = p3_eq_named(n, c->handle);
	if (!eq)
		return PTL_EQ_INVALID;
	struct p3_poll_line *line = mirror_poll_line(n, eq);
	if (!poll.told_ns) {
		if (line)
			p3_poll_write(line, &(struct p3_poll){0});
		return PTL_OK;
	}
	if (!line)
		line = mirror_poll_line(n, NULL);
	if (!line)
		return PTL_NO_SPACE;
	poll.eq = c->handle;
	poll.source_node = mirror_slot_of(n, poll.source);
	poll.from_node = mirror_slot_of(n, poll.from);
	p3_poll_write(line, &poll);
	return PTL_OK;
}

void p3_mirror_queue(struct p3_nic *n, const struct p3_eq *eq)
{
	struct p3_queue_line *line = mirror_queue_line(n, eq);
	uint64_t at = (uint64_t)((char *)eq->tx.ring - (char *)n->host_seg[0].base);
	if (!line)
		return;
	p3_set(&line->how, p3_pair(p3_handle_gen(p3_get(&eq->o.name)), eq->n));
	p3_set(&line->at, at < n->host_seg[0].len ? at + 1 : 0);
}

void p3_mirror_no_queue(struct p3_nic *n, const struct p3_eq *eq)
{
	struct p3_queue_line *line = mirror_queue_line(n, eq);
	struct p3_poll_line *poll = mirror_poll_line(n, eq);
	if (line)
		p3_set(&line->at, 0);
	if (poll)
		p3_poll_write(poll, &(struct p3_poll){0});
}

/* ---- waits of threads ---- */

struct p3_wait_line *p3_mirror_wait(struct p3_nic *n, const struct p3_wants *wants,
	uint64_t since_ns, uint64_t deadline_ns)
{
	struct p3_wait_line *line = p3_published_at(n, n->layout.waits_off);
	const struct p3_wait_line *end = line + P3_WAITS;
	uint32_t none = 0, tid = (uint32_t)syscall(SYS_gettid);
	while (p3_get(&line->tid) || !p3_cas32(&line->tid, &none, tid)) {
		none = 0;
		if (++line == end)
			return NULL;
	}
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

/* ---- tables as text ---- */

/* Text in a buffer; a rest that does not fit is cut off. */
struct dump_text {
	char *at;
	size_t left;
};

__attribute__((format(printf, 2, 3))) static void dump_say(
	struct dump_text *t, const char *format, ...)
{
	va_list args;
	if (t->left <= 1)
		return;
	va_start(args, format);
	int len = vsnprintf(t->at, t->left, format, args);
	va_end(args);
	size_t step = len < 0 ? 0 : (size_t)len < t->left ? (size_t)len : t->left - 1;
	t->at += step;
	t->left -= step;
}

static void dump_number(struct dump_text *t, uint32_t number)
{
	if (number == UINT32_MAX)
		dump_say(t, "any");
	else
		dump_say(t, "%" PRIu32, number);
}

static void dump_md(struct dump_text *t, const struct p3_md *md)
{
	dump_say(t,
		"    md %#" PRIx64 ": start %#" PRIx64 ", %" PRIu64
		" bytes, offset %" PRIu64 ", threshold %" PRId32 ", options %#" PRIx32
		", %s, %" PRIu32 " pending, %s",
		p3_get(&md->o.name), md->words.start, md->region.size, md->local_offset,
		md->words.threshold, md->words.options,
		md->odd & P3_MD_ODD_INACTIVE ? "inactive" : "active", md->pending,
		md->unlink ? "unlink" : "retain");
	const struct p3_eq *eq = p3_eq_of_sink(&md->sink);
	if (eq)
		dump_say(t, ", eq %#" PRIx64, p3_get(&eq->o.name));
	dump_say(t, "\n");
}

static void dump_me(struct dump_text *t, const struct p3_me *me)
{
	dump_say(t, "  me %#" PRIx64 ": from ", p3_get(&me->o.name));
	dump_number(t, (uint32_t)me->who.is);
	dump_say(t, ":");
	dump_number(t, (uint32_t)(me->who.is >> 32));
	dump_say(t, ", bits %#" PRIx64 ", ignore %#" PRIx64 ", %s\n", me->bits,
		me->ignore, me->unlink ? "unlink" : "retain");
	if (me->md)
		dump_md(t, me->md);
}

int p3_dump_write(struct p3_nic *n, struct p3_cmd *c)
{
	struct dump_text t = {c->dump.text, c->dump.size};
	if (c->flag == P3_DUMP_ME) {
		const struct p3_me *me = p3_obj_named(n, P3_KIND_ME, c->handle);
		if (!me)
			return PTL_ME_INVALID;
		dump_me(&t, me);
		return PTL_OK;
	}
	int rc = p3_ni_check(n, c);
	if (rc != PTL_OK)
		return rc;
	c->ni = (uint16_t)p3_handle_ni(c->handle);
	const struct p3_ni *ni = &n->ni[c->ni];
	if (c->flag == P3_DUMP_LIST) {
		if (c->dump.pt_index > (uint32_t)ni->limits.max_pt_index)
			return PTL_PT_INDEX_INVALID;
		const struct p3_portal *list = &ni->portal[c->dump.pt_index];
		dump_say(&t, "portal index %" PRIu32 ": %" PRIu32 " match entries\n",
			c->dump.pt_index, list->n);
		for (const struct p3_me *me = list->head; me && t.left > 1; me = me->next)
			dump_me(&t, me);
		return PTL_OK;
	}
	dump_say(&t, "event queues: %" PRIu32 "\n", ni->use[P3_U_EQ].cur);
	struct p3_eq *eq;
	for (uint32_t at = 0; (eq = p3_obj_next(&n->table[P3_T_EQ], c->ni, &at));) {
		uint64_t unread = eq->tx.tail - p3_get(&eq->tx.ring->head);
		dump_say(&t,
			"  eq %#" PRIx64 ": %" PRIu64 " of %" PRIu32 " unread%s, %" PRIu32
			" owed\n",
			p3_get(&eq->o.name), unread < eq->n ? unread : eq->n, eq->n,
			unread > eq->n ? ", some lost" : "", eq->owed);
	}
	return PTL_OK;
}
