/* SPDX-License-Identifier: BSD-3-Clause */
/* Random puts and gets of all forms, compared with a sequential model. */
#include "gn.h"
#include "mixer.h"

enum { SLOTS = 48, GUARD = 8 };

enum kind { FREE, EXPLICIT, IMPLICIT, REGION, VALUE };
enum call { PUT, PUT_BULK, PUT_VALUE, SET, GET, GET_BULK, GET_VALUE, CALLS };

/* An operation under way. */
struct op {
	enum kind kind;
	bool is_get, is_value; /* is_value: wait_syncnb_valget() syncs it */
	gasnet_node_t node;
	size_t at, n;
	gasnet_handle_t handle;
	gasnet_valget_handle_t value;
	unsigned char near[MIXER_BYTES + 2 * GUARD]; /* source, or destination */
	unsigned char want[MIXER_BYTES];             /* a get's bytes */
};

struct mixer {
	size_t base;
	uint64_t seed;
	bool in_region;
	struct op ops[SLOTS];
	unsigned char *copy[GN_NODES]; /* of each node's bytes */
};

static void *far_at(const struct mixer *m, gasnet_node_t node, size_t at)
{
	return gn_at(node, m->base + at);
}

struct mixer *mixer_new(size_t base, uint64_t seed)
{
	struct mixer *m = calloc(1, sizeof *m);
	CHECK(m);
	m->base = base;
	m->seed = seed;
	for (gasnet_node_t i = 0; i < gn.size; i++) {
		m->copy[i] = malloc(MIXER_BYTES);
		CHECK(m->copy[i]);
		fill_bytes(m->copy[i], MIXER_BYTES, (unsigned)seed + i);
		gasnet_put_bulk(i, far_at(m, i, 0), m->copy[i], MIXER_BYTES);
	}
	return m;
}

/* ---- syncs ---- */

/* Check what a get brought, and the bytes beside it. */
static void end_op(struct op *op)
{
	if (op->is_get && !op->is_value) {
		CHECK_ALL(op->near, GUARD, 0x99);
		CHECK(memcmp(op->near + GUARD, op->want, op->n) == 0);
		CHECK_ALL(op->near + GUARD + op->n, GUARD, 0x99);
	}
	op->kind = FREE;
}

static void end_value(struct op *op)
{
	gasnet_register_value_t value = 0, is = gasnet_wait_syncnb_valget(op->value);
	memcpy(&value, op->want, op->n);
	CHECK_EQ(is, value);
	op->kind = FREE;
}

static void end_all_of(struct mixer *m, enum kind kind, bool gets, bool puts)
{
	for (int i = 0; i < SLOTS; i++)
		if (m->ops[i].kind == kind && (m->ops[i].is_get ? gets : puts))
			end_op(&m->ops[i]);
}

static void sync_one(struct mixer *m, struct op *op)
{
	struct patience p = patience_begin();
	if (random_next(&m->seed) & 1)
		gasnet_wait_syncnb(op->handle);
	else
		while (gasnet_try_syncnb(op->handle) != GASNET_OK)
			CHECK(!patience_is_over(&p));
	end_op(op);
}

static void sync_implicit(struct mixer *m)
{
	struct patience p = patience_begin();
	switch (gn_below(&m->seed, 4)) {
	case 0:
		gasnet_wait_syncnbi_gets();
		end_all_of(m, IMPLICIT, true, false);
		break;
	case 1:
		gasnet_wait_syncnbi_puts();
		end_all_of(m, IMPLICIT, false, true);
		break;
	case 2:
		while (gasnet_try_syncnbi_all() != GASNET_OK)
			CHECK(!patience_is_over(&p));
		end_all_of(m, IMPLICIT, true, true);
		break;
	default:
		gasnet_wait_syncnbi_all();
		end_all_of(m, IMPLICIT, true, true);
	}
}

