/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of CCI: connections. */
#include "frame.h"
#include "../support/leaks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 1000 };

static cci_connection_t *connection_in(cci_event_t *event)
{
	cci_connection_t *conn = event->connect.connection;
	RETURN(event);
	return conn;
}

/* Accept the next request; its ACCEPT event is still to come. */
static void accept_next(cci_endpoint_t *ep, const void *context)
{
	cci_event_t *request = EXPECT(ep, CCI_EVENT_CONNECT_REQUEST);
	OK(cci_accept(request, context));
	RETURN(request);
}

static void check_message(cci_endpoint_t *ep, cci_connection_t *conn, const char *text)
{
	cci_event_t *event = EXPECT(ep, CCI_EVENT_RECV);
	CHECK(event->recv.connection == conn);
	CHECK_EQ(event->recv.len, strlen(text));
	CHECK(memcmp(event->recv.ptr, text, strlen(text)) == 0);
	RETURN(event);
}

static void send_text(struct side s, const char *text)
{
	OK(cci_send(s.conn, text, (uint32_t)strlen(text), CONTEXT(text), 0));
	SENT(s.ep, CONTEXT(text));
}

STATEMENT(29, connect_and_accept, 2, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	EACH_ATTRIBUTE(a)
	{
		const void *context = CONTEXT(0xdeadbeef00 + (unsigned)a + 2 * me.rank);
		cci_event_t *event;
		if (me.is_client) {
			ask(ep, told_uri(1, 0), a, context);
			event = EXPECT(ep, CCI_EVENT_CONNECT);
		} else {
			accept_next(ep, context);
			event = EXPECT(ep, CCI_EVENT_ACCEPT);
		}
		CHECK(event->connect.context == context);
		CHECK(event->connect.connection);
		CHECK(event->connect.connection->context == context);
		CHECK(event->connect.connection->endpoint == ep);
		CHECK(event->connect.connection->max_send_size >= 1024);
		RETURN(event);
		SILENCE(ep, 5);
		barrier();
	}
}

static const uint32_t payloads[] = {0, 1, 8, 24, 25, 1023, 1024};

static void check_payload(cci_event_t *request, uint32_t length)
{
	CHECK_EQ(request->request.data_len, length);
	if (length == 0) {
		CHECK(!request->request.data_ptr);
		return;
	}
	CHECK((uintptr_t)request->request.data_ptr % 8 == 0);
	CHECK_BYTES(request->request.data_ptr, length, length);
	CHECK_EQ(((const char *)request->request.data_ptr)[length], 0);
}

STATEMENT(30, payload, 2, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	EACH_ATTRIBUTE(a)
	for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++) {
		uint32_t length = payloads[i];
		if (me.is_client) {
			OK(cci_connect(ep, told_uri(1, 0), pattern(length), length, a,
				NULL, 0, NULL));
			TAKE(ep, CCI_EVENT_CONNECT);
			barrier();
			continue;
		}
		cci_event_t *request = EXPECT(ep, CCI_EVENT_CONNECT_REQUEST);
		check_payload(request, length);
		OK(cci_accept(request, NULL));
		TAKE(ep, CCI_EVENT_ACCEPT);
		check_payload(request, length);
		RETURN(request);
		barrier(); /* the next request may overtake this ACCEPT */
	}
}

STATEMENT(31, payload_too_long, 1, 0)
{
	char bytes[1025] = "";
	cci_endpoint_t *ep = first_endpoint(), *other = endpoint();
	EACH_ATTRIBUTE(a)
	{
		CHECK_RC(cci_connect(ep, uri_of(other), bytes, 1025, a, NULL, 0, NULL),
			CCI_EINVAL);
		CHECK_RC(cci_connect(ep, uri_of(other), NULL, 5, a, NULL, 0, NULL),
			CCI_EINVAL);
		CHECK_RC(cci_connect(NULL, uri_of(other), bytes, 1, a, NULL, 0, NULL),
			CCI_EINVAL);
		CHECK_RC(cci_connect(ep, NULL, bytes, 1, a, NULL, 0, NULL), CCI_EINVAL);
	}
	SILENCE(ep, 20);
	SILENCE(other, 20);
}

