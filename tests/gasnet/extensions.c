/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of the extension for vectors, lists and boxes, against loops over bytes. */
#include "gn.h"

const struct gn_program gn_program = {.segment = (uintptr_t)1 << 20};

enum { AREA = 8192, PIECES = 24, LEVELS = 4 };
enum form { VECTOR, LIST, BOX, FORMS };

/* The two sides of a transfer: metadata, and the place of each byte in its area. */
struct side {
	unsigned char *area;
	size_t pieces, len, strides[LEVELS];
	gasnet_memvec_t list[PIECES];
	void *addr[PIECES];
	size_t n, at[AREA];
};

struct transfer {
	enum form form;
	struct side dst, src;
	size_t count[LEVELS + 1], levels;
};

static void add_piece(struct side *s, size_t at, size_t len)
{
	s->list[s->pieces].addr = s->addr[s->pieces] = s->area + at;
	s->list[s->pieces++].len = len;
	for (size_t i = 0; i < len; i++)
		s->at[s->n++] = at + i;
}

static void clear_side(struct side *s, unsigned char *area)
{
	memset(s, 0, sizeof *s);
	s->area = area;
}

/* ---- vectors: pieces of any length, of the same total length on both sides ---- */

/* Destinations lie one behind another, with gaps; sources anywhere. */
static void choose_pieces(struct side *s, size_t total, bool apart, uint64_t *seed)
{
	size_t from = 0;
	while (s->n < total || s->pieces == 0) {
		size_t left = total - s->n;
		size_t len = s->pieces == PIECES - 1 ? left : gn_below(seed, left + 1);
		if (apart)
			from += gn_below(seed, 40);
		else
			from = gn_below(seed, AREA - len + 1);
		add_piece(s, from, len);
		from += len;
	}
}

static void choose_vector(struct transfer *t, uint64_t *seed)
{
	size_t total = gn_below(seed, 3000);
	choose_pieces(&t->dst, total, true, seed);
	choose_pieces(&t->src, total, false, seed);
}

/* ---- lists: pieces of one length on each side ---- */

static void choose_list(struct transfer *t, uint64_t *seed)
{
	size_t unit = gn_below(seed, 20), p = 1 + gn_below(seed, 12);
	size_t q = 1 + gn_below(seed, 12), from = 0;
	t->dst.len = unit * p;
	t->src.len = unit * q;
	for (size_t i = 0; i < q; i++) {
		from += gn_below(seed, 30);
		add_piece(&t->dst, from, t->dst.len);
		from += t->dst.len;
	}
	for (size_t i = 0; i < p; i++)
		add_piece(&t->src, gn_below(seed, AREA - t->src.len + 1), t->src.len);
}

/* ---- boxes ---- */

static void walk_box(const struct transfer *t, struct side *s, size_t level, size_t at)
{
	if (level == 0) {
		for (size_t i = 0; i < t->count[0]; i++)
			s->at[s->n++] = at + i;
		return;
	}
	for (size_t i = 0; i < t->count[level]; i++)
		walk_box(t, s, level - 1, at + i * s->strides[level - 1]);
}

/* Choose distances that keep the bytes of the box apart. */
static void choose_strides(const struct transfer *t, struct side *s, uint64_t *seed)
{
	size_t extent = t->count[0];
	for (size_t i = 1; i <= t->levels; i++) {
		s->strides[i - 1] = extent + gn_below(seed, 3);
		extent = s->strides[i - 1] * (t->count[i] ? t->count[i] : 1);
	}
	CHECK(extent <= AREA);
	walk_box(t, s, t->levels, 0);
}

static void choose_box(struct transfer *t, uint64_t *seed)
{
	t->levels = gn_below(seed, LEVELS + 1);
	t->count[0] = 1 + gn_below(seed, 10);
	for (size_t i = 1; i <= t->levels; i++)
		t->count[i] = 1 + gn_below(seed, 3);
	if (gn_below(seed, 10) == 0)
		t->count[gn_below(seed, t->levels + 1)] = 0;
	choose_strides(t, &t->dst, seed);
	choose_strides(t, &t->src, seed);
}

static void choose(struct transfer *t, enum form form, unsigned char *dst,
	unsigned char *src, uint64_t *seed)
{
	memset(t, 0, sizeof *t);
	t->form = form;
	clear_side(&t->dst, dst);
	clear_side(&t->src, src);
	if (form == VECTOR)
		choose_vector(t, seed);
	else if (form == LIST)
		choose_list(t, seed);
	else
		choose_box(t, seed);
}

/* ---- calls ---- */

