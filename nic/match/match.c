/* SPDX-License-Identifier: BSD-3-Clause */
/* Translation of a request: the match list walk, and the acceptance by a descriptor. */
#include "nic/match/match.h"

#include "nic/proto/format.h"

static inline bool is_allowed(const struct p3_ni *ni, const struct p3_ask *ask)
{
	if (p3_likely(ni->ac0_asks_owner && ask->ac_index == 0))
		return p3_want_matches(ni->ac0_owner, ask->owner);
	if (ask->ac_index > (uint32_t)ni->limits.max_ac_index)
		return false;
	const struct p3_ac *e = &ni->ac[ask->ac_index];
	return e->valid && p3_want_matches(e->who, ask->who) &&
	       p3_want_matches(e->owner, ask->owner) &&
	       (e->pt_index == PTL_PT_INDEX_ANY || e->pt_index == ask->pt_index);
}

bool p3_match_allows(const struct p3_ni *ni, const struct p3_ask *ask)
{
	return is_allowed(ni, ask);
}

static inline bool accepts(struct p3_md *md, const struct p3_ask *ask, struct p3_hit *hit)
{
	uint32_t options = md->sink.options;
	if (p3_unlikely(
		    md->odd & P3_ODD_INACTIVE || p3_match_options(ask->kind) & ~options))
		return false;
	uint64_t off =
		options & PTL_MD_MANAGE_REMOTE ? ask->remote_offset : md->local_offset;
	if (p3_unlikely(off > md->region.size))
		return false;
	uint64_t room = md->region.size - off;
	if (p3_unlikely(ask->length > room) && !(options & PTL_MD_TRUNCATE))
		return false;
	hit->md = md;
	hit->offset = off;
	hit->mlength = p3_likely(ask->length <= room) ? ask->length : room;
	return true;
}

static inline bool fits(
	const struct p3_me *me, const struct p3_ask *ask, struct p3_hit *hit_out)
{
	return p3_likely(((ask->bits ^ me->bits) & ~me->ignore) == 0) &&
	       p3_likely(me->md != NULL) &&
	       p3_likely(p3_want_matches(me->who, ask->who)) &&
	       accepts(me->md, ask, hit_out);
}

static inline bool walk(
	const struct p3_portal *list, const struct p3_ask *ask, struct p3_hit *hit_out)
{
	for (const struct p3_me *me = list->head; me; me = me->next)
		if (p3_likely(fits(me, ask, hit_out)))
			return true;
	return false;
}

/* Return the first matching entry of this tuple in a bucket, unless it is behind best. */
static inline const struct p3_me *look_up(const struct p3_bucket *bucket, uint32_t tuple,
	const struct p3_ask *ask, const struct p3_me *best)
{
	struct p3_hit hit;
	for (const struct p3_me *me = bucket->head; me; me = me->bucket_next) {
		if (me->pt_index != ask->pt_index || me->tuple != tuple)
			continue;
		if (best && p3_label_before(best->label, me->label))
			break;
		if (fits(me, ask, &hit))
			return me;
	}
	return best;
}

static inline bool has_earlier(const struct p3_tuple *t, const struct p3_me *best)
{
	return !best || p3_label_before(t->first, best->label);
}

/* Search a long list.  The arguments are words, not a struct, so that the caller can
 * keep the request in registers. */
static __attribute__((noinline)) struct p3_md *search(const struct p3_ni *ni,
	uint32_t pt_index, uint8_t kind, uint64_t bits, uint64_t who, uint64_t length,
	uint64_t remote_offset)
{
	const struct p3_ask ask = {.kind = kind,
		.pt_index = pt_index,
		.bits = bits,
		.who = who,
		.length = length,
		.remote_offset = remote_offset};
	const struct p3_portal *list = &ni->portal[pt_index];
	const struct p3_me *best = NULL;
	for (uint32_t left = list->used; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(left);
		const struct p3_tuple *t = &list->tuple[i];
		if (has_earlier(t, best))
			best = look_up(p3_bucket_at(ni, t, pt_index, i, bits, who), i,
				&ask, best);
	}
	if (list->loose.head)
		best = look_up(&list->loose, P3_TUPLES, &ask, best);
	return best ? best->md : NULL;
}

static inline bool match(
	struct p3_ni *ni, const struct p3_ask *ask, struct p3_hit *hit_out)
{
	if (p3_unlikely(ask->pt_index > (uint32_t)ni->limits.max_pt_index ||
			!is_allowed(ni, ask)))
		return false;
	const struct p3_portal *list = &ni->portal[ask->pt_index];
	if (p3_likely(!list->indexed))
		return walk(list, ask, hit_out);
	struct p3_md *md = search(ni, ask->pt_index, ask->kind, ask->bits, ask->who,
		ask->length, ask->remote_offset);
	return md && accepts(md, ask, hit_out);
}

bool p3_match_request(struct p3_ni *ni, const struct p3_ask *ask, struct p3_hit *hit_out)
{
	return match(ni, ask, hit_out);
}

bool p3_match_on_host(struct p3_ni *ni, const struct p3_ask *ask, struct p3_hit *hit_out)
{
	return match(ni, ask, hit_out);
}

/* ---- targets of plain requests ---- */

void p3_match_learn(struct p3_nic *n, uint64_t target, uint64_t owner)
{
	uint64_t word = target >> 16;
	struct p3_ni *ni =
		p3_match_interface(n, (uint32_t)p3_field_of(P3_REQUEST_PID, word));
	uint32_t pt_index = (uint32_t)p3_field_of(P3_REQUEST_PORTAL, word);
	uint32_t ac_index = (uint32_t)p3_field_of(P3_REQUEST_ACCESS, word);
	if (!ni || pt_index > (uint32_t)ni->limits.max_pt_index ||
		ac_index > (uint32_t)ni->limits.max_ac_index)
		return;
	const struct p3_ac *e = &ni->ac[ac_index];
	if (e->valid && !e->who.mask && p3_want_matches(e->owner, owner) &&
		(e->pt_index == PTL_PT_INDEX_ANY || e->pt_index == pt_index))
		*p3_match_way(n, target) =
			(struct p3_way){target, owner, ni, &ni->portal[pt_index]};
}

void p3_match_forget(struct p3_nic *n)
{
	for (uint32_t i = 0; i < P3_WAYS; i++)
		n->way[i].target = 0;
}