STATEMENT(32, arguments_are_copied, 2, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	if (me.is_client) {
		char payload[1024], uri[128];
		fill(payload, sizeof payload, 77);
		snprintf(uri, sizeof uri, "%s", told_uri(1, 0));
		struct timeval limit = {100, 0};
		OK(cci_connect(ep, uri, payload, sizeof payload, CCI_CONN_ATTR_RU, NULL,
			0, &limit));
		memset(payload, 0xff, sizeof payload);
		memset(uri, 0xff, sizeof uri);
		limit = (struct timeval){0, 0};
		TAKE(ep, CCI_EVENT_CONNECT);
		return;
	}
	cci_event_t *request = EXPECT(ep, CCI_EVENT_CONNECT_REQUEST);
	CHECK_EQ(request->request.data_len, 1024);
	CHECK_BYTES(request->request.data_ptr, 1024, 77);
	OK(cci_accept(request, NULL));
	RETURN(request);
	TAKE(ep, CCI_EVENT_ACCEPT);
}

STATEMENT(33, attribute_of_the_client, 2, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	EACH_ATTRIBUTE(a)
	{
		if (me.is_client) {
			CHECK(connect_to(ep, told_uri(1, 0), a, NULL)->attribute == a);
			barrier();
			continue;
		}
		cci_event_t *request = EXPECT(ep, CCI_EVENT_CONNECT_REQUEST);
		CHECK(request->request.attribute == a);
		OK(cci_accept(request, NULL));
		RETURN(request);
		CHECK(connection_in(EXPECT(ep, CCI_EVENT_ACCEPT))->attribute == a);
		barrier();
	}
}

STATEMENT(34, reject, 2, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	EACH_ATTRIBUTE(a)
	{
		if (me.is_client) {
			ask(ep, told_uri(1, 0), a, CONTEXT(34));
			cci_event_t *event =
				EXPECT_STATUS(ep, CCI_EVENT_CONNECT, CCI_ECONNREFUSED);
			CHECK(event->connect.context == CONTEXT(34));
			CHECK(!event->connect.connection);
			RETURN(event);
		} else {
			cci_event_t *request = EXPECT(ep, CCI_EVENT_CONNECT_REQUEST);
			OK(cci_reject(request));
			RETURN(request);
		}
		barrier();
		SILENCE(ep, 10);
		barrier();
	}
}

STATEMENT(35, decide_twice, 1, 0)
{
	cci_endpoint_t *a = first_endpoint(), *b = endpoint();
	ask(a, uri_of(b), CCI_CONN_ATTR_RO, CONTEXT(1));
	cci_event_t *request = EXPECT(b, CCI_EVENT_CONNECT_REQUEST);
	OK(cci_accept(request, CONTEXT(2)));
	CHECK_RC(cci_accept(request, CONTEXT(3)), CCI_EINVAL);
	CHECK_RC(cci_reject(request), CCI_EINVAL);
	RETURN(request);
	cci_event_t *accepted = EXPECT(b, CCI_EVENT_ACCEPT);
	CHECK_RC(cci_accept(accepted, NULL), CCI_EINVAL);
	CHECK_RC(cci_reject(accepted), CCI_EINVAL);
	RETURN(accepted);
	cci_event_t *connected = EXPECT(a, CCI_EVENT_CONNECT);
	CHECK_RC(cci_accept(connected, NULL), CCI_EINVAL);
	OK(cci_send(connected->connect.connection, "x", 1, NULL, 0));
	RETURN(connected);
	cci_event_t *message = EXPECT(b, CCI_EVENT_RECV);
	CHECK_RC(cci_accept(message, NULL), CCI_EINVAL);
	CHECK_RC(cci_reject(message), CCI_EINVAL);
	RETURN(message);
	ask(a, uri_of(b), CCI_CONN_ATTR_UU, CONTEXT(4));
	request = EXPECT(b, CCI_EVENT_CONNECT_REQUEST);
	OK(cci_reject(request));
	CHECK_RC(cci_reject(request), CCI_EINVAL);
	CHECK_RC(cci_accept(request, NULL), CCI_EINVAL);
	RETURN(request);
	CHECK_RC(cci_accept(NULL, NULL), CCI_EINVAL);
	CHECK_RC(cci_reject(NULL), CCI_EINVAL);
}

