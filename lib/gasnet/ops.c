/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ops.c - puts and gets, those of vectors, indices and strides, and their syncs
 *
 * Each is a put or get of Portals at the target's segment (RAR), which completes without
 * a call of the target.  An ACK says that a put is in place, REPLY_END that a get is
 * here. The match bits, which ACK and REPLY repeat, name the operation.  The source of a
 * bulk put or of a blocking one needs no SEND_END, so if it is short the descriptor is
 * the quiet one and ACK its only event.  An operation on the own node is a copy.
 *
 * Order: the thread that reads an event of SAFE_EQ adds to done (internal.h).  The
 * release fence behind a copy to the own segment orders it before later operations of
 * this thread, by which other nodes learn of it.
 */
#include "internal.h"

enum { QUICK_POLLS = 8, FULL_EVERY = 16, BOTH_WAYS = 2 };

/* ---- starting ---- */

static GASNETI_HOT void put_part(struct gasneti_op *op, const struct gasneti_local *local,
	uint32_t node, uint64_t remote, uint64_t kind)
{
	const struct gasneti_peer *peer = &gasneti.peers[node];
	uint64_t bits = op->bits | kind << 4 | local->resource << GASNETI_RESOURCE_SHIFT;
	gasneti_ticket_take();
	op->begun[GASNETI_PUT]++;
	op->local_begun += kind == GASNETI_KIND_PUT_LOCAL;
	gasneti_start(PtlPutRegion, local->md, local->offset, local->length, PTL_ACK_REQ,
		peer->id, GASNETI_RAR_PTE, 0, bits, remote, 0);
}

static GASNETI_HOT void get_part(struct gasneti_op *op, const struct gasneti_local *local,
	uint32_t node, uint64_t remote)
{
	const struct gasneti_peer *peer = &gasneti.peers[node];
	uint64_t bits = op->bits | GASNETI_KIND_GET << 4 |
			local->resource << GASNETI_RESOURCE_SHIFT;
	gasneti_ticket_take();
	op->begun[GASNETI_GET]++;
	gasneti_start(PtlGetRegion, local->md, local->offset, local->length, peer->id,
		GASNETI_RAR_PTE, 0, bits, remote);
}

/* A put that may need several parts: longer, or in a local mode other than all. */
static void put_parts(struct gasneti_op *op, uint32_t node, uint64_t remote, char *src,
	size_t nbytes, bool local)
{
	while (nbytes) {
		struct gasneti_local part;
		gasneti_local_take(&part, src, nbytes, GASNETI_PUT, false);
		bool copied = part.resource && part.resource < GASNETI_TMPMD_RESOURCE;
		put_part(op, &part, node, remote,
			local && !copied ? GASNETI_KIND_PUT_LOCAL : GASNETI_KIND_PUT);
		src += part.length;
		remote += part.length;
		nbytes -= part.length;
	}
}

static void op_copy(void *dest, const void *src, size_t nbytes)
{
	if (nbytes == 8)
		memcpy(dest, src, 8);
	else if (nbytes == 4)
		memcpy(dest, src, 4);
	else if (nbytes)
		memmove(dest, src, nbytes);
	gasneti_release_fence();
}

/*
 * Begin a put as part of op.  With local, local_done counts the parts whose source may be
 * reused.
 */
static GASNETI_HOT void op_begin_put(struct gasneti_op *op, gasnet_node_t node,
	void *dest, void *src, size_t nbytes, bool local)
{
	if (gasneti_unlikely(node == gasneti.me)) {
		op_copy(dest, src, nbytes);
		return;
	}
	if (gasneti_unlikely(node >= gasneti.nodes))
		gasneti_no_node(node);
	uint64_t remote = (uintptr_t)dest - gasneti.peers[node].base;
	if (gasneti_likely(nbytes <= GASNETI_SHORT_PUT &&
			   gasneti.set.local == GASNETI_LOCAL_ALL)) {
		if (gasneti_unlikely(!nbytes))
			return;
		struct gasneti_local part = {local ? gasneti.any : gasneti.any_quiet,
			(uintptr_t)src - GASNETI_ANY_BASE, nbytes, 0};
		put_part(op, &part, node, remote,
			local ? GASNETI_KIND_PUT_LOCAL : GASNETI_KIND_PUT);
		return;
	}
	put_parts(op, node, remote, src, nbytes, local);
}

