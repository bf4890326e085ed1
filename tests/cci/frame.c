/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of the conformance suite of CCI: CCI in one line. */
#include "frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct suite suite = {.statements = 137,
	.table = "docs/conformance-cci.md",
	.outside = "no statement",
	.status = 1};

const char *check_code(int status)
{
	static const struct {
		int status;
		const char *name;
	} known[] = {{CCI_SUCCESS, "CCI_SUCCESS"}, {CCI_ERROR, "CCI_ERROR"},
		{CCI_ERR_DISCONNECTED, "CCI_ERR_DISCONNECTED"},
		{CCI_ERR_RNR, "CCI_ERR_RNR"},
		{CCI_ERR_DEVICE_DEAD, "CCI_ERR_DEVICE_DEAD"},
		{CCI_ERR_RMA_HANDLE, "CCI_ERR_RMA_HANDLE"},
		{CCI_ERR_RMA_OP, "CCI_ERR_RMA_OP"},
		{CCI_ERR_NOT_IMPLEMENTED, "CCI_ERR_NOT_IMPLEMENTED"},
		{CCI_ERR_NOT_FOUND, "CCI_ERR_NOT_FOUND"}, {CCI_EINVAL, "CCI_EINVAL"},
		{CCI_ETIMEDOUT, "CCI_ETIMEDOUT"}, {CCI_ENOMEM, "CCI_ENOMEM"},
		{CCI_ENODEV, "CCI_ENODEV"}, {CCI_ENETDOWN, "CCI_ENETDOWN"},
		{CCI_EBUSY, "CCI_EBUSY"}, {CCI_ERANGE, "CCI_ERANGE"},
		{CCI_EAGAIN, "CCI_EAGAIN"}, {CCI_ENOBUFS, "CCI_ENOBUFS"},
		{CCI_EMSGSIZE, "CCI_EMSGSIZE"}, {CCI_ENOMSG, "CCI_ENOMSG"},
		{CCI_EADDRNOTAVAIL, "CCI_EADDRNOTAVAIL"},
		{CCI_ECONNREFUSED, "CCI_ECONNREFUSED"}};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (known[i].status == status)
			return known[i].name;
	return "an unknown status";
}

void rank_ends(void)
{
	while (cci_finalize() == CCI_SUCCESS)
		;
}

/* ---- CCI in one line ---- */

void up(void)
{
	uint32_t caps = 1;
	OK(cci_init(CCI_ABI_VERSION, 0, &caps));
}

void down(void)
{
	OK(cci_finalize());
}

/* The URIs of this process: a test may use each of them until its end. */
static struct uri {
	struct uri *before;
	char *text;
} * uris;

const char *uri_of(cci_endpoint_t *ep)
{
	struct uri *uri = calloc(1, sizeof *uri);
	CHECK(uri);
	uri->before = uris;
	uris = uri;
	OK(cci_get_opt((cci_opt_handle_t *)ep, CCI_OPT_ENDPT_URI, &uri->text));
	CHECK(uri->text && strlen(uri->text) < 128);
	return uri->text;
}

void tell_uri(cci_endpoint_t *ep)
{
	const char *uri = uri_of(ep);
	tell(uri, strlen(uri) + 1);
}

unsigned uris_told(void)
{
	return tales_told();
}

const char *told_uri(unsigned rank, unsigned n)
{
	return told(rank, n);
}

cci_endpoint_t *endpoint_fd(int *fd)
{
	cci_endpoint_t *ep = NULL;
	OK(cci_create_endpoint(NULL, 0, &ep, fd));
	CHECK(ep);
	tell_uri(ep);
	return ep;
}

cci_endpoint_t *endpoint(void)
{
	return endpoint_fd(NULL);
}

cci_endpoint_t *first_endpoint(void)
{
	up();
	return endpoint();
}

cci_event_t *next_at(const char *file, int line, cci_endpoint_t *ep)
{
	cci_event_t *event = NULL;
	struct patience p = patience_begin();
	int rc;
	while ((rc = cci_get_event(ep, &event)) == CCI_EAGAIN || rc == CCI_ENOBUFS)
		look_at(file, line, &p, "an event");
	if (rc != CCI_SUCCESS || !event)
		check_failed(file, line, "cci_get_event gives %s", check_code(rc));
	return event;
}

cci_event_t **hold_all(cci_endpoint_t *ep, uint32_t n)
{
	cci_event_t **held = calloc(n, sizeof *held);
	CHECK(held);
	for (uint32_t i = 0; i < n; i++)
		held[i] = EXPECT(ep, CCI_EVENT_RECV);
	return held;
}

void return_all(cci_event_t **held, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		RETURN(held[i]);
	free(held);
}

int status_of(cci_event_t *event)
{
	switch (event->type) {
	case CCI_EVENT_SEND:
		return (int)event->send.status;
	case CCI_EVENT_CONNECT:
		return (int)event->connect.status;
	case CCI_EVENT_ACCEPT:
		return (int)event->accept.status;
	default:
		return CCI_SUCCESS;
	}
}

