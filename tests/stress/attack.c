/* SPDX-License-Identifier: BSD-3-Clause */
/* The attacks of a hostile node on memory that it can write. */
#include "stress/hostile.h"
#include "nic/cci/state.h"
#include "lib/node/node.h"
#include "mp/mp.h"
#include "nic/obj/state.h"
#include "nic/proto/format.h"
#include "nic/proto/proto.h"
#include "nic/run/lease.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread uint64_t state;

void attack_seed(uint64_t seed)
{
	state = mp_mix(seed);
}

uint64_t attack_dice(void)
{
	return mp_mix(state += 0x9e3779b97f4a7c15);
}

uint64_t attack_number(void)
{
	uint64_t d = attack_dice();
	switch (d % 8) {
	case 0:
		return d >> 8;
	case 1:
		return (d >> 8) % 1024;
	case 2:
		return UINT64_MAX - (d >> 8) % 1024;
	case 3:
		return UINT64_C(1) << (d >> 8) % 64;
	case 4:
		return (UINT64_C(1) << (d >> 8) % 64) - (d >> 16) % 3;
	case 5:
		return (d >> 8) % 1024 * P3_PAGE;
	default:
		return 0;
	}
}

/* ---- words in all writable memory ---- */

static void write_words(void *at, uint64_t len, unsigned n)
{
	p3_a64 *words = at;
	while (n--)
		p3_set(&words[attack_dice() % (len / 8)], attack_number());
}

static void flip_bit(void *at, uint64_t len)
{
	p3_a64 *word = (p3_a64 *)at + attack_dice() % (len / 8);
	p3_set(word, p3_get(word) ^ UINT64_C(1) << attack_dice() % 64);
}

static void over_segment(struct p3_nic *n, struct p3_peer *p)
{
	(void)p;
	write_words(n->published.base, n->published.reserved, 64);
}

static void bits_of_segment(struct p3_nic *n, struct p3_peer *p)
{
	(void)p;
	for (int i = 0; i < 16; i++)
		flip_bit(n->published.base, n->layout.ctl_len);
}

static void over_header(struct p3_nic *n, struct p3_peer *p)
{
	(void)p;
	write_words(n->published.base, sizeof(struct p3_seg_header), 2);
}

static void over_entry(struct p3_nic *n, struct p3_peer *p)
{
	(void)n;
	write_words(p->mine, sizeof *p->mine, 3);
}

static void over_counters(struct p3_nic *n, struct p3_peer *p)
{
	(void)p;
	write_words(n->count, P3_COUNTERS * 8, 8);
}

static void over_doorbell(struct p3_nic *n, struct p3_peer *p)
{
	(void)n;
	write_words(p->doorbell, P3_PAGE, 16);
	p3_set(p->asleep, (uint32_t)attack_number());
}

/* Write the most harmful words of a doorbell: claim that a sleeping node is awake. */
static void hush(struct p3_nic *n, struct p3_peer *p)
{
	(void)n;
	p3_set(p->asleep, (uint32_t)attack_dice() % 3);
	p3_set(&p->doorbell->kick, (uint32_t)attack_dice());
}

static void over_transfers(struct p3_nic *n, struct p3_peer *p)
{
	struct p3_xfer *x = n->xfer[attack_dice() % n->layout.nxfers].pub;
	(void)p;
	if (attack_dice() % 2)
		p3_set(&x->id, p3_xfer_id((uint32_t)attack_dice() % n->layout.nxfers,
				       (uint32_t)attack_number()));
	write_words(x, sizeof *x, 2);
}

static void over_heap(struct p3_nic *n, struct p3_peer *p)
{
	(void)p;
	if (n->conf.heap)
		write_words(p3_heap_base(n->conf.heap), P3_HUGE, 16);
}

/* ---- valid messages with false content ---- */

static uint32_t length32(void)
{
	static const uint32_t of[] = {
		0, 1, 8, 16, 17, 40, 500, 4096, 40000, 300000, 0x7fffffff, 0xffffffff};
	return of[attack_dice() % 12] + (uint32_t)(attack_dice() % 2);
}

static uint64_t transfer(const struct p3_nic *n)
{
	return p3_xfer_id(
		(uint32_t)attack_dice() % n->layout.nxfers, (uint32_t)attack_dice() % 4);
}

/* Address a request, with false target and access control index. */
static void address(const struct p3_peer *p, struct p3_request *r)
{
	uint64_t d = attack_dice();
	r->pid = (uint16_t)(d % 8 ? p->pid[0] : d >> 48);
	r->portal = d % 16 < 8    ? MP_PORTAL
		    : d % 16 < 15 ? FORBIDDEN_PORTAL
				  : (uint32_t)(d >> 48);
	r->access = (uint32_t)(d >> 8) % 5;
	r->room = (uint32_t)(d >> 16) % 64;
}

