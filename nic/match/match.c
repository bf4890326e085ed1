/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching: access control, the match list of a portal index and its hash index, and
 * acceptance by a descriptor.
 *
 *	list	 head <-> entry <-> entry <-> tail	labels grow along the list
 *	tuples	 the shapes of the list's entries: their ignore bits, and whether nid and
 *		 pid count; few lists have more than three tuples
 *	buckets	 entries of one tuple whose bits and ids hash alike, in list order; all
 *		 lists of an interface share its buckets
 *
 * A request is looked up once for each tuple, and the found entry with the smallest
 * label is the first in the list.  A list has at most P3_TUPLES tuples.  Entries of
 * further shapes are in one bucket of the list, "loose", which a search walks entry by
 * entry.  A list gets its index when a search has walked along many entries in vain, and
 * labels with it: most lists are long since receives wait in the order of their messages.
 */
#include "nic/match/match.h"

#include "nic/proto/format.h"

/* ---- acceptance ---- */

static inline bool acl_allows(const struct p3_ni *ni, const struct p3_ask *ask)
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
	return acl_allows(ni, ask);
}

static inline bool match_md(
	struct p3_md *md, const struct p3_ask *ask, struct p3_hit *hit)
{
	uint32_t options = md->sink.options;
	if (p3_unlikely(md->odd & P3_MD_ODD_INACTIVE ||
			p3_match_options(ask->kind) & ~options))
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

static inline bool match_me(
	const struct p3_me *me, const struct p3_ask *ask, struct p3_hit *hit_out)
{
	return p3_likely(((ask->bits ^ me->bits) & ~me->ignore) == 0) &&
	       p3_likely(me->md != NULL) &&
	       p3_likely(p3_want_matches(me->who, ask->who)) &&
	       match_md(me->md, ask, hit_out);
}

/* Return the first matching entry of this tuple in a bucket, unless it is behind best. */
static inline const struct p3_me *index_look_up(const struct p3_bucket *bucket,
	uint32_t tuple, const struct p3_ask *ask, const struct p3_me *best)
{
	struct p3_hit hit;
	for (const struct p3_me *me = bucket->head; me; me = me->bucket_next) {
		if (me->pt_index != ask->pt_index || me->tuple != tuple)
			continue;
		if (best && p3_label_before(best->label, me->label))
			break;
		if (match_me(me, ask, &hit))
			return me;
	}
	return best;
}

__attribute__((noinline)) struct p3_md *p3_match_search(const struct p3_ni *ni,
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
		if (!best || p3_label_before(t->first, best->label))
			best = index_look_up(p3_bucket_at(ni, t, pt_index, i, bits, who),
				i, &ask, best);
	}
	if (list->loose.head)
		best = index_look_up(&list->loose, P3_TUPLES, &ask, best);
	return best ? best->md : NULL;
}

/* ---- targets that the access list admits ---- */

void p3_acl_cache_add(struct p3_nic *n, uint64_t target, uint64_t owner)
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
		*p3_acl_cache_at(n, target) =
			(struct p3_acl_target){target, owner, ni, &ni->portal[pt_index]};
}

void p3_acl_cache_clear(struct p3_nic *n)
{
	for (uint32_t i = 0; i < P3_ACL_CACHE; i++)
		n->acl_cache[i].target = 0;
}

/* ---- the index ---- */

#define P3_INDEX_TO   (P3_INDEX_FROM / 2) /* an index is dropped with so few entries */
#define P3_INDEX_MOST 256u /* a list of so many has one before it is searched */
/* largest range of labels: differences have a sign */
#define P3_SPAN_MOST ((uint64_t)1 << 62)
#ifndef P3_STEP
#define P3_STEP ((uint64_t)1 << 32)
#endif

