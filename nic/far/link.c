/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of a pair of nodes on different hosts. */
#include "nic/far/link.h"
#include "nic/wire/crc.h"
#include "shm/seg.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

/* ---- keys ---- */

/* Return the key of the frames between two nodes in their present lives. */
static uint32_t link_key(uint64_t from, uint64_t to)
{
	return p3_crc32c(p3_crc32c(0, &from, sizeof from), &to, sizeof to);
}

/* ---- credits ---- */

/* Note how many frames the peer may send now. */
static void link_count_room(struct p3_far_link *l)
{
	const struct p3_gbn *g = &l->carry.gbn;
	int32_t room = (int32_t)(g->promised - g->expected);
	l->far->promised -= l->room;
	l->room = room > 0 && l->up ? (uint32_t)room : 0;
	l->far->promised += l->room;
}

/* Offer the peer its share of the buffers, as far as they are not promised to others. */
static void link_offer_room(struct p3_far_link *l)
{
	const struct p3_far *far = l->far;
	uint32_t others = far->promised - l->room, share = P3_FAR_PROMISED / far->links;
	uint32_t left = others < P3_FAR_PROMISED ? P3_FAR_PROMISED - others : 0;
	uint32_t room = share < left ? share : left;
	if (room > P3_FRAME_WINDOW)
		room = P3_FRAME_WINDOW;
	l->carry.gbn.room = room ? room : 1;
}

/* ---- out ---- */

/* Note that buffers which the endpoint has now may never come back. */
static void link_note_lost_buffers(struct p3_far_link *l, uint64_t now)
{
	if (l->lost_at || !l->far->ops->loses_buffers)
		return;
	l->lost_from = now;
	l->lost_at = now + P3_FAR_LOST_NS;
}

/* Process a broken connection: after a pause, send again from the first frame that is not
 * acknowledged. */
static void link_on_broken(struct p3_far_link *l, uint64_t now)
{
	if (now < l->retry_at)
		return; /* one broken connection fails all its frames */
	l->retry_ns = l->retry_ns ? 2 * l->retry_ns : P3_FAR_RETRY_NS;
	if (l->retry_ns > P3_FAR_RETRY_MOST)
		l->retry_ns = P3_FAR_RETRY_MOST;
	p3_count(&l->carry.peer->nic->count[P3_C_FAR_BREAKS], 1);
	l->retry_at = now + l->retry_ns;
	p3_gbn_go_back(&l->carry.gbn, now);
	link_note_lost_buffers(l, now);
}

/* Make the peer's address known.  Return true if it is. */
static bool link_resolve_peer(struct p3_far_link *l)
{
	struct p3_far *far = l->far;
	if (!l->known)
		l->known = far->ops->resolve(far->ep, l->carry.peer->index, l->name,
				   l->name_len, &l->to) == 0;
	return l->known;
}

static struct p3_far_buffer *link_take_buffer(struct p3_far *far)
{
	struct p3_far_buffer *b = far->free;
	if (b)
		far->free = b->next;
	else if (far->fresh < far->nbuffers)
		b = &far->buffers[far->fresh++];
	return b;
}

/* Free a buffer that neither waits for an acknowledgement nor is with the endpoint. */
static void link_free_if_unused(struct p3_far *far, struct p3_far_buffer *b)
{
	if (b->held || b->lent)
		return;
	b->next = far->free;
	far->free = b;
}

static struct p3_far_buffer *link_buffer_of(const struct p3_frame *f)
{
	return p3_item((uintptr_t)f, struct p3_far_buffer, frame);
}

static struct p3_frame *link_take_frame(void *arg)
{
	struct p3_far_link *l = arg;
	struct p3_far *far = l->far;
	if (l->held >= P3_FAR_OWN && far->held >= P3_FAR_BUFFERS)
		return NULL;
	struct p3_far_buffer *b = link_take_buffer(far);
	if (!b)
		return NULL;
	b->held = true;
	l->held++;
	far->held++;
	return &b->frame;
}

