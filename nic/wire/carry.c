/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a pair of nodes, carried in frames. */
#include "nic/wire/carry.h"
#include "nic/proto/format.h"
#include "nic/proto/proto.h"
#include "nic/wire/wire.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- frames of parts ---- */

static uint32_t carry_whole_words(uint32_t len)
{
	return (len + 7u) & ~7u;
}

static bool carry_begin_frame(struct p3_carry *c)
{
	struct p3_frame *f = p3_gbn_take_memory(&c->gbn);
	if (!f)
		return false;
	f->kind = P3_FRAME_PARTS;
	f->len = 0;
	c->open = f;
	c->last = NULL;
	return true;
}

/* Let the next part begin at a word. */
static void carry_align(struct p3_frame *f)
{
	while (f->len & 7)
		p3_frame_data(f)[f->len++] = 0;
}

static void carry_end_frame(struct p3_carry *c)
{
	struct p3_frame *f = c->open;
	if (!f)
		return;
	carry_align(f);
	f->cells = (uint16_t)((f->len + P3_CELL - 1) / P3_CELL);
	memset(p3_frame_data(f) + f->len, 0, (size_t)f->cells * P3_CELL - f->len);
	p3_gbn_commit(&c->gbn, f, c->now);
	c->open = NULL;
	c->last = NULL;
}

/* Return len more bytes of the open frame, or of a new one, or NULL. */
static unsigned char *carry_reserve(struct p3_carry *c, uint32_t len)
{
	if (c->open && c->open->len + len > (uint64_t)c->gbn.fill * P3_CELL)
		carry_end_frame(c);
	if (!c->open && !carry_begin_frame(c))
		return NULL;
	c->open->len += len;
	return p3_frame_data(c->open) + (c->open->len - len);
}

/* Add a part.  Return the place of its bytes, or NULL. */
static unsigned char *carry_add_part(
	struct p3_carry *c, enum p3_part_what what, uint64_t at, uint32_t len)
{
	uint32_t whole = carry_whole_words(len);
	if (c->open)
		carry_align(c->open);
	struct p3_part *p = (void *)carry_reserve(c, (uint32_t)sizeof *p + whole);
	if (!p)
		return NULL;
	*p = (struct p3_part){.at = at, .len = len, .what = what};
	c->last = what == P3_PART_STORE ? NULL : p;
	unsigned char *bytes = (unsigned char *)(p + 1);
	if (whole != len)
		memset(bytes + (whole - 8), 0, 8);
	return bytes;
}

/* Return room for a message at the end of the run that is the last part, or of a new
 * one, or NULL. */
static unsigned char *carry_add_message(
	struct p3_carry *c, enum p3_part_what what, uint32_t most)
{
	struct p3_part *run = c->last;
	if (run && run->what == what &&
		c->open->len + most <= (uint64_t)c->gbn.fill * P3_CELL)
		return carry_reserve(c, most);
	memset(c->packed, 0, sizeof c->packed);
	return carry_add_part(c, what, 0, most);
}

/* Write a message behind the run so far.  Return false if there is no room. */
static bool carry_pack_message(struct p3_carry *c, enum p3_part_what what,
	const struct p3_cell *cell, uint64_t w0)
{
	uint32_t cells = p3_word0_ncells(w0);
	unsigned char *to = carry_add_message(c, what, cells * P3_PACKED_CELL);
	if (!to)
		return false;
	for (uint32_t i = 0; i < cells; i++) {
		uint64_t w[8];
		memcpy(w, &cell[i], sizeof w);
		if (!i)
			w[0] = w0 >> 32 << 32; /* the other half is the ring's */
		to += p3_cell_pack(to, w, c->packed);
	}
	c->open->len = (uint32_t)(to - p3_frame_data(c->open));
	c->last->len = (uint32_t)(to - (unsigned char *)(c->last + 1));
	return true;
}

/* ---- capture: this node's writes ---- */

static bool carry_store(struct p3_carry *c, uint64_t at, const void *bytes, uint64_t len)
{
	unsigned char *to = carry_add_part(c, P3_PART_STORE, at, (uint32_t)len);
	if (to)
		memcpy(to, bytes, len);
	return to != NULL;
}

/* Return true if the peer knows the entry, or need not know it yet. */
static bool carry_is_shown(const struct p3_carry *c)
{
	return c->silent || memcmp(&c->mine, &c->shown, sizeof c->mine) == 0;
}

/* Return true if more of the entry than credits has changed since it was sent.  Its
 * gauges are never written. */
