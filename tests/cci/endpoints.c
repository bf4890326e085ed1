/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of CCI: endpoints, services, URIs, destruction. */
#include "frame.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cci_device_t *first_device(void)
{
	cci_device_t *const *all;
	OK(cci_get_devices(&all));
	CHECK(all[0]);
	return all[0];
}

/* Send a message between two endpoints of this process, on a new connection. */
static void talk(cci_endpoint_t *from, cci_endpoint_t *to)
{
	ask(from, uri_of(to), CCI_CONN_ATTR_RO, CONTEXT(5));
	cci_event_t *request = EXPECT(to, CCI_EVENT_CONNECT_REQUEST);
	OK(cci_accept(request, CONTEXT(6)));
	RETURN(request);
	TAKE(to, CCI_EVENT_ACCEPT);
	cci_event_t *event = EXPECT(from, CCI_EVENT_CONNECT);
	cci_connection_t *conn = event->connect.connection;
	RETURN(event);
	OK(cci_send(conn, &to, sizeof to, CONTEXT(9), 0));
	event = EXPECT(to, CCI_EVENT_RECV);
	CHECK(memcmp(event->recv.ptr, &to, sizeof to) == 0);
	RETURN(event);
	SENT(from, CONTEXT(9));
}

STATEMENT(19, create, 1, 0)
{
	cci_endpoint_t *ep = NULL;
	up();
	OK(cci_create_endpoint(NULL, 0, &ep, NULL));
	CHECK(ep && ep->device == first_device());
}

STATEMENT(20, create_in_vain, 1, 0)
{
	cci_endpoint_t *ep;
	char path[] = "/tmp/cci_none.XXXXXX";
	int rc = cci_create_endpoint(NULL, 0, &ep, NULL); /* before cci_init */
	CHECK(rc == CCI_ENODEV || rc == CCI_ERROR);
	up();
	CHECK_RC(cci_create_endpoint(NULL, 0, NULL, NULL), CCI_EINVAL);
	struct cci_device asleep = *first_device();
	asleep.up = 0;
	CHECK_RC(cci_create_endpoint(&asleep, 0, &ep, NULL), CCI_ENETDOWN);
	down();
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	CHECK(setenv("CCI_CONFIG", path, 1) == 0);
	up();
	CHECK_RC(cci_create_endpoint(NULL, 0, &ep, NULL), CCI_ENODEV);
	(void)unlink(path);
	CHECK(close(fd) == 0);
}

STATEMENT(21, handle_is_closed, 1, 0)
{
	int fd = -1;
	cci_endpoint_t *ep;
	up();
	OK(cci_create_endpoint(NULL, 0, &ep, &fd));
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) >= 0);
	OK(cci_destroy_endpoint(ep));
	CHECK(fcntl(fd, F_GETFD) < 0);
}

STATEMENT(22, many_endpoints, 1, 0)
{
	enum { N = 64 };
	cci_endpoint_t *ep[N];
	const char *uri[N];
	up();
	for (int i = 0; i < N; i++) {
		OK(cci_create_endpoint(NULL, 0, &ep[i], NULL));
		uri[i] = uri_of(ep[i]);
		for (int k = 0; k < i; k++)
			CHECK(strcmp(uri[i], uri[k]) != 0);
	}
	for (int i = 0; i < N; i++)
		talk(ep[i], ep[(i * 7 + 1) % N]);
	for (int i = 0; i < N; i++)
		OK(cci_destroy_endpoint(ep[i]));
}

STATEMENT(23, services, 1, 0)
{
	cci_endpoint_t *ep, *other;
	up();
	OK(cci_create_endpoint_at(first_device(), "5000", 0, &ep, NULL));
	const char *uri = uri_of(ep);
	CHECK_RC(cci_create_endpoint_at(first_device(), "5000", 0, &other, NULL),
		CCI_EBUSY);
	OK(cci_create_endpoint_at(first_device(), "5001", 0, &other, NULL));
	talk(other, ep);
	OK(cci_destroy_endpoint(ep));
	OK(cci_create_endpoint_at(first_device(), "5000", 0, &ep, NULL));
	CHECK(strcmp(uri_of(ep), uri) == 0);
	talk(other, ep);
	OK(cci_create_endpoint_at(first_device(), NULL, 0, &ep, NULL));
	down();
	up();
	OK(cci_create_endpoint_at(first_device(), "5000", 0, &ep, NULL));
	CHECK(strcmp(uri_of(ep), uri) == 0);
}

STATEMENT(24, services_that_are_none, 1, 0)
{
	static const char *const wrong[] = {"", "x", "-1", "99999999999", "65536", "0",
		" ", "5000x", "5000 ", "1e3", "0x10", "99999999999999999999999"};
	cci_endpoint_t *ep;
	up();
	CHECK_RC(cci_create_endpoint_at(NULL, "5000", 0, &ep, NULL), CCI_EINVAL);
	CHECK_RC(cci_create_endpoint_at(first_device(), "5000", 0, NULL, NULL),
		CCI_EINVAL);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		int rc = cci_create_endpoint_at(first_device(), wrong[i], 0, &ep, NULL);
		if (rc != CCI_EINVAL && rc != CCI_ERANGE)
			check_failed(__FILE__, __LINE__, "service '%s' gives %s",
				wrong[i], check_code(rc));
	}
}

