/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of CCI: events and their life. */
#include "frame.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

STATEMENT(55, idle, 1, 0)
{
	cci_endpoint_t *ep = first_endpoint();
	for (int i = 0; i < 100; i++) {
		cci_event_t *event = (cci_event_t *)&event;
		CHECK_RC(cci_get_event(ep, &event), CCI_EAGAIN);
		CHECK(!event);
	}
}

/* Send n messages, each with its number, and wait until all are sent. */
static void send_numbers(struct side s, unsigned from, unsigned n)
{
	unsigned done = 0, sent = 0;
	struct patience p = patience_begin();
	while (done < n) {
		cci_event_t *event;
		uint32_t number = from + sent;
		if (sent < n && sent - done < 64 &&
			cci_send(s.conn, &number, sizeof number, NULL, 0) == CCI_SUCCESS)
			sent++;
		look_at(__FILE__, __LINE__, &p, "SEND events");
		if (cci_get_event(s.ep, &event) != CCI_SUCCESS)
			continue;
		CHECK(event->type == CCI_EVENT_SEND);
		CHECK_EQ(event->send.status, CCI_SUCCESS);
		RETURN(event);
		done++;
	}
}

static uint32_t number_in(cci_event_t *event)
{
	uint32_t number;
	CHECK(event->type == CCI_EVENT_RECV);
	CHECK_EQ(event->recv.len, sizeof number);
	memcpy(&number, event->recv.ptr, sizeof number);
	return number;
}

STATEMENT(56, all_buffers_lent, 2, 0)
{
	struct side s = meet(CCI_CONN_ATTR_RO);
	uint32_t n = option(s.ep, CCI_OPT_ENDPT_RECV_BUF_COUNT);
	if (me.is_client) {
		send_numbers(s, 0, n);
		return;
	}
	cci_event_t **held = hold_all(s.ep, n), *event = (cci_event_t *)&held;
	CHECK_RC(cci_get_event(s.ep, &event), CCI_ENOBUFS);
	CHECK(!event);
	RETURN(held[n / 2]);
	CHECK_RC(cci_get_event(s.ep, &event), CCI_EAGAIN);
	CHECK(!event);
	held[n / 2] = held[n - 1];
	return_all(held, n - 1);
}

/* Hold events, and return them in another order. */
static void take_in_disorder(struct side s, unsigned total, bool reverse)
{
	enum { HELD = 200 };
	cci_event_t *held[HELD];
	uint32_t number[HELD];
	unsigned n = 0;
	for (unsigned i = 0; i < total; i++) {
		held[n] = EXPECT(s.ep, CCI_EVENT_RECV);
		number[n] = number_in(held[n]);
		CHECK_EQ(number[n], i);
		if (++n < HELD && i + 1 < total)
			continue;
		for (; n; n--) {
			unsigned k = reverse ? n - 1 : (unsigned)(mix(i + n) % n);
			CHECK_EQ(number_in(held[k]), number[k]);
			RETURN(held[k]);
			held[k] = held[n - 1];
			number[k] = number[n - 1];
		}
	}
}

STATEMENT(57, returned_in_disorder, 2, 0)
{
	struct side s = meet(CCI_CONN_ATTR_RO);
	unsigned n = (unsigned)many(100000);
	if (me.is_client)
		send_numbers(s, 0, n);
	else
		take_in_disorder(s, n, true);
	barrier();
	if (me.is_client)
		send_numbers(s, 0, n);
	else
		take_in_disorder(s, n, false);
}

/* ---- several threads ---- */

enum { THREADS = 8 };

static struct side shared_side;
static unsigned total;
static _Atomic unsigned taken;
static _Atomic unsigned char *seen;

static void take_some(void *argument)
{
	struct patience p = patience_begin();
	(void)argument;
	while (taken < total) {
		cci_event_t *event;
		look_at(__FILE__, __LINE__, &p, "all messages");
		if (cci_get_event(shared_side.ep, &event) != CCI_SUCCESS)
			continue;
		uint32_t number = number_in(event);
		CHECK(number < total);
		CHECK_EQ(seen[number]++, 0);
		RETURN(event);
		taken++;
	}
}

STATEMENT(58, eight_takers, 2, 0)
{
	struct side s = meet(CCI_CONN_ATTR_RU);
	total = (unsigned)many(400000);
	if (me.is_client) {
		send_numbers(s, 0, total);
		return;
	}
	struct thread *threads[THREADS];
	shared_side = s;
	seen = calloc(total, sizeof *seen);
	CHECK(seen);
	for (int i = 0; i < THREADS; i++)
		threads[i] = thread_start(take_some, NULL);
	for (int i = 0; i < THREADS; i++)
		thread_join(threads[i]);
	CHECK_EQ(taken, total);
}

/* A place at which one thread leaves an event for the other. */
static _Atomic(cci_event_t *) left;

static void return_what_is_left(void *argument)
{
	unsigned returned = 0;
	(void)argument;
	struct patience p = patience_times(2);
	while (returned < total) {
		cci_event_t *event = left;
		look_at(__FILE__, __LINE__, &p, "events of the other thread");
		if (!event)
			continue;
		CHECK_EQ(number_in(event), returned);
		left = NULL;
		RETURN(event);
		returned++;
	}
}