STATEMENT(36, return_undecided, 2, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	EACH_ATTRIBUTE(a)
	{
		if (me.is_client) {
			OK(cci_connect(
				ep, told_uri(1, 0), "payload", 7, a, NULL, 0, NULL));
			TAKE(ep, CCI_EVENT_CONNECT);
			barrier();
			continue;
		}
		cci_event_t *request = EXPECT(ep, CCI_EVENT_CONNECT_REQUEST);
		CHECK_RC(cci_return_event(request), CCI_EINVAL);
		CHECK_RC(cci_return_event(request), CCI_EINVAL);
		CHECK(memcmp(request->request.data_ptr, "payload", 8) == 0);
		OK(cci_accept(request, NULL));
		RETURN(request);
		TAKE(ep, CCI_EVENT_ACCEPT);
		barrier();
	}
}

STATEMENT(37, return_request_late, 2, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	for (int i = 0; i < 20; i++) {
		if (me.is_client) {
			(void)connect_to(ep, told_uri(1, 0), CCI_CONN_ATTR_RO, NULL);
			barrier();
			continue;
		}
		cci_event_t *request = EXPECT(ep, CCI_EVENT_CONNECT_REQUEST);
		OK(cci_accept(request, NULL));
		if (i % 2)
			RETURN(request);
		TAKE(ep, CCI_EVENT_ACCEPT);
		if (i % 2 == 0)
			RETURN(request);
		barrier();
	}
}

/* ---- no endpoint listens ---- */

HELPER(tell_and_end)
{
	(void)argument;
	cci_endpoint_t *ep = first_endpoint();
	OK(cci_destroy_endpoint(ep));
	if (argument[0] == 'k')
		raise(SIGKILL);
}

/* Check that a connect is refused within a second. */
static void refused(cci_endpoint_t *ep, const char *uri)
{
	EACH_ATTRIBUTE(a)
	{
		cci_event_t *event;
		struct patience p = patience_begin();
		ask(ep, uri, a, CONTEXT(38));
		while (cci_get_event(ep, &event) != CCI_SUCCESS)
			CHECK(!patience_is_over(&p));
		CHECK(event->type == CCI_EVENT_CONNECT);
		CHECK_EQ(event->connect.status, CCI_ECONNREFUSED);
		CHECK(!event->connect.connection &&
			event->connect.context == CONTEXT(38));
		RETURN(event);
	}
}

/* Return the URI of another endpoint number in the same process. */
static const char *other_number(const char *uri, unsigned number)
{
	static char text[160];
	size_t n = strlen(uri);
	while (n && uri[n - 1] != '/')
		n--;
	snprintf(text, sizeof text, "%.*s%u", (int)n, uri, number);
	return text;
}

STATEMENT(38, no_endpoint_there, 2, DOMAIN)
{
	cci_endpoint_t *ep = first_endpoint();
	if (me.is_server) {
		cci_endpoint_t *gone = endpoint();
		OK(cci_destroy_endpoint(gone));
		barrier();
		barrier();
		return;
	}
	int pid = spawn("tell_and_end", "", NULL); /* tells this rank's second URI */
	join(pid);
	barrier();
	refused(ep, told_uri(1, 1));
	refused(ep, other_number(told_uri(1, 0), 4242));
	refused(ep, told_uri(0, 1));
	cci_endpoint_t *own = endpoint();
	OK(cci_destroy_endpoint(own));
	refused(ep, told_uri(0, 2));
	refused(ep, other_number(told_uri(0, 0), 4242));
	struct side s = {ep, NULL};
	ask(ep, told_uri(1, 0), CCI_CONN_ATTR_RO, CONTEXT(1)); /* not decided */
	signal_rank(1, SIGKILL);
	RETURN(EXPECT_STATUS(s.ep, CCI_EVENT_CONNECT, CCI_ECONNREFUSED));
	refused(ep, told_uri(1, 0));
}