static uint64_t bits(void)
{
	uint64_t d = attack_dice();
	return d % 4 == 0 ? BAIT : d % 4 == 1 ? FORBIDDEN : (d >> 8) % 24;
}

/* Return a place in the heap, in memory, or nowhere. */
static uint64_t wild_place(void)
{
	return attack_dice() % 4 ? 1 + attack_dice() % (1 << 22) : attack_number();
}

/* Fill in a request that is false in what it says, then sometimes spoil a word of it.
 * Return word 0. */
static uint64_t fill_request(const struct p3_nic *n, const struct p3_peer *p,
	struct p3_cell *c, struct p3_request *r)
{
	const uint64_t data[2] = {attack_dice(), attack_dice()};
	uint64_t word0;
	address(p, r);
	r->pending = (uint32_t)attack_dice();
	r->bits = bits();
	r->hdr = attack_dice();
	r->offset = attack_dice() % 2 ? attack_dice() % 9000 : attack_number();
	r->place = wild_place();
	r->xfer = transfer(n);
	if (r->flags & P3_F_LONG) {
		word0 = p3_pack_long(c, r);
	} else if (r->kind == P3_REQ_GET) {
		word0 = p3_pack_get(c, r);
	} else {
		p3_pack_data(c, data);
		word0 = p3_pack_eager(c, r);
	}
	if (attack_dice() % 4 == 0)
		p3_set(&c->w[1 + attack_dice() % 7], attack_number());
	return word0;
}

/* Return a number of cells that is mostly right. */
static uint32_t cells_for(const struct p3_ring_tx *r, uint64_t len)
{
	uint32_t k = attack_dice() % 8 ? p3_request_cells(len % 600)
				       : (uint32_t)attack_dice() % (r->n / 4) + 1;
	return k > p3_ring_most(r->n) ? p3_ring_most(r->n) : k;
}

static void wild_request(struct p3_nic *n, struct p3_peer *p)
{
	uint32_t kind = attack_dice() % 16 ? P3_REQ_PUT + (uint32_t)attack_dice() % 3
					   : (uint32_t)attack_dice() % 9;
	uint32_t flags = (uint32_t)attack_dice() % 32;
	uint32_t k = flags & P3_F_LONG || kind == P3_REQ_GET
			     ? 1
			     : cells_for(&p->req_out, attack_dice());
	if (!p3_peer_has_room(p, &p->req_out, k))
		return;
	struct p3_request r = {.kind = kind, .flags = flags, .ncells = k};
	r.length = attack_dice() % 4 && p3_request_is_eager(kind, flags)
			   ? P3_REQ_INLINE + (k - 1) * 64
			   : length32();
	struct p3_cell *c = p3_ring_begin(&p->req_out, k);
	p3_ring_publish(&p->req_out, fill_request(n, p, c, &r), k);
	p3_looks_add(n, p);
}

static uint32_t pending_name(const struct p3_peer *p)
{
	if (p3_list_empty(&p->outstanding) || attack_dice() % 4 == 0)
		return (uint32_t)attack_dice() % 0x100000;
	return p3_pending_name(p3_item(p->outstanding.next, struct p3_pending, link));
}

static void wild_response(struct p3_nic *n, struct p3_peer *p)
{
	uint32_t k = attack_dice() % 4 ? 1 : (uint32_t)attack_dice() % 2 + 1;
	if (!p3_peer_has_room(p, &p->rsp_out, k))
		return;
	const struct p3_answer a = {.status = attack_dice() % 2,
		.pending = pending_name(p),
		.mlength = length32(),
		.xfer = transfer(n),
		.addr = attack_number(),
		.heap = attack_dice() % 2 ? attack_number() : attack_dice() % (1 << 22)};
	(void)p3_pack_long_reply(p3_ring_begin(&p->rsp_out, k), &a);
	p3_ring_publish(&p->rsp_out,
		p3_word0((uint32_t)attack_dice() % 8, (uint32_t)attack_dice() % 4, k), k);
	p3_looks_add(n, p);
}

/* Write a message of CCI: a connect request to an endpoint that exists, or any other with
 * a tag that is not this node's. */