static gasnet_handle_t put_it(
	gasnet_node_t to, const struct transfer *t, enum gn_sync sync)
{
	const struct side *d = &t->dst, *s = &t->src;
	if (t->form == VECTOR)
		return GN_FORM(
			sync, putv, _bulk, to, d->pieces, d->list, s->pieces, s->list);
	if (t->form == LIST)
		return GN_FORM(sync, puti, _bulk, to, d->pieces, d->addr, d->len,
			s->pieces, s->addr, s->len);
	return GN_FORM(sync, puts, _bulk, to, d->area, d->strides, s->area, s->strides,
		t->count, t->levels);
}

static gasnet_handle_t get_it(
	gasnet_node_t from, const struct transfer *t, enum gn_sync sync)
{
	const struct side *d = &t->dst, *s = &t->src;
	if (t->form == VECTOR)
		return GN_FORM(
			sync, getv, _bulk, d->pieces, d->list, from, s->pieces, s->list);
	if (t->form == LIST)
		return GN_FORM(sync, geti, _bulk, d->pieces, d->addr, d->len, from,
			s->pieces, s->addr, s->len);
	return GN_FORM(sync, gets, _bulk, d->area, d->strides, from, s->area, s->strides,
		t->count, t->levels);
}

/* Overwrite what the calls may not look at any more. */
static void spoil(struct transfer *t)
{
	struct side *sides[] = {&t->dst, &t->src};
	for (int i = 0; i < 2; i++) {
		memset(sides[i]->list, 0xee, sizeof sides[i]->list);
		memset(sides[i]->addr, 0xee, sizeof sides[i]->addr);
		memset(sides[i]->strides, 0xee, sizeof sides[i]->strides);
	}
	memset(t->count, 0xee, sizeof t->count);
}

static void end(gasnet_handle_t handle, enum gn_sync sync)
{
	if (sync == GN_EXPLICIT)
		gasnet_wait_syncnb(handle);
	else if (sync == GN_IMPLICIT)
		gasnet_wait_syncnbi_all();
}

/* ---- comparisons ---- */

static unsigned char near[AREA], far[AREA], model[AREA];

/* Do in the model what the transfer does. */
static void apply(const struct transfer *t, const unsigned char *src)
{
	CHECK_EQ(t->dst.n, t->src.n);
	for (size_t i = 0; i < t->dst.n; i++)
		model[t->dst.at[i]] = src[t->src.at[i]];
}

/* Put or get between the areas here and at the neighbor, whose bytes are near and far. */
static void move_and_compare(
	bool puts, enum form form, enum gn_sync sync, bool spoils, uint64_t *seed)
{
	static struct transfer t;
	unsigned char *there = gn_at(gn.next, 0), *is = puts ? far : near;
	fill_bytes(near, AREA, (unsigned)random_next(seed));
	fill_bytes(far, AREA, (unsigned)random_next(seed));
	gasnet_put_bulk(gn.next, there, far, AREA);
	memcpy(model, is, AREA);
	choose(&t, form, puts ? there : near, puts ? near : there, seed);
	gasnet_handle_t handle = (puts ? put_it : get_it)(gn.next, &t, sync);
	if (spoils)
		spoil(&t);
	end(handle, sync);
	apply(&t, puts ? near : far);
	if (puts)
		gasnet_get_bulk(far, gn.next, there, AREA);
	CHECK(memcmp(is, model, AREA) == 0);
}

static void move_all(int rounds, enum gn_sync first, bool spoils, uint64_t seed)
{
	for (int i = 0; i < rounds; i++)
		for (int form = 0; form < FORMS; form++)
			for (int sync = (int)first; sync < GN_SYNCS; sync++)
				for (int puts = 0; puts < 2; puts++)
					move_and_compare(puts, (enum form)form,
						(enum gn_sync)sync, spoils, &seed);
}

/* There are more operations than records for handles: the last ones block. */
static void hold_very_many(void)
{
	enum { N = 132000 };
	static gasnet_handle_t handles[N];
	uint64_t value = 5;
	void *from = &value, *to = gn_at(gn.next, 0);
	for (int i = 0; i < N; i++)
		handles[i] = gasnet_puti_nb_bulk(gn.next, 1, &to, 8, 1, &from, 8);
	gasnet_wait_syncnb_all(handles, N);
}

STATEMENT(151, vectors_lists_and_boxes)
{
	gn_barrier();
	if (!getenv("P3_QUICK"))
		hold_very_many();
	move_all(60, GN_BLOCKING, false, gn_seed() * 31 + gn.rank);
}

STATEMENT(152, metadata_may_be_overwritten_at_once)
{
	gn_barrier();
	move_all(30, GN_EXPLICIT, true, gn_seed() * 37 + gn.rank);
}
