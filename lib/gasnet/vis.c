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

static size_t length_at(const struct pieces *p)
{
	return (p->vector ? p->vector[p->at].len : p->len) - p->offset;
}

static char *addr_at(const struct pieces *p)
{
	return (char *)(p->vector ? p->vector[p->at].addr : p->addrs[p->at]) + p->offset;
}

/* Go to the next piece that is not empty; return false at the end. */
static bool skip(struct pieces *p)
{
	while (p->at < p->count && !length_at(p)) {
		p->at++;
		p->offset = 0;
	}
	return p->at < p->count;
}

static void move(struct gasneti_op *op, int way, gasnet_node_t node, void *dst, void *src,
	size_t nbytes)
{
	gasneti_check_remote(
		"a VIS operation", node, way == GASNETI_PUT ? dst : src, nbytes);
	if (way == GASNETI_PUT)
		gasneti_do_put(op, node, dst, src, nbytes, false);
	else
		gasneti_do_get(op, dst, node, src, nbytes);
}

static void move_pieces(struct gasneti_op *op, int way, gasnet_node_t node,
	struct pieces dst, struct pieces src)
{
	while (skip(&dst) && skip(&src)) {
		size_t to = length_at(&dst), from = length_at(&src);
		size_t n = to < from ? to : from;
		move(op, way, node, addr_at(&dst), addr_at(&src), n);
		dst.offset += n;
		src.offset += n;
	}
	if (skip(&dst) || skip(&src))
		gasneti_fatal("a VIS operation: the lists have different total lengths");
}

/* A box of an array, as puts and gets describe it. */
struct box {
	const size_t *dststrides, *srcstrides, *count;
};

static void move_box(struct gasneti_op *op, int way, gasnet_node_t node, char *dst,
	char *src, const struct box *box, size_t level)
{
	if (!level) {
		move(op, way, node, dst, src, box->count[0]);
		return;
	}
	for (size_t i = 0; i < box->count[level]; i++)
		move_box(op, way, node, dst + i * box->dststrides[level - 1],
			src + i * box->srcstrides[level - 1], box, level - 1);
}

static void move_strided(struct gasneti_op *op, int way, gasnet_node_t node, void *dst,
	void *src, const struct box *box, size_t levels)
{
	for (size_t i = 0; i <= levels; i++)
		if (!box->count[i])
			return;
	move_box(op, way, node, dst, src, box, levels);
}

#define VECTOR(list, n) ((struct pieces){.vector = (list), .count = (n)})
#define INDEXED(list, n, length)                                                         \
	((struct pieces){.addrs = (list), .len = (length), .count = (n)})

/* ---- the operation of each form ---- */

static void finish(struct gasneti_op *op)
{
	gasneti_wait_for(full, gasneti_op_complete(op));
}

static struct gasneti_op *blocking(void)
{
	gasneti_check_main("a VIS operation");
	return gasneti_self()->blocking;
}

static struct gasneti_op *current(void)
{
	gasneti_check_main("a VIS operation");
	return gasneti_self()->current;
}

static struct gasneti_op *begin(void)
{
	gasneti_check_main("a VIS operation");
	return gasneti_op_for_handle();
}

void gasnet_putv_bulk(gasnet_node_t dstnode, size_t dstcount,
	gasnet_memvec_t const dstlist[], size_t srccount, gasnet_memvec_t const srclist[])
{
	struct gasneti_op *op = blocking();
	move_pieces(op, GASNETI_PUT, dstnode, VECTOR(dstlist, dstcount),
		VECTOR(srclist, srccount));
	finish(op);
}

gasnet_handle_t gasnet_putv_nb_bulk(gasnet_node_t dstnode, size_t dstcount,
	gasnet_memvec_t const dstlist[], size_t srccount, gasnet_memvec_t const srclist[])
{
	struct gasneti_op *op = begin();
	move_pieces(op, GASNETI_PUT, dstnode, VECTOR(dstlist, dstcount),
		VECTOR(srclist, srccount));
	return gasneti_op_handle(op);
}

void gasnet_putv_nbi_bulk(gasnet_node_t dstnode, size_t dstcount,
	gasnet_memvec_t const dstlist[], size_t srccount, gasnet_memvec_t const srclist[])
{
	struct gasneti_op *op = current();
	move_pieces(op, GASNETI_PUT, dstnode, VECTOR(dstlist, dstcount),
		VECTOR(srclist, srccount));
}

void gasnet_getv_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
	gasnet_node_t srcnode, size_t srccount, gasnet_memvec_t const srclist[])
{
	struct gasneti_op *op = blocking();
	move_pieces(op, GASNETI_GET, srcnode, VECTOR(dstlist, dstcount),
		VECTOR(srclist, srccount));
	finish(op);
}

gasnet_handle_t gasnet_getv_nb_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
	gasnet_node_t srcnode, size_t srccount, gasnet_memvec_t const srclist[])
{
	struct gasneti_op *op = begin();
	move_pieces(op, GASNETI_GET, srcnode, VECTOR(dstlist, dstcount),
		VECTOR(srclist, srccount));
	return gasneti_op_handle(op);
}

void gasnet_getv_nbi_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
	gasnet_node_t srcnode, size_t srccount, gasnet_memvec_t const srclist[])
{
	struct gasneti_op *op = current();
	move_pieces(op, GASNETI_GET, srcnode, VECTOR(dstlist, dstcount),
		VECTOR(srclist, srccount));
}

