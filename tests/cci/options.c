/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of CCI: options and keepalive. */
#include "frame.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

/* Set a value and another one: each comes back, or the call refuses the option. */
static void try_setting(const void *object, cci_opt_name_t name, uint32_t a, uint32_t b)
{
	uint32_t before = option(object, name);
	int rc = cci_set_opt((cci_opt_handle_t *)object, name, &a);
	if (rc == CCI_ERR_NOT_IMPLEMENTED &&
		(name == CCI_OPT_ENDPT_RECV_BUF_COUNT ||
			name == CCI_OPT_ENDPT_SEND_BUF_COUNT)) {
		CHECK_EQ(option(object, name), before);
		return;
	}
	CHECK_EQ(rc, CCI_SUCCESS);
	CHECK_EQ(option(object, name), a);
	set_option(object, name, b);
	CHECK_EQ(option(object, name), b);
}

STATEMENT(122, get_and_set, 1, 0)
{
	struct both two = both(CCI_CONN_ATTR_RO);
	cci_opt_handle_t *ep = two.a.ep, *conn = two.a.conn;
	cci_alignment_t align;
	char *uri = NULL;
	uint32_t value = 1;
	try_setting(ep, CCI_OPT_ENDPT_SEND_TIMEOUT, 1000000, 0);
	try_setting(ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, 100, 200);
	try_setting(ep, CCI_OPT_ENDPT_SEND_BUF_COUNT, 100, 200);
	try_setting(ep, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, 60000000, 0);
	try_setting(conn, CCI_OPT_CONN_SEND_TIMEOUT, 500000, 64000000);
	try_setting(conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, 60000000, 0);
	OK(cci_get_opt(ep, CCI_OPT_ENDPT_URI, &uri));
	OK(cci_get_opt(ep, CCI_OPT_ENDPT_RMA_ALIGN, &align));
	CHECK_RC(cci_set_opt(ep, CCI_OPT_ENDPT_URI, &uri), CCI_EINVAL);
	CHECK_RC(cci_set_opt(ep, CCI_OPT_ENDPT_RMA_ALIGN, &align), CCI_EINVAL);
	free(uri);
	for (int name = 0; name < 8; name++) {
		cci_opt_handle_t *on = name < 6 ? ep : conn;
		CHECK_RC(cci_get_opt(NULL, (cci_opt_name_t)name, &value), CCI_EINVAL);
		CHECK_RC(cci_get_opt(on, (cci_opt_name_t)name, NULL), CCI_EINVAL);
		CHECK_RC(cci_set_opt(NULL, (cci_opt_name_t)name, &value), CCI_EINVAL);
		CHECK_RC(cci_set_opt(on, (cci_opt_name_t)name, NULL), CCI_EINVAL);
	}
	/* An unknown option does not say what its handle is, so no byte of it is read. */
	void *unreadable =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(unreadable != MAP_FAILED);
	CHECK_RC(cci_get_opt(unreadable, (cci_opt_name_t)99, &value), CCI_EINVAL);
	CHECK_RC(cci_set_opt(unreadable, (cci_opt_name_t)99, &value), CCI_EINVAL);
}

/* Be a process that stands still, from the next barrier on. */
static void stand_still(void)
{
	may_die(1);
	barrier();
	for (;;)
		pause();
}

STATEMENT(123, time_outs_of_sends, 2, 0)
{
	struct side s = meet(CCI_CONN_ATTR_RU);
	if (me.is_client)
		set_option(s.ep, CCI_OPT_ENDPT_SEND_TIMEOUT, 100000);
	cci_connection_t *later = meet_again(s.ep, 0, CCI_CONN_ATTR_RU);
	if (me.is_server)
		stand_still();
	barrier();
	signal_rank(1, SIGSTOP);
	OK(cci_send(s.conn, "x", 1, CONTEXT(1), 0));
	OK(cci_send(later, "x", 1, CONTEXT(2), 0));
	cci_event_t *event = EXPECT_STATUS(s.ep, CCI_EVENT_SEND, CCI_ETIMEDOUT);
	CHECK(event->send.context == CONTEXT(2));
	RETURN(event);
	SILENCE(s.ep, 200);
	set_option(s.conn, CCI_OPT_CONN_SEND_TIMEOUT, 50000);
	OK(cci_send(s.conn, "x", 1, CONTEXT(3), 0));
	event = EXPECT_STATUS(s.ep, CCI_EVENT_SEND, CCI_ETIMEDOUT);
	RETURN(event);
	signal_rank(1, SIGKILL);
}