static struct p3_bucket *index_bucket_of(struct p3_ni *ni, const struct p3_me *me)
{
	struct p3_portal *list = &ni->portal[me->pt_index];
	if (me->tuple == P3_TUPLES)
		return &list->loose;
	return p3_bucket_at(ni, &list->tuple[me->tuple], me->pt_index, me->tuple,
		me->bits, me->who.is);
}

/* Return the tuple of an entry, or P3_TUPLES if there is no room for another tuple. */
static uint32_t tuple_find(const struct p3_portal *list, const struct p3_me *me)
{
	uint32_t vacant = P3_TUPLES;
	for (uint32_t i = P3_TUPLES; i-- > 0;) {
		const struct p3_tuple *t = &list->tuple[i];
		if (t->n && t->ignore == me->ignore && t->mask == me->who.mask)
			return i;
		if (!t->n)
			vacant = i;
	}
	return vacant;
}

/* Return the entry of this bucket that precedes me in the list, or NULL. */
static struct p3_me *index_before(const struct p3_bucket *b, const struct p3_me *me)
{
	if (!me->prev)
		return NULL;
	struct p3_me *at = b->tail;
	while (at && (at->pt_index != me->pt_index || at->tuple != me->tuple ||
			     !p3_label_before(at->label, me->label)))
		at = at->bucket_prev;
	return at;
}

/* Add an entry to the index; last: it is behind all indexed entries of the list. */
static void index_add(
	struct p3_ni *ni, struct p3_portal *list, struct p3_me *me, bool last)
{
	me->tuple = (uint8_t)tuple_find(list, me);
	if (me->tuple < P3_TUPLES) {
		struct p3_tuple *t = &list->tuple[me->tuple];
		t->ignore = me->ignore;
		t->mask = me->who.mask;
		if (t->n++ == 0 || p3_label_before(me->label, t->first))
			t->first = me->label;
		list->used |= (uint16_t)(1u << me->tuple);
	}
	struct p3_bucket *b = index_bucket_of(ni, me);
	struct p3_me *prev = last ? b->tail : index_before(b, me);
	struct p3_me *next = prev ? prev->bucket_next : b->head;
	me->bucket_prev = prev;
	me->bucket_next = next;
	*(prev ? &prev->bucket_next : &b->head) = me;
	*(next ? &next->bucket_prev : &b->tail) = me;
}

static __attribute__((noinline)) void index_remove(
	struct p3_ni *ni, struct p3_portal *list, struct p3_me *me)
{
	struct p3_bucket *b = index_bucket_of(ni, me);
	struct p3_me *prev = me->bucket_prev, *next = me->bucket_next;
	*(prev ? &prev->bucket_next : &b->head) = next;
	*(next ? &next->bucket_prev : &b->tail) = prev;
	if (me->tuple < P3_TUPLES && --list->tuple[me->tuple].n == 0)
		list->used &= (uint16_t) ~(1u << me->tuple);
}

static __attribute__((noinline)) void index_tear_down(
	struct p3_ni *ni, struct p3_portal *list)
{
	for (struct p3_me *me = list->head; me; me = me->next)
		index_remove(ni, list, me);
	list->indexed = false;
}

/* ---- the list and its labels ---- */

/* Label all entries, and leave room behind me, where entries most likely come next. */
static P3_RARE void list_relabel(struct p3_portal *list, const struct p3_me *me)
{
	uint64_t label = 0;
	for (struct p3_me *each = list->head; each; each = each->next) {
		each->label = label += P3_STEP;
		label += each == me ? P3_SPAN_MOST / 8 : 0;
	}
	for (uint32_t i = 0; i < P3_TUPLES; i++)
		list->tuple[i].first = list->head->label;
}

/* Label an entry between its neighbours; if there is no label left, relabel the list. */
static void list_label(struct p3_portal *list, struct p3_me *me)
{
	uint64_t step = P3_STEP;
	if (me->prev && me->next && (me->next->label - me->prev->label) / 2 < step)
		step = (me->next->label - me->prev->label) / 2;
	me->label = me->prev ? me->prev->label + step : me->next->label - step;
	/* Labels stay within fixed bounds around 0, since they are compared with a
	 * tuple's first, too, which may be the label of a removed entry. */
	if (!step || me->label + P3_SPAN_MOST / 2 > P3_SPAN_MOST)
		list_relabel(list, me);
}

