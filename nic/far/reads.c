/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote reads of the memory of nodes on other hosts. */
#include "nic/far/reads.h"

#include "nic/xfer/xfer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- the owner's side ---- */

static void reads_recall(struct p3_far *far, struct p3_far_offer *o)
{
	far->ops->recall(far->ep, &o->region);
	o->id = 0;
}

static bool reads_is_long(const struct p3_xfer_slot *x)
{
	return p3_get(&x->pub->addr) && x->length >= P3_FETCH_LEAST;
}

uint64_t p3_far_offer(struct p3_nic *n, struct p3_carry *c, uint32_t slot)
{
	struct p3_far_link *l = p3_item(c, struct p3_far_link, carry);
	struct p3_far *far = l->far;
	struct p3_far_reads *rs = far->reads;
	struct p3_far_offer *o = &rs->offers[slot];
	struct p3_xfer_slot *x = &n->xfer[slot];
	uint64_t id = p3_get(&x->pub->id);
	if (o->id == id)
		return id ? o->region.key : 0;
	if (o->id)
		reads_recall(far, o);
	if (!id || !reads_is_long(x))
		return 0;
	const void *bytes = (const void *)(uintptr_t)p3_get(&x->pub->addr);
	if (far->ops->offer(far->ep, bytes, x->length, &o->region))
		return 0;
	o->id = id;
	x->offered = true;
	l->offered = true;
	if (!o->listed)
		rs->offered[rs->noffered++] = slot;
	o->listed = true;
	return o->region.key;
}

void p3_far_reads_recall(struct p3_nic *n, struct p3_far *far)
{
	struct p3_far_reads *rs = far->reads;
	for (uint32_t i = rs ? rs->noffered : 0; i-- > 0;) {
		struct p3_far_offer *o = &rs->offers[rs->offered[i]];
		if (o->id && o->id == p3_get(&n->xfer[rs->offered[i]].pub->id))
			continue;
		if (o->id)
			reads_recall(far, o);
		o->listed = false;
		rs->offered[i] = rs->offered[--rs->noffered];
	}
}

/* This and fetch run in passes, and keep errno. */
void p3_far_reads_cut(struct p3_nic *n, struct p3_peer *p)
{
	if (p->wire != &p3_wire_far)
		return;
	struct p3_far_link *l = p3_far_link_of(p);
	struct p3_far *far = l->far;
	int saved = errno;
	p3_far_reads_recall(n, far);
	if (far->reads && l->known && (l->offered || l->slices))
		far->ops->cut(far->ep, l->to);
	errno = saved;
}

/* ---- the reader's side ---- */

bool p3_far_can_fetch(const struct p3_peer *p, uint64_t id)
{
	const struct p3_xfer *slot = p3_xfer_of_peer(p->nic, p, id);
	return p->wire == &p3_wire_far && p3_far_link_of(p)->far->reads &&
	       p3_get(&slot->id) == id && p3_get(&slot->heap) &&
	       p3_get(&p->theirs->slots_key);
}

static struct p3_far_slice *reads_free_slice(struct p3_far_reads *rs)
{
	for (uint32_t i = 0; i < P3_FAR_SLICES; i++)
		if (!rs->slices[i].link)
			return &rs->slices[i];
	return NULL;
}

/* Begin no read of the link's peer for some time. */
static void reads_pause_reads(struct p3_far_link *l, uint64_t now, uint64_t ns)
{
	struct p3_far_reads *rs = l->far->reads;
	l->read_at = now + ns;
	if (rs->turn_at < l->read_at)
		rs->turn_at = l->read_at;
}

/* Give a read to the endpoint.  Return false if it has not taken it. */
static bool reads_begin(struct p3_far_slice *s, struct p3_far_read *r, uint64_t now)
{
	struct p3_far *far = s->link->far;
	int rc = far->ops->read(far->ep, s->link->to, r);
	if (rc) {
		reads_pause_reads(s->link, now, P3_FAR_ROOM_NS);
		return false;
	}
	s->waits++;
	return true;
}

