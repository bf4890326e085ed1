/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of the actions of firmware and host threads (shm/trace.h), off unless
 * PTL3_TRACE gives a number.  The firmware's records are about its topic, the message
 * that it worked on last: so an event names its message although the code that posts it
 * does not know it.
 */
#include "nic/report/report.h"
#include "nic/run/run.h"

#include <string.h>

static inline uint32_t trace_code(const struct p3_nic *n, const void *at)
{
	return (uint32_t)((uintptr_t)at - n->trace.code);
}

static inline void trace_write_at(struct p3_nic *n, const void *at, uint64_t ticks,
	enum p3_trace_point point, uint32_t value, uint64_t detail)
{
	struct p3_trace *t = &n->trace;
	const uint64_t w[4] = {ticks,
		p3_trace_where(trace_code(n, at), point, value, t->topic.peer),
		t->topic.message, detail};
	p3_trace_write(n->traced, t->mask, t->head, w);
	p3_release(&t->header->head[P3_TRACE_FW], ++t->head); /* TRACE.1 */
}

/* Write a record; a lease is shown only once an action was done under it. */
static inline void trace_write_fw(struct p3_nic *n, const void *at,
	enum p3_trace_point point, uint32_t value, uint64_t detail)
{
	struct p3_trace *t = &n->trace;
	if (!t->lease_shown) {
		struct p3_topic topic = t->topic;
		t->topic = (struct p3_topic){P3_TRACE_NOBODY, 0};
		trace_write_at(n, at, t->lease_at, P3_TRACE_LEASE, t->lease_who, 0);
		t->topic = topic;
		t->lease_shown = true;
	}
	trace_write_at(n, at, p3_trace_ticks(t->clock), point, value, detail);
}

#define HERE __builtin_return_address(0)

void p3_trace_fw(
	struct p3_nic *n, enum p3_trace_point point, uint32_t value, uint64_t detail)
{
	trace_write_fw(n, HERE, point, value, detail);
}

void p3_trace_lease(struct p3_nic *n, enum p3_lease_holder who)
{
	n->trace.lease_at = p3_trace_ticks(n->trace.clock);
	n->trace.lease_who = (uint8_t)who;
	n->trace.lease_shown = false;
	p3_trace_focus(n, (struct p3_topic){P3_TRACE_NOBODY, 0}, 0);
}

void p3_trace_given(struct p3_nic *n)
{
	p3_trace_focus(n, (struct p3_topic){P3_TRACE_NOBODY, 0}, 0);
	if (n->trace.lease_shown)
		trace_write_fw(n, HERE, P3_TRACE_GIVEN, n->trace.lease_who, 0);
}

void p3_trace_about(struct p3_nic *n, struct p3_topic topic, enum p3_trace_point point,
	uint32_t value, uint64_t detail)
{
	n->trace.topic = topic;
	trace_write_fw(n, HERE, point, value, detail);
}

/* ---- requests ---- */

static uint32_t trace_name(uint64_t pos, uint32_t cells, bool base)
{
	return p3_trace_message(pos - p3_ring_start(cells), base);
}

void p3_trace_send(
	struct p3_nic *n, const struct p3_peer *p, uint32_t kind, uint64_t length)
{
	n->trace.topic = (struct p3_topic){
		p->index, trace_name(p->req_out.pos, p->req_out.n, !p->req_full)};
	trace_write_fw(n, HERE, P3_TRACE_SEND, kind,
		p3_pair(n->trace.command,
			length < UINT32_MAX ? (uint32_t)length : UINT32_MAX));
}

static uint32_t trace_name_in(const struct p3_peer *p)
{
	return trace_name(p->req_in.pos, p->req_in.n, p->req_in.n == P3_BASE_CELLS);
}

/* Record a request; a waiting one is looked at in each pass: its first and last look
 * are shown. */