/* Begin a get as part of op. */
static GASNETI_HOT void op_get(
	struct gasneti_op *op, void *dest, gasnet_node_t node, void *src, size_t nbytes)
{
	if (gasneti_unlikely(node == gasneti.me)) {
		op_copy(dest, src, nbytes);
		return;
	}
	if (gasneti_unlikely(node >= gasneti.nodes))
		gasneti_no_node(node);
	uint64_t remote = (uintptr_t)src - gasneti.peers[node].base;
	char *to = dest;
	while (nbytes) {
		struct gasneti_local part;
		gasneti_local_take(&part, to, nbytes, GASNETI_GET, false);
		get_part(op, &part, node, remote);
		to += part.length;
		remote += part.length;
		nbytes -= part.length;
	}
}

/* ---- waiting ---- */

/* Return true if the operations of one way, or of both ways, are complete, and acquire
 * their bytes. */
static GASNETI_HOT bool op_done(struct gasneti_op *op, int way)
{
	return (way == GASNETI_GET || gasneti_acquire(&op->done[GASNETI_PUT]) ==
					      op->begun[GASNETI_PUT]) &&
	       (way == GASNETI_PUT ||
		       gasneti_acquire(&op->done[GASNETI_GET]) == op->begun[GASNETI_GET]);
}

static GASNETI_HOT void op_await(struct gasneti_op *op, int way)
{
	for (int i = 0; i < QUICK_POLLS; i++) {
		if (op_done(op, way))
			return;
		gasneti_poll_one();
	}
	gasneti_wait_for(full, op_done(op, way));
}

/* Serve the network for a try: class 1, and sometimes requests. */
static void op_try_poll(void)
{
	if (++gasneti_self()->tries % FULL_EVERY)
		gasneti_poll_safe();
	else
		gasneti_poll_full();
}

/* Take an operation for a handle; if there is none, that of blocking ones. */
static GASNETI_HOT struct gasneti_op *op_for_handle(void)
{
	struct gasneti_thread *self = gasneti_self();
	struct gasneti_op *op = gasneti_op_begin(self);
	return gasneti_likely(op != NULL) ? op : self->blocking;
}

/* Return the handle of an operation that has begun, or INVALID if it is complete.  Wait
 * for it if it is that of blocking ones. */
static GASNETI_HOT gasnet_handle_t op_handle(struct gasneti_op *op)
{
	if (gasneti_unlikely(op == op->thread->blocking)) {
		op_await(op, BOTH_WAYS);
		return GASNET_INVALID_HANDLE;
	}
	if (!op_done(op, BOTH_WAYS))
		return op;
	gasneti_op_finish(op);
	return GASNET_INVALID_HANDLE;
}

/* ---- the forms of an operation ---- */

/*
 * Define the blocking form of a call, that with an explicit handle, and the implicit one;
 * tail ends their names.  begin is an expression that begins the operations as part of
 * op; blocks is true in the first form, which need not wait for the sources of puts.
 */
#define OP_FORMS(name, tail, params, begin)                                              \
	void gasnet_##name##tail params                                                  \
	{                                                                                \
		const bool blocks = true;                                                \
		struct gasneti_op *op = gasneti_self()->blocking;                        \
		(void)blocks, begin;                                                     \
		op_await(op, BOTH_WAYS);                                                 \
	}                                                                                \
	gasnet_handle_t gasnet_##name##_nb##tail params                                  \
	{                                                                                \
		const bool blocks = false;                                               \
		struct gasneti_op *op = op_for_handle();                                 \
		(void)blocks, begin;                                                     \
		return op_handle(op);                                                    \
	}                                                                                \
	void gasnet_##name##_nbi##tail params                                            \
	{                                                                                \
		const bool blocks = false;                                               \
		struct gasneti_op *op = gasneti_self()->current;                         \
		(void)blocks, begin;                                                     \
	}

/* ---- puts and gets ---- */

/* Begin a put; wait until its source may be reused if free_source is true. */
static GASNETI_HOT void op_put(struct gasneti_op *op, gasnet_node_t node, void *dest,
	void *src, size_t nbytes, bool free_source)
{
	op_begin_put(op, node, dest, src, nbytes, free_source);
	if (free_source)
		gasneti_await_local(op);
}

OP_FORMS(put, , (gasnet_node_t node, void *dest, void *src, size_t nbytes),
	(gasneti_check_remote(__func__, node, dest, nbytes),
		op_put(op, node, dest, src, nbytes, !blocks)))

OP_FORMS(put, _bulk, (gasnet_node_t node, void *dest, void *src, size_t nbytes),
	(gasneti_check_remote(__func__, node, dest, nbytes),
		op_put(op, node, dest, src, nbytes, false)))

OP_FORMS(put, _val,
	(gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes),
	(gasneti_check_value(__func__, nbytes),
		gasneti_check_remote(__func__, node, dest, nbytes),
		op_put(op, node, dest, &value, nbytes, !blocks)))

OP_FORMS(get, , (void *dest, gasnet_node_t node, void *src, size_t nbytes),
	(gasneti_check_remote(__func__, node, src, nbytes),
		op_get(op, dest, node, src, nbytes)))