static bool carry_is_urgent(const struct p3_carry *c)
{
	struct p3_peer_entry lazy;
	memcpy(&lazy, &c->mine, sizeof lazy);
	memcpy(lazy.req_credit, c->shown.req_credit, sizeof lazy.req_credit);
	memcpy(lazy.rsp_credit, c->shown.rsp_credit, sizeof lazy.rsp_credit);
	return memcmp(&lazy, &c->shown, sizeof lazy) != 0;
}

/* Return true if a quarter of a ring depends on credits, of the short ring or of the full
 * one. */
static bool carry_holds_back(
	const struct p3_carry_half *h, const p3_a64 *now, const p3_a64 *was)
{
	uint64_t least = h->feed.n / 4;
	return p3_get(&now[0]) - p3_get(&was[0]) >= least ||
	       p3_get(&now[1]) - p3_get(&was[1]) >= least;
}

static bool carry_has_messages(struct p3_carry *c)
{
	return p3_ring_any(&c->rsp.tap) || p3_ring_any(&c->req.tap);
}

/* Return true if the change of the entry may wait. */
static bool carry_may_wait(struct p3_carry *c)
{
	if (!c->lazy_since)
		c->lazy_since = c->now;
	return !c->hurries && c->now - c->lazy_since < c->gbn.ack_ns &&
	       !carry_has_messages(c) &&
	       !carry_holds_back(&c->req, c->mine.req_credit, c->shown.req_credit) &&
	       !carry_holds_back(&c->rsp, c->mine.rsp_credit, c->shown.rsp_credit) &&
	       !carry_is_urgent(c);
}

/* Store the words of the entry that have changed, from the first to the last one: mostly
 * credits, which come first. */
static bool carry_store_changes(struct p3_nic *n, struct p3_carry *c)
{
	const size_t credits = offsetof(struct p3_peer_entry, bulk_slot);
	const char *mine = (const char *)&c->mine, *shown = (const char *)&c->shown;
	uint64_t now[sizeof c->mine / 8], was[sizeof c->mine / 8];
	bool others = memcmp(mine + credits, shown + credits, sizeof now - credits) != 0;
	size_t from = 0, to = (others ? sizeof now : credits) / 8;
	memcpy(now, mine, 8 * to);
	memcpy(was, shown, 8 * to);
	while (now[from] == was[from])
		from++;
	while (now[to - 1] == was[to - 1])
		to--;
	if (!carry_store(c, p3_entry_off(&n->layout, c->peer->index) + 8 * from,
		    now + from, 8 * (to - from)))
		return false;
	memcpy((char *)&c->shown + 8 * from, now + from, 8 * (to - from));
	c->lazy_since = 0;
	return true;
}

static bool carry_capture_entry(struct p3_nic *n, struct p3_carry *c)
{
	if (c->silent && !carry_has_messages(c))
		return true;
	c->silent = false;
	if (memcmp(&c->mine, &c->shown, sizeof c->mine) == 0 || carry_may_wait(c))
		return true;
	return carry_store_changes(n, c);
}

/* Send the new bytes of a window, before the slot that counts them. */
static bool carry_capture_window(struct p3_nic *n, struct p3_carry *c,
	struct p3_carry_slot *s, const struct p3_xfer *now)
{
	const char *base = n->published.base;
	uint64_t window = p3_get(&now->window), end = p3_get(&now->produced);
	uint64_t most = (uint64_t)c->gbn.fill * P3_CELL - sizeof(struct p3_part);
	if (end > P3_WINDOW_LEN && s->produced < end - P3_WINDOW_LEN)
		s->produced = end - P3_WINDOW_LEN; /* the reader has the rest */
	while (s->produced < end) {
		uint64_t at = s->produced % P3_WINDOW_LEN, len = P3_WINDOW_LEN - at;
		if (len > end - s->produced)
			len = end - s->produced;
		if (len > most)
			len = most;
		if (!carry_store(c, window + at, base + window + at, len))
			return false;
		s->produced += len;
	}
	return true;
}

/* Return true if a slot is for this peer.  The peer learns of no other slots. */
static bool carry_is_for(const struct p3_xfer_slot *x, const struct p3_carry *c)
{
	return x->in_use && x->peer == c->peer;
}

static bool carry_show_slot(struct p3_nic *n, struct p3_carry *c, struct p3_carry_slot *s,
	const struct p3_xfer *now)
{
	if (memcmp(now, &s->is, sizeof *now) == 0)
		return true;
	if (!carry_store(
		    c, n->layout.xfers_off + s->slot * sizeof *now, now, sizeof *now))
		return false;
	memcpy(&s->is, now, sizeof *now);
	return true;
}

