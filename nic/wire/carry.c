/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a pair of nodes, carried in frames. */
#include "nic/wire/carry.h"
#include "nic/proto/format.h"
#include "nic/wire/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- capture: this node's writes ---- */

static bool store(struct p3_carry *c, uint64_t at, const void *bytes, uint64_t len)
{
	struct p3_frame *f = p3_gbn_begin(&c->gbn);
	if (!f)
		return false;
	f->kind = P3_FRAME_STORE;
	f->at = at;
	f->len = len;
	f->cells = (uint16_t)((len + P3_CELL - 1) / P3_CELL);
	memset(f->data, 0, (size_t)f->cells * P3_CELL);
	memcpy(f->data, bytes, len);
	p3_gbn_commit(&c->gbn, c->now);
	return true;
}

static bool capture_entry(struct p3_nic *n, struct p3_carry *c)
{
	uint64_t at = p3_entry_off(&n->layout, c->peer->index);
	if (memcmp(&c->mine, &c->shown, sizeof c->mine) == 0)
		return true;
	memcpy(&c->shown, &c->mine, sizeof c->mine);
	if (store(c, at, &c->mine, sizeof c->mine))
		return true;
	c->shown.pad0 = 1; /* makes shown differ from mine, which is then sent again */
	return false;
}

/* Send the new bytes of a window, before the slot that counts them. */
static bool capture_window(
	struct p3_nic *n, struct p3_carry *c, uint32_t slot, const struct p3_xfer *now)
{
	const char *base = n->published.base;
	uint64_t window = p3_get(&now->window), end = p3_get(&now->produced);
	if (end > P3_WINDOW_LEN && c->produced[slot] < end - P3_WINDOW_LEN)
		c->produced[slot] = end - P3_WINDOW_LEN; /* the reader has the rest */
	while (c->produced[slot] < end) {
		uint64_t at = c->produced[slot] % P3_WINDOW_LEN, len = P3_WINDOW_LEN - at;
		if (len > end - c->produced[slot])
			len = end - c->produced[slot];
		if (len > sizeof c->queue->data)
			len = sizeof c->queue->data;
		if (!store(c, window + at, base + window + at, len))
			return false;
		c->produced[slot] += len;
	}
	return true;
}

/* Return true if a slot is for this peer.  The peer learns of no other slots. */
static bool is_for(const struct p3_xfer_slot *x, const struct p3_carry *c)
{
	return x->in_use && x->peer == c->peer;
}

static bool show_slot(
	struct p3_nic *n, struct p3_carry *c, uint32_t i, const struct p3_xfer *now)
{
	if (memcmp(now, &c->slots[i], sizeof *now) == 0)
		return true;
	if (!store(c, n->layout.xfers_off + i * sizeof *now, now, sizeof *now))
		return false;
	memcpy(&c->slots[i], now, sizeof *now);
	c->known[i] = is_for(&n->xfer[i], c);
	return true;
}

/* If a slot has another transfer, or changed bytes (XFER.6), first send the slot with no
 * bytes produced: the peer must learn of the change before the first new byte. */
static bool capture_offer(
	struct p3_nic *n, struct p3_carry *c, uint32_t i, const struct p3_xfer *now)
{
	const struct p3_xfer *shown = &c->slots[i];
	struct p3_xfer empty;
	if (p3_get(&now->id) == p3_get(&shown->id) &&
		p3_get(&now->again) == p3_get(&shown->again))
		return true;
	memcpy(&empty, now, sizeof empty);
	p3_set(&empty.produced, 0);
	c->produced[i] = 0;
	return show_slot(n, c, i, &empty);
}

static bool capture_slot(struct p3_nic *n, struct p3_carry *c, uint32_t i)
{
	static const struct p3_xfer nothing;
	const struct p3_xfer_slot *x = &n->xfer[i];
	struct p3_xfer now;
	bool ours = is_for(x, c);
	if (!ours && !c->known[i])
		return true;
	memcpy(&now, ours ? x->pub : &nothing, sizeof now);
	return capture_offer(n, c, i, &now) &&
	       (x->window == P3_NONE || capture_window(n, c, i, &now)) &&
	       show_slot(n, c, i, &now);
}

static bool capture_slots(struct p3_nic *n, struct p3_carry *c)
{
	for (uint32_t i = 0; i < n->layout.nxfers; i++)
		if (!capture_slot(n, c, i))
			return false;
	return true;
}

static bool capture_messages(
	struct p3_carry *c, struct p3_carry_half *h, enum p3_frame_kind kind)
{
	uint64_t w0;
	const struct p3_cell *cell;
	while ((cell = p3_ring_peek(&h->tap, &w0))) {
		uint32_t cells = p3_word0_ncells(w0);
		if (p3_word0_kind(w0) == P3_KIND_PAD) {
			p3_ring_take(&h->tap, cells);
			continue; /* the other end pads its ring itself */
		}
		struct p3_frame *f = p3_gbn_begin(&c->gbn);
		if (!f)
			return false;
		p3_ring_take(&h->tap, cells);
		f->kind = (uint8_t)kind;
		f->at = w0 >> 32 << 32;
		f->len = 0;
		f->cells = (uint16_t)cells;
		memcpy(f->data, cell, (size_t)cells * P3_CELL);
		p3_gbn_commit(&c->gbn, c->now);
	}
	return true;
}