OP_FORMS(get, _bulk, (void *dest, gasnet_node_t node, void *src, size_t nbytes),
	(gasneti_check_remote(__func__, node, src, nbytes),
		op_get(op, dest, node, src, nbytes)))

gasnet_register_value_t gasnet_get_val(gasnet_node_t node, void *src, size_t nbytes)
{
	gasnet_register_value_t value = 0;
	gasneti_check_value(__func__, nbytes);
	gasnet_get(&value, node, src, nbytes);
	return value;
}

/* The handle of a get of a value is its operation, whose value is the destination. */
gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, void *src, size_t nbytes)
{
	struct gasneti_op *op = gasneti_op_begin(gasneti_self());
	gasneti_check_value(__func__, nbytes);
	gasneti_check_remote(__func__, node, src, nbytes);
	if (!op)
		gasneti_fatal("too many gets of values without a wait");
	op->value = 0;
	op_get(op, &op->value, node, src, nbytes);
	return (gasnet_valget_handle_t)op;
}

gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle)
{
	struct gasneti_op *op = (struct gasneti_op *)handle;
	gasneti_check_main(__func__);
	op_await(op, BOTH_WAYS);
	gasnet_register_value_t value = op->value;
	gasneti_op_finish(op);
	return value;
}

/* ---- memset ---- */

/* Fill memory here for another node, and tell it. */
void gasneti_memset_request(gasnet_token_t token, gasnet_handlerarg_t dest_hi,
	gasnet_handlerarg_t dest_lo, gasnet_handlerarg_t n_hi, gasnet_handlerarg_t n_lo,
	gasnet_handlerarg_t value, gasnet_handlerarg_t op_hi, gasnet_handlerarg_t op_lo)
{
	void *dest = (void *)(uintptr_t)gasneti_joined(dest_hi, dest_lo);
	size_t nbytes = gasneti_joined(n_hi, n_lo);
	if (!gasneti_in_segment(dest, nbytes))
		gasneti_fatal("gasnet_memset of %zu bytes at %p, outside of the segment",
			nbytes, dest);
	memset(dest, value, nbytes);
	gasneti_am_reply_send(
		token, &(struct gasneti_message){.handler = GASNETI_H_MEMSET_DONE,
			       .category = GASNETI_SHORT,
			       .numargs = 2,
			       .args = {op_hi, op_lo}});
}

void gasneti_memset_done(
	gasnet_token_t token, gasnet_handlerarg_t op_hi, gasnet_handlerarg_t op_lo)
{
	struct gasneti_op *op =
		(struct gasneti_op *)(uintptr_t)gasneti_joined(op_hi, op_lo);
	(void)token;
	gasneti_add(&op->done[GASNETI_PUT], 1);
}

static void op_memset(
	struct gasneti_op *op, gasnet_node_t node, void *dest, int val, size_t nbytes)
{
	if (node >= gasneti.nodes)
		gasneti_no_node(node);
	if (!nbytes)
		return;
	if (node == gasneti.me) {
		memset(dest, val, nbytes);
		gasneti_release_fence();
		return;
	}
	op->begun[GASNETI_PUT]++;
	gasneti_am_send(&(struct gasneti_message){.node = node,
		.handler = GASNETI_H_MEMSET,
		.category = GASNETI_SHORT,
		.numargs = 7,
		.args = {GASNETI_HALVES((uintptr_t)dest), GASNETI_HALVES(nbytes), val,
			GASNETI_HALVES((uintptr_t)op)}});
}

OP_FORMS(memset, , (gasnet_node_t node, void *dest, int val, size_t nbytes),
	(gasneti_check_remote(__func__, node, dest, nbytes),
		op_memset(op, node, dest, val, nbytes)))

/* ---- syncs of handles ---- */

static void handle_check(struct gasneti_op *op)
{
#ifdef GASNET_DEBUG
	if (!op->live)
		gasneti_fatal("a handle is synced twice");
	if (op->thread != gasneti_self())
		gasneti_fatal("a handle is synced by a thread other than its own");
#endif
	(void)op;
}

/* Give a handle's operation back if it is complete. */
static GASNETI_HOT bool handle_sync(gasnet_handle_t handle)
{
	handle_check(handle);
	if (!op_done(handle, BOTH_WAYS))
		return false;
	gasneti_op_finish(handle);
	return true;
}

void gasnet_wait_syncnb(gasnet_handle_t handle)
{
	gasneti_check_main(__func__);
	if (handle == GASNET_INVALID_HANDLE)
		return;
	handle_check(handle);
	op_await(handle, BOTH_WAYS);
	gasneti_op_finish(handle);
}