/* Make an index of the list, in order, so that every entry goes behind those already in
 * its bucket. */
static P3_RARE void index_make(struct p3_ni *ni, struct p3_portal *list)
{
	list->indexed = true;
	list_relabel(list, NULL);
	for (struct p3_me *me = list->head; me; me = me->next)
		index_add(ni, list, me, true);
}

/* Add an entry, which is in the list now, to the index. */
static __attribute__((noinline)) void index_insert(
	struct p3_ni *ni, struct p3_portal *list, struct p3_me *me)
{
	list_label(list, me);
	index_add(ni, list, me, !me->next);
}

/* Count an entry that is in the list now. */
static P3_HOT void list_inserted(
	struct p3_ni *ni, struct p3_portal *list, struct p3_me *me)
{
	list->n++;
	if (p3_unlikely(list->indexed))
		index_insert(ni, list, me);
	else if (p3_unlikely(list->n == P3_INDEX_MOST) && !p3_without(P3_INDEX))
		index_make(ni, list);
}

P3_HOT
void p3_match_list_insert(struct p3_ni *ni, struct p3_portal *list, struct p3_me *me,
	struct p3_me *base, uint32_t position)
{
	struct p3_me *prev = position == PTL_INS_AFTER ? base : base ? base->prev : NULL;
	struct p3_me *next = position == PTL_INS_AFTER && base ? base->next : base;
	me->prev = prev;
	me->next = next;
	*(prev ? &prev->next : &list->head) = me;
	*(next ? &next->prev : &list->tail) = me;
	list_inserted(ni, list, me);
}

P3_HOT
void p3_match_list_remove(struct p3_ni *ni, struct p3_me *me)
{
	struct p3_portal *list = &ni->portal[me->pt_index];
	if (p3_unlikely(list->indexed))
		index_remove(ni, list, me);
	*(me->prev ? &me->prev->next : &list->head) = me->next;
	*(me->next ? &me->next->prev : &list->tail) = me->prev;
	list->n--;
	if (p3_unlikely(list->indexed && list->n == P3_INDEX_TO))
		index_tear_down(ni, list);
}

/* ---- requests ---- */

/* Search a list that has an index. */
static inline bool match_by_index(
	struct p3_ni *ni, const struct p3_ask *ask, struct p3_hit *hit_out)
{
	struct p3_md *md = p3_match_search(ni, ask->pt_index, ask->kind, ask->bits,
		ask->who, ask->length, ask->remote_offset);
	return md && match_md(md, ask, hit_out);
}

static inline bool match_any(
	struct p3_ni *ni, const struct p3_ask *ask, struct p3_hit *hit_out)
{
	if (p3_unlikely(ask->pt_index > (uint32_t)ni->limits.max_pt_index ||
			!acl_allows(ni, ask)))
		return false;
	struct p3_portal *list = &ni->portal[ask->pt_index];
	if (p3_unlikely(list->indexed))
		return match_by_index(ni, ask, hit_out);
	uint32_t left = P3_INDEX_FROM;
	for (const struct p3_me *me = list->head; me; me = me->next) {
		if (p3_likely(match_me(me, ask, hit_out)))
			return true;
		if (p3_unlikely(!--left) && !p3_without(P3_INDEX)) {
			index_make(ni, list);
			return match_by_index(ni, ask, hit_out);
		}
	}
	return false;
}

bool p3_match_request(struct p3_ni *ni, const struct p3_ask *ask, struct p3_hit *hit_out)
{
	return match_any(ni, ask, hit_out);
}

bool p3_match_on_host(struct p3_ni *ni, const struct p3_ask *ask, struct p3_hit *hit_out)
{
	return match_any(ni, ask, hit_out);
}