/* If a slot has another transfer, or changed bytes (XFER.6), first send the slot with no
 * bytes produced: the peer must learn of the change before the first new byte. */
static bool carry_capture_offer(struct p3_nic *n, struct p3_carry *c,
	struct p3_carry_slot *s, const struct p3_xfer *now)
{
	struct p3_xfer empty;
	if (p3_get(&now->id) == p3_get(&s->is.id) &&
		p3_get(&now->again) == p3_get(&s->is.again))
		return true;
	memcpy(&empty, now, sizeof empty);
	p3_set(&empty.produced, 0);
	s->produced = 0;
	return carry_show_slot(n, c, s, &empty);
}

static bool carry_capture_slot(
	struct p3_nic *n, struct p3_carry *c, struct p3_carry_slot *s)
{
	static const struct p3_xfer nothing;
	const struct p3_xfer_slot *x = &n->xfer[s->slot];
	struct p3_xfer now;
	bool ours = carry_is_for(x, c);
	memcpy(&now, ours ? x->pub : &nothing, sizeof now);
	if (c->offer) /* no heap is seen on such a wire */
		p3_set(&now.heap, ours ? c->offer(n, c, s->slot) : 0);
	return carry_capture_offer(n, c, s, &now) &&
	       (!ours || x->window == P3_NONE || carry_capture_window(n, c, s, &now)) &&
	       carry_show_slot(n, c, s, &now);
}

/* Return true if the peer has no slot. */
static bool carry_has_no_slots(const struct p3_nic *n, const struct p3_carry *c)
{
	const struct p3_peer *p = c->peer;
	return !c->nslots && !p->nxfer[0] && !p->nxfer[1] &&
	       !carry_is_for(&n->xfer[p->index], c) &&
	       !carry_is_for(&n->xfer[n->layout.nxfers / 2 + p->index], c);
}

/* Remember a slot from now on, if it is the peer's. */
static void carry_find_slot(struct p3_nic *n, struct p3_carry *c, uint32_t slot)
{
	if (!carry_is_for(&n->xfer[slot], c))
		return;
	for (uint32_t i = 0; i < c->nslots; i++)
		if (c->slots[i].slot == slot)
			return;
	if (c->nslots == P3_CARRY_SLOTS)
		return; /* until slots that have ended are sent */
	memset(&c->slots[c->nslots], 0, sizeof *c->slots);
	c->slots[c->nslots++].slot = slot;
}

static void carry_find_slots(struct p3_nic *n, struct p3_carry *c)
{
	uint32_t half = n->layout.nxfers / 2;
	for (uint32_t k = 0; k < 2; k++) {
		carry_find_slot(n, c, k * half + c->peer->index);
		for (uint32_t i = 0; c->peer->nxfer[k] && i < P3_XFERS_SHARED; i++)
			carry_find_slot(n, c, k * half + n->conf.nnodes + i);
	}
}

/* Send what has changed in the peer's slots, and forget those that have ended. */
static bool carry_capture_slots(struct p3_nic *n, struct p3_carry *c)
{
	carry_find_slots(n, c);
	for (uint32_t i = c->nslots; i-- > 0;) {
		if (!carry_capture_slot(n, c, &c->slots[i]))
			return false;
		if (!carry_is_for(&n->xfer[c->slots[i].slot], c))
			c->slots[i] = c->slots[--c->nslots];
	}
	return true;
}

/* Go on in the full ring behind a switch cell. */
static void carry_follow_out(
	struct p3_nic *n, struct p3_carry *c, struct p3_carry_half *h)
{
	bool req = h == &c->req;
	uint64_t off = p3_get(req ? &c->mine.full_req : &c->mine.full_rsp);
	p3_ring_rx_init(&h->tap, (struct p3_cell *)((char *)n->published.base + off),
		req ? n->layout.req_cells : n->layout.rsp_cells, &h->tapped, 0);
}

static bool carry_is_switch(enum p3_part_what what, uint64_t w0)
{
	return p3_word0_kind(w0) == (what == P3_PART_REQUESTS ? (uint32_t)P3_REQ_SWITCH
							      : (uint32_t)P3_RSP_SWITCH);
}

static bool carry_capture_messages(struct p3_nic *n, struct p3_carry *c,
	struct p3_carry_half *h, enum p3_part_what what)
{
	uint64_t w0;
	const struct p3_cell *cell;
	while ((cell = p3_ring_peek(&h->tap, &w0))) {
		uint32_t cells = p3_word0_ncells(w0);
		if (p3_word0_kind(w0) == P3_KIND_PAD) {
			p3_ring_take(&h->tap, cells);
			continue; /* the other end pads its ring itself */
		}
		if (!carry_pack_message(c, what, cell, w0))
			return false;
		if (carry_is_switch(what, w0))
			carry_follow_out(n, c, h);
		else
			p3_ring_take(&h->tap, cells);
	}
	return true;
}