int gasnet_try_syncnb(gasnet_handle_t handle)
{
	gasneti_check_main(__func__);
	if (handle == GASNET_INVALID_HANDLE || handle_sync(handle))
		return GASNET_OK;
	op_try_poll();
	return handle_sync(handle) ? GASNET_OK : GASNET_ERR_NOT_READY;
}

void gasnet_wait_syncnb_all(gasnet_handle_t *phandle, size_t numhandles)
{
	for (size_t i = 0; i < numhandles; i++) {
		gasnet_wait_syncnb(phandle[i]);
		phandle[i] = GASNET_INVALID_HANDLE;
	}
}

/* Sync the complete ones.  Return true if none is left, or one was synced that is enough:
 * not all are wanted. */
static bool handle_sync_array(gasnet_handle_t *phandle, size_t n, bool all)
{
	size_t synced = 0, left = 0;
	for (size_t i = 0; i < n; i++) {
		if (phandle[i] == GASNET_INVALID_HANDLE)
			continue;
		if (handle_sync(phandle[i])) {
			phandle[i] = GASNET_INVALID_HANDLE;
			synced++;
		} else {
			left++;
		}
	}
	return !left || (synced && !all);
}

static int handle_try_array(gasnet_handle_t *phandle, size_t n, bool all)
{
	if (handle_sync_array(phandle, n, all))
		return GASNET_OK;
	op_try_poll();
	return handle_sync_array(phandle, n, all) ? GASNET_OK : GASNET_ERR_NOT_READY;
}

int gasnet_try_syncnb_all(gasnet_handle_t *phandle, size_t numhandles)
{
	gasneti_check_main(__func__);
	return handle_try_array(phandle, numhandles, true);
}

int gasnet_try_syncnb_some(gasnet_handle_t *phandle, size_t numhandles)
{
	gasneti_check_main(__func__);
	return handle_try_array(phandle, numhandles, false);
}

void gasnet_wait_syncnb_some(gasnet_handle_t *phandle, size_t numhandles)
{
	gasneti_check_main(__func__);
	gasneti_wait_for(full, handle_sync_array(phandle, numhandles, false));
}

/* ---- syncs of implicit operations, access regions ---- */

/* Return the thread's implicit operation; end the job inside of an access region. */
static struct gasneti_op *op_implicit(const char *function)
{
	struct gasneti_thread *self = gasneti_self();
	gasneti_check_main(function);
	if (gasneti_unlikely(self->current != self->implicit))
		gasneti_fatal("%s in an access region", function);
	return self->implicit;
}

/* Define the syncs of implicit operations of one way, or of both. */
#define OP_IMPLICIT_SYNCS(which, way)                                                    \
	void gasnet_wait_syncnbi_##which(void)                                           \
	{                                                                                \
		op_await(op_implicit(__func__), way);                                    \
	}                                                                                \
	int gasnet_try_syncnbi_##which(void)                                             \
	{                                                                                \
		struct gasneti_op *op = op_implicit(__func__);                           \
		if (!op_done(op, way))                                                   \
			op_try_poll();                                                   \
		return op_done(op, way) ? GASNET_OK : GASNET_ERR_NOT_READY;              \
	}

OP_IMPLICIT_SYNCS(gets, GASNETI_GET)
OP_IMPLICIT_SYNCS(puts, GASNETI_PUT)
OP_IMPLICIT_SYNCS(all, BOTH_WAYS)

void gasnet_begin_nbi_accessregion(void)
{
	struct gasneti_thread *self = gasneti_self();
	gasneti_check_main(__func__);
	if (self->current != self->implicit)
		gasneti_fatal("gasnet_begin_nbi_accessregion in an access region");
	struct gasneti_op *op = gasneti_op_begin(self);
	if (!op)
		gasneti_fatal("too many handles that are not synced");
	self->current = op;
}

gasnet_handle_t gasnet_end_nbi_accessregion(void)
{
	struct gasneti_thread *self = gasneti_self();
	struct gasneti_op *op = self->current;
	gasneti_check_main(__func__);
	if (op == self->implicit)
		gasneti_fatal("gasnet_end_nbi_accessregion outside of an access region");
	self->current = self->implicit;
	return op_handle(op);
}

/* ---- vectors, indices and strides ---- */

/* Each call is a set of contiguous bulk operations, one for each intersection of a source
 * piece with a destination piece, that share one operation. */

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
		op_begin_put(op, node, dst, src, nbytes, false);
	else
		op_get(op, dst, node, src, nbytes);
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

/* A call without bytes is checked, too. */
#define VIS_FORMS(name, params, move)                                                    \
	OP_FORMS(name, _bulk, params, (gasneti_check_main("a VIS operation"), move))

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