/* Set the places of both reads. */
static void reads_aim(struct p3_far_slice *s, uint64_t id)
{
	const struct p3_peer *p = s->link->carry.peer;
	s->bytes.len = s->fetch.len;
	s->bytes.from = s->fetch.at;
	s->bytes.key = p3_get(&p3_xfer_of_peer(p->nic, p, id)->heap);
	s->slot.len = sizeof s->found;
	s->slot.from = (uint32_t)id * sizeof s->found;
	s->slot.key = p3_get(&p->theirs->slots_key);
}

static void reads_take(struct p3_far_slice *s, struct p3_far_link *l, uint64_t now)
{
	s->link = l;
	s->failed = s->dropped = false;
	s->slot_due = true;
	s->began = now;
	s->stuck_ns = P3_FAR_STUCK_NS;
	l->slices++;
	l->far->reads->under_way++;
}

static void reads_give_back(struct p3_far_slice *s)
{
	s->link->slices--;
	s->link = NULL;
}

/* Return true if the slot is to be read, and the bytes have been read, or will be before
 * it. */
static bool reads_is_slot_next(const struct p3_far_slice *s)
{
	const struct p3_far_reads *rs = s->link->far->reads;
	return s->slot_due && (!s->waits || rs->kind == P3_FAR_READS_IN_ORDER);
}

static void reads_read_slot(struct p3_far_slice *s, uint64_t now)
{
	if (reads_is_slot_next(s))
		s->slot_due = !reads_begin(s, &s->slot, now); /* FAR.2 */
}

static struct p3_fetch *reads_fetch(
	struct p3_far_link *l, uint64_t id, uint64_t at, uint64_t len)
{
	struct p3_far_reads *rs = l->far->reads;
	struct p3_far_slice *s = l->slices < P3_FAR_SHARE ? reads_free_slice(rs) : NULL;
	uint64_t now = p3_now_ns();
	if (!s || !l->known || now < l->read_at)
		return NULL;
	reads_take(s, l, now);
	s->fetch.state = P3_FETCH_UNDER_WAY;
	s->fetch.at = at;
	s->fetch.len = len;
	reads_aim(s, id);
	if (reads_begin(s, &s->bytes, now)) {
		reads_read_slot(s, now);
		return &s->fetch;
	}
	rs->under_way--;
	reads_give_back(s);
	return NULL;
}

struct p3_fetch *p3_far_fetch(struct p3_peer *p, uint64_t id, uint64_t at, uint64_t len)
{
	int saved = errno;
	struct p3_fetch *f = reads_fetch(p3_far_link_of(p), id, at, len);
	errno = saved;
	return f;
}

static bool reads_is_under_way(const struct p3_far_slice *s)
{
	return s->waits || s->slot_due;
}

/* If both reads are over, say so. */
static void reads_end_if_over(struct p3_far_slice *s)
{
	if (reads_is_under_way(s))
		return;
	s->link->far->reads->under_way--;
	s->fetch.state = s->failed ? P3_FETCH_FAILED : P3_FETCH_HERE;
	if (!s->dropped)
		return;
	s->link->orphans--;
	reads_give_back(s);
}

void p3_far_let_go(struct p3_fetch *f)
{
	struct p3_far_slice *s = p3_item(f, struct p3_far_slice, fetch);
	if (f->state != P3_FETCH_UNDER_WAY) {
		reads_give_back(s);
		return;
	}
	s->dropped = true;
	s->link->orphans++;
	if (s->slot_due)
		s->slot_due = false;
	reads_end_if_over(s);
}

void p3_far_reads_done(struct p3_nic *n, struct p3_far_read *r, bool failed)
{
	struct p3_far_slice *s = r->owner;
	s->waits--;
	s->failed |= failed;
	uint64_t now = p3_now_ns();
	if (failed) { /* a broken connection may fail all reads for a moment */
		s->slot_due = false;
		reads_pause_reads(s->link, now, P3_FAR_RETRY_NS);
	}
	reads_read_slot(s, now);
	reads_end_if_over(s);
	n->worked = true;
}

/* ---- each pass ---- */

/* Cut a connection on which a read has taken too long. */
static void reads_cut_stuck(struct p3_far *far, struct p3_far_slice *s, uint64_t now)
{
	if (now - s->began < s->stuck_ns)
		return;
	s->stuck_ns *= 2;
	far->ops->cut(far->ep, s->link->to);
}