void p3_carry_capture(struct p3_nic *n, struct p3_carry *c)
{
	c->all_captured = carry_capture_entry(n, c) && carry_capture_slots(n, c) &&
			  carry_capture_messages(n, c, &c->rsp, P3_PART_RESPONSES) &&
			  carry_capture_messages(n, c, &c->req, P3_PART_REQUESTS);
	carry_end_frame(c);
	c->hurries = false;
}

bool p3_carry_is_still(const struct p3_nic *n, struct p3_carry *c)
{
	return c->all_captured && !c->hurries && !c->lazy_since &&
	       !carry_has_messages(c) && carry_has_no_slots(n, c) && carry_is_shown(c) &&
	       p3_gbn_due(&c->gbn) > c->now;
}

uint64_t p3_carry_due(const struct p3_carry *c)
{
	return c->lazy_since ? c->lazy_since + c->gbn.ack_ns : UINT64_MAX;
}

/* Return true if the firmware has taken all cells of a ring, and has given them back. */
static bool carry_is_given(const struct p3_carry_half *h)
{
	return p3_get(h->feed.credit) == h->feed.pos;
}

bool p3_carry_is_quiet(const struct p3_carry *c)
{
	return !p3_gbn_waits(&c->gbn) && c->all_captured && !c->lazy_since &&
	       !c->nslots && carry_is_given(&c->req) && carry_is_given(&c->rsp) &&
	       carry_is_shown(c) && p3_gbn_due(&c->gbn) == UINT64_MAX;
}

/* ---- apply: the peer's writes ---- */

static bool carry_apply_store(
	struct p3_nic *n, struct p3_carry *c, const struct p3_part *p, const void *bytes)
{
	uint64_t size = n->layout.seg_len;
	if (p->at > size || p->len > size - p->at)
		return false;
	memcpy(c->image + p->at, bytes, p->len);
	return true;
}

/* Go on in the image of the full ring behind a switch cell. */
static bool carry_follow_in(struct p3_nic *n, struct p3_carry *c, struct p3_carry_half *h)
{
	bool req = h == &c->req;
	const struct p3_peer_entry *theirs = c->peer->theirs;
	uint64_t off = p3_get(req ? &theirs->full_req : &theirs->full_rsp);
	uint32_t cells = req ? n->layout.req_cells : n->layout.rsp_cells;
	if (!p3_peer_holds_ring(n, c->peer, off, cells))
		return false;
	p3_ring_tx_init(&h->feed, (struct p3_cell *)(c->image + off), cells,
		req ? &c->mine.req_credit[1] : &c->mine.rsp_credit[1]);
	return true;
}

/* Put a message into the ring, of which cell is the first cell, and return the bytes of
 * its other cells, or -1: it cannot be. */
static int64_t carry_apply_message(struct p3_carry_half *h, uint64_t cell[8],
	const unsigned char *from, uint64_t left)
{
	uint64_t w0 = cell[0], at = 0;
	uint32_t cells = p3_word0_ncells(w0);
	if (!cells || cells > p3_ring_most(h->feed.n) ||
		(!p3_ring_room(&h->feed, cells) && !p3_ring_fills(&h->feed, cells)))
		return -1;
	struct p3_cell *c = p3_ring_begin(&h->feed, cells);
	memcpy((char *)c + 8, cell + 1, P3_CELL - 8);
	for (uint32_t i = 1; i < cells; i++) {
		uint32_t len = p3_cell_unpack(from + at, left - at, cell);
		if (!len)
			return -1;
		memcpy(&c[i], cell, P3_CELL);
		at += len;
	}
	p3_ring_publish(&h->feed, w0 >> 32 << 32, cells);
	return (int64_t)at;
}

static bool carry_apply_messages(struct p3_nic *n, struct p3_carry *c,
	struct p3_carry_half *h, const struct p3_part *p, const unsigned char *bytes)
{
	uint64_t cell[8] = {0};
	for (uint64_t at = 0; at < p->len;) {
		uint32_t len = p3_cell_unpack(bytes + at, p->len - at, cell);
		uint64_t w0 = cell[0];
		int64_t rest = len ? carry_apply_message(
					     h, cell, bytes + at + len, p->len - at - len)
				   : -1;
		if (rest < 0 ||
			(carry_is_switch(p->what, w0) && !carry_follow_in(n, c, h)))
			return false;
		at += len + (uint64_t)rest;
	}
	return true;
}

