/* SPDX-License-Identifier: BSD-3-Clause */
/* The patterns over Portals, with the other node on another host. */
#include "farperf.h"

#include "lib/node/node.h"
#include "support/own_node.h"
#include "nic/far/endpoint.h"
#include "nic/streams.h"
#include "portals3.h"
#include "portals3_runtime.h"
#include "portals3x.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PT_PUT = 4, PT_GET = 5 };

static struct {
	struct far_end *end;
	ptl_handle_ni_t ni;
	ptl_process_id_t peer;
	ptl_handle_eq_t in, out;
	ptl_handle_md_t small, large; /* to send from */
	char *tx, *rx;
} p;

static void must(int rc, const char *what)
{
	if (rc != PTL_OK)
		far_die(what, PtlErrorStr((unsigned)rc));
}

/* ---- the other host ---- */

static const struct p3_endpoint_ops *base; /* without the names of the others */

static int open_named(const struct p3_far_conf *conf, uint32_t node, uint32_t nnodes,
	struct p3_endpoint **ep_out)
{
	int rc = base->open(conf, node, nnodes, ep_out);
	if (rc)
		return rc;
	uint32_t len = base->name(*ep_out, p.end->shared->name[p.end->rank].text);
	p3_release(&p.end->shared->name[p.end->rank].len, len);
	return 0;
}

static int resolve_named(struct p3_endpoint *ep, uint32_t node, const unsigned char *text,
	uint32_t len, uint64_t *to_out)
{
	(void)text;
	len = p3_acquire(&p.end->shared->name[node].len);
	return len ? base->resolve(ep, node, p.end->shared->name[node].text, len, to_out)
		   : -EAGAIN;
}

/* Connect the streams of both ends, as their domains' threads would. */
static struct p3_endpoint *connect_streams(struct far_end *e)
{
	struct p3_endpoint *streams = p3_mac_load() ? NULL : p3_streams_new(2);
	int fd = far_tcp_connect(e, &e->shared->stream_port);
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	struct p3_connection c = {.fd = fd, .file = p3_fd_file(fd)};
	if (!streams)
		far_die("p3_streams_new", strerror(errno));
	c.key[0].bytes[0] = (unsigned char)e->rank;
	c.key[1].bytes[0] = (unsigned char)(1 - e->rank);
	p3_stream_give(streams, 1 - e->rank, &c);
	return streams;
}

static const struct p3_far_conf *far_conf(struct far_end *e)
{
	static const uint32_t host[2] = {0, 1};
	static struct p3_endpoint_ops ops;
	static struct p3_far_conf conf = {.host = host};
	conf.provider = e->provider;
	conf.address = e->address[e->rank];
	conf.ops = base = &p3_endpoint_stream;
	if (strcmp(e->provider, "stream") == 0) {
		conf.streams = connect_streams(e);
		return &conf;
	}
#ifdef P3_TEST_FABRIC
	base = p3_nic_fabric();
	if (!base)
		far_die("libfabric", "cannot be loaded");
#endif
	ops = *base;
	ops.open = open_named;
	ops.resolve = resolve_named;
	conf.ops = &ops;
	return &conf;
}

/* ---- descriptors ---- */