STATEMENT(25, uri, 1, 0)
{
	char start[80], *first = NULL, *second = NULL;
	cci_endpoint_t *ep = first_endpoint();
	OK(cci_get_opt((cci_opt_handle_t *)ep, CCI_OPT_ENDPT_URI, &first));
	OK(cci_get_opt((cci_opt_handle_t *)ep, CCI_OPT_ENDPT_URI, &second));
	CHECK(first && second && first != second && strcmp(first, second) == 0);
	snprintf(start, sizeof start, "%s://", ep->device->transport);
	CHECK(strncmp(first, start, strlen(start)) == 0);
	CHECK(strlen(first) > strlen(start) && strlen(first) < 128);
	for (const char *c = first; *c; c++)
		CHECK(isprint((unsigned char)*c) && *c != ' ');
	free(first);
	CHECK(strlen(second) > strlen(start));
	free(second);
}

/* ---- destruction ---- */

enum { CONNECTIONS = 10, REGION = 1 << 16 };

struct target {
	cci_endpoint_t *ep;
	cci_connection_t *conn[CONNECTIONS];
};

static void meet_ten(struct target *t)
{
	up();
	t->ep = endpoint();
	for (int i = 0; i < CONNECTIONS; i++)
		t->conn[i] =
			meet_again(t->ep, 0, i % 2 ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_RO);
}

/* Write and send to the other side until it is gone; each operation must end. */
static void write_until_gone(struct target *t, struct cci_rma_handle remote)
{
	static unsigned char source[REGION];
	cci_rma_handle_t *local;
	unsigned long begun = 0, ended = 0, gone = 0;
	memset(source, 0xee, sizeof source);
	OK(cci_rma_register(t->ep, source, sizeof source, 0, &local));
	struct patience p = patience_begin();
	for (unsigned i = 0; gone < CONNECTIONS || ended < begun; i++) {
		cci_event_t *event;
		look_at(__FILE__, __LINE__, &p, "the end of all operations");
		if (gone < CONNECTIONS) {
			cci_connection_t *c = t->conn[i % CONNECTIONS];
			begun += cci_rma(c, NULL, 0, local, 0, &remote, 0, REGION, NULL,
					 CCI_FLAG_WRITE) == CCI_SUCCESS;
			begun += cci_send(c, source, 100, NULL, 0) == CCI_SUCCESS;
		}
		add_word(0, 1);
		while (cci_get_event(t->ep, &event) == CCI_SUCCESS) {
			if (event->type == CCI_EVENT_SEND) {
				ended++;
				if (event->send.status != CCI_SUCCESS) {
					/* Its registrations end, too. */
					CHECK(event->send.status ==
							CCI_ERR_DISCONNECTED ||
						event->send.status == CCI_ERR_RMA_HANDLE);
					gone++;
				}
			}
			RETURN(event);
		}
	}
	set_word(2, 1);
}

static void destroy_in_traffic(struct target *t)
{
	static unsigned char region[REGION], copy[REGION];
	cci_rma_handle_t *handle;
	cci_event_t *held[4];
	OK(cci_rma_register(t->ep, region, REGION, CCI_FLAG_WRITE, &handle));
	memcpy(shared(), handle, sizeof *handle);
	cci_endpoint_t *bystander = endpoint();
	set_word(1, 1);
	for (int i = 0; i < 4; i++)
		held[i] = EXPECT(t->ep, CCI_EVENT_RECV);
	CHECK(held[0] != held[1]);
	for (int i = 0; i < 100; i++)
		(void)cci_send(t->conn[i % CONNECTIONS], "x", 1, NULL, 0);
	struct patience p = patience_begin();
	OK(cci_destroy_endpoint(t->ep));
	CHECK(!patience_is_over(&p));
	memcpy(copy, region, REGION);
	unsigned long turns = word(0) + 100;
	AWAIT(word(0) >= turns || word(2)); /* the other side has gone on, or is done */
	CHECK(memcmp(copy, region, REGION) == 0);
	talk(bystander, endpoint());
}

STATEMENT(26, destroy_in_the_middle, 2, 0)
{
	struct target t;
	struct cci_rma_handle remote;
	meet_ten(&t);
	if (me.is_server) {
		destroy_in_traffic(&t);
		return;
	}
	await_word(1, 1);
	memcpy(&remote, shared(), sizeof remote);
	write_until_gone(&t, remote);
	talk(endpoint(), endpoint());
}

STATEMENT(27, destroy_nothing, 1, 0)
{
	up();
	CHECK_RC(cci_destroy_endpoint(NULL), CCI_EINVAL);
}

STATEMENT(28, finalize_destroys, 2, 0)
{
	int fd;
	struct side s = meet_fd(CCI_CONN_ATTR_RO, &fd);
	if (me.is_server) {
		CHECK(cci_finalize() == CCI_SUCCESS);
		CHECK(fcntl(fd, F_GETFD) < 0);
		say();
		return;
	}
	hear(1);
	OK(cci_send(s.conn, "x", 1, NULL, 0));
	RETURN(EXPECT_STATUS(s.ep, CCI_EVENT_SEND, CCI_ERR_DISCONNECTED));
	ask(s.ep, told_uri(1, 0), CCI_CONN_ATTR_RO, NULL);
	RETURN(EXPECT_STATUS(s.ep, CCI_EVENT_CONNECT, CCI_ECONNREFUSED));
}
