/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways that gasnetperf times. */
#include "gasnet_node.h"

#include <string.h>

/* ---- active messages ---- */

static void await_reply(struct gn_node *n)
{
	n->replied++;
	GASNET_BLOCKUNTIL(n->replies == n->replied);
}

static void am_short(struct gn_node *n)
{
	gasnet_AMRequestShort0(n->peer, GN_ECHO_SHORT);
	await_reply(n);
}

static void am_medium(struct gn_node *n)
{
	gasnet_AMRequestMedium0(n->peer, GN_ECHO_MEDIUM, n->from, n->bytes);
	await_reply(n);
}

/* ---- puts of GASNet ---- */

static void put(struct gn_node *n)
{
	gasnet_put(n->peer, n->there, n->from, n->bytes);
}

static void put_outside(struct gn_node *n)
{
	gasnet_put_bulk(n->peer, n->there, n->outside, n->bytes);
}

static void put_nb(struct gn_node *n)
{
	n->handle[n->under_way++] =
		gasnet_put_nb_bulk(n->peer, n->there, n->from, n->bytes);
}

static void sync_puts(struct gn_node *n)
{
	gasnet_wait_syncnb_all(n->handle, n->under_way);
	n->under_way = 0;
}

/* ---- bare Portals ---- */

static void start_put(struct gn_node *n, ptl_handle_md_t md)
{
	int rc;
	while ((rc = PtlPut(md, PTL_ACK_REQ, n->peer_id, GN_PORTAL_PUT, 0, BENCH_BITS, 0,
			0)) == PTL_NO_SPACE)
		bench_try(&n->acks); /* advances the operations that wait */
	bench_check(rc, "PtlPut");
	n->acked++;
}

static void sync_acks(struct gn_node *n)
{
	bench_await(&n->acks, PTL_EVENT_ACK, n->acked);
}

static void bare_put(struct gn_node *n)
{
	start_put(n, n->out);
	sync_acks(n);
}

static void bare_put_nb(struct gn_node *n)
{
	if (n->acked >= n->window)
		bench_await(&n->acks, PTL_EVENT_ACK, n->acked - n->window + 1);
	start_put(n, n->stream);
}

static void ping(struct gn_node *n)
{
	bench_check(PtlPut(n->ping, PTL_NO_ACK_REQ, n->peer_id, GN_PORTAL_PING, 0,
			    BENCH_BITS, 0, 0),
		"PtlPut");
}

static void await_ping(struct gn_node *n)
{
	bench_await(&n->pings, PTL_EVENT_PUT_END, n->pings.seen[PTL_EVENT_PUT_END] + 1);
}

static void bare_ping(struct gn_node *n)
{
	ping(n);
	await_ping(n);
}

static void bare_pong(struct gn_node *n)
{
	await_ping(n);
	ping(n);
}

/* ---- one node alone ---- */

static void copy(struct gn_node *n)
{
	memcpy(n->to, n->from, n->bytes);
	__asm__ volatile("" ::: "memory");
}

static void bind(struct gn_node *n)
{
	ptl_handle_md_t md = bench_bind(n->b, n->outside, n->bytes, n->acks.eq);
	bench_check(PtlMDUnlink(md), "PtlMDUnlink");
}

/* ---- the ways ---- */

const struct gn_way gn_put = {"put", GN_GASNET, put, NULL, NULL, GN_AT_TARGET};
const struct gn_way gn_put_outside = {
	"put_bulk", GN_GASNET, put_outside, NULL, NULL, GN_AT_TARGET};
const struct gn_way gn_puts = {
	"put_nb_bulk", GN_GASNET, put_nb, sync_puts, NULL, GN_AT_TARGET};
const struct gn_way gn_short = {"am_short", GN_GASNET, am_short, NULL, NULL, GN_NOWHERE};
const struct gn_way gn_medium = {
	"am_medium", GN_GASNET, am_medium, NULL, NULL, GN_NOWHERE};
const struct gn_way gn_bare_put = {
	"bare_put_ack", GN_BARE, bare_put, NULL, NULL, GN_AT_TARGET};
const struct gn_way gn_bare_puts = {
	"bare_puts", GN_BARE, bare_put_nb, sync_acks, NULL, GN_AT_TARGET};
const struct gn_way gn_bare_pings = {
	"two_bare_puts", GN_BARE, bare_ping, NULL, bare_pong, GN_AT_BOTH};
const struct gn_way gn_memcpy = {"memcpy", GN_ALONE, copy, NULL, NULL, GN_NOWHERE};
const struct gn_way gn_bind = {"bind_unlink", GN_ALONE, bind, NULL, NULL, GN_NOWHERE};