static void link_drop_frame(void *arg, struct p3_frame *f)
{
	struct p3_far_link *l = arg;
	struct p3_far_buffer *b = link_buffer_of(f);
	b->held = false;
	l->held--;
	l->far->held--;
	link_free_if_unused(l->far, b);
}

/* Return true if the endpoint still has the buffer of a frame that was sent before. */
static bool link_keeps_frame(void *arg, const struct p3_frame *f)
{
	struct p3_far_link *l = arg;
	if (link_buffer_of(f)->lent)
		link_note_lost_buffers(l, l->carry.now);
	return link_buffer_of(f)->lent;
}

/* Return a buffer with the frame: its own, or a copy if it lies in none.  Return NULL if
 * there is no buffer now. */
static struct p3_far_buffer *link_buffer_for(
	struct p3_far_link *l, const struct p3_frame *f, uint32_t len)
{
	struct p3_far_buffer *b;
	if (f->kind == P3_FRAME_PARTS)
		return link_buffer_of(f);
	b = link_take_buffer(l->far);
	if (b)
		memcpy(&b->frame, f, len);
	return b;
}

/* Give a frame to the endpoint.  Return false if that is impossible now. */
static bool link_send_frame(void *arg, const struct p3_frame *f, uint32_t len)
{
	struct p3_far_link *l = arg;
	struct p3_far *far = l->far;
	if ((far->lent >= P3_FAR_BUFFERS && l->flight >= P3_FAR_OWN) ||
		l->flight == P3_FAR_FLIGHT || l->carry.now < l->retry_at ||
		!link_resolve_peer(l))
		return false;
	struct p3_far_buffer *b = link_buffer_for(l, f, len);
	if (!b)
		return false;
	b->frame.medium = l->carry.peer->nic->conf.node;
	b->node = l->carry.peer->index;
	int rc = far->ops->send(far->ep, l->to, b, len);
	if (rc) {
		link_free_if_unused(far, b);
		if (rc != -EAGAIN)
			link_on_broken(l, l->carry.now);
		return false;
	}
	b->lent = true;
	b->lent_ns = l->carry.now;
	far->lent++;
	l->flight++;
	p3_count(&l->carry.peer->nic->count[P3_C_FAR_OUT], 1);
	return true;
}

static const struct p3_gbn_medium link_medium = {.put = link_send_frame,
	.keeps = link_keeps_frame,
	.take = link_take_frame,
	.drop = link_drop_frame};

static void link_give_back(struct p3_far_link *l, struct p3_far_buffer *b)
{
	b->lent = false;
	l->far->lent--;
	l->flight--;
	link_free_if_unused(l->far, b);
}

/* Treat the buffers that are lost as given back. */
static void link_free_lost_buffers(struct p3_far_link *l)
{
	struct p3_far *far = l->far;
	for (uint32_t i = P3_FAR_POSTED; i < far->fresh && l->flight; i++) {
		struct p3_far_buffer *b = &far->buffers[i];
		if (b->lent && b->node == l->carry.peer->index &&
			b->lent_ns <= l->lost_from)
			link_give_back(l, b);
	}
	l->lost_at = 0;
}

void p3_far_link_sent(struct p3_far_link *l, struct p3_far_buffer *b, bool failed)
{
	if (!b->lent)
		return; /* link_free_lost_buffers() has freed it */
	link_give_back(l, b);
	if (failed && l->up)
		link_on_broken(l, l->carry.now);
}

void p3_far_link_send(struct p3_nic *n, struct p3_far_link *l)
{
	struct p3_carry *c = &l->carry;
	if (!l->lost_at && p3_carry_is_still(n, c)) {
		l->stuck = l->waits = 0;
		return; /* as in most passes of a wait */
	}
	if (!l->orphans)
		p3_carry_capture(n, c);
	else
		c->all_captured = false;
	link_offer_room(l);
	if (l->lost_at && c->now >= l->lost_at)
		link_free_lost_buffers(l);
	p3_gbn_send(&c->gbn, c->now);
	link_count_room(l);
	p3_carry_count(n, c);
	l->waits = 0;
	if (p3_gbn_due(&c->gbn) > c->now)
		l->stuck = 0;
	else if (!l->stuck)
		l->stuck = c->now;
}

