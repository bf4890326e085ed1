/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hellos of connections over libfabric (nic/far/connections.c): a node among strangers,
 * all endpoints in one thread.
 */
#include "nic/cases.h"

#include "nic/far/fabric.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define STRANGERS 24u
#define MOST      16u     /* connections without a right hello */
#define LATER     600000u /* ms */
#define SOON      4500u   /* no stranger's time is over, UNAUTH_NS in connections.c */
#define NEVER     500u    /* nothing may come */
#define TRIES     8u      /* of a case that must be quick */

static const struct p3_endpoint_ops *const ops = &p3_endpoint_fabric;

struct caller {
	struct p3_endpoint *ep;
	uint64_t to;
	struct p3_far_buffer *out;
	bool sent;
};

static struct p3_endpoint *node;
static struct p3_far_buffer *in[2 * STRANGERS];
static struct caller caller[STRANGERS + 1];
static unsigned frames; /* that have come */

static bool is_of_job(void *arg, const void *address)
{
	struct sockaddr_in in;
	(void)arg;
	memcpy(&in, address, sizeof in);
	return in.sin_family == AF_INET && in.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

static struct p3_endpoint *open_at(uint32_t index, const struct p3_far_conf *at)
{
	struct p3_endpoint *ep = NULL;
	assert_int_equal(ops->open(at, index, 2, 8, 2 * STRANGERS, &ep), 0);
	return ep;
}

static struct p3_endpoint *open_one(uint32_t index)
{
	static const struct p3_far_conf conf = {
		.provider = "tcp", .address = "127.0.0.1", .is_of_job = is_of_job};
	return open_at(index, &conf);
}

static struct p3_far_buffer *buffer(bool receives)
{
	struct p3_far_buffer *b = aligned_alloc(64, sizeof *b);
	memset(b, 0, sizeof *b);
	b->receives = receives;
	return b;
}

static bool knows(void *arg, uint32_t index, uint64_t *to_out)
{
	*to_out = *(uint64_t *)arg;
	return index == 1;
}

/* Return the keys of the node (0) or of a caller (1), whose proofs are right or not. */
static struct p3_far_keys keys_of(uint32_t index, bool right)
{
	struct p3_far_keys k = {{{1, 2}}, {{3, 4}}};
	k.out.k[0] += !right;
	return index ? k : (struct p3_far_keys){k.in, k.out};
}

static void call_begin(struct caller *c, bool right)
{
	const struct p3_far_keys keys = keys_of(1, right);
	unsigned char name[P3_FAR_NAME];
	*c = (struct caller){.ep = open_one(1), .out = buffer(false)};
	uint32_t len = ops->name(node, name);
	assert_int_equal(ops->resolve(c->ep, 0, name, len, &keys, &c->to), 0);
}

static void poll_all(unsigned callers)
{
	struct p3_far_event ev[16];
	uint32_t n = ops->poll(node, ev, 16);
	for (uint32_t i = 0; i < n; i++)
		frames += ev[i].what == P3_FAR_RECEIVED;
	for (unsigned i = 0; i < callers; i++)
		(void)ops->poll(caller[i].ep, ev, 16);
}

/* Let callers from first on send a frame each, if they have not yet. */
static void send_each(unsigned first, unsigned callers)
{
	for (unsigned i = first; i < callers; i++)
		if (!caller[i].sent)
			caller[i].sent =
				!ops->send(caller[i].ep, caller[i].to, caller[i].out, 64);
	poll_all(callers);
}

/* The same until this number of frames has come, or for a time. */
static void send_all(unsigned first, unsigned callers, unsigned want, unsigned ms)
{
	struct patience late = patience_ms(ms);
	while (frames < want && !patience_is_over(&late))
		send_each(first, callers);
}

static void open_all(void)
{
	static uint64_t peer;
	unsigned char name[P3_FAR_NAME];
	const struct p3_far_keys own = keys_of(0, true);
	node = open_one(0);
	for (unsigned i = 0; i < 2 * STRANGERS; i++) {
		in[i] = buffer(true);
		assert_int_equal(ops->post(node, in[i]), 0);
	}
	for (unsigned i = 0; i < STRANGERS; i++)
		call_begin(&caller[i], false);
	call_begin(&caller[STRANGERS], true);
	uint32_t len = ops->name(caller[STRANGERS].ep, name);
	assert_int_equal(ops->resolve(node, 1, name, len, &own, &peer), 0);
	ops->trust(node, knows, &peer);
}

static void close_all(void)
{
	for (unsigned i = 0; i <= STRANGERS; i++) {
		ops->close(caller[i].ep);
		free(caller[i].out);
	}
	ops->close(node);
	for (unsigned i = 0; i < 2 * STRANGERS; i++)
		free(in[i]);
}

/* Let MOST strangers in, none of the others, and a peer.  Return false if that has taken
 * so long that the others may have come, too. */
static bool strangers_wait(void)
{
	uint64_t began = now_ms();
	send_all(0, STRANGERS, MOST, LATER);
	for (uint64_t from = now_ms(); now_ms() - from < NEVER;)
		send_each(0, STRANGERS);
	if (now_ms() - began > SOON)
		return false;
	assert_int_equal(frames, MOST);
	send_all(STRANGERS, STRANGERS + 1, MOST + 1, LATER); /* a peer gets in */
	if (now_ms() - began > SOON)
		return false;
	assert_int_equal(frames, MOST + 1);
	return true;
}

static void few_strangers_are_connected(void **state)
{
	(void)state;
	open_all();
	bool quick = strangers_wait();
	if (quick) /* there is room when the others' time is over */
		send_all(0, STRANGERS, STRANGERS + 1, LATER);
	close_all();
	if (!quick) {
		print_message("skipped: %u ms were over before all had called\n", SOON);
		skip();
	}
	assert_int_equal(frames, STRANGERS + 1);
}

/* Give the node a frame from a host at this address.  Return true if it comes in time. */
static bool comes_from(const char *address, unsigned ms)
{
	const struct p3_far_conf conf = {.provider = "tcp", .address = address};
	const struct p3_far_keys none = {{{0, 0}}, {{0, 0}}};
	unsigned char name[P3_FAR_NAME];
	caller[0] = (struct caller){.ep = open_at(1, &conf), .out = buffer(false)};
	uint32_t len = ops->name(node, name);
	assert_int_equal(
		ops->resolve(caller[0].ep, 0, name, len, &none, &caller[0].to), 0);
	frames = 0;
	send_all(0, 1, 1, ms);
	ops->close(caller[0].ep);
	free(caller[0].out);
	return frames != 0;
}

static void other_hosts_are_not_connected(void **state)
{
	(void)state;
	node = open_one(0);
	in[0] = buffer(true);
	assert_int_equal(ops->post(node, in[0]), 0);
	assert_false(comes_from("127.0.0.2", 1500));
	assert_true(comes_from("127.0.0.1", LATER));
	ops->close(node);
	free(in[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_strangers_are_connected),
		cmocka_unit_test(other_hosts_are_not_connected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