/* Gather the handles of explicit operations, with a hole beside each. */
static size_t gather(struct mixer *m, gasnet_handle_t *list, struct op **of)
{
	size_t n = 0;
	for (int i = 0; i < SLOTS; i++)
		if (m->ops[i].kind == EXPLICIT) {
			of[n] = &m->ops[i];
			list[n++] = m->ops[i].handle;
			of[n] = NULL;
			list[n++] = GASNET_INVALID_HANDLE;
		}
	return n;
}

static void end_invalid(const gasnet_handle_t *list, struct op **of, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (of[i] && list[i] == GASNET_INVALID_HANDLE)
			end_op(of[i]);
}

/* Sync all explicit operations, or some of them. */
static void sync_list(struct mixer *m)
{
	gasnet_handle_t list[2 * SLOTS];
	struct op *of[2 * SLOTS];
	size_t n = gather(m, list, of);
	switch (gn_below(&m->seed, 4)) {
	case 0:
		gasnet_wait_syncnb_some(list, n);
		break;
	case 1:
		(void)gasnet_try_syncnb_some(list, n);
		break;
	case 2:
		(void)gasnet_try_syncnb_all(list, n);
		break;
	default:
		gasnet_wait_syncnb_all(list, n);
		for (size_t i = 0; i < n; i++)
			CHECK(list[i] == GASNET_INVALID_HANDLE);
	}
	end_invalid(list, of, n);
}

/* End this operation, with others that share its sync. */
static void sync_op(struct mixer *m, struct op *op)
{
	if (op->kind == VALUE)
		end_value(op);
	else if (op->kind == EXPLICIT && gn_below(&m->seed, 3))
		sync_one(m, op);
	else if (op->kind == EXPLICIT)
		sync_list(m);
	else if (op->kind == IMPLICIT)
		sync_implicit(m);
}

static void end_region(struct mixer *m)
{
	gasnet_handle_t handle = gasnet_end_nbi_accessregion();
	m->in_region = false;
	gasnet_wait_syncnb(handle);
	end_all_of(m, REGION, true, true);
}

static void sync_until_free(struct mixer *m, struct op *op)
{
	if (op->kind != FREE && m->in_region)
		end_region(m);
	while (op->kind != FREE)
		sync_op(m, op);
}

static bool conflicts(const struct op *op, const struct op *other)
{
	return op->kind != FREE && op->node == other->node &&
	       op->at < other->at + other->n && other->at < op->at + op->n &&
	       !(op->is_get && other->is_get);
}

/* ---- operations ---- */

/* Choose the kind of sync, the node, and the bytes: mostly few. */
static void choose(struct mixer *m, struct op *op, size_t most)
{
	static const size_t limits[] = {8, 8, 64, 600, MIXER_BYTES};
	size_t limit = limits[gn_below(&m->seed, 5)];
	op->node = (gasnet_node_t)gn_below(&m->seed, gn.size);
	op->n = 1 + gn_below(&m->seed, limit < most ? limit : most);
	op->at = gn_below(&m->seed, MIXER_BYTES - op->n + 1);
	if (gn_below(&m->seed, 3) == 0 && op->n <= 8)
		op->at &= ~(size_t)7;
}

/* Tell the model of a put. */
static void model_put(struct mixer *m, struct op *op)
{
	memcpy(m->copy[op->node] + op->at, op->near + GUARD, op->n);
}

static void model_get(struct mixer *m, struct op *op)
{
	memset(op->near, 0x99, op->n + (size_t)2 * GUARD);
	memcpy(op->want, m->copy[op->node] + op->at, op->n);
}

/* The source of a put that is no bulk one is free at once. */
static void spoil(struct op *op)
{
	memset(op->near, 0xdd, op->n + (size_t)2 * GUARD);
}