static ptl_md_t md(char *start, size_t len, unsigned options, ptl_handle_eq_t eq)
{
	return (ptl_md_t){.start = start,
		.length = len,
		.threshold = PTL_MD_THRESH_INF,
		.options = options | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
}

static void attach(ptl_pt_index_t pt, ptl_md_t d)
{
	ptl_handle_me_t me;
	ptl_handle_md_t h;
	ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	must(PtlMEAttach(p.ni, pt, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		"PtlMEAttach");
	must(PtlMDAttach(me, d, PTL_RETAIN, &h), "PtlMDAttach");
}

void far_portals_open(struct far_end *e, int sock)
{
	int most;
	p.end = e;
	struct p3_node *node = own_node_create(sock);
	if (!node)
		far_die("own_node_create", "no memory");
	node->far = far_conf(e);
	must(PtlInit(&most), "PtlInit");
	must(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &p.ni), "PtlNIInit");
	must(PtlGetRankId(p.ni, 1 - e->rank, &p.peer), "PtlGetRankId");
	must(PtlEQAlloc(p.ni, 4096, PTL_EQ_HANDLER_NONE, &p.in), "PtlEQAlloc");
	must(PtlEQAlloc(p.ni, 4096, PTL_EQ_HANDLER_NONE, &p.out), "PtlEQAlloc");
	p.tx = aligned_alloc(4096, FAR_LONG);
	p.rx = aligned_alloc(4096, FAR_LONG);
	if (!p.tx || !p.rx)
		far_die("buffers", "no memory");
	memset(p.tx, 1 + (int)e->rank, FAR_LONG);
	memset(p.rx, 0, FAR_LONG);
	attach(PT_PUT, md(p.rx, FAR_LONG, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, p.in));
	attach(PT_GET, md(p.tx, FAR_LONG, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, p.in));
	must(PtlMDBind(p.ni, md(p.tx, 8, PTL_MD_EVENT_END_DISABLE, p.out), PTL_RETAIN,
		     &p.small),
		"PtlMDBind");
	must(PtlMDBind(p.ni, md(p.rx, FAR_LONG, 0, p.out), PTL_RETAIN, &p.large),
		"PtlMDBind");
}

void far_portals_close(void)
{
	must(PtlXBarrier(), "PtlXBarrier");
	PtlFini();
}

uint64_t far_portals_counter(enum p3_counter counter)
{
	return p3_nic_counter(p3_nic(p3_node()), counter);
}

/* ---- the patterns ---- */

static void await(ptl_handle_eq_t eq, ptl_event_kind_t kind, uint64_t count)
{
	ptl_event_t ev;
	while (count) {
		must(PtlEQWait(eq, &ev), "PtlEQWait");
		if (ev.ni_fail_type != PTL_NI_OK)
			far_die("event", PtlNIFailStr(p.ni, ev.ni_fail_type));
		count -= ev.type == kind;
	}
}

static void put_small(void)
{
	must(PtlPut(p.small, PTL_NOACK_REQ, p.peer, PT_PUT, 0, 0, 0, 0), "PtlPut");
}

static void ping(uint64_t count)
{
	for (; count; count--) {
		if (p.end->rank == 0)
			put_small();
		await(p.in, PTL_EVENT_PUT_END, 1);
		if (p.end->rank)
			put_small();
	}
}

static void rate(uint64_t count)
{
	for (; count; count--) {
		if (p.end->rank == 0) {
			for (unsigned i = 0; i < FAR_WINDOW; i++)
				put_small();
			await(p.in, PTL_EVENT_PUT_END, 1);
		} else {
			await(p.in, PTL_EVENT_PUT_END, FAR_WINDOW);
			put_small();
		}
	}
}

static void start_long(enum far_row row)
{
	size_t len = far_bytes(row);
	if (far_is_put(row))
		must(PtlPutRegion(
			     p.large, 0, len, PTL_ACK_REQ, p.peer, PT_PUT, 0, 0, 0, 0),
			"PtlPutRegion");
	else
		must(PtlGetRegion(p.large, 0, len, p.peer, PT_GET, 0, 0, 0),
			"PtlGetRegion");
}

static void stream(enum far_row row, uint64_t count)
{
	bool put = far_is_put(row);
	if (p.end->rank) {
		await(p.in, put ? PTL_EVENT_PUT_END : PTL_EVENT_GET_END, count);
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		if (i >= FAR_AHEAD)
			await(p.out, put ? PTL_EVENT_ACK : PTL_EVENT_REPLY_END, 1);
		start_long(row);
	}
	await(p.out, put ? PTL_EVENT_ACK : PTL_EVENT_REPLY_END,
		count < FAR_AHEAD ? count : FAR_AHEAD);
}

/* Short gets from a node whose program is outside of the library. */
static void bypass(uint64_t count)
{
	struct far_shared *s = p.end->shared;
	static uint32_t block; /* rank 0 may end this block before rank 1 begins it */
	block++;
	if (p.end->rank) {
		while (p3_acquire(&s->stopped) != block)
			usleep(1000);
		await(p.in, PTL_EVENT_GET_END, count);
		return;
	}
	for (; count; count--) {
		must(PtlGetRegion(p.large, 0, 8, p.peer, PT_GET, 0, 0, 0), "PtlGet");
		await(p.out, PTL_EVENT_REPLY_END, 1);
	}
	p3_add32(&s->stopped, 1);
}

void far_portals_run(struct far_end *e, enum far_row row, uint64_t count)
{
	(void)e;
	if (row == FAR_PING || row == FAR_SLEEPY)
		ping(count);
	else if (row == FAR_RATE)
		rate(count);
	else if (row == FAR_BYPASS)
		bypass(count);
	else
		stream(row, count);
}

void far_portals_idle(bool waiting, unsigned ms)
{
	ptl_event_t ev;
	int which;
	if (waiting)
		(void)PtlEQPoll(&p.in, 1, ms, &ev, &which);
	else
		usleep(ms * 1000); /* pause: the time that is measured */
}
