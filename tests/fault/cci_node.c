/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault_cci - a server and a client of CCI, one of which may die or stop at any point
 * (tests/fault/pair.py)
 *
 *	fault_cci server		prints its URI
 *	fault_cci client URI
 *
 * The client makes connections of each attribute and one that the server rejects, sends
 * messages of several lengths on each, and writes and reads the server's memory.  The
 * server has few receive buffers, and holds them for a while, so that messages are
 * refused and sent again.  The one that survives must get an event for each operation,
 * with success or as of a disconnected peer, within its patience; then it ends with
 * status 0.  A server whose standard input ends before a client has connected ends, too:
 * its client has died.
 */
#include "support/patience.h"

#include <cci.h>

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	WAYS = 3,
	ROUNDS = 12,
	BURST = 20,
	BUFFERS = 8,
	REGION = 200000,
	KEEPALIVE_US = 50000
};

static const uint32_t lengths[] = {0, 8, 32, 33, 200, 1024, 4096};

static cci_endpoint_t *ep;
static cci_os_handle_t fd;
static struct patience limit;
static char region[REGION], copy[REGION], bytes[4096];
static struct cci_rma_handle theirs;
static bool over; /* the peer is gone, or all is done */
static unsigned sent, ended, received, connects, accepts, refused;
static cci_connection_t *conn[WAYS], *server_conn[WAYS];

static void fail(const char *what, const char *detail)
{
	fprintf(stderr, "fault_cci: %s: %s\n", what, detail);
	exit(1);
}

static void check(int status, const char *what)
{
	if (status != CCI_SUCCESS)
		fail(what, cci_strerror(NULL, (cci_status_t)status));
}

/* A status that the death of the peer explains. */
static bool is_of_death(cci_status_t status)
{
	return status == CCI_ERR_DISCONNECTED || status == CCI_ECONNREFUSED ||
	       status == CCI_ETIMEDOUT;
}

static void note(cci_status_t status, const char *what)
{
	if (is_of_death(status))
		over = true;
	else
		check((int)status, what);
}

/* ---- events ---- */

static cci_event_t *held[BUFFERS];
static unsigned nheld;
static bool holds; /* the server */

static void let_go(void)
{
	while (nheld)
		check(cci_return_event(held[--nheld]), "cci_return_event");
}

static void take_recv(cci_event_t *event)
{
	const char *text = event->recv.ptr;
	received++;
	if (!holds && event->recv.len == sizeof theirs && received == 1)
		memcpy(&theirs, text, sizeof theirs);
	if (holds && event->recv.len == 3 && !memcmp(text, "end", 3))
		over = true;
	for (uint32_t i = 0; holds && event->recv.len > 3 && i < event->recv.len; i++)
		if (text[i] != (char)(event->recv.len + i))
			fail("a message", "wrong bytes");
}

static void accepted(const cci_event_accept_t *a)
{
	note(a->status, "accept");
	if (a->status == CCI_SUCCESS && accepts < WAYS)
		server_conn[accepts++] = a->connection;
}

static void connected(const cci_event_connect_t *c)
{
	connects++;
	if (!c->context) {
		refused += c->status == CCI_ECONNREFUSED;
		over = over || is_of_death(c->status) == (c->status != CCI_ECONNREFUSED);
		return;
	}
	note(c->status, "connect");
	conn[(uintptr_t)c->context - 1] = c->connection;
}

static void decide(cci_event_t *event)
{
	if (event->request.data_len)
		check(cci_reject(event), "cci_reject");
	else
		check(cci_accept(event, NULL), "cci_accept");
}

static void handle(cci_event_t *event)
{
	switch (event->type) {
	case CCI_EVENT_CONNECT_REQUEST:
		decide(event);
		break;
	case CCI_EVENT_CONNECT:
		connected(&event->connect);
		break;
	case CCI_EVENT_ACCEPT:
		accepted(&event->accept);
		break;
	case CCI_EVENT_SEND:
		ended++;
		note(event->send.status, "a send");
		break;
	case CCI_EVENT_RECV:
		take_recv(event);
		break;
	case CCI_EVENT_KEEPALIVE_TIMEDOUT:
		over = over || !holds; /* dead, or stopped: the server asks by a send */
		break;
	default:
		fail("an event", cci_event_type_str(event->type));
	}
	if (holds && event->type == CCI_EVENT_RECV && nheld < BUFFERS)
		held[nheld++] = event;
	else
		check(cci_return_event(event), "cci_return_event");
}

static bool pump(void)
{
	cci_event_t *event;
	if (cci_get_event(ep, &event) != CCI_SUCCESS)
		return false;
	handle(event);
	return true;
}

static void pump_or_sleep(int ms)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	if (pump())
		return;
	if (nheld)
		let_go();
	else
		(void)poll(&readable, 1, ms);
	if (patience_is_over(&limit))
		fail("patience", "an event does not come");
}

/* ---- the server ---- */

static void open_endpoint(void)
{
	uint32_t caps, keepalive = KEEPALIVE_US, buffers = BUFFERS;
	check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
	check(cci_create_endpoint(NULL, 0, &ep, &fd), "cci_create_endpoint");
	check(cci_set_opt(ep, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &keepalive), "keepalive");
	if (holds)
		check(cci_set_opt(ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers), "buffers");
}

static void close_endpoint(void)
{
	let_go();
	check(cci_destroy_endpoint(ep), "cci_destroy_endpoint");
	check(cci_finalize(), "cci_finalize");
}