STATEMENT(59, returned_by_another_thread, 2, 0)
{
	struct side s = meet(CCI_CONN_ATTR_RO);
	total = (unsigned)many(50000);
	if (me.is_client) {
		send_numbers(s, 0, total);
		return;
	}
	struct thread *other = thread_start(return_what_is_left, NULL);
	for (unsigned i = 0; i < total; i++) {
		cci_event_t *event = EXPECT(s.ep, CCI_EVENT_RECV);
		POLL(!left);
		left = event;
	}
	thread_join(other);
}

STATEMENT(60, lent_bytes_stay, 2, 0)
{
	struct side s = meet(CCI_CONN_ATTR_RO);
	unsigned n = (unsigned)many(100000);
	uint32_t length = s.conn->max_send_size;
	if (me.is_client) {
		OK(cci_send(s.conn, pattern(60), length, NULL, 0));
		TAKE(s.ep, CCI_EVENT_SEND);
		OK(cci_send(s.conn, pattern(61), 20, NULL, 0));
		TAKE(s.ep, CCI_EVENT_SEND);
		send_numbers(s, 0, n);
		return;
	}
	cci_event_t *large = EXPECT(s.ep, CCI_EVENT_RECV);
	cci_event_t *small = EXPECT(s.ep, CCI_EVENT_RECV);
	union cci_event copy = *large;
	take_in_disorder(s, n, true);
	CHECK(memcmp(large, &copy, sizeof copy) == 0);
	CHECK_EQ(large->recv.len, length);
	CHECK_BYTES(large->recv.ptr, length, 60);
	CHECK_EQ(small->recv.len, 20);
	CHECK_BYTES(small->recv.ptr, 20, 61);
	RETURN(small);
	RETURN(large);
}

/* The zero behind a message is weak evidence, but this library promises it. */
STATEMENT(61, alignment, 2, 0)
{
	EACH_ATTRIBUTE(a)
	{
		struct side s = meet(a);
		uint32_t max = s.conn->max_send_size;
		for (uint32_t n = 1; n <= max; n = n < 300 ? n + 1 : n * 2 - n / 3) {
			if (me.is_client) {
				OK(cci_send(s.conn, pattern(n), n, NULL, 0));
				TAKE(s.ep, CCI_EVENT_SEND);
				continue;
			}
			cci_event_t *event = EXPECT(s.ep, CCI_EVENT_RECV);
			CHECK_EQ(event->recv.len, n);
			CHECK((uintptr_t)event->recv.ptr % 8 == 0);
			CHECK(n == max || !((const char *)event->recv.ptr)[n]);
			RETURN(event);
		}
		barrier();
	}
}

STATEMENT(62, events_of_nothing, 1, 0)
{
	cci_event_t *event = NULL;
	cci_endpoint_t *ep = first_endpoint();
	CHECK_RC(cci_get_event(NULL, &event), CCI_EINVAL);
	CHECK_RC(cci_get_event(ep, NULL), CCI_EINVAL);
	CHECK_RC(cci_return_event(NULL), CCI_EINVAL);
}

/* ---- no program polls ---- */

/* Send until no buffer is left; return the number of sends. */
static unsigned send_until_full(struct side s, unsigned most)
{
	unsigned n = 0;
	while (n < most) {
		int rc = cci_send(s.conn, &n, sizeof n, CONTEXT(n), 0);
		if (rc == CCI_ENOBUFS)
			break;
		CHECK_EQ(rc, CCI_SUCCESS);
		n++;
	}
	return n;
}

STATEMENT(63, all_owed_events_come, 2, 0)
{
	struct side s = meet(CCI_CONN_ATTR_RO);
	uint32_t most = option(s.ep, CCI_OPT_ENDPT_SEND_BUF_COUNT);
	cci_connection_t *second = meet_again(s.ep, 0, CCI_CONN_ATTR_RU);
	unsigned n = send_until_full(s, 2 * most);
	CHECK(n > 0);
	set_word(me.rank, n);
	barrier();
	for (int i = 0; i < 5; i++)
		ask(s.ep, told_uri(1 - me.rank, 0), CCI_CONN_ATTR_UU, CONTEXT(i));
	barrier();
	unsigned want = (unsigned)word(1 - me.rank), sent = 0, got = 0, connects = 0,
		 accepts = 0, requests = 0;
	while (sent < n || got < want || connects < 5 || accepts < 5) {
		cci_event_t *event = NEXT(s.ep);
		CHECK_EQ(status_of(event), CCI_SUCCESS);
		if (event->type == CCI_EVENT_SEND)
			CHECK(event->send.context == CONTEXT(sent++));
		else if (event->type == CCI_EVENT_RECV)
			CHECK_EQ(number_in(event), got++);
		else if (event->type == CCI_EVENT_CONNECT)
			connects++;
		else if (event->type == CCI_EVENT_ACCEPT)
			accepts++;
		else
			OK(cci_accept(event, CONTEXT(requests++)));
		RETURN(event);
	}
	CHECK(second);
	barrier();
	SILENCE(s.ep, 5);
}