STATEMENT(39, connect_times_out, 2, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	(void)meet_again(
		ep, 0, CCI_CONN_ATTR_RO); /* from here on a request leaves at once */
	barrier();
	EACH_ATTRIBUTE(a)
	{
		if (me.is_client) {
			const char *uri = told_uri(1, 0);
			struct timeval limit = {0, 200000};
			struct patience p = patience_begin();
			cci_event_t *event;
			uint64_t began = now_ns();
			OK(cci_connect(ep, uri, NULL, 0, a, CONTEXT(39), 0, &limit));
			while (cci_get_event(ep, &event) != CCI_SUCCESS)
				CHECK(!patience_is_over(&p));
			CHECK(now_ns() - began >= 200000000);
			CHECK(event->type == CCI_EVENT_CONNECT);
			CHECK_EQ(event->connect.status, CCI_ETIMEDOUT);
			CHECK(!event->connect.connection);
			CHECK(event->connect.context == CONTEXT(39));
			RETURN(event);
			barrier();
			SILENCE(ep, 20);
		} else {
			cci_event_t *request = EXPECT(ep, CCI_EVENT_CONNECT_REQUEST);
			barrier();
			OK(cci_accept(request, CONTEXT(93)));
			RETURN(request);
			cci_event_t *event = NEXT(ep);
			CHECK(event->type == CCI_EVENT_ACCEPT);
			CHECK(event->accept.status != CCI_SUCCESS);
			CHECK(!event->accept.connection);
			CHECK(event->accept.context == CONTEXT(93));
			RETURN(event);
		}
		barrier(); /* the next request comes behind this ACCEPT */
	}
}

STATEMENT(40, attributes_and_limits_that_are_none, 1, 0)
{
	cci_endpoint_t *ep = first_endpoint(), *other = endpoint();
	const char *uri = uri_of(other);
	struct timeval past = {-1, 0};
	CHECK_RC(cci_connect(ep, uri, NULL, 0, CCI_CONN_ATTR_UU_MC_TX, NULL, 0, NULL),
		CCI_ERR_NOT_IMPLEMENTED);
	CHECK_RC(cci_connect(ep, uri, NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL),
		CCI_ERR_NOT_IMPLEMENTED);
	CHECK_RC(cci_connect(ep, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &past),
		CCI_EINVAL);
	CHECK_RC(cci_connect(ep, uri, NULL, 0, (cci_conn_attribute_t)123, NULL, 0, NULL),
		CCI_EINVAL);
	SILENCE(ep, 10);
	SILENCE(other, 10);
}

STATEMENT(41, uris_that_are_none, 1, 0)
{
	static char wrong[10][256], huge[10001];
	cci_endpoint_t *ep = first_endpoint();
	const char *uri = uri_of(ep), *rest = strstr(uri, "://") + 3;
	int scheme = (int)(rest - uri);
	memset(huge, 'a', sizeof huge - 1);
	memcpy(huge, uri, (size_t)scheme);
	snprintf(wrong[1], sizeof wrong[1], "x");
	snprintf(wrong[2], sizeof wrong[2], "tcp://h:1");
	snprintf(wrong[3], sizeof wrong[3], "%.*s", scheme, uri);
	snprintf(wrong[4], sizeof wrong[4], "%.*s///", scheme, uri);
	snprintf(wrong[5], sizeof wrong[5], "%s", other_number(uri, 0));
	strcat(wrong[5], "99999999999999");
	snprintf(wrong[6], sizeof wrong[6], "%.*s0/999999999/7", scheme, uri);
	snprintf(wrong[7], sizeof wrong[7], "%sz", uri);
	snprintf(wrong[8], sizeof wrong[8], "x%s", uri);
	snprintf(wrong[9], sizeof wrong[9], "%.*s-1/-1/-1", scheme, uri);
	for (int i = 0; i < 11; i++) {
		const char *text = i < 10 ? wrong[i] : huge;
		int rc = cci_connect(
			ep, text, NULL, 0, CCI_CONN_ATTR_RO, CONTEXT(i), 0, NULL);
		if (rc == CCI_SUCCESS)
			check_failed(
				__FILE__, __LINE__, "'%.40s' can be connected to", text);
	}
	SILENCE(ep, 20);
}

