/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A match list and its index, compared with an array: both must find the same first
 * entry that a request matches.  The list's labels are compiled so far apart that it is
 * relabelled all the time, as a list is after 2^29 entries that were appended, or 32 in
 * the same gap.
 */

#include "nic/match/match.h"
#include "support/cases.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 300, LISTS = 2, BUCKETS = 64, TURNS = 30000 };

struct rig {
	struct p3_ni ni;
	struct p3_me *at[LISTS][MOST];
	uint32_t n[LISTS];
	uint64_t seed;
	uint32_t masks;
	uint64_t relabels;
};

static uint32_t dice(struct rig *r, uint32_t sides)
{
	r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(r->seed >> 33) % sides;
}

static void *zeroed(size_t len)
{
	void *at = aligned_alloc(P3_LINE, p3_round_up(len, P3_LINE));
	assert_non_null(at);
	return memset(at, 0, len);
}

static struct rig *rig_new(uint64_t seed, uint32_t masks)
{
	static const struct p3_ac all = {.valid = true, .pt_index = PTL_PT_INDEX_ANY};
	struct rig *r = zeroed(sizeof *r);
	r->seed = seed;
	r->masks = masks;
	r->ni.limits.max_pt_index = LISTS - 1;
	r->ni.portal = zeroed(LISTS * sizeof *r->ni.portal);
	r->ni.bucket = zeroed(BUCKETS * sizeof *r->ni.bucket);
	r->ni.bucket_mask = BUCKETS - 1;
	r->ni.ac = zeroed(sizeof all);
	*r->ni.ac = all;
	return r;
}

static void rig_free(struct rig *r)
{
	free(r->ni.portal);
	free(r->ni.bucket);
	free(r->ni.ac);
	free(r);
}

static struct p3_md *some_md(struct rig *r)
{
	struct p3_md *md = zeroed(sizeof *md);
	md->odd = dice(r, 6) ? 0 : P3_MD_ODD_INACTIVE;
	md->sink.options = (dice(r, 4) ? PTL_MD_OP_PUT : PTL_MD_OP_GET) |
			   (dice(r, 2) ? PTL_MD_TRUNCATE : 0);
	md->region.size = dice(r, 40);
	return md;
}

static struct p3_me *some_entry(struct rig *r, uint32_t list)
{
	struct p3_me *me = zeroed(sizeof *me);
	ptl_process_id_t id = {.nid = dice(r, 2) ? PTL_NID_ANY : dice(r, 3),
		.pid = dice(r, 2) ? PTL_PID_ANY : dice(r, 3)};
	me->pt_index = list;
	me->bits = dice(r, 64);
	me->ignore = (ptl_match_bits_t)dice(r, r->masks) * 5;
	me->who = p3_want_id(id);
	me->tuple = (uint8_t)dice(r, 256); /* a leftover of an earlier entry */
	me->label = (uint64_t)dice(r, 1 << 30) << 34;
	if (dice(r, 8))
		me->md = some_md(r);
	return me;
}

static void insert(struct rig *r, uint32_t list, uint32_t at)
{
	struct p3_me **e = r->at[list], *me = some_entry(r, list);
	uint32_t n = r->n[list];
	uint64_t label = n ? e[0]->label : 0;
	struct p3_portal *p = &r->ni.portal[list];
	if (at == n || (at && dice(r, 2)))
		p3_match_list_insert(&r->ni, p, me, at ? e[at - 1] : NULL, PTL_INS_AFTER);
	else
		p3_match_list_insert(&r->ni, p, me, e[at], PTL_INS_BEFORE);
	r->relabels += n && e[0]->label != label;
	memmove(&e[at + 1], &e[at], (n - at) * sizeof(struct p3_me *));
	e[at] = me;
	r->n[list]++;
}

static void take_out(struct rig *r, uint32_t list, uint32_t at)
{
	struct p3_me **e = r->at[list], *me = e[at];
	p3_match_list_remove(&r->ni, me);
	free(me->md);
	free(me);
	memmove(&e[at], &e[at + 1], (--r->n[list] - at) * sizeof(struct p3_me *));
}

