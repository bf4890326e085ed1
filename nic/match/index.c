/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The match list of a portal index, and its hash index.
 *
 *	list	 head <-> entry <-> entry <-> tail	labels grow along the list
 *	tuples	 the shapes of the list's entries: their ignore bits, and whether nid and
 *		 pid count; few lists have more than three tuples
 *	buckets	 entries of one tuple whose bits and ids hash alike, in list order; all
 *		 lists of an interface share its buckets
 *
 * A request is looked up once for each tuple, and the found entry with the smallest
 * label is the first in the list (match.c).  A list has at most P3_TUPLES tuples.
 * Entries of further shapes are in one bucket of the list, "loose", which a search walks
 * entry by entry.  Short lists have no index.
 */
#include "nic/match/match.h"

#ifndef P3_INDEX_FROM
#define P3_INDEX_FROM 16u /* a list of this number of entries is indexed, */
#endif
#define P3_INDEX_TO (P3_INDEX_FROM / 4) /* until it has only this number */
/* largest range of labels: differences have a sign */
#define P3_SPAN_MOST ((uint64_t)1 << 62)
#ifndef P3_STEP
#define P3_STEP ((uint64_t)1 << 32)
#endif

/* ---- the index ---- */

static struct p3_bucket *bucket_of(struct p3_ni *ni, const struct p3_me *me)
{
	struct p3_portal *list = &ni->portal[me->pt_index];
	if (me->tuple == P3_TUPLES)
		return &list->loose;
	return p3_bucket_at(ni, &list->tuple[me->tuple], me->pt_index, me->tuple,
		me->bits, me->who.is);
}

static bool same_shape(const struct p3_tuple *t, const struct p3_me *me)
{
	return t->n && t->ignore == me->ignore && t->mask == me->who.mask;
}

/* Return the tuple of an entry, or P3_TUPLES if there is no room for another tuple. */
static uint32_t find_tuple(const struct p3_portal *list, const struct p3_me *me)
{
	uint32_t vacant = P3_TUPLES;
	for (uint32_t i = P3_TUPLES; i-- > 0;) {
		if (same_shape(&list->tuple[i], me))
			return i;
		if (!list->tuple[i].n)
			vacant = i;
	}
	return vacant;
}

/* Return the entry of this bucket that precedes me in the list, or NULL. */
static struct p3_me *before_in(const struct p3_bucket *b, const struct p3_me *me)
{
	if (!me->prev)
		return NULL;
	struct p3_me *at = b->tail;
	while (at && (at->pt_index != me->pt_index || at->tuple != me->tuple ||
			     !p3_label_before(at->label, me->label)))
		at = at->bucket_prev;
	return at;
}

static void tuple_add(struct p3_portal *list, const struct p3_me *me)
{
	struct p3_tuple *t = &list->tuple[me->tuple];
	t->ignore = me->ignore;
	t->mask = me->who.mask;
	if (t->n++ == 0 || p3_label_before(me->label, t->first))
		t->first = me->label;
	list->used |= (uint16_t)(1u << me->tuple);
}

static void tuple_remove(struct p3_portal *list, const struct p3_me *me)
{
	if (--list->tuple[me->tuple].n == 0)
		list->used &= (uint16_t) ~(1u << me->tuple);
}

/* Add an entry to the index; last: it is behind all indexed entries of the list. */
static void index_add(
	struct p3_ni *ni, struct p3_portal *list, struct p3_me *me, bool last)
{
	me->tuple = (uint8_t)find_tuple(list, me);
	if (me->tuple < P3_TUPLES)
		tuple_add(list, me);
	struct p3_bucket *b = bucket_of(ni, me);
	struct p3_me *prev = last ? b->tail : before_in(b, me);
	struct p3_me *next = prev ? prev->bucket_next : b->head;
	me->bucket_prev = prev;
	me->bucket_next = next;
	*(prev ? &prev->bucket_next : &b->head) = me;
	*(next ? &next->bucket_prev : &b->tail) = me;
}