void p3_carry_capture(struct p3_nic *n, struct p3_carry *c)
{
	c->all_captured = capture_entry(n, c) && capture_slots(n, c) &&
			  capture_messages(c, &c->rsp, P3_FRAME_RESPONSE) &&
			  capture_messages(c, &c->req, P3_FRAME_REQUEST);
}

/* ---- apply: the peer's writes ---- */

static bool apply_store(struct p3_nic *n, struct p3_carry *c, const struct p3_frame *f)
{
	uint64_t size = n->layout.seg_len;
	if (f->len > (uint64_t)f->cells * P3_CELL || f->at > size ||
		f->len > size - f->at)
		return false;
	memcpy(c->image + f->at, f->data, f->len);
	return true;
}

static bool apply_message(struct p3_carry_half *h, const struct p3_frame *f)
{
	uint32_t cells = f->cells;
	if (!cells || cells > p3_ring_most(h->feed.n) || !p3_ring_room(&h->feed, cells))
		return false;
	struct p3_cell *c = p3_ring_begin(&h->feed, cells);
	memcpy((char *)c + 8, f->data + 8, cells * P3_CELL - 8);
	p3_ring_publish(&h->feed, f->at >> 32 << 32, cells);
	return true;
}

bool p3_carry_apply(struct p3_nic *n, struct p3_carry *c, const struct p3_frame *f)
{
	switch (f->kind) {
	case P3_FRAME_STORE:
		return apply_store(n, c, f);
	case P3_FRAME_REQUEST:
		return apply_message(&c->req, f);
	case P3_FRAME_RESPONSE:
		return apply_message(&c->rsp, f);
	default:
		return false;
	}
}

/* ---- counters, settling ---- */

/* Add to the node's counters, and restart the count here. */
static void tell(struct p3_nic *n, enum p3_wire_counter c, uint64_t *count)
{
	if (*count)
		p3_count(&n->wire_count[c], *count);
	*count = 0;
}

void p3_carry_count(struct p3_nic *n, struct p3_carry *c)
{
	tell(n, P3_W_RESENT, &c->gbn.resent);
	tell(n, P3_W_BAD_SUMS, &c->gbn.bad_sums);
	tell(n, P3_W_DOUBLES, &c->gbn.doubles);
	tell(n, P3_W_GAPS, &c->gbn.gaps);
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

static void reset_half(struct p3_carry_half *h, uint32_t cells, p3_a64 *credit)
{
	memset(h->out, 0, sizeof h->out);
	memset(h->in, 0, sizeof h->in);
	p3_set(credit, p3_ring_start(cells));
	p3_ring_rx_init(&h->tap, h->out, cells, &h->tapped, 0);
	p3_ring_tx_init(&h->feed, h->in, cells, credit);
}

/* Forget the state of the other end. */
static void reset_words(struct p3_nic *n, struct p3_carry *c)
{
	memset(&c->mine, 0, sizeof c->mine);
	memset(&c->shown, 0, sizeof c->shown);
	memset(c->slots, 0, n->layout.nxfers * sizeof *c->slots);
	memset(c->known, 0, n->layout.nxfers * sizeof *c->known);
	memset(c->produced, 0, n->layout.nxfers * sizeof *c->produced);
	memset(c->image, 0, n->layout.ctl_len);
}

int p3_carry_make(struct p3_nic *n, struct p3_carry *c)
{
	c->image = calloc(1, n->layout.seg_len);
	c->slots = calloc(n->layout.nxfers, sizeof *c->slots);
	c->known = calloc(n->layout.nxfers, sizeof *c->known);
	c->produced = calloc(n->layout.nxfers, sizeof *c->produced);
	return c->image && c->slots && c->known && c->produced ? 0 : -ENOMEM;
}

void p3_carry_drop(struct p3_carry *c)
{
	free(c->image);
	free(c->slots);
	free(c->known);
	free(c->produced);
}

void p3_carry_reset(
	struct p3_nic *n, struct p3_carry *c, struct p3_peer *p, struct p3_lane *lane_out)
{
	uint32_t cells = n->conf.base_lanes_only ? P3_BASE_CELLS : P3_CARRY_CELLS;
	uint64_t at = p3_entry_off(&n->layout, n->conf.node);
	c->peer = p;
	c->has_goal = c->all_captured = false;
	reset_words(n, c);
	reset_half(&c->req, cells, &c->mine.req_credit[0]);
	reset_half(&c->rsp, cells, &c->mine.rsp_credit[0]);
	p->mine = &c->mine;
	p->image = c->image;
	p->theirs = (const struct p3_peer_entry *)(c->image + at);
	p->cold = &n->never_cold; /* the peer is always polled */
	*lane_out = (struct p3_lane){
		c->req.out, c->rsp.out, c->req.in, c->rsp.in, cells, false};
}
