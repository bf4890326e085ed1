/* SPDX-License-Identifier: BSD-3-Clause */
/* The timed loops of cciperf. */
#include "cci_node.h"

#include <poll.h>
#include <sched.h>

/* ---- events ---- */

static void took(struct cci_node *n, struct cci_end *e, cci_event_t *event)
{
	if (__builtin_expect(event->type == CCI_EVENT_RECV, 1)) {
		e->got++;
		e->last_len = event->recv.len;
		if (event->recv.len && event->recv.len == n->p->length)
			perf_check_stamp(n->p, event->recv.ptr, n->p->b->rank ^ 1);
	} else if (event->type == CCI_EVENT_SEND) {
		e->sent++;
		if (__builtin_expect(event->send.status != CCI_SUCCESS, 0))
			cci_check((int)event->send.status, "send");
	} else
		bench_die(1, "%s came; expected SEND or RECV",
			cci_event_type_str(event->type));
	cci_check(cci_return_event(event), "cci_return_event");
}

static inline void take(struct cci_node *n, struct cci_end *e)
{
	cci_event_t *event;
	if (cci_get_event(e->ep, &event) == CCI_SUCCESS)
		took(n, e, event);
	else if (n->yields)
		sched_yield();
}

static void take_sleeping(struct cci_node *n, struct cci_end *e)
{
	struct pollfd readable = {.fd = e->fd, .events = POLLIN};
	cci_event_t *event;
	(void)poll(&readable, 1, -1);
	if (cci_get_event(e->ep, &event) == CCI_SUCCESS)
		took(n, e, event);
}

static inline void await(
	struct cci_node *n, struct cci_end *e, uint64_t sent, uint64_t got)
{
	while (e->sent < sent || e->got < got)
		if (e->fd < 0)
			take(n, e);
		else
			take_sleeping(n, e);
}

static void reset(struct cci_end *e)
{
	e->sent = e->got = 0;
}

/* ---- messages ---- */

static void send(
	struct cci_node *n, struct cci_end *e, enum cci_way way, uint64_t len, int flags)
{
	int status = cci_send(e->conn[way], n->p->tx, (uint32_t)len, NULL, flags);
	while (__builtin_expect(status == CCI_ENOBUFS, 0)) {
		take(n, e);
		status = cci_send(e->conn[way], n->p->tx, (uint32_t)len, NULL, flags);
	}
	cci_check(status, "cci_send");
}

static void ping_pong(
	struct cci_node *n, struct cci_end *e, enum cci_way way, uint64_t count)
{
	struct perf_node *p = n->p;
	reset(e);
	for (uint64_t i = 1; i <= count; i++, p->message++) {
		if (!p->first)
			await(n, e, i - 1, i);
		perf_stamp(p);
		send(n, e, way, p->length, 0);
		await(n, e, i, i);
	}
}

void cci_ping_pong(struct cci_node *n, enum cci_way way, uint64_t count)
{
	ping_pong(n, &n->polled, way, count);
}

void cci_ping_pong_blocking(struct cci_node *n, uint64_t count)
{
	ping_pong(n, &n->blocking, CCI_WAY_RO, count);
}

void cci_complete(struct cci_node *n, enum cci_way way, uint64_t count)
{
	struct perf_node *p = n->p;
	struct cci_end *e = &n->polled;
	reset(e);
	for (uint64_t i = 1; i <= count; i++, p->message++)
		if (p->first) {
			perf_stamp(p);
			send(n, e, way, p->length, 0);
			await(n, e, i, 0);
		} else
			await(n, e, 0, i);
}

static void send_window(struct cci_node *n, struct cci_end *e, enum cci_way way)
{
	perf_stamp(n->p);
	for (unsigned i = 0; i < n->p->window; i++)
		send(n, e, way, n->p->length, 0);
}

/* Tell that all of a round is here; nothing is to wait for. */
static void answer(struct cci_node *n, struct cci_end *e)
{
	send(n, e, CCI_WAY_RO, 0, CCI_FLAG_SILENT);
}

void cci_windows(struct cci_node *n, enum cci_way way, uint64_t count)
{
	struct perf_node *p = n->p;
	struct cci_end *e = &n->polled;
	reset(e);
	for (uint64_t i = 1; i <= count; i++, p->message++)
		if (p->first) {
			send_window(n, e, way);
			await(n, e, i * p->window, i);
		} else {
			await(n, e, 0, i * p->window);
			answer(n, e);
		}
}

/* ---- RMA ---- */

static void rma(struct cci_node *n, uint32_t msg_len, cci_rma_handle_t *local,
	cci_rma_handle_t *remote, uint64_t offset, int flags)
{
	cci_connection_t *conn = n->polled.conn[CCI_WAY_RO];
	int status;
	while ((status = cci_rma(conn, msg_len ? n->p->tx : NULL, msg_len, local, 0,
			remote, offset, n->p->length, NULL, flags)) == CCI_ENOBUFS)
		take(n, &n->polled);
	cci_check(status, "cci_rma");
}

/* A word at the beginning of rx, which the first rank reads into its tx. */
static uint64_t word_to_read(const struct cci_node *n)
{
	return perf_word(n->p->message, 7);
}

static void check_read(struct cci_node *n, uint64_t word)
{
	if (n->p->length >= PERF_WORD)
		perf_check_word(n->p, *(uint64_t *)n->p->tx, word, 0);
}

static void one_rma(struct cci_node *n, int flag, uint64_t done)
{
	if (flag == CCI_FLAG_WRITE)
		perf_stamp(n->p);
	rma(n, 0, n->tx, &n->peer_rx, 0, flag);
	await(n, &n->polled, done, 0);
}

/* The target's program takes no part, but polls as that of a put does. */
static void be_target(struct cci_node *n, int flag, uint64_t count)
{
	uint64_t word = word_to_read(n);
	if (flag == CCI_FLAG_READ)
		memcpy(n->p->rx, &word, sizeof word);
	answer(n, &n->polled); /* its memory is ready */
	await(n, &n->polled, 0, 1);
	n->p->message += count - 1;
	if (flag == CCI_FLAG_WRITE && n->p->length)
		perf_check_stamp(n->p, n->p->rx, n->p->b->rank ^ 1);
	n->p->message++;
	answer(n, &n->polled); /* others may write its memory now */
}

void cci_rma_rounds(struct cci_node *n, int flag, uint64_t count)
{
	struct cci_end *e = &n->polled;
	uint64_t word = word_to_read(n);
	reset(e);
	if (!n->p->first) {
		be_target(n, flag, count);
		return;
	}
	await(n, e, 0, 1);
	for (uint64_t i = 1; i <= count; i++, n->p->message++)
		one_rma(n, flag, i);
	if (flag == CCI_FLAG_READ)
		check_read(n, word);
	answer(n, e);
	await(n, e, count, 2);
}

void cci_rma_windows(struct cci_node *n, uint64_t count)
{
	struct perf_node *p = n->p;
	struct cci_end *e = &n->polled;
	reset(e);
	for (uint64_t i = 1; i <= count; i++, p->message++) {
		if (!p->first) {
			await(n, e, 0, i);
			perf_check_stamp(p, p->rx, p->b->rank ^ 1);
			answer(n, e);
			continue;
		}
		perf_stamp(p);
		for (unsigned k = 1; k < p->window; k++)
			rma(n, 0, n->tx, &n->peer_rx, k % p->slots * p->pitch,
				CCI_FLAG_WRITE);
		rma(n, 8, n->tx, &n->peer_rx, 0, CCI_FLAG_WRITE | CCI_FLAG_FENCE);
		await(n, e, i * p->window, i);
	}
}