/* Ask by a message whether the client lives. */
static void probe(void)
{
	for (unsigned i = 0; i < accepts && !over; i++)
		if (server_conn[i]->attribute != CCI_CONN_ATTR_UU)
			(void)cci_send(server_conn[i], "?", 1, NULL, 0);
}

/* Take an event in a second thread, so that the two share the endpoint's queue. */
static void *pump_once(void *unused)
{
	while (!over && !pump())
		usleep(1000);
	return unused;
}

static void pump_elsewhere(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, pump_once, NULL) || pthread_join(thread, NULL))
		fail("a thread", "not created");
}

/* The client has died before it has connected, so no event will tell. */
static bool has_no_client(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	return !accepts && poll(&input, 1, 0) > 0 && !pump();
}

static void serve(void)
{
	cci_rma_handle_t *handle;
	char *uri;
	bool told = false;
	unsigned turns = 0;
	check(cci_rma_register(
		      ep, region, REGION, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle),
		"cci_rma_register");
	check(cci_get_opt(ep, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
	printf("%s\n", uri);
	fflush(stdout);
	free(uri);
	while (!over && !has_no_client()) {
		pump_or_sleep(20);
		if (accepts == WAYS && !told) {
			told = cci_send(server_conn[0], handle, sizeof *handle, NULL,
				       0) == CCI_SUCCESS;
			pump_elsewhere();
		}
		if (++turns % 64 == 0)
			probe();
	}
	close_endpoint();
}

/* ---- the client ---- */

static void connect_all(const char *uri)
{
	static const cci_conn_attribute_t way[WAYS] = {
		CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU, CCI_CONN_ATTR_UU};
	const struct timeval patience = {.tv_sec = 60};
	for (uintptr_t i = 0; i < WAYS; i++) {
		check(cci_connect(
			      ep, uri, NULL, 0, way[i], (void *)(i + 1), 0, &patience),
			"cci_connect");
		while (connects <= i)
			pump_or_sleep(20);
	}
	check(cci_connect(ep, uri, bytes, 1000, CCI_CONN_ATTR_RO, NULL, 0, &patience),
		"cci_connect");
	while (connects <= WAYS)
		pump_or_sleep(20);
}

static void send_one(cci_connection_t *to, uint32_t len, int flags)
{
	int status;
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = (char)(len + i);
	while ((status = cci_send(to, bytes, len, NULL, flags)) == CCI_ENOBUFS)
		pump_or_sleep(1);
	note((cci_status_t)status, "cci_send");
	if (status == CCI_SUCCESS && !flags)
		sent++;
}

static void send_burst(unsigned round)
{
	for (unsigned i = 0; i < BURST && !over; i++)
		for (unsigned w = 0; w < WAYS && !over; w++)
			send_one(conn[w], lengths[(i + round) % 7], 0);
	if (!over)
		send_one(conn[0], 100, CCI_FLAG_BLOCKING);
	if (!over)
		send_one(conn[1], 200, CCI_FLAG_SILENT);
}

static bool rma(cci_rma_handle_t *local, uint64_t length, int flags)
{
	int status =
		cci_rma(conn[0], "rma", 3, local, 0, &theirs, 0, length, NULL, flags);
	if (status == CCI_SUCCESS)
		sent++;
	else if (status != CCI_ENOBUFS)
		note((cci_status_t)status, "cci_rma");
	while (!over && ended < sent)
		pump_or_sleep(20);
	return !over && status == CCI_SUCCESS;
}

static void write_and_read(unsigned round, cci_rma_handle_t *local)
{
	uint64_t length = round % 2 ? REGION : 40;
	memset(copy, (int)round + 1, length);
	if (!rma(local, length, CCI_FLAG_WRITE))
		return;
	memset(copy, 0, length);
	if (!rma(local, length, CCI_FLAG_READ | CCI_FLAG_FENCE))
		return;
	for (uint64_t i = 0; i < length; i++)
		if (copy[i] != (char)(round + 1))
			fail("RMA", "wrong bytes");
}

static void be_client(const char *uri)
{
	cci_rma_handle_t *local;
	check(cci_rma_register(ep, copy, REGION, 0, &local), "cci_rma_register");
	connect_all(uri);
	while (!over && !received)
		pump_or_sleep(20);
	for (unsigned round = 0; round < ROUNDS && !over; round++) {
		send_burst(round);
		if (!over)
			write_and_read(round, local);
	}
	if (!over)
		send_one(conn[0], 0, CCI_FLAG_BLOCKING);
	if (!over)
		check(cci_send(conn[0], "end", 3, NULL, CCI_FLAG_BLOCKING), "end");
	while (ended < sent)
		pump_or_sleep(20);
	for (unsigned w = 0; w < WAYS; w++)
		if (conn[w])
			check(cci_disconnect(conn[w]), "cci_disconnect");
	check(cci_rma_deregister(ep, local), "cci_rma_deregister");
	close_endpoint();
}

int main(int argc, char **argv)
{
	limit = patience_begin();
	holds = argc == 2 && !strcmp(argv[1], "server");
	if (!holds && (argc != 3 || strcmp(argv[1], "client") != 0)) {
		fprintf(stderr, "usage: fault_cci server, or fault_cci client URI\n");
		return 2;
	}
	open_endpoint();
	if (holds)
		serve();
	else
		be_client(argv[2]);
	return 0;
}