uint64_t p3_far_link_turn(const struct p3_far_link *l)
{
	uint64_t now = l->carry.now, at = p3_gbn_due(&l->carry.gbn);
	uint64_t lazy = p3_carry_due(&l->carry);
	if (at > lazy)
		at = lazy;
	uint64_t waited = l->stuck ? now - l->stuck : 0;
	if (at > now)
		return at;
	if (waited < P3_FAR_ROOM_NS)
		waited = P3_FAR_ROOM_NS;
	at = now + (waited < P3_FAR_ROOM_MOST ? waited : P3_FAR_ROOM_MOST);
	return at > l->retry_at ? at : l->retry_at;
}

/* ---- in ---- */

/* If the peer has acknowledged a frame, end the pauses: the connection works. */
static void link_note_acknowledgement(struct p3_far_link *l, uint32_t before)
{
	struct p3_gbn *g = &l->carry.gbn;
	if (g->base == before)
		return;
	l->retry_at = l->retry_ns = 0;
	if (!l->heard)
		p3_gbn_set_pace(g, P3_FAR_SOON_NS, P3_FAR_RESEND_NS, P3_FAR_RESEND_MOST);
	l->heard = true;
}

bool p3_far_link_take(
	struct p3_nic *n, struct p3_far_link *l, const struct p3_frame *f, uint32_t len)
{
	struct p3_gbn *g = &l->carry.gbn;
	uint32_t before = g->base;
	uint64_t bad = g->bad_sums;
	bool next = p3_gbn_take(g, f, len, l->carry.now), intact = g->bad_sums == bad;
	p3_carry_count(n, &l->carry);
	if (!intact)
		return true;
	l->came++;
	p3_count(&n->count[P3_C_FAR_IN], 1);
	link_note_acknowledgement(l, before);
	link_count_room(l);
	return !next || p3_carry_apply(n, &l->carry, f);
}

/* ---- lives ---- */

void p3_far_link_up(struct p3_nic *n, struct p3_far_link *l, struct p3_peer *p,
	struct p3_lane *lane_out)
{
	struct p3_gbn *g = &l->carry.gbn;
	uint64_t self = n->conf.incarnation, other = p->incarnation;
	p3_carry_reset(n, &l->carry, p, lane_out);
	p3_gbn_init(g, &link_medium, l, link_key(self, other), link_key(other, self));
	g->intact = l->far->ops->authenticates;
	g->fill = l->far->fill;
	g->ack_ns = P3_FAR_LAZY_NS;
	p3_gbn_set_pace(g, 0, P3_FAR_EARLY_NS, P3_FAR_RESEND_MOST);
	p3_gbn_set_room(g, P3_FAR_FIRST);
	l->retry_at = l->retry_ns = l->stuck = l->waits = l->flushed = 0;
	l->read_at = 0;
	l->lost_at = 0;
	l->heard = l->offered = false;
	l->up = true;
	l->far->links++;
	link_count_room(l);
}

void p3_far_link_down(struct p3_far_link *l)
{
	if (!l->up)
		return;
	l->up = false;
	p3_gbn_end(&l->carry.gbn);
	l->far->links--;
	link_count_room(l);
	l->known = false;
}

/* ---- memory ---- */

void *p3_far_reserve(uint64_t len)
{
	void *at = p3_pages_map(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

struct p3_far_link *p3_far_link_new(struct p3_nic *n, struct p3_far *far)
{
	struct p3_far_link *l = p3_far_reserve(sizeof *l + n->layout.seg_len);
	if (l) {
		l->far = far;
		l->carry.image = l->image;
	}
	return l;
}

void p3_far_link_free(struct p3_nic *n, struct p3_far_link *l)
{
	munmap(l, sizeof *l + n->layout.seg_len);
}
