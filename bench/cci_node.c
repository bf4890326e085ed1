/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints and connections of two ranks, for cciperf. */
#include "cci_node.h"

#include <sched.h>
#include <stdlib.h>

const char *const cci_way_name[CCI_WAYS] = {"uu", "ro", "ru"};

static const cci_conn_attribute_t attribute[CCI_WAYS] = {
	CCI_CONN_ATTR_UU, CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU};

void cci_check(int status, const char *what)
{
	if (status != CCI_SUCCESS)
		bench_die(1, "%s: %s", what, cci_strerror(NULL, (cci_status_t)status));
}

static cci_event_t *await(struct cci_end *e, cci_event_type_t type)
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
	cci_event_t *request = await(e, CCI_EVENT_CONNECT_REQUEST);
	cci_check(cci_accept(request, NULL), "cci_accept");
	cci_check(cci_return_event(request), "cci_return_event");
	cci_event_t *done = await(e, CCI_EVENT_ACCEPT);
	cci_check((int)done->accept.status, "accept");
	cci_connection_t *conn = done->accept.connection;
	cci_check(cci_return_event(done), "cci_return_event");
	return conn;
}

static cci_connection_t *connect_one(struct cci_end *e, const char *uri, unsigned way)
{
	cci_check(cci_connect(e->ep, uri, NULL, 0, attribute[way], NULL, 0, NULL),
		"cci_connect");
	cci_event_t *done = await(e, CCI_EVENT_CONNECT);
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
	cci_event_t *event = await(e, CCI_EVENT_RECV);
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