STATEMENT(42, a_thousand_connects, 2, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	unsigned connected = 0;
	if (me.is_server) {
		unsigned requests = 0;
		while (requests < MANY || connected < MANY) {
			cci_event_t *event = NEXT(ep);
			if (event->type == CCI_EVENT_CONNECT_REQUEST) {
				OK(cci_accept(event, CONTEXT(requests)));
				requests++;
			} else {
				CHECK(event->type == CCI_EVENT_ACCEPT);
				CHECK_EQ(event->accept.status, CCI_SUCCESS);
				connected++;
			}
			RETURN(event);
		}
		return;
	}
	static bool seen[MANY];
	const char *uri = told_uri(1, 0);
	unsigned asked = 0;
	while (connected < MANY) {
		cci_event_t *event;
		if (asked < MANY) {
			int rc = cci_connect(ep, uri, NULL, 0, CCI_CONN_ATTR_RO,
				CONTEXT(asked), 0, NULL);
			CHECK(rc == CCI_SUCCESS || rc == CCI_ENOBUFS);
			asked += rc == CCI_SUCCESS;
			if (rc == CCI_SUCCESS)
				continue;
		}
		event = EXPECT(ep, CCI_EVENT_CONNECT);
		uintptr_t context = (uintptr_t)event->connect.context;
		CHECK(context < MANY && !seen[context]);
		seen[context] = true;
		connected++;
		RETURN(event);
	}
}

static void write_once(struct side from, struct side to)
{
	static char source[100], target[100];
	cci_rma_handle_t *local, *remote;
	fill(source, sizeof source, 43);
	memset(target, 0, sizeof target);
	OK(cci_rma_register(from.ep, source, sizeof source, 0, &local));
	OK(cci_rma_register(to.ep, target, sizeof target, CCI_FLAG_WRITE, &remote));
	OK(cci_rma(from.conn, NULL, 0, local, 0, remote, 0, sizeof source, CONTEXT(3),
		CCI_FLAG_WRITE));
	SENT(from.ep, CONTEXT(3));
	CHECK_BYTES(target, sizeof target, 43);
	OK(cci_rma_deregister(from.ep, local));
	OK(cci_rma_deregister(to.ep, remote));
}

STATEMENT(43, within_a_process, 1, 0)
{
	struct both two = both(CCI_CONN_ATTR_RO);
	OK(cci_send(two.a.conn, "other", 5, CONTEXT(1), 0));
	check_message(two.b.ep, two.b.conn, "other");
	SENT(two.a.ep, CONTEXT(1));
	write_once(two.a, two.b);
	struct side from = {two.a.ep, NULL}, to = {two.a.ep, NULL};
	ask(from.ep, uri_of(from.ep), CCI_CONN_ATTR_RU, CONTEXT(1));
	accept_next(to.ep, CONTEXT(2));
	while (!from.conn || !to.conn) {
		cci_event_t *event = NEXT(to.ep);
		CHECK_EQ(status_of(event), CCI_SUCCESS);
		if (event->type == CCI_EVENT_CONNECT)
			from.conn = event->connect.connection;
		else
			to.conn = event->accept.connection;
		RETURN(event);
	}
	CHECK(from.conn != to.conn);
	OK(cci_send(from.conn, "self", 4, CONTEXT(8), 0));
	for (unsigned seen = 0; seen != 3;) {
		cci_event_t *event = NEXT(from.ep);
		if (event->type == CCI_EVENT_RECV) {
			CHECK(event->recv.connection == to.conn);
			CHECK(memcmp(event->recv.ptr, "self", 4) == 0);
		} else {
			CHECK(event->type == CCI_EVENT_SEND);
			CHECK(event->send.context == CONTEXT(8));
		}
		seen |= event->type == CCI_EVENT_RECV ? 1 : 2;
		RETURN(event);
	}
	write_once(from, to);
}