STATEMENT(124, count_of_buffers, 2, 0)
{
	for (cci_conn_attribute_t a = CCI_CONN_ATTR_RU; a <= CCI_CONN_ATTR_UU; a++) {
		struct side s = meet(a);
		unsigned nth = uris_told();
		cci_endpoint_t *free_one = endpoint();
		cci_connection_t *other = meet_again(free_one, nth, CCI_CONN_ATTR_RO);
		uint32_t n = option(s.ep, CCI_OPT_ENDPT_RECV_BUF_COUNT);
		CHECK(n > 0);
		if (me.is_client) {
			for (uint32_t i = 0; i < n; i++) {
				OK(cci_send(s.conn, NULL, 0, CONTEXT(i), 0));
				TAKE(s.ep, CCI_EVENT_SEND);
				if (a == CCI_CONN_ATTR_UU) /* the receiver keeps up */
					await_word(0, i + 1);
			}
			barrier();
			OK(cci_send(s.conn, "more", 4, NULL, 0));
			/* Behind it in the lane: it has been refused now. */
			OK(cci_send(other, "", 0, NULL, CCI_FLAG_BLOCKING));
			if (a == CCI_CONN_ATTR_RU)
				set_option(s.conn, CCI_OPT_CONN_SEND_TIMEOUT, 50000);
			RETURN(EXPECT_STATUS(s.ep, CCI_EVENT_SEND,
				a == CCI_CONN_ATTR_RU ? CCI_ERR_RNR : CCI_SUCCESS));
			barrier();
			barrier();
			continue;
		}
		cci_event_t **held = calloc(n, sizeof *held);
		CHECK(held);
		for (uint32_t i = 0; i < n; i++) {
			held[i] = EXPECT(s.ep, CCI_EVENT_RECV);
			CHECK_EQ(held[i]->recv.len, 0);
			set_word(0, i + 1);
		}
		barrier();
		TAKE(free_one, CCI_EVENT_RECV);
		barrier();
		cci_event_t *event;
		CHECK_RC(cci_get_event(s.ep, &event), CCI_ENOBUFS);
		return_all(held, n);
		barrier();
	}
}

/* Return true if no time-out of a keepalive comes within some periods. */
static bool is_kept_alive(
	struct side s, const void *object, cci_opt_name_t name, uint32_t us)
{
	cci_event_t *event;
	uint64_t periods = us > 100000 || many(5000) < 5000 ? 7 : 50;
	set_option(object, name, us);
	uint64_t end = now_ns() + us * periods * 1000;
	while (option(s.conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT) == us && now_ns() < end)
		sleep_us(50); /* pause: between two looks */
	uint32_t last = option(s.conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT);
	set_option(object, name, 0); /* from here on none comes */
	if (cci_get_event(s.ep, &event) != CCI_SUCCESS) {
		CHECK_EQ(last, us);
		return true;
	}
	CHECK(event->type == CCI_EVENT_KEEPALIVE_TIMEDOUT);
	RETURN(event);
	return false;
}

/* Where the peer does not get a CPU within a period, a longer one must do: a peer that
 * does nothing is not kept alive by any. */
static void keep_alive(struct side s, const void *object, cci_opt_name_t name)
{
	uint32_t us = 100000;
	for (struct patience p = patience_begin(); !is_kept_alive(s, object, name, us);
		us *= 2)
		CHECK(!patience_is_over(&p));
}

STATEMENT(125, keepalive_of_a_busy_peer, 2, 0)
{
	struct side s = meet(CCI_CONN_ATTR_RO);
	if (me.is_client) {
		keep_alive(s, s.conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT);
		keep_alive(s, s.ep, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT);
		set_word(0, 1);
		return;
	}
	while (!word(0)) /* no call of the library */
		compute_ms(1);
}

static void expect_time_out(struct side s)
{
	cci_event_t *event = EXPECT(s.ep, CCI_EVENT_KEEPALIVE_TIMEDOUT);
	CHECK(event->keepalive.connection == s.conn);
	RETURN(event);
	SILENCE(s.ep, 250);
	CHECK_EQ(option(s.conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT), 0);
}

STATEMENT(126, keepalive_of_a_stopped_peer, 2, 0)
{
	struct side s = meet(CCI_CONN_ATTR_RO);
	if (me.is_server)
		stand_still();
	barrier();
	signal_rank(1, SIGSTOP);
	set_option(s.conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, 100000);
	expect_time_out(s);
	set_option(s.conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, 100000);
	expect_time_out(s);
	signal_rank(1, SIGCONT);
	OK(cci_send(s.conn, "open", 4, NULL, CCI_FLAG_BLOCKING));
	keep_alive(s, s.ep, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT);
	set_option(s.ep, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, 100000);
	signal_rank(1, SIGKILL);
	expect_time_out(s);
}

STATEMENT(127, no_alignment, 2, 0)
{
	static unsigned char bytes[5000];
	struct side s = meet(CCI_CONN_ATTR_RO);
	cci_alignment_t align;
	cci_rma_handle_t *h;
	memset(&align, 0xff, sizeof align);
	OK(cci_get_opt((cci_opt_handle_t *)s.ep, CCI_OPT_ENDPT_RMA_ALIGN, &align));
	CHECK_ALL(&align, sizeof align, 0);
	OK(cci_rma_register(
		s.ep, bytes + 1, sizeof bytes - 1, CCI_FLAG_READ | CCI_FLAG_WRITE, &h));
	if (me.is_server)
		memcpy(shared(), h, sizeof *h);
	barrier();
	struct cci_rma_handle remote;
	memcpy(&remote, shared(), sizeof remote);
	for (unsigned i = 0; i < 64 && me.is_client; i++) {
		uint32_t length = 1 + i * 67;
		fill(bytes + 1 + i, length, i);
		OK(cci_rma(s.conn, NULL, 0, h, i, &remote, 3 * i, length, NULL,
			CCI_FLAG_WRITE | CCI_FLAG_BLOCKING));
		memset(bytes, 0, sizeof bytes);
		OK(cci_rma(s.conn, NULL, 0, h, 2 * i, &remote, 3 * i, length, NULL,
			CCI_FLAG_READ | CCI_FLAG_BLOCKING));
		CHECK_BYTES(bytes + 1 + 2 * i, length, i);
	}
}