static bool carry_apply_part(
	struct p3_nic *n, struct p3_carry *c, const struct p3_part *p, const void *bytes)
{
	switch (p->what) {
	case P3_PART_STORE:
		return carry_apply_store(n, c, p, bytes);
	case P3_PART_REQUESTS:
		return carry_apply_messages(n, c, &c->req, p, bytes);
	case P3_PART_RESPONSES:
		return carry_apply_messages(n, c, &c->rsp, p, bytes);
	default:
		return false;
	}
}

bool p3_carry_apply(struct p3_nic *n, struct p3_carry *c, const struct p3_frame *f)
{
	const unsigned char *bytes = p3_frame_data(f);
	struct p3_part p;
	c->silent = false;
	if (f->kind != P3_FRAME_PARTS || f->len > (uint64_t)f->cells * P3_CELL)
		return false;
	for (uint64_t at = 0; at < f->len; at += carry_whole_words(p.len)) {
		if (f->len - at < sizeof p)
			return false;
		memcpy(&p, bytes + at, sizeof p);
		at += sizeof p;
		if (p.len > f->len - at || carry_whole_words(p.len) > f->len - at ||
			!carry_apply_part(n, c, &p, bytes + at))
			return false;
	}
	return true;
}

/* ---- counters, settling ---- */

void p3_carry_count(struct p3_nic *n, struct p3_carry *c)
{
	struct p3_gbn *g = &c->gbn;
	if (!(g->resent | g->bad_sums | g->doubles | g->gaps))
		return;
	p3_count(&n->count[P3_C_FAR_RESENT], g->resent);
	p3_count(&n->count[P3_C_FAR_BAD_SUMS], g->bad_sums);
	p3_count(&n->count[P3_C_FAR_DOUBLES], g->doubles);
	p3_count(&n->count[P3_C_FAR_GAPS], g->gaps);
	g->resent = g->bad_sums = g->doubles = g->gaps = 0;
}

bool p3_carry_has_settled(struct p3_carry *c)
{
	if (!c->has_goal && c->all_captured) {
		c->goal = c->gbn.next;
		c->has_goal = true;
	}
	return c->has_goal && p3_gbn_is_past(&c->gbn, c->goal);
}

/* ---- memory ---- */

static void carry_reset_half(struct p3_carry *c, struct p3_carry_half *h, p3_a64 *credit)
{
	if (c->used) /* new memory has zeros, and takes no page before it is used */
		memset(h->cells, 0, 2 * P3_BASE_CELLS * sizeof *h->cells);
	p3_set(credit, p3_ring_start(P3_BASE_CELLS));
	p3_ring_rx_init(&h->tap, h->cells, P3_BASE_CELLS, &h->tapped, 0);
	p3_ring_tx_init(&h->feed, h->cells + P3_BASE_CELLS, P3_BASE_CELLS, credit);
}

/* Forget the state of the other end.  Zeros come back where it was. */
static void carry_reset_words(struct p3_nic *n, struct p3_carry *c)
{
	memset(&c->mine, 0, sizeof c->mine);
	memset(&c->shown, 0, sizeof c->shown);
	c->nslots = 0;
	c->lazy_since = 0;
	c->open = NULL;
	c->last = NULL;
	if (madvise(c->image, n->layout.seg_len, MADV_DONTNEED))
		memset(c->image, 0, n->layout.seg_len);
}

void p3_carry_reset(
	struct p3_nic *n, struct p3_carry *c, struct p3_peer *p, struct p3_lane *lane_out)
{
	uint64_t at = p3_entry_off(&n->layout, n->conf.node);
	c->peer = p;
	c->has_goal = c->all_captured = false;
	c->silent = true;
	carry_reset_words(n, c);
	c->req.cells = c->cells;
	c->rsp.cells = c->cells + 2 * P3_BASE_CELLS;
	carry_reset_half(c, &c->req, &c->mine.req_credit[0]);
	carry_reset_half(c, &c->rsp, &c->mine.rsp_credit[0]);
	c->used = true;
	p->mine = &c->mine;
	p->image = c->image;
	p->theirs = (const struct p3_peer_entry *)(c->image + at);
	p->cold = &n->never_cold; /* the peer is always polled */
	*lane_out = (struct p3_lane){.req_out = c->req.cells,
		.rsp_out = c->rsp.cells,
		.req_in = c->req.cells + P3_BASE_CELLS,
		.rsp_in = c->rsp.cells + P3_BASE_CELLS};
}