void p3_far_reads_look(struct p3_far *far, uint64_t now)
{
	struct p3_far_reads *rs = far->reads;
	if (!rs)
		return;
	for (uint32_t i = 0; rs->under_way && i < P3_FAR_SLICES; i++) {
		struct p3_far_slice *s = &rs->slices[i];
		if (!s->link || !reads_is_under_way(s))
			continue;
		if (now >= s->link->read_at)
			reads_read_slot(s, now);
		if (s->waits)
			reads_cut_stuck(far, s, now);
	}
}

uint64_t p3_far_reads_turn(const struct p3_far *far)
{
	const struct p3_far_reads *rs = far->reads;
	uint64_t first = UINT64_MAX;
	if (!rs)
		return first;
	if (rs->turn_at > p3_now_ns())
		first = rs->turn_at;
	for (uint32_t i = 0; rs->under_way && i < P3_FAR_SLICES; i++) {
		const struct p3_far_slice *s = &rs->slices[i];
		uint64_t at = s->began + s->stuck_ns;
		if (!s->link || !reads_is_under_way(s))
			continue;
		if (reads_is_slot_next(s) && s->link->read_at < at)
			at = s->link->read_at;
		if (at < first)
			first = at;
	}
	return first;
}

void p3_far_reads_up(struct p3_far_link *l)
{
	const struct p3_far_reads *rs = l->far->reads;
	if (rs)
		p3_set(&l->carry.mine.slots_key, rs->table.key);
}

/* ---- opening and closing ---- */

static void reads_aim_slice(struct p3_far_slice *s, char *memory)
{
	s->fetch.bytes = s->bytes.to = memory;
	s->fetch.slot = s->slot.to = &s->found;
	s->bytes.owner = s->slot.owner = s;
	s->bytes.op.kind = s->slot.op.kind = P3_FAR_READ;
}

static int reads_make(struct p3_nic *n, struct p3_far_reads *rs)
{
	rs->memory = p3_far_reserve((uint64_t)P3_FAR_SLICES * P3_FETCH_MOST);
	rs->offers = calloc(n->layout.nxfers, sizeof *rs->offers);
	rs->offered = calloc(n->layout.nxfers, sizeof *rs->offered);
	if (!rs->memory || !rs->offers || !rs->offered)
		return -ENOMEM;
	for (uint32_t i = 0; i < P3_FAR_SLICES; i++)
		reads_aim_slice(&rs->slices[i], rs->memory + (size_t)i * P3_FETCH_MOST);
	return 0;
}

void p3_far_reads_open(struct p3_nic *n, struct p3_far *far)
{
	enum p3_far_reads_kind kind =
		far->ops->reads ? far->ops->reads(far->ep) : P3_FAR_NO_READS;
	const char *table = (const char *)n->published.base + n->layout.xfers_off;
	uint64_t len = n->layout.nxfers * sizeof(struct p3_xfer);
	if (kind == P3_FAR_NO_READS)
		return;
	far->reads = calloc(1, sizeof *far->reads);
	if (!far->reads)
		return;
	far->reads->kind = kind;
	if (reads_make(n, far->reads) ||
		far->ops->offer(far->ep, table, len, &far->reads->table))
		p3_far_reads_close(far);
}

void p3_far_reads_end(struct p3_far *far)
{
	struct p3_far_reads *rs = far->reads;
	if (!rs)
		return;
	for (uint32_t i = 0; i < rs->noffered; i++)
		if (rs->offers[rs->offered[i]].id)
			reads_recall(far, &rs->offers[rs->offered[i]]);
	rs->noffered = 0;
	far->ops->recall(far->ep, &rs->table);
}

void p3_far_reads_close(struct p3_far *far)
{
	struct p3_far_reads *rs = far->reads;
	if (!rs)
		return;
	if (rs->memory)
		munmap(rs->memory, (size_t)P3_FAR_SLICES * P3_FETCH_MOST);
	free(rs->offers);
	free(rs->offered);
	free(rs);
	far->reads = NULL;
}
