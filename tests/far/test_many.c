/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node with many peers on other hosts: the memory of a peer, and the peers
 * that a pass looks at.
 */
#include "nic/cases.h"

#include "far/loop.h"
#include "nic/far/link.h"
#include "nic/proto/format.h"
#include "nic/proto/proto.h"
#include "nic/run/lease.h"
#include "nic/wire/wire.h"
#include "support/hold.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define MANY   P3_MAX_NODES
#define ACTIVE 10u
#define PASSES 10000u

/* ---- an endpoint that drops frames: otherwise it is that of loop.h ---- */

static struct {
	struct p3_far_buffer *sent;
	uint64_t frames;
} end;

static int resolve(struct p3_endpoint *ep, uint32_t node, const unsigned char *text,
	uint32_t len, uint64_t *to_out)
{
	(void)ep;
	(void)text;
	(void)len;
	*to_out = node;
	return 0;
}

static int send(
	struct p3_endpoint *ep, uint64_t to, struct p3_far_buffer *b, uint32_t len)
{
	(void)ep;
	(void)to;
	(void)len;
	b->next = end.sent;
	end.sent = b;
	end.frames++;
	return 0;
}

static uint32_t poll(struct p3_endpoint *ep, struct p3_far_event *out, uint32_t most)
{
	uint32_t n = 0;
	(void)ep;
	for (; n < most && end.sent; n++) {
		out[n] = (struct p3_far_event){.op = &end.sent->op};
		end.sent = end.sent->next;
	}
	return n;
}

/* ---- the node ---- */

static struct p3_nic *start(uint32_t nnodes)
{
	static uint32_t host[MANY];
	static struct p3_endpoint_ops nowhere;
	static struct p3_far_conf far = {.host = host, .ops = &nowhere};
	struct p3_nic_conf conf = {.nnodes = nnodes,
		.nid = 10,
		.jid = 1,
		.cpus = 2,
		.incarnation = 77,
		.mode = P3_MODE_LEASE,
		.huge = P3_HUGE_OFF,
		.pending_limit = 64 << 20,
		.far = &far};
	struct p3_nic *n;
	nowhere = loop_ops;
	nowhere.resolve = resolve;
	nowhere.send = send;
	nowhere.poll = poll;
	nowhere.reads = NULL;
	end.sent = NULL;
	end.frames = 0;
	for (uint32_t i = 0; i < MANY; i++)
		host[i] = i;
	assert_int_equal(p3_nic_start(&conf, &n), 0);
	return n;
}

static void meet(struct p3_nic *n, uint32_t node)
{
	struct p3_peer_info info = {.node = node,
		.nid = 10 + node,
		.pid = {1, 2},
		.jid = 1,
		.os_pid = 1,
		.incarnation = 1000 + node,
		.published = -1,
		.doorbell = -1,
		.heap = -1,
		.far_len = 1};
	assert_int_equal(p3_nic_peer_up(n, &info), 0);
}

/* Publish a message to some peers, and send it.  These owe acknowledgements from then on,
 * so each pass looks at them. */
static void wake_peers(struct p3_nic *n, uint32_t from, uint32_t count)
{
	for (uint32_t i = from; i < from + count; i++) {
		struct p3_peer *p = &n->peer[i];
		p3_peer_heat(n, p);
		(void)p3_ring_begin(&p->req_out, 1);
		p3_ring_publish(&p->req_out, p3_word0(P3_REQ_PUT, 0, 1), 1);
		p3_looks_add(n, p);
	}
	p3_wires_flush(n);
}

/* Forbid or allow all access to the peers behind these, by whole pages. */
static void protect_silent(struct p3_nic *n, uint32_t active, int prot)
{
	uintptr_t from = p3_round_up((uintptr_t)&n->peer[1 + active], P3_PAGE);
	uintptr_t to = (uintptr_t)&n->peer[MANY] / P3_PAGE * P3_PAGE;
	assert_true(to > from && mprotect((void *)from, to - from, prot) == 0);
}

static uint64_t resident(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*u %lu", &pages), 1);
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- cases ---- */

/* A pass that touched a silent peer would end the program. */
CASE(a_pass_looks_at_active_peers_only)
{
	struct p3_nic *n = start(MANY);
	for (uint32_t i = 1; i < MANY; i++)
		meet(n, i);
	nic_hold(n);
	(void)p3_pass_run(n);
	assert_int_equal(n->nhot, 0);
	assert_int_equal(end.frames, 0); /* nothing is sent before the first message */
	wake_peers(n, 1, ACTIVE);
	assert_int_equal(end.frames, ACTIVE);
	protect_silent(n, ACTIVE, PROT_NONE);
	for (unsigned i = 0; i < PASSES; i++)
		(void)p3_pass_run(n);
	protect_silent(n, ACTIVE, PROT_READ | PROT_WRITE);
	assert_int_equal(n->nhot, ACTIVE);
	p3_lease_leave(n);
	p3_nic_stop(n);
}

CASE(a_silent_peer_takes_little_memory)
{
	struct p3_nic *n = start(MANY);
	meet(n, 1);
	uint64_t before = resident();
	for (uint32_t i = 2; i < MANY; i++)
		meet(n, i);
	uint64_t each = (resident() - before) / (MANY - 2);
	nic_hold(n);
	before = resident();
	wake_peers(n, 2, MANY - 2);
	uint64_t active = (resident() - before) / (MANY - 2);
	p3_lease_leave(n);
	print_message("# a silent peer takes %llu bytes, one with a message %llu more\n",
		(unsigned long long)each, (unsigned long long)active);
	assert_true(each <= 6144 && active <= 8192);
	p3_nic_stop(n);
}