STATEMENT(44, two_between_a_pair, 2, 0)
{
	EACH_ATTRIBUTE(a)
	{
		struct side one = meet(a);
		struct side two = {one.ep, meet_again(one.ep, (unsigned)a, a)};
		CHECK(one.conn != two.conn);
		if (me.is_client) {
			send_text(one, "first");
			send_text(two, "second");
			OK(cci_disconnect(one.conn));
			send_text(two, "third");
		} else {
			for (int i = 0; i < 2; i++) {
				cci_event_t *event = EXPECT(one.ep, CCI_EVENT_RECV);
				bool first = event->recv.connection == one.conn;
				CHECK(first || event->recv.connection == two.conn);
				CHECK(memcmp(event->recv.ptr, first ? "first" : "second",
					      first ? 5 : 6) == 0);
				RETURN(event);
			}
			check_message(two.ep, two.conn, "third");
		}
		barrier();
	}
}

STATEMENT(45, both_connect, 2, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	for (unsigned i = 0; i < many(200); i++) {
		cci_connection_t *mine = NULL, *theirs = NULL;
		ask(ep, told_uri(1 - me.rank, 0), CCI_CONN_ATTR_RO, CONTEXT(1));
		while (!mine || !theirs) {
			cci_event_t *event = NEXT(ep);
			CHECK_EQ(status_of(event), CCI_SUCCESS);
			if (event->type == CCI_EVENT_CONNECT_REQUEST)
				OK(cci_accept(event, CONTEXT(2)));
			else if (event->type == CCI_EVENT_CONNECT)
				mine = event->connect.connection;
			else
				theirs = event->accept.connection;
			RETURN(event);
		}
		CHECK(mine != theirs);
		CHECK(mine->context == CONTEXT(1) && theirs->context == CONTEXT(2));
		barrier();
		OK(cci_disconnect(mine));
		OK(cci_disconnect(theirs));
	}
}

STATEMENT(46, client_sends_first, 2, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	for (unsigned i = 0; i < many(600); i++) {
		cci_conn_attribute_t a = (cci_conn_attribute_t)(i % 3);
		if (me.is_client) {
			ask(ep, told_uri(1, 0), a, NULL);
			cci_event_t *event = EXPECT(ep, CCI_EVENT_CONNECT);
			OK(cci_send(
				event->connect.connection, "at once", 7, CONTEXT(i), 0));
			RETURN(event);
			SENT(ep, CONTEXT(i));
			continue;
		}
		accept_next(ep, NULL);
		cci_connection_t *conn = connection_in(EXPECT(ep, CCI_EVENT_ACCEPT));
		check_message(ep, conn, "at once");
	}
}

STATEMENT(47, server_sends_first, 2, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	for (unsigned i = 0; i < many(600); i++) {
		cci_conn_attribute_t a = (cci_conn_attribute_t)(i % 3);
		if (me.is_client) {
			check_message(
				ep, connect_to(ep, told_uri(1, 0), a, NULL), "at once");
			barrier();
			continue;
		}
		accept_next(ep, NULL);
		cci_event_t *event = EXPECT(ep, CCI_EVENT_ACCEPT);
		OK(cci_send(event->accept.connection, "at once", 7, CONTEXT(i), 0));
		RETURN(event);
		SENT(ep, CONTEXT(i));
		barrier(); /* the next request may overtake this SEND */
	}
}

STATEMENT(48, smaller_size, 2, 0)
{
	char path[] = "/tmp/cci_mss.XXXXXX";
	up();
	cci_device_t *const *all;
	OK(cci_get_devices(&all));
	FILE *f = fdopen(mkstemp(path), "w");
	CHECK(f);
	fprintf(f, "[d]\ntransport = %s\nmss = %d\n", all[0]->transport,
		me.is_client ? 1024 : 4096);
	CHECK(fclose(f) == 0);
	down();
	CHECK(setenv("CCI_CONFIG", path, 1) == 0);
	up();
	(void)unlink(path);
	cci_endpoint_t *ep = endpoint();
	CHECK_EQ(ep->device->max_send_size, me.is_client ? 1024 : 4096);
	EACH_ATTRIBUTE(a)
	{
		struct side s = {ep, meet_again(ep, 0, a)};
		CHECK_EQ(s.conn->max_send_size, 1024);
		CHECK_RC(cci_send(s.conn, pattern(1), 1025, NULL, 0), CCI_EMSGSIZE);
		OK(cci_send(s.conn, pattern(1), 1024, CONTEXT(1), CCI_FLAG_SILENT));
		cci_event_t *event = EXPECT(ep, CCI_EVENT_RECV);
		CHECK_EQ(event->recv.len, 1024);
		RETURN(event);
		barrier();
	}
}

