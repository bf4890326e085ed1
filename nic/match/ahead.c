/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prefetching for the requests that lie behind the current one in a lane.
 *
 * The entries of a long list are in no near cache, and a request would wait three
 * times: for the bucket, which names the entry, for the entry, and for its descriptor.
 * So these are prefetched while earlier requests are worked on, one of them per request
 * at a time:
 *
 *	cells behind	1		2	3	8
 *	prefetched	descriptor	entry	bucket	the cell
 *
 * Nothing is decided here.  A needless prefetch costs time and has no other effect.
 * The remembered buckets are freed only with their interface, and are forgotten then.
 */
#include "nic/match/ahead.h"

#include "nic/match/match.h"

#define P3_DISTANCE 3u /* cells up to the last request that is looked at */
#define P3_ASKED    8u /* cells up to the prefetched cell, which must have come by then */
/* entries of a tuple that are in a near cache anyway */
#define P3_SMALL (P3_LONG / 16)

static inline struct p3_soon *stage(struct p3_nic *n, uint32_t before)
{
	return &n->soon[(n->nsoon - before) % P3_STAGES];
}

static inline void ask_for_entries(const struct p3_soon *soon)
{
	for (uint32_t i = 0; i < soon->n; i++)
		p3_read_soon(soon->bucket[i]->head);
}

static inline void ask_for_descriptors(const struct p3_soon *soon)
{
	for (uint32_t i = 0; i < soon->n; i++) {
		const struct p3_me *me = soon->bucket[i]->head;
		if (!me || !me->md)
			continue;
		p3_read_soon(&me->label);
		p3_read_soon(&me->md->o);
		p3_read_soon(&me->md->me);
	}
}

static inline void ask_for_buckets(const struct p3_ni *ni, uint32_t pt_index,
	uint64_t bits, uint64_t who, struct p3_soon *soon)
{
	const struct p3_portal *list = &ni->portal[pt_index];
	for (uint32_t left = list->used; left && soon->n < P3_SOON; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(left);
		const struct p3_tuple *t = &list->tuple[i];
		if (t->n < P3_SMALL)
			continue;
		soon->bucket[soon->n] = p3_bucket_at(ni, t, pt_index, i, bits, who);
		p3_read_soon(soon->bucket[soon->n++]);
	}
}

/* Look at a request.  Return false if none is there, or none that can be right. */
static inline bool look_at(struct p3_nic *n, struct p3_peer *p, struct p3_soon *soon)
{
	uint64_t w0;
	const struct p3_cell *c = p3_ring_peek_at(&p->req_in, p->ahead, &w0);
	if (!c || p3_word0_kind(w0) <= P3_REQ_SWITCH)
		return false;
	uint32_t ncells = p3_word0_ncells(w0);
	if (ncells == 0 || ncells > p3_ring_most(p->req_in.n))
		return false;
	uint64_t to = p3_format_get(c, P3_REQUEST_PORTAL);
	uint32_t pt_index = (uint32_t)p3_field_of(P3_REQUEST_PORTAL, to);
	const struct p3_ni *ni =
		p3_match_interface(n, (uint32_t)p3_field_of(P3_REQUEST_PID, to));
	p->ahead += ncells;
	if (ni && pt_index <= (uint32_t)ni->limits.max_pt_index &&
		ni->portal[pt_index].n >= P3_LONG)
		ask_for_buckets(ni, pt_index, p3_format_get(c, P3_REQUEST_BITS),
			p3_match_initiator(p, p3_word0_flags(w0)), soon);
	return true;
}

P3_PATH
void p3_ahead_look(struct p3_nic *n, struct p3_peer *p, uint32_t ncells)
{
	const struct p3_ring_rx *r = &p->req_in;
	struct p3_soon *now = stage(n, 0);
	now->n = 0;
	p3_ring_ask_at(r, P3_ASKED);
	/* the position fell behind, or belongs to another ring */
	if (p->ahead - r->pos > r->n || p->ahead == r->pos)
		p->ahead = r->pos + ncells;
	while (p->ahead - r->pos <= P3_DISTANCE && p->ahead < r->sure &&
		look_at(n, p, now))
		;
	ask_for_entries(stage(n, 1));
	ask_for_descriptors(stage(n, 2));
	n->nsoon++;
}

void p3_ahead_forget(struct p3_nic *n)
{
	for (uint32_t i = 0; i < P3_STAGES; i++)
		n->soon[i].n = 0;
}