static bool takes(const struct p3_me *me, const struct p3_ask *ask)
{
	uint32_t option = ask->kind == P3_REQ_PUT ? PTL_MD_OP_PUT : PTL_MD_OP_GET;
	const struct p3_md *md = me->md;
	return ((me->bits ^ ask->bits) & ~me->ignore) == 0 &&
	       ((me->who.is ^ ask->who) & me->who.mask) == 0 && md &&
	       !(md->odd & P3_MD_ODD_INACTIVE) && (md->sink.options & option) &&
	       (ask->length <= md->region.size || (md->sink.options & PTL_MD_TRUNCATE));
}

static void ask_for(struct rig *r, uint32_t list)
{
	const struct p3_ask ask = {.kind = dice(r, 2) ? P3_REQ_PUT : P3_REQ_GET,
		.pt_index = list,
		.bits = dice(r, 64),
		.who = p3_pair(dice(r, 3), dice(r, 3)),
		.length = dice(r, 50)};
	const struct p3_md *want = NULL;
	struct p3_hit hit = {.md = NULL};
	for (uint32_t i = 0; i < r->n[list] && !want; i++)
		if (takes(r->at[list][i], &ask))
			want = r->at[list][i]->md;
	assert_int_equal(p3_match_request(&r->ni, &ask, &hit), want != NULL);
	if (!want)
		return;
	assert_ptr_equal(hit.md, want);
	assert_int_equal(hit.mlength,
		ask.length < want->region.size ? ask.length : want->region.size);
}

/* Choose where entries come and go: anywhere, in front, as in a queue, or in one gap. */
static uint32_t place(struct rig *r, uint32_t how, uint32_t n)
{
	switch (how) {
	case 0:
		return 0;
	case 1:
		return n;
	case 2:
		return n / 2;
	default:
		return dice(r, n + 1);
	}
}

static void turn(struct rig *r, uint32_t list, uint32_t size, uint32_t how)
{
	bool grow = r->n[list] < size ? dice(r, 4) != 0 : dice(r, 4) == 0;
	if (grow && r->n[list] < MOST)
		insert(r, list, place(r, how, r->n[list]));
	else if (r->n[list])
		take_out(r, list, how == 1 ? 0 : dice(r, r->n[list]));
	ask_for(r, list);
}

static void lists_are_as_arrays(uint64_t seed, uint32_t masks)
{
	static const uint32_t sizes[] = {2, 20, 200, 10, 60, 3, 280, 0};
	struct rig *r = rig_new(seed, masks);
	for (uint32_t i = 0; i < TURNS; i++) {
		uint32_t list = dice(r, LISTS);
		uint32_t part = i / (TURNS / 8) + list;
		turn(r, list, sizes[part % 8], i / 500 % 4);
	}
	assert_in_range(r->relabels, 10, UINT64_MAX);
	for (uint32_t list = 0; list < LISTS; list++)
		while (r->n[list])
			take_out(r, list, 0);
	rig_free(r);
}

CASE(few_masks)
{
	for (uint64_t seed = 1; seed <= 4; seed++)
		lists_are_as_arrays(seed, 2);
}

/* There are more masks than tuples. */
CASE(many_masks)
{
	for (uint64_t seed = 11; seed <= 14; seed++)
		lists_are_as_arrays(seed, 13);
}

/* Entries go at the head and come at the end, and the list is never empty: labels only
 * grow. */
CASE(a_queue_never_ends)
{
	struct rig *r = rig_new(21, 2);
	for (uint32_t i = 0; i < 40; i++)
		insert(r, 0, r->n[0]);
	for (uint32_t i = 0; i < TURNS; i++) {
		take_out(r, 0, 0);
		insert(r, 0, r->n[0]);
		ask_for(r, 0);
	}
	assert_in_range(r->relabels, 10, UINT64_MAX);
	while (r->n[0])
		take_out(r, 0, 0);
	rig_free(r);
}