void p3_trace_take(struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint64_t length)
{
	n->trace.topic = (struct p3_topic){p->index | P3_TRACE_IN, trace_name_in(p)};
	if (p->waits != n->trace.topic.message)
		trace_write_fw(n, HERE, P3_TRACE_TAKE, kind, length);
}

void p3_trace_match(struct p3_nic *n, struct p3_peer *p, bool hit, uint64_t bits)
{
	if (p->waits != n->trace.topic.message)
		trace_write_fw(n, HERE, P3_TRACE_MATCH, hit, bits);
}

void p3_trace_wait(struct p3_nic *n, struct p3_peer *p, uint32_t kind)
{
	if (p->waits == n->trace.topic.message)
		return;
	p->waits = n->trace.topic.message;
	trace_write_fw(n, HERE, P3_TRACE_WAIT, kind, 0);
}

void p3_trace_delivered(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint64_t length)
{
	p->waits = 0;
	n->trace.topic = (struct p3_topic){p->index | P3_TRACE_IN, trace_name_in(p)};
	trace_write_fw(n, HERE, P3_TRACE_DELIVER, kind, length);
}

/* ---- transfers ---- */

void p3_trace_begin(struct p3_nic *n, struct p3_pull *pull)
{
	pull->topic = n->trace.topic;
	trace_write_fw(n, HERE, P3_TRACE_BEGIN, pull->mover, pull->length);
}

/* ---- commands ---- */

static uint64_t trace_write_host(struct p3_nic *n, const void *at,
	enum p3_trace_point point, uint32_t value, uint32_t peer, uint64_t detail)
{
	const uint64_t w[4] = {p3_trace_ticks(n->trace.clock),
		p3_trace_where(trace_code(n, at), point, value, peer), p3_self_number(),
		detail};
	return p3_trace_write_shared(
		n->trace.header, n->trace.hosts, n->trace.mask >> 1, w);
}

void p3_trace_host(
	struct p3_nic *n, enum p3_trace_point point, uint32_t value, uint64_t detail)
{
	(void)trace_write_host(n, HERE, point, value, P3_TRACE_NOBODY, detail);
}

void p3_trace_command(struct p3_nic *n, struct p3_cmd *c)
{
	uint32_t index = c->move.target.nid - n->conf.nid + n->conf.node;
	bool moves = c->op == P3_OP_PUT || c->op == P3_OP_GET || c->op == P3_OP_GETPUT;
	uint32_t target =
		moves && !n->ids && index < n->conf.nnodes ? index : P3_TRACE_NOBODY;
	uint64_t what = c->op == P3_OP_ME_ATTACH    ? c->me.bits
			: target == P3_TRACE_NOBODY ? c->handle
						    : c->move.length;
	c->trace = 1 + (uint32_t)trace_write_host(
			       n, HERE, P3_TRACE_COMMAND, c->op, target, what);
}

/* Record a command from the mailbox. */
void p3_trace_execute(struct p3_nic *n, const struct p3_cmd *c)
{
	p3_trace_focus(n, (struct p3_topic){P3_TRACE_NOBODY, 0}, c->trace);
	trace_write_fw(n, HERE, P3_TRACE_EXECUTE, c->op, c->trace);
}

/* ---- start ---- */

void p3_trace_start(struct p3_nic *n)
{
	const struct p3_nic_conf *c = &n->conf;
	const struct p3_trace_who who = {c->node, c->nnodes, c->nid, c->incarnation};
	char *region = p3_published_at(n, n->layout.seg_len);
	n->traced = NULL;
	if (!c->trace)
		return;
	p3_trace_format(region, c->trace, &who, (const void *)(uintptr_t)p3_trace_start);
	struct p3_trace_header *h = (struct p3_trace_header *)region;
	n->trace = (struct p3_trace){.header = h,
		.hosts = p3_trace_at(region, c->trace, P3_TRACE_HOST),
		.code = h->code,
		.clock = h->clock,
		.mask = c->trace - 1};
	n->traced = p3_trace_at(region, c->trace, P3_TRACE_FW);
}