void gasnet_puti_bulk(gasnet_node_t dstnode, size_t dstcount, void *const dstlist[],
	size_t dstlen, size_t srccount, void *const srclist[], size_t srclen)
{
	struct gasneti_op *op = blocking();
	move_pieces(op, GASNETI_PUT, dstnode, INDEXED(dstlist, dstcount, dstlen),
		INDEXED(srclist, srccount, srclen));
	finish(op);
}

gasnet_handle_t gasnet_puti_nb_bulk(gasnet_node_t dstnode, size_t dstcount,
	void *const dstlist[], size_t dstlen, size_t srccount, void *const srclist[],
	size_t srclen)
{
	struct gasneti_op *op = begin();
	move_pieces(op, GASNETI_PUT, dstnode, INDEXED(dstlist, dstcount, dstlen),
		INDEXED(srclist, srccount, srclen));
	return gasneti_op_handle(op);
}

void gasnet_puti_nbi_bulk(gasnet_node_t dstnode, size_t dstcount, void *const dstlist[],
	size_t dstlen, size_t srccount, void *const srclist[], size_t srclen)
{
	struct gasneti_op *op = current();
	move_pieces(op, GASNETI_PUT, dstnode, INDEXED(dstlist, dstcount, dstlen),
		INDEXED(srclist, srccount, srclen));
}

void gasnet_geti_bulk(size_t dstcount, void *const dstlist[], size_t dstlen,
	gasnet_node_t srcnode, size_t srccount, void *const srclist[], size_t srclen)
{
	struct gasneti_op *op = blocking();
	move_pieces(op, GASNETI_GET, srcnode, INDEXED(dstlist, dstcount, dstlen),
		INDEXED(srclist, srccount, srclen));
	finish(op);
}

gasnet_handle_t gasnet_geti_nb_bulk(size_t dstcount, void *const dstlist[], size_t dstlen,
	gasnet_node_t srcnode, size_t srccount, void *const srclist[], size_t srclen)
{
	struct gasneti_op *op = begin();
	move_pieces(op, GASNETI_GET, srcnode, INDEXED(dstlist, dstcount, dstlen),
		INDEXED(srclist, srccount, srclen));
	return gasneti_op_handle(op);
}

void gasnet_geti_nbi_bulk(size_t dstcount, void *const dstlist[], size_t dstlen,
	gasnet_node_t srcnode, size_t srccount, void *const srclist[], size_t srclen)
{
	struct gasneti_op *op = current();
	move_pieces(op, GASNETI_GET, srcnode, INDEXED(dstlist, dstcount, dstlen),
		INDEXED(srclist, srccount, srclen));
}

void gasnet_puts_bulk(gasnet_node_t dstnode, void *dstaddr, const size_t dststrides[],
	void *srcaddr, const size_t srcstrides[], const size_t count[],
	size_t stridelevels)
{
	struct gasneti_op *op = blocking();
	const struct box box = {dststrides, srcstrides, count};
	move_strided(op, GASNETI_PUT, dstnode, dstaddr, srcaddr, &box, stridelevels);
	finish(op);
}

gasnet_handle_t gasnet_puts_nb_bulk(gasnet_node_t dstnode, void *dstaddr,
	const size_t dststrides[], void *srcaddr, const size_t srcstrides[],
	const size_t count[], size_t stridelevels)
{
	struct gasneti_op *op = begin();
	const struct box box = {dststrides, srcstrides, count};
	move_strided(op, GASNETI_PUT, dstnode, dstaddr, srcaddr, &box, stridelevels);
	return gasneti_op_handle(op);
}

void gasnet_puts_nbi_bulk(gasnet_node_t dstnode, void *dstaddr, const size_t dststrides[],
	void *srcaddr, const size_t srcstrides[], const size_t count[],
	size_t stridelevels)
{
	struct gasneti_op *op = current();
	const struct box box = {dststrides, srcstrides, count};
	move_strided(op, GASNETI_PUT, dstnode, dstaddr, srcaddr, &box, stridelevels);
}

void gasnet_gets_bulk(void *dstaddr, const size_t dststrides[], gasnet_node_t srcnode,
	void *srcaddr, const size_t srcstrides[], const size_t count[],
	size_t stridelevels)
{
	struct gasneti_op *op = blocking();
	const struct box box = {dststrides, srcstrides, count};
	move_strided(op, GASNETI_GET, srcnode, dstaddr, srcaddr, &box, stridelevels);
	finish(op);
}

gasnet_handle_t gasnet_gets_nb_bulk(void *dstaddr, const size_t dststrides[],
	gasnet_node_t srcnode, void *srcaddr, const size_t srcstrides[],
	const size_t count[], size_t stridelevels)
{
	struct gasneti_op *op = begin();
	const struct box box = {dststrides, srcstrides, count};
	move_strided(op, GASNETI_GET, srcnode, dstaddr, srcaddr, &box, stridelevels);
	return gasneti_op_handle(op);
}

void gasnet_gets_nbi_bulk(void *dstaddr, const size_t dststrides[], gasnet_node_t srcnode,
	void *srcaddr, const size_t srcstrides[], const size_t count[],
	size_t stridelevels)
{
	struct gasneti_op *op = current();
	const struct box box = {dststrides, srcstrides, count};
	move_strided(op, GASNETI_GET, srcnode, dstaddr, srcaddr, &box, stridelevels);
}
