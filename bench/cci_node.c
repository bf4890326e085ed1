/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints, connections and the timed loops of two ranks, for cciperf. */
#include "cci_node.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>

static const cci_conn_attribute_t attribute[CCI_WAYS] = {
	CCI_CONN_ATTR_UU, CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU};

void cci_check(int status, const char *what)
{
	if (status != CCI_SUCCESS)
		bench_die(1, "%s: %s", what, cci_strerror(NULL, (cci_status_t)status));
}

static cci_event_t *await_event(struct cci_end *e, cci_event_type_t type)
{
	cci_event_t *event;
	while (cci_get_event(e->ep, &event) != CCI_SUCCESS)
		sched_yield();
	if (event->type != type)
		bench_die(1, "set-up: %s came; expected %s",
			cci_event_type_str(event->type), cci_event_type_str(type));
	return event;
}

/* Give the first rank's URI to the other one, a word at a time. */
static void pass_uri(struct perf_node *p, struct cci_end *e, char uri[CCI_URI_BYTES])
{
	uint64_t word[CCI_URI_BYTES / 8] = {0};
	if (p->first) {
		char *mine;
		cci_check(cci_get_opt(e->ep, CCI_OPT_ENDPT_URI, &mine), "cci_get_opt");
		snprintf((char *)word, sizeof word, "%s", mine);
		free(mine);
	}
	for (unsigned i = 0; i < CCI_URI_BYTES / 8; i++)
		word[i] = perf_agree(p, word[i]);
	memcpy(uri, word, CCI_URI_BYTES);
}

static cci_connection_t *accept_one(struct cci_end *e)
{
	cci_event_t *request = await_event(e, CCI_EVENT_CONNECT_REQUEST);
	cci_check(cci_accept(request, NULL), "cci_accept");
	cci_check(cci_return_event(request), "cci_return_event");
	cci_event_t *done = await_event(e, CCI_EVENT_ACCEPT);
	cci_check((int)done->accept.status, "accept");
	cci_connection_t *conn = done->accept.connection;
	cci_check(cci_return_event(done), "cci_return_event");
	return conn;
}

static cci_connection_t *connect_one(struct cci_end *e, const char *uri, unsigned way)
{
	cci_check(cci_connect(e->ep, uri, NULL, 0, attribute[way], NULL, 0, NULL),
		"cci_connect");
	cci_event_t *done = await_event(e, CCI_EVENT_CONNECT);
	cci_check((int)done->connect.status, "connect");
	cci_connection_t *conn = done->connect.connection;
	cci_check(cci_return_event(done), "cci_return_event");
	return conn;
}

/* Connect in each way, several times; the end keeps the last connections. */
static void connect_all(
	const struct perf_node *p, struct cci_end *e, const char *uri, unsigned times)
{
	for (unsigned i = 0; i < times * CCI_WAYS; i++)
		e->conn[i % CCI_WAYS] =
			p->first ? accept_one(e) : connect_one(e, uri, i % CCI_WAYS);
}

static void open_end(
	struct perf_node *p, struct cci_end *e, bool blocking, unsigned times)
{
	char uri[CCI_URI_BYTES];
	e->fd = -1;
	cci_check(cci_create_endpoint(NULL, 0, &e->ep, blocking ? &e->fd : NULL),
		"cci_create_endpoint");
	pass_uri(p, e, uri);
	connect_all(p, e, uri, times);
}

/* Register the memory of the node's messages, and exchange the handles. */
static void pass_regions(struct cci_node *n, uint64_t tx, uint64_t rx)
{
	struct cci_end *e = &n->polled;
	int both = CCI_FLAG_READ | CCI_FLAG_WRITE;
	cci_check(
		cci_rma_register(e->ep, n->p->tx, tx, both, &n->tx), "cci_rma_register");
	cci_check(
		cci_rma_register(e->ep, n->p->rx, rx, both, &n->rx), "cci_rma_register");
	cci_check(cci_send(e->conn[CCI_WAY_RO], n->rx, sizeof *n->rx, NULL,
			  CCI_FLAG_SILENT),
		"cci_send");
	cci_event_t *event = await_event(e, CCI_EVENT_RECV);
	memcpy(&n->peer_rx, event->recv.ptr, sizeof n->peer_rx);
	cci_check(cci_return_event(event), "cci_return_event");
}

void cci_node_open(struct cci_node *n)
{
	uint32_t caps;
	cci_check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
	open_end(n->p, &n->polled, false, 1);
	open_end(n->p, &n->blocking, true, 1);
	pass_regions(n, n->p->largest + PERF_SHIFTS * 64, perf_rx_bytes(n->p));
}

void cci_node_close(struct cci_node *n)
{
	cci_check(cci_destroy_endpoint(n->polled.ep), "cci_destroy_endpoint");
	cci_check(cci_destroy_endpoint(n->blocking.ep), "cci_destroy_endpoint");
	cci_check(cci_finalize(), "cci_finalize");
}

void cci_idle_open(struct perf_node *p)
{
	static struct cci_end idle;
	uint32_t caps;
	cci_check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
	open_end(p, &idle, false, CCI_IDLE / CCI_WAYS);
}

void cci_idle_close(void)
{
	cci_check(cci_finalize(), "cci_finalize");
}

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

void cci_ping_pong(
	struct cci_node *n, struct cci_end *e, enum cci_way way, uint64_t count)
{
	struct perf_node *p = n->p;
	e->sent = e->got = 0;
	for (uint64_t i = 1; i <= count; i++, p->message++) {
		if (!p->first)
			await(n, e, i - 1, i);
		perf_stamp(p);
		send(n, e, way, p->length, 0);
		await(n, e, i, i);
	}
}

void cci_complete(struct cci_node *n, enum cci_way way, uint64_t count)
{
	struct perf_node *p = n->p;
	struct cci_end *e = &n->polled;
	e->sent = e->got = 0;
	for (uint64_t i = 1; i <= count; i++, p->message++)
		if (p->first) {
			perf_stamp(p);
			send(n, e, way, p->length, 0);
			await(n, e, i, 0);
		} else
			await(n, e, 0, i);
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
	e->sent = e->got = 0;
	for (uint64_t i = 1; i <= count; i++, p->message++)
		if (p->first) {
			perf_stamp(p);
			for (unsigned k = 0; k < p->window; k++)
				send(n, e, way, p->length, 0);
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
	e->sent = e->got = 0;
	if (!n->p->first) {
		be_target(n, flag, count);
		return;
	}
	await(n, e, 0, 1);
	for (uint64_t i = 1; i <= count; i++, n->p->message++) {
		if (flag == CCI_FLAG_WRITE)
			perf_stamp(n->p);
		rma(n, 0, n->tx, &n->peer_rx, 0, flag);
		await(n, e, i, 0);
	}
	if (flag == CCI_FLAG_READ && n->p->length >= PERF_WORD)
		perf_check_word(n->p, *(uint64_t *)n->p->tx, word, 0);
	answer(n, e);
	await(n, e, count, 2);
}

void cci_rma_windows(struct cci_node *n, uint64_t count)
{
	struct perf_node *p = n->p;
	struct cci_end *e = &n->polled;
	e->sent = e->got = 0;
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