static void start_put(struct mixer *m, struct op *op, enum call call, enum gn_sync sync)
{
	void *far = far_at(m, op->node, op->at), *near = op->near + GUARD;
	gasnet_register_value_t value = random_next(&m->seed);
	fill_bytes(near, op->n, (unsigned)random_next(&m->seed));
	if (call == SET)
		memset(near, (int)value, op->n);
	model_put(m, op);
	switch (call) {
	case PUT:
		op->handle = GN_FORM(sync, put, , op->node, far, near, op->n);
		break;
	case PUT_BULK:
		op->handle = GN_FORM(sync, put, _bulk, op->node, far, near, op->n);
		break;
	case PUT_VALUE:
		memcpy(&value, near, op->n);
		op->handle = GN_FORM(sync, put, _val, op->node, far, value, op->n);
		break;
	default:
		op->handle = GN_FORM(sync, memset, , op->node, far, (int)value, op->n);
	}
	if (call == PUT || sync == GN_BLOCKING)
		spoil(op);
}

static void start_get(struct mixer *m, struct op *op, enum call call, enum gn_sync sync)
{
	gasnet_register_value_t value = 0;
	void *far = far_at(m, op->node, op->at), *near = op->near + GUARD;
	model_get(m, op);
	memcpy(&value, op->want, op->n < 8 ? op->n : 8);
	if (call == GET)
		op->handle = GN_FORM(sync, get, , near, op->node, far, op->n);
	else if (call == GET_BULK)
		op->handle = GN_FORM(sync, get, _bulk, near, op->node, far, op->n);
	else if (sync == GN_BLOCKING)
		CHECK_EQ(gasnet_get_val(op->node, far, op->n), value);
	else
		op->value = gasnet_get_nb_val(op->node, far, op->n);
	op->is_value = call == GET_VALUE;
}

static void end_conflicts(struct mixer *m, const struct op *op)
{
	for (int i = 0; i < SLOTS; i++)
		if (&m->ops[i] != op && conflicts(&m->ops[i], op))
			sync_until_free(m, &m->ops[i]);
}

static void do_one(struct mixer *m)
{
	struct op *op = &m->ops[gn_below(&m->seed, SLOTS)];
	enum call call = (enum call)gn_below(&m->seed, CALLS);
	enum gn_sync sync = (enum gn_sync)gn_below(&m->seed, GN_SYNCS);
	sync_until_free(m, op);
	choose(m, op, call == PUT_VALUE || call == GET_VALUE ? 8 : MIXER_BYTES);
	op->is_get = call >= GET;
	op->is_value = false;
	end_conflicts(m, op);
	if (op->is_get)
		start_get(m, op, call, sync);
	else
		start_put(m, op, call, sync);
	op->kind = sync == GN_BLOCKING   ? FREE
		   : call == GET_VALUE   ? VALUE
		   : sync == GN_EXPLICIT ? EXPLICIT
					 : IMPLICIT;
	if (op->kind == IMPLICIT && m->in_region)
		op->kind = REGION;
	if (op->kind == FREE)
		end_op(op);
}

/* Open or close a region now and then. */
static void change_region(struct mixer *m)
{
	if (gn_below(&m->seed, 40))
		return;
	if (m->in_region) {
		end_region(m);
	} else {
		gasnet_begin_nbi_accessregion();
		m->in_region = true;
	}
}

/* Within a region there is no implicit sync. */
void mixer_run(struct mixer *m, unsigned operations)
{
	for (unsigned i = 0; i < operations; i++) {
		change_region(m);
		do_one(m);
	}
	if (m->in_region)
		end_region(m);
	for (int i = 0; i < SLOTS; i++)
		sync_until_free(m, &m->ops[i]);
}

void mixer_free(struct mixer *m)
{
	unsigned char *is = malloc(MIXER_BYTES);
	CHECK(is);
	for (gasnet_node_t i = 0; i < gn.size; i++) {
		gasnet_get_bulk(is, i, far_at(m, i, 0), MIXER_BYTES);
		CHECK(memcmp(is, m->copy[i], MIXER_BYTES) == 0);
		free(m->copy[i]);
	}
	free(is);
	free(m);
}
