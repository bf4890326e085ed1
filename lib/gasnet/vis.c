/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vis.c - vector, indexed and strided puts and gets
 *
 * Each call is a set of contiguous bulk operations, one for each intersection of a source
 * piece with a destination piece, that share one operation record (ops.c).
 */
#include "internal.h"

/* A list of pieces: of a vector, or addresses of pieces of equal length. */
struct pieces {
	const gasnet_memvec_t *vector;
	void *const *addrs;
	size_t len, count;
	size_t at, offset; /* the next byte: piece and offset in it */
};

static size_t vis_length(const struct pieces *p)
{
	return (p->vector ? p->vector[p->at].len : p->len) - p->offset;
}

static char *vis_addr(const struct pieces *p)
{
	return (char *)(p->vector ? p->vector[p->at].addr : p->addrs[p->at]) + p->offset;
}

/* Go to the next piece that is not empty; return false at the end. */
static bool vis_skip(struct pieces *p)
{
	while (p->at < p->count && !vis_length(p)) {
		p->at++;
		p->offset = 0;
	}
	return p->at < p->count;
}

static void vis_move(struct gasneti_op *op, int way, gasnet_node_t node, void *dst,
	void *src, size_t nbytes)
{
	gasneti_check_remote(
		"a VIS operation", node, way == GASNETI_PUT ? dst : src, nbytes);
	if (way == GASNETI_PUT)
		gasneti_do_put(op, node, dst, src, nbytes, false);
	else
		gasneti_do_get(op, dst, node, src, nbytes);
}

static void vis_move_pieces(struct gasneti_op *op, int way, gasnet_node_t node,
	struct pieces dst, struct pieces src)
{
	while (vis_skip(&dst) && vis_skip(&src)) {
		size_t to = vis_length(&dst), from = vis_length(&src);
		size_t n = to < from ? to : from;
		vis_move(op, way, node, vis_addr(&dst), vis_addr(&src), n);
		dst.offset += n;
		src.offset += n;
	}
	if (vis_skip(&dst) || vis_skip(&src))
		gasneti_fatal("a VIS operation: the lists have different total lengths");
}

/* A box of an array, as puts and gets describe it. */
struct box {
	const size_t *dststrides, *srcstrides, *count;
};

static void vis_move_box(struct gasneti_op *op, int way, gasnet_node_t node, char *dst,
	char *src, const struct box *box, size_t level)
{
	if (!level) {
		vis_move(op, way, node, dst, src, box->count[0]);
		return;
	}
	for (size_t i = 0; i < box->count[level]; i++)
		vis_move_box(op, way, node, dst + i * box->dststrides[level - 1],
			src + i * box->srcstrides[level - 1], box, level - 1);
}

static void vis_move_strided(struct gasneti_op *op, int way, gasnet_node_t node,
	void *dst, void *src, const struct box *box, size_t levels)
{
	for (size_t i = 0; i <= levels; i++)
		if (!box->count[i])
			return;
	vis_move_box(op, way, node, dst, src, box, levels);
}

/* ---- the forms of each call ---- */

/*
 * Define the blocking form of a call, that with an explicit handle, and the implicit one.
 * move begins the operations as part of op.
 */
#define VIS_FORMS(name, params, move)                                                    \
	void gasnet_##name##_bulk params                                                 \
	{                                                                                \
		gasneti_check_main("a VIS operation");                                   \
		struct gasneti_op *op = gasneti_self()->blocking;                        \
		move;                                                                    \
		gasneti_wait_for(full, gasneti_op_complete(op));                         \
	}                                                                                \
	gasnet_handle_t gasnet_##name##_nb_bulk params                                   \
	{                                                                                \
		gasneti_check_main("a VIS operation");                                   \
		struct gasneti_op *op = gasneti_op_for_handle();                         \
		move;                                                                    \
		return gasneti_op_handle(op);                                            \
	}                                                                                \
	void gasnet_##name##_nbi_bulk params                                             \
	{                                                                                \
		gasneti_check_main("a VIS operation");                                   \
		struct gasneti_op *op = gasneti_self()->current;                         \
		move;                                                                    \
	}

#define VECTOR(list, n) ((struct pieces){.vector = (list), .count = (n)})
#define INDEXED(list, n, length)                                                         \
	((struct pieces){.addrs = (list), .len = (length), .count = (n)})

VIS_FORMS(putv,
	(gasnet_node_t dstnode, size_t dstcount, gasnet_memvec_t const dstlist[],
		size_t srccount, gasnet_memvec_t const srclist[]),
	vis_move_pieces(op, GASNETI_PUT, dstnode, VECTOR(dstlist, dstcount),
		VECTOR(srclist, srccount)))

VIS_FORMS(getv,
	(size_t dstcount, gasnet_memvec_t const dstlist[], gasnet_node_t srcnode,
		size_t srccount, gasnet_memvec_t const srclist[]),
	vis_move_pieces(op, GASNETI_GET, srcnode, VECTOR(dstlist, dstcount),
		VECTOR(srclist, srccount)))

VIS_FORMS(puti,
	(gasnet_node_t dstnode, size_t dstcount, void *const dstlist[], size_t dstlen,
		size_t srccount, void *const srclist[], size_t srclen),
	vis_move_pieces(op, GASNETI_PUT, dstnode, INDEXED(dstlist, dstcount, dstlen),
		INDEXED(srclist, srccount, srclen)))

VIS_FORMS(geti,
	(size_t dstcount, void *const dstlist[], size_t dstlen, gasnet_node_t srcnode,
		size_t srccount, void *const srclist[], size_t srclen),
	vis_move_pieces(op, GASNETI_GET, srcnode, INDEXED(dstlist, dstcount, dstlen),
		INDEXED(srclist, srccount, srclen)))

VIS_FORMS(puts,
	(gasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr,
		const size_t srcstrides[], const size_t count[], size_t stridelevels),
	vis_move_strided(op, GASNETI_PUT, dstnode, dstaddr, srcaddr,
		&((const struct box){dststrides, srcstrides, count}), stridelevels))

VIS_FORMS(gets,
	(void *dstaddr, const size_t dststrides[], gasnet_node_t srcnode, void *srcaddr,
		const size_t srcstrides[], const size_t count[], size_t stridelevels),
	vis_move_strided(op, GASNETI_GET, srcnode, dstaddr, srcaddr,
		&((const struct box){dststrides, srcstrides, count}), stridelevels))