STATEMENT(49, disconnect_nothing, 1, 0)
{
	CHECK(cci_disconnect(NULL) != CCI_SUCCESS);
	up();
	CHECK_RC(cci_disconnect(NULL), CCI_EINVAL);
}

static void use_closed(struct side s)
{
	static char bytes[64];
	cci_rma_handle_t *handle;
	struct cci_rma_handle any = {{1, 2, 3, 4}};
	bool reliable = s.conn->attribute != CCI_CONN_ATTR_UU;
	for (unsigned i = 0; i < 5; i++) {
		OK(cci_send(s.conn, "x", 1, CONTEXT(i), 0));
		cci_event_t *event = EXPECT_STATUS(s.ep, CCI_EVENT_SEND,
			reliable ? CCI_ERR_DISCONNECTED : CCI_SUCCESS);
		CHECK(event->send.context == CONTEXT(i));
		CHECK(event->send.connection == s.conn);
		RETURN(event);
	}
	if (!reliable)
		return;
	OK(cci_rma_register(s.ep, bytes, sizeof bytes, 0, &handle));
	CHECK_RC(cci_rma(s.conn, NULL, 0, handle, 0, &any, 0, 8, NULL, CCI_FLAG_WRITE),
		CCI_ERR_DISCONNECTED);
}

STATEMENT(50, peer_has_disconnected, 2, 0)
{
	EACH_ATTRIBUTE(a)
	{
		struct side s = meet(a);
		if (me.is_client)
			OK(cci_disconnect(s.conn));
		barrier();
		if (me.is_server) {
			use_closed(s);
			OK(cci_disconnect(s.conn));
		}
		barrier();
		SILENCE(s.ep, 5);
	}
}

STATEMENT(51, disconnect_with_sends, 2, 0)
{
	enum { N = 100 };
	for (unsigned i = 0; i < many(100); i++) {
		struct side s = meet(i % 2 ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_RU);
		if (me.is_client) {
			for (unsigned k = 0; k < N; k++)
				OK(cci_send(s.conn, pattern(k), k * 11, CONTEXT(k), 0));
			OK(cci_disconnect(s.conn));
			bool seen[N] = {false};
			for (unsigned k = 0; k < N; k++) {
				cci_event_t *event = NEXT(s.ep);
				CHECK(event->type == CCI_EVENT_SEND);
				CHECK(event->send.status == CCI_SUCCESS ||
					event->send.status == CCI_ERR_DISCONNECTED);
				CHECK(event->send.connection->context ==
					CONTEXT(0xc11e47));
				uintptr_t at = (uintptr_t)event->send.context;
				CHECK(at < N && !seen[at]);
				CHECK(i % 2 == 0 || at == k);
				seen[at] = true;
				RETURN(event);
			}
			SILENCE(s.ep, 1);
		}
		barrier();
		OK(cci_destroy_endpoint(s.ep));
	}
}