cci_event_t *expect_at(
	const char *file, int line, cci_endpoint_t *ep, cci_event_type_t type, int status)
{
	cci_event_t *event = next_at(file, line, ep);
	if (event->type != type)
		check_failed(file, line, "the event is %s (%s), not %s",
			cci_event_type_str(event->type), check_code(status_of(event)),
			cci_event_type_str(type));
	if (status_of(event) != status)
		check_failed(file, line, "%s has status %s, not %s",
			cci_event_type_str(type), check_code(status_of(event)),
			check_code(status));
	return event;
}

void sent_at(const char *file, int line, cci_endpoint_t *ep, const void *context)
{
	cci_event_t *event = expect_at(file, line, ep, CCI_EVENT_SEND, CCI_SUCCESS);
	if (event->send.context != context)
		check_failed(file, line, "the context is %p, not %p", event->send.context,
			context);
	RETURN(event);
}

void silence_at(const char *file, int line, cci_endpoint_t *ep, unsigned ms)
{
	cci_event_t *event;
	uint64_t end = now_ns() + ms * UINT64_C(1000000);
	do {
		int rc = cci_get_event(ep, &event);
		if (rc == CCI_SUCCESS)
			check_failed(file, line, "%s (%s) comes, and nothing should",
				cci_event_type_str(event->type),
				check_code(status_of(event)));
		if (rc != CCI_EAGAIN && rc != CCI_ENOBUFS)
			check_failed(
				file, line, "cci_get_event gives %s", check_code(rc));
		if (event)
			check_failed(
				file, line, "an event comes with %s", check_code(rc));
		sleep_us(50);
	} while (now_ns() < end);
}

void ask(cci_endpoint_t *ep, const char *uri, cci_conn_attribute_t attribute,
	const void *context)
{
	OK(cci_connect(ep, uri, NULL, 0, attribute, context, 0, NULL));
}

static cci_connection_t *connection_of(cci_event_t *event)
{
	cci_connection_t *conn = event->connect.connection;
	CHECK(conn);
	RETURN(event);
	return conn;
}

cci_connection_t *connect_to(cci_endpoint_t *ep, const char *uri,
	cci_conn_attribute_t attribute, const void *context)
{
	ask(ep, uri, attribute, context);
	return connection_of(EXPECT(ep, CCI_EVENT_CONNECT));
}

/* A request that came before the ACCEPT of the last one: events of two connections have
 * no order. */
static struct {
	cci_endpoint_t *ep;
	cci_event_t *request;
} early;

static cci_event_t *next_request(cci_endpoint_t *ep)
{
	if (early.ep != ep)
		return EXPECT(ep, CCI_EVENT_CONNECT_REQUEST);
	early.ep = NULL;
	return early.request;
}

cci_connection_t *accept_one(cci_endpoint_t *ep, const void *context)
{
	cci_event_t *request = next_request(ep);
	OK(cci_accept(request, context));
	RETURN(request);
	cci_event_t *event = NEXT(ep);
	if (event->type == CCI_EVENT_CONNECT_REQUEST && !early.ep) {
		early.ep = ep;
		early.request = event;
		event = NEXT(ep);
	}
	CHECK(event->type == CCI_EVENT_ACCEPT);
	CHECK_EQ(event->accept.status, CCI_SUCCESS);
	return connection_of(event);
}

cci_connection_t *meet_again(
	cci_endpoint_t *ep, unsigned nth_uri, cci_conn_attribute_t attribute)
{
	if (me.is_client)
		return connect_to(ep, told_uri(1, nth_uri), attribute, CONTEXT(0xc11e47));
	return me.is_server ? accept_one(ep, CONTEXT(0x5e44e4)) : NULL;
}

struct side meet_fd(cci_conn_attribute_t attribute, int *fd)
{
	struct side s;
	up();
	unsigned nth = uris_told();
	s.ep = endpoint_fd(fd);
	s.conn = meet_again(s.ep, nth, attribute);
	return s;
}

struct side meet(cci_conn_attribute_t attribute)
{
	return meet_fd(attribute, NULL);
}

struct both both(cci_conn_attribute_t attribute)
{
	struct both two;
	up();
	two.a.ep = endpoint();
	two.b.ep = endpoint();
	ask(two.a.ep, uri_of(two.b.ep), attribute, CONTEXT(1));
	cci_event_t *request = EXPECT(two.b.ep, CCI_EVENT_CONNECT_REQUEST);
	OK(cci_accept(request, CONTEXT(2)));
	RETURN(request);
	two.a.conn = connection_of(EXPECT(two.a.ep, CCI_EVENT_CONNECT));
	two.b.conn = connection_of(EXPECT(two.b.ep, CCI_EVENT_ACCEPT));
	return two;
}

uint32_t option(const void *handle, cci_opt_name_t name)
{
	uint32_t value = 0;
	OK(cci_get_opt((cci_opt_handle_t *)handle, name, &value));
	return value;
}

void set_option(const void *handle, cci_opt_name_t name, uint32_t value)
{
	OK(cci_set_opt((cci_opt_handle_t *)handle, name, &value));
}