static void wild_cci(struct p3_nic *n, struct p3_peer *p)
{
	uint32_t kind = attack_dice() % 2 ? P3_REQ_CCI_CONNECT
					  : P3_REQ_CCI_MSG + (uint32_t)attack_dice() % 8;
	uint32_t k = 1 + (uint32_t)attack_dice() % 3, len = 32 + 64 * (k - 1);
	if (!p3_peer_has_room(p, &p->req_out, k))
		return;
	struct p3_cell *c = p3_ring_begin(&p->req_out, k);
	for (int i = 1; i < 8; i++)
		p3_set(&c->w[i], attack_number());
	if (kind == P3_REQ_CCI_CONNECT && attack_dice() % 8) {
		p3_format_set(c, P3_CCI_ROOM,
			p3_field_in(P3_CCI_LENGTH, len) |
				p3_field_in(P3_CCI_CONNECT_TOTAL, len) |
				p3_field_in(P3_CCI_CONNECT_ATTRIBUTE, attack_dice() % 3) |
				p3_field_in(P3_CCI_ROOM, 1));
		p3_format_set(c, P3_CCI_TAG,
			p3_field_in(P3_CCI_CONNECT_NUMBER, HONEST_CCI_SERVICE) |
				p3_field_in(P3_CCI_CONNECT_MTU, 4096));
	}
	uint32_t flags = attack_dice() % 4 ? 0 : (uint32_t)attack_dice() % 4;
	p3_ring_publish(&p->req_out, p3_word0(kind, flags, k), k);
	p3_looks_add(n, p);
}

/* ---- a life ---- */

typedef void attack(struct p3_nic *n, struct p3_peer *p);

static attack *const attacks[] = {over_segment, bits_of_segment, over_header, over_entry,
	over_counters, over_doorbell, hush, over_transfers, over_heap, wild_request,
	wild_response, wild_cci};

enum { ATTACKS = sizeof attacks / sizeof attacks[0], LATE = 9, LEAST = 200 };

/* Attack once; messages need the node's private state to hold still. */
static void attack_once(struct p3_nic *n, unsigned which)
{
	struct p3_peer *p = &n->peer[attack_dice() % n->conf.nnodes];
	if (p->state != P3_LIVE || p->index == n->conf.node)
		return;
	if (which < LATE) {
		attacks[which](n, p);
		return;
	}
	int tries = 100;
	while (tries-- && !p3_lease_enter(n, P3_LEASE_HOST))
		usleep(10);
	if (tries < 0)
		return;
	for (uint64_t k = attack_dice() % 8; k && p->state == P3_LIVE; k--)
		attacks[which](n, p);
	p3_lease_leave(n);
}

/* Do operations with the honest nodes, so that there is something to spoil. */
static void *be_busy(void *arg)
{
	static char got[200000];
	ptl_handle_md_t out = mp_bind(mp_pattern, MP_PATTERN, PTL_EQ_NONE, 0);
	ptl_handle_md_t in = mp_bind(got, sizeof got, PTL_EQ_NONE, 0);
	attack_seed((uint64_t)(uintptr_t)arg);
	for (;;) {
		uint64_t d = attack_dice();
		ptl_size_t len = (d >> 32) % (d % 2 ? 2000 : sizeof got);
		ptl_process_id_t to = mp.id[(d >> 8) % mp.size];
		if (d % 8 < 4)
			(void)PtlPutRegion(out, 0, len, PTL_ACK_REQ, to, MP_PORTAL, 0,
				BAIT, d >> 40, 0);
		else
			(void)PtlGetRegion(in, 0, len, to, MP_PORTAL, 0, BAIT, 0);
		/* pause: random distances between operations */
		usleep((useconds_t)(d >> 16) % 500);
	}
	return NULL;
}

static void offer_something(void)
{
	void *block;
	char *prey = calloc(1, 200000);
	mp_ok(PtlXAlloc(P3_HUGE, &block));
	mp_attach(BAIT, prey, 200000,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE,
		PTL_EQ_NONE);
}

_Noreturn void attack_live(bool first)
{
	pthread_t thread;
	mp_start();
	struct p3_nic *n = p3_nic(p3_node());
	offer_something();
	for (unsigned i = 0; first && i < 2; i++)
		mp_barrier();
	if (pthread_create(&thread, NULL, be_busy, (void *)(uintptr_t)attack_dice()))
		_exit(1);
	uint64_t life = 5000000 + attack_dice() % 60000000, until = now_ns() + life;
	const char *only = getenv("HOSTILE_ONLY"); /* selects one attack, for people */
	unsigned some =
		only ? (unsigned)atoi(only) % ATTACKS : (unsigned)attack_dice() % ATTACKS;
	/* pause: some operations begin, or none */
	sleep_ms((unsigned)attack_dice() % 10);
	/* The first life attacks however slow the machine is. */
	for (unsigned k = first ? 0 : LEAST; k < LEAST || now_ns() < until; k++) {
		unsigned which = only || attack_dice() % 4
					 ? some
					 : (unsigned)attack_dice() % ATTACKS;
		attack_once(n, which);
		if (attack_dice() % 4 == 0)
			/* pause: random distances between attacks */
			usleep((useconds_t)attack_dice() % 300);
	}
	_exit(1);
}