/* ---- prefetch for the requests behind the current one ---- */

/*
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
#define P3_DISTANCE 3u /* cells up to the last request that is looked at */
#define P3_ASKED    8u /* cells up to the prefetched cell, which must have come by then */
/* entries of a tuple that are in a near cache anyway */
#define P3_SMALL (P3_LONG / 16)

static inline struct p3_prefetch *prefetch_stage(struct p3_nic *n, uint32_t before)
{
	return &n->prefetch[(n->nprefetch - before) % P3_STAGES];
}

static inline void prefetch_buckets(const struct p3_ni *ni, uint32_t pt_index,
	uint64_t bits, uint64_t who, struct p3_prefetch *out)
{
	const struct p3_portal *list = &ni->portal[pt_index];
	for (uint32_t left = list->used; left && out->n < P3_PREFETCH; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(left);
		const struct p3_tuple *t = &list->tuple[i];
		if (t->n < P3_SMALL)
			continue;
		out->bucket[out->n] = p3_bucket_at(ni, t, pt_index, i, bits, who);
		p3_read_soon(out->bucket[out->n++]);
	}
}

/* Look at a request.  Return false if none is there, or none that can be right. */
static inline bool prefetch_request(
	struct p3_nic *n, struct p3_peer *p, struct p3_prefetch *out)
{
	uint64_t w0;
	const struct p3_cell *c = p3_ring_peek_at(&p->req_in, p->prefetched, &w0);
	if (!c || p3_word0_kind(w0) <= P3_REQ_SWITCH)
		return false;
	uint32_t ncells = p3_word0_ncells(w0);
	if (ncells == 0 || ncells > p3_ring_most(p->req_in.n))
		return false;
	uint64_t to = p3_format_get(c, P3_REQUEST_PORTAL);
	uint32_t pt_index = (uint32_t)p3_field_of(P3_REQUEST_PORTAL, to);
	const struct p3_ni *ni =
		p3_match_interface(n, (uint32_t)p3_field_of(P3_REQUEST_PID, to));
	p->prefetched += ncells;
	if (ni && pt_index <= (uint32_t)ni->limits.max_pt_index &&
		ni->portal[pt_index].n >= P3_LONG)
		prefetch_buckets(ni, pt_index, p3_format_get(c, P3_REQUEST_BITS),
			p3_match_initiator(p, p3_word0_flags(w0)), out);
	return true;
}

P3_PATH
void p3_prefetch_look(struct p3_nic *n, struct p3_peer *p, uint32_t ncells)
{
	const struct p3_ring_rx *r = &p->req_in;
	struct p3_prefetch *now = prefetch_stage(n, 0);
	now->n = 0;
	p3_ring_ask_at(r, P3_ASKED);
	/* the position fell behind, or belongs to another ring */
	if (p->prefetched - r->pos > r->n || p->prefetched == r->pos)
		p->prefetched = r->pos + ncells;
	while (p->prefetched - r->pos <= P3_DISTANCE && p->prefetched < r->sure &&
		prefetch_request(n, p, now))
		;
	const struct p3_prefetch *entries = prefetch_stage(n, 1);
	for (uint32_t i = 0; i < entries->n; i++)
		p3_read_soon(entries->bucket[i]->head);
	const struct p3_prefetch *descriptors = prefetch_stage(n, 2);
	for (uint32_t i = 0; i < descriptors->n; i++) {
		const struct p3_me *me = descriptors->bucket[i]->head;
		if (!me || !me->md)
			continue;
		p3_read_soon(&me->label);
		p3_read_soon(&me->md->o);
		p3_read_soon(&me->md->me);
	}
	n->nprefetch++;
}

void p3_prefetch_forget(struct p3_nic *n)
{
	for (uint32_t i = 0; i < P3_STAGES; i++)
		n->prefetch[i].n = 0;
}