STATEMENT(52, disconnect_with_messages, 2, 0)
{
	EACH_ATTRIBUTE(a)
	{
		struct side s = meet(a);
		uint32_t n = option(s.ep, CCI_OPT_ENDPT_RECV_BUF_COUNT);
		if (me.is_client) {
			cci_connection_t *other = meet_again(s.ep, (unsigned)a, a);
			for (unsigned i = 0; i < 50; i++)
				OK(cci_send(s.conn, "old", 3, NULL, 0));
			for (unsigned i = 0; i < 50; i++)
				TAKE(s.ep, CCI_EVENT_SEND);
			OK(cci_send(other, "new", 3, NULL, 0));
			TAKE(s.ep, CCI_EVENT_SEND);
			barrier();
			barrier();
			for (uint32_t i = 0; i < n; i++) {
				OK(cci_send(other, "fit", 3, NULL, 0));
				TAKE(s.ep, CCI_EVENT_SEND);
			}
		} else {
			cci_connection_t *other = meet_again(s.ep, (unsigned)a, a);
			barrier();
			OK(cci_disconnect(s.conn));
			check_message(s.ep, other, "new");
			SILENCE(s.ep, 5);
			barrier();
			return_all(hold_all(s.ep, n), n);
		}
		barrier();
	}
}

STATEMENT(53, many_rounds, 2, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	unsigned long rounds = many(10000);
	struct leaks before = leaks_now();
	for (unsigned i = 0; i < rounds; i++) {
		cci_connection_t *conn = meet_again(ep, 0, (cci_conn_attribute_t)(i % 3));
		if (i == rounds / 2)
			before = leaks_now();
		if (me.is_client) {
			OK(cci_send(conn, &i, sizeof i, CONTEXT(i), 0));
			SENT(ep, CONTEXT(i));
			(void)cci_send(conn, "stale", 5, NULL, CCI_FLAG_SILENT);
			OK(cci_disconnect(conn));
			continue;
		}
		cci_event_t *event = EXPECT(ep, CCI_EVENT_RECV);
		CHECK(event->recv.connection == conn);
		CHECK_EQ(event->recv.len, sizeof i);
		CHECK(memcmp(event->recv.ptr, &i, sizeof i) == 0);
		RETURN(event);
		OK(cci_disconnect(conn));
	}
	CHECK(leaks_now().kib <= before.kib + 512);
}

/* ---- a late server ---- */

HELPER(late_server)
{
	cci_endpoint_t *ep;
	cci_device_t *const *all;
	(void)argument;
	AWAIT(word(0) >= 3); /* refused connects */
	up();
	OK(cci_get_devices(&all));
	OK(cci_create_endpoint_at(all[0], "5400", 0, &ep, NULL));
	tell_uri(ep);
	check_message(ep, accept_one(ep, NULL), "found");
	say();
	hear(2);
}

/* Join while the server is stopped, so that it has not introduced itself. */
HELPER(late_client)
{
	(void)argument;
	signal_rank(0, SIGSTOP);
	cci_endpoint_t *ep = first_endpoint();
	ask(ep, told_uri(0, 0), CCI_CONN_ATTR_RO, NULL);
	SILENCE(ep, 500);
	signal_rank(0, SIGCONT);
	struct side s = {ep, EXPECT(ep, CCI_EVENT_CONNECT)->connect.connection};
	send_text(s, "waited");
}

STATEMENT(54, server_comes_late, 1, DOMAIN)
{
	cci_endpoint_t *ep = first_endpoint();
	int pid = spawn("late_server", NULL, NULL);
	/* The first tries go to an endpoint that is not there yet. */
	const char *uri = other_number(told_uri(0, 0), 5400);
	struct side s = {ep, NULL};
	struct patience p = patience_begin();
	bool told = false;
	while (!s.conn) {
		look_at(__FILE__, __LINE__, &p, "the late server");
		ask(ep, uri, CCI_CONN_ATTR_RO, NULL);
		cci_event_t *event = NEXT(ep);
		CHECK(event->type == CCI_EVENT_CONNECT);
		CHECK(event->connect.status == CCI_SUCCESS ||
			event->connect.status == CCI_ECONNREFUSED);
		s.conn = event->connect.connection;
		RETURN(event);
		add_word(0, 1);
		if (!told && word(0) >= 3) {
			uri = told_uri(0, 1);
			told = true;
		}
		/* pause: between two tries */
		sleep_us(1000);
	}
	send_text(s, "found");
	hear(1);
	say();
	join(pid);
	pid = spawn("late_client", NULL, NULL);
	check_message(ep, accept_one(ep, NULL), "waited");
	join(pid);
}