static __attribute__((noinline)) void index_remove(
	struct p3_ni *ni, struct p3_portal *list, struct p3_me *me)
{
	struct p3_bucket *b = bucket_of(ni, me);
	struct p3_me *prev = me->bucket_prev, *next = me->bucket_next;
	*(prev ? &prev->bucket_next : &b->head) = next;
	*(next ? &next->bucket_prev : &b->tail) = prev;
	if (me->tuple < P3_TUPLES)
		tuple_remove(list, me);
}

/* Index the list in order, so that every entry goes behind those already in its
 * bucket. */
static void build(struct p3_ni *ni, struct p3_portal *list)
{
	list->indexed = true;
	for (struct p3_me *me = list->head; me; me = me->next)
		index_add(ni, list, me, true);
}

static __attribute__((noinline)) void tear_down(struct p3_ni *ni, struct p3_portal *list)
{
	for (struct p3_me *me = list->head; me; me = me->next)
		index_remove(ni, list, me);
	list->indexed = false;
}

/* ---- labels ---- */

static P3_RARE void relabel(struct p3_portal *list)
{
	uint64_t label = 0;
	for (struct p3_me *me = list->head; me; me = me->next)
		me->label = label += P3_STEP;
	for (uint32_t i = 0; i < P3_TUPLES; i++)
		list->tuple[i].first = list->head->label;
}

/* Label an entry between its neighbours; if there is no label left, relabel the list. */
static P3_HOT void label(struct p3_portal *list, struct p3_me *me)
{
	if (!me->prev && !me->next)
		me->label = 0;
	else if (!me->next)
		me->label = me->prev->label + P3_STEP;
	else if (!me->prev)
		me->label = me->next->label - P3_STEP;
	else
		me->label = me->prev->label + (me->next->label - me->prev->label) / 2;
	bool full = me->prev && me->label == me->prev->label;
	/* Labels stay within fixed bounds around 0, since they are compared with a
	 * tuple's first, too, which may be the label of a removed entry. */
	if (full || me->label + P3_SPAN_MOST / 2 > P3_SPAN_MOST)
		relabel(list);
}

/* ---- the list ---- */

/* Do what the index needs after an insertion. */
static __attribute__((noinline)) void index_inserted(
	struct p3_ni *ni, struct p3_portal *list, struct p3_me *me)
{
	if (list->indexed)
		index_add(ni, list, me, !me->next);
	else
		build(ni, list);
}

/* Count an entry that is in the list now. */
static P3_HOT void inserted(struct p3_ni *ni, struct p3_portal *list, struct p3_me *me)
{
	label(list, me);
	list->n++;
	if (p3_unlikely(
		    list->indexed || (list->n == P3_INDEX_FROM && !p3_without(P3_INDEX))))
		index_inserted(ni, list, me);
}

void p3_match_list_insert(
	struct p3_ni *ni, struct p3_me *me, struct p3_me *base, uint32_t position)
{
	struct p3_portal *list = &ni->portal[me->pt_index];
	struct p3_me *prev = position == PTL_INS_AFTER ? base : base ? base->prev : NULL;
	struct p3_me *next = prev ? prev->next : list->head;
	me->prev = prev;
	me->next = next;
	*(prev ? &prev->next : &list->head) = me;
	*(next ? &next->prev : &list->tail) = me;
	inserted(ni, list, me);
}

P3_SPREAD
void p3_match_list_append(struct p3_ni *ni, struct p3_portal *list, struct p3_me *me)
{
	struct p3_me *prev = list->tail;
	me->prev = prev;
	me->next = NULL;
	*(prev ? &prev->next : &list->head) = me;
	list->tail = me;
	inserted(ni, list, me);
}

P3_SPREAD
void p3_match_list_remove(struct p3_ni *ni, struct p3_me *me)
{
	struct p3_portal *list = &ni->portal[me->pt_index];
	if (p3_unlikely(list->indexed))
		index_remove(ni, list, me);
	*(me->prev ? &me->prev->next : &list->head) = me->next;
	*(me->next ? &me->next->prev : &list->tail) = me->prev;
	list->n--;
	if (p3_unlikely(list->indexed && list->n == P3_INDEX_TO))
		tear_down(ni, list);
}
