/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.c - collective operations
 *
 * The members of a team call collectives in the same order, so each one has the same
 * number everywhere.  A collective goes through three stages: IN, in which all members
 * meet if IN_ALLSYNC wants that, MOVE, which moves blocks, and OUT, in which they meet
 * again.  A stage that lacks a block returns false and is called again later: each FULL
 * poll advances all collectives that run, so a member needs only to poll.
 *
 * The word coll_busy keeps two threads from advancing at the same time; its holder alone
 * uses the stages.  Its sends wait at AM, so a collective never advances inside of
 * another one.  The list of running collectives is under coll_lock.  complete is released
 * by the word's holder and acquired by the thread that syncs, which reads the received
 * bytes then.
 *
 * A block travels as Medium messages to a handler that collects it in memory of its own
 * until a collective takes it; so a sender need not wait until the receiver has called.
 * A hash table finds the block of a message.  It is under blocks_lock.
 */
#include <sys/queue.h>

#include "internal.h"

/* A block: its sender, and where it belongs. */
struct block_key {
	uint64_t team;
	uint32_t node;     /* the sender; the receiver's side fills it in */
	uint32_t sequence; /* of the collective in the team */
	uint32_t part;     /* of the collective */
};

enum { BLOCK_SLOTS = 256 };

struct block {
	struct block *next;
	struct block_key key;
	size_t nbytes, got;
	char data[];
};

static gasneti_lock_t blocks_lock = GASNETI_UNLOCKED;
static struct block *blocks[BLOCK_SLOTS];

/* Return the link to a block, or the link where it would be. */
static struct block **block_link(const struct block_key *key)
{
	uint32_t slot =
		(uint32_t)key->team * 61 + key->node * 31 + key->sequence * 7 + key->part;
	struct block **link = &blocks[slot % BLOCK_SLOTS];
	for (; *link; link = &(*link)->next) {
		const struct block_key *k = &(*link)->key;
		if (k->team == key->team && k->node == key->node &&
			k->sequence == key->sequence && k->part == key->part)
			break;
	}
	return link;
}

/* Collect one message of a block. */
void gasneti_coll_request(gasnet_token_t token, void *buf, size_t nbytes,
	gasnet_handlerarg_t team_hi, gasnet_handlerarg_t team_lo,
	gasnet_handlerarg_t sequence, gasnet_handlerarg_t part,
	gasnet_handlerarg_t off_hi, gasnet_handlerarg_t off_lo,
	gasnet_handlerarg_t all_hi, gasnet_handlerarg_t all_lo)
{
	size_t offset = gasneti_joined(off_hi, off_lo);
	size_t all = gasneti_joined(all_hi, all_lo);
	struct block_key key = {.team = gasneti_joined(team_hi, team_lo),
		.node = ((struct gasneti_token *)token)->node,
		.sequence = (uint32_t)sequence,
		.part = (uint32_t)part};
	gasneti_lock(&blocks_lock);
	struct block **link = block_link(&key);
	struct block *block = *link;
	if (!block) {
		block = malloc(sizeof(*block) + all);
		if (!block)
			gasneti_fatal("no memory for a block of %zu bytes", all);
		*block = (struct block){.key = key, .nbytes = all};
		*link = block;
	}
	if (offset > block->nbytes || block->nbytes - offset < nbytes)
		gasneti_fatal("node %u sent %zu bytes at %zu of a block of %zu", key.node,
			nbytes, offset, block->nbytes);
	memcpy(block->data + offset, buf, nbytes);
	block->got += nbytes;
	gasneti_unlock(&blocks_lock);
}

/* ---- collectives ---- */

enum kind { BROADCAST, SCATTER, GATHER, EXCHANGE, MEET };
enum stage { IN, MOVE, OUT, END };
/* Parts of a collective: its data; the rounds of both meetings add their distances. */
enum { DATA = 0, IN_ROUND = 1, OUT_ROUND = 2 * GASNET_MAXNODES };

struct gasneti_coll {
	STAILQ_ENTRY(gasneti_coll) next;
	gasnet_team_handle_t team;
	uint32_t sequence;
	enum kind kind;
	int flags;
	uint32_t root;
	char *dst, *src;
	size_t nbytes, stride; /* stride: between the blocks of src */
	uint64_t *value;       /* MEET: the join of all members' values */
	enum stage stage;
	uint32_t distance; /* of the round of a meeting */
	uint32_t received; /* members whose blocks are there */
	bool sent;
	uint32_t complete;
};

static gasneti_lock_t coll_lock = GASNETI_UNLOCKED;
static STAILQ_HEAD(, gasneti_coll) coll_runs = STAILQ_HEAD_INITIALIZER(coll_runs);
static uint32_t coll_busy;

static struct block_key coll_key(
	const struct gasneti_coll *c, uint32_t rank, uint32_t part)
{
	return (struct block_key){.team = c->team->id,
		.node = gasneti_member(c->team, rank),
		.sequence = c->sequence,
		.part = part};
}

/* Send a block.  Wait for credits, and serve messages meanwhile, but no collectives. */
static void coll_send(
	struct gasneti_coll *c, uint32_t rank, uint32_t part, void *data, size_t nbytes)
{
	const struct block_key key = coll_key(c, rank, part);
	size_t offset = 0;
	do {
		size_t n = nbytes - offset;
		if (n > GASNETI_MAX_MEDIUM)
			n = GASNETI_MAX_MEDIUM;
		const struct gasneti_message m = {.node = key.node,
			.handler = GASNETI_H_COLL,
			.category = GASNETI_MEDIUM,
			.src = n ? (char *)data + offset : NULL,
			.nbytes = n,
			.numargs = 8,
			.args = {GASNETI_HALVES(key.team),
				(gasnet_handlerarg_t)key.sequence,
				(gasnet_handlerarg_t)key.part, GASNETI_HALVES(offset),
				GASNETI_HALVES(nbytes)}};
		struct gasneti_request r;
		if (!gasneti_request_begin(&r, &m))
			gasneti_wait_for(am, gasneti_request_try(&r, &m, true));
		gasneti_request_end(&r, &m);
		offset += n;
	} while (offset < nbytes);
}

/* Take a block out of the table and store its bytes; return false if it has not come. */
static bool coll_take(
	struct gasneti_coll *c, uint32_t rank, uint32_t part, void *data, size_t nbytes)
{
	const struct block_key key = coll_key(c, rank, part);
	gasneti_lock(&blocks_lock);
	struct block **link = block_link(&key), *block = *link;
	if (block && block->got == block->nbytes)
		*link = block->next;
	else
		block = NULL;
	gasneti_unlock(&blocks_lock);
	if (!block)
		return false;
	if (block->nbytes != nbytes)
		gasneti_fatal("a collective of %zu bytes here, of %zu bytes on node %u",
			nbytes, block->nbytes, key.node);
	if (nbytes)
		memcpy(data, block->data, nbytes);
	free(block);
	return true;
}

/* ---- meetings ---- */

/* Do a round of a dissemination; return false if its message has not come. */
static bool coll_round_done(struct gasneti_coll *c, uint32_t part)
{
	uint32_t n = c->team->size, rank = c->team->rank;
	uint64_t value = 0; /* unused without c->value */
	size_t nbytes = c->value ? sizeof value : 0;
	if (!c->sent)
		coll_send(c, (rank + c->distance) % n, part, c->value, nbytes);
	c->sent = true;
	if (!coll_take(c, (rank + n - c->distance) % n, part, &value, nbytes))
		return false;
	if (c->value)
		*c->value = gasneti_barrier_join(*c->value, value);
	c->sent = false;
	return true;
}

/* Meet all members; return false if that is not done. */
static bool coll_have_met(struct gasneti_coll *c, uint32_t first)
{
	for (; c->distance < c->team->size; c->distance *= 2)
		if (!coll_round_done(c, first + c->distance))
			return false;
	c->distance = 1;
	return true;
}

/* ---- moving data ---- */

static void coll_copy(void *dst, const void *src, size_t nbytes)
{
	if (nbytes && dst != src)
		memmove(dst, src, nbytes);
}

static char *coll_src(const struct gasneti_coll *c, uint32_t rank)
{
	return c->src + rank * c->stride;
}

static char *coll_dst(const struct gasneti_coll *c, uint32_t rank)
{
	return c->dst + rank * c->nbytes;
}

/* A binomial tree: the parent's rank from the root is this one without its lowest bit. */
static bool coll_broadcast(struct gasneti_coll *c)
{
	uint32_t n = c->team->size, mine = (c->team->rank + n - c->root) % n;
	uint32_t bit = mine & (~mine + 1);
	char *data = mine ? c->dst : c->src;
	if (!mine) /* the least power of two that is not below n */
		for (bit = 1; bit < n;)
			bit *= 2;
	if (mine && !coll_take(c, (c->root + mine - bit) % n, DATA, data, c->nbytes))
		return false;
	while (bit >>= 1)
		if (mine + bit < n)
			coll_send(c, (c->root + mine + bit) % n, DATA, data, c->nbytes);
	coll_copy(c->dst, data, c->nbytes);
	return true;
}

/* Send each other member its block of src, and keep the own one. */
static void coll_send_all(struct gasneti_coll *c, char *own)
{
	uint32_t n = c->team->size, me = c->team->rank;
	for (uint32_t k = 1; k < n; k++) {
		uint32_t to = (me + k) % n;
		coll_send(c, to, DATA, coll_src(c, to), c->nbytes);
	}
	coll_copy(own, coll_src(c, me), c->nbytes);
}

/* Take the blocks of all other members; return false if one has not come. */
static bool coll_have_all(struct gasneti_coll *c)
{
	for (; c->received < c->team->size; c->received++)
		if (c->received != c->team->rank &&
			!coll_take(c, c->received, DATA, coll_dst(c, c->received),
				c->nbytes))
			return false;
	return true;
}

static bool coll_scatter(struct gasneti_coll *c)
{
	if (c->team->rank != c->root)
		return coll_take(c, c->root, DATA, c->dst, c->nbytes);
	coll_send_all(c, c->dst);
	return true;
}

static bool coll_gather(struct gasneti_coll *c)
{
	if (c->team->rank != c->root) {
		coll_send(c, c->root, DATA, c->src, c->nbytes);
		return true;
	}
	if (!c->received)
		coll_copy(coll_dst(c, c->root), c->src, c->nbytes);
	return coll_have_all(c);
}

static bool coll_exchange(struct gasneti_coll *c)
{
	if (!c->sent)
		coll_send_all(c, coll_dst(c, c->team->rank));
	c->sent = true;
	return coll_have_all(c);
}

/* ---- progress ---- */

static bool coll_stage_done(struct gasneti_coll *c)
{
	static bool (*const move[])(struct gasneti_coll *) = {
		[BROADCAST] = coll_broadcast,
		[SCATTER] = coll_scatter,
		[GATHER] = coll_gather,
		[EXCHANGE] = coll_exchange};
	switch (c->stage) {
	case IN:
		return !(c->flags & GASNET_COLL_IN_ALLSYNC) || coll_have_met(c, IN_ROUND);
	case MOVE:
		if (c->kind != MEET && !move[c->kind](c))
			return false;
		c->sent = false;
		return true;
	default:
		return !(c->flags & GASNET_COLL_OUT_ALLSYNC) ||
		       coll_have_met(c, OUT_ROUND);
	}
}

static struct gasneti_coll *coll_next(struct gasneti_coll *c)
{
	gasneti_lock(&coll_lock);
	struct gasneti_coll *next = c ? STAILQ_NEXT(c, next) : STAILQ_FIRST(&coll_runs);
	gasneti_unlock(&coll_lock);
	return next;
}

/* Let all collectives of this node go on, unless a thread, or this one, does so now. */
void gasneti_coll_advance(void)
{
	struct gasneti_coll *next;
	if (!gasneti_cas(&coll_busy, 0, 1))
		return;
	for (struct gasneti_coll *c = coll_next(NULL); c; c = next) {
		next = coll_next(c);
		while (c->stage != END && coll_stage_done(c))
			c->stage++;
		if (c->stage != END)
			continue;
		gasneti_lock(&coll_lock);
		STAILQ_REMOVE(&coll_runs, c, gasneti_coll, next);
		gasneti_set(&gasneti.collectives, gasneti.collectives - 1);
		gasneti_unlock(&coll_lock);
		gasneti_release(&c->complete, 1);
		gasneti_wake();
	}
	gasneti_release(&coll_busy, 0);
}

static gasnet_coll_handle_t coll_begin(const struct gasneti_coll *from)
{
	gasneti_check_main("a collective");
	if (from->root >= from->team->size)
		gasneti_fatal("a collective with root %u in a team of %u", from->root,
			from->team->size);
	struct gasneti_coll *c = gasneti_alloc(1, sizeof *c);
	*c = *from;
	c->sequence = c->team->sequence++;
	c->distance = 1;
	gasneti_lock(&coll_lock);
	STAILQ_INSERT_TAIL(&coll_runs, c, next);
	gasneti_set(&gasneti.collectives, gasneti.collectives + 1);
	gasneti_unlock(&coll_lock);
	gasneti_coll_advance();
	return c;
}

/* End a collective that is complete; return false if it is not. */
bool gasneti_coll_finish(gasnet_coll_handle_t handle)
{
	if (!gasneti_acquire(&handle->complete))
		return false;
	free(handle);
	return true;
}

/* ---- the operations ---- */

/* Join the members' values by a meeting that IN stands for; see team.c. */
gasnet_coll_handle_t gasneti_coll_meet(gasnet_team_handle_t team, uint64_t *value)
{
	return coll_begin(&(struct gasneti_coll){.team = team,
		.kind = MEET,
		.flags = GASNET_COLL_IN_ALLSYNC,
		.value = value});
}

/* Begin a collective that moves blocks of nbytes, which are stride bytes apart in src. */
static gasnet_coll_handle_t coll_move(enum kind kind, gasnet_team_handle_t team,
	uint32_t root, void *dst, void *src, size_t stride, size_t nbytes, int flags)
{
	return coll_begin(&(struct gasneti_coll){.team = team,
		.kind = kind,
		.root = root,
		.dst = dst,
		.src = src,
		.nbytes = nbytes,
		.stride = stride,
		.flags = flags});
}

gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void *dst,
	gasnet_image_t srcimage, void *src, size_t nbytes, int flags)
{
	return coll_move(BROADCAST, team, srcimage, dst, src, 0, nbytes, flags);
}

gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void *dst,
	gasnet_image_t srcimage, void *src, size_t nbytes, int flags)
{
	return coll_move(SCATTER, team, srcimage, dst, src, nbytes, nbytes, flags);
}

gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team,
	gasnet_image_t dstimage, void *dst, void *src, size_t nbytes, int flags)
{
	return coll_move(GATHER, team, dstimage, dst, src, 0, nbytes, flags);
}

gasnet_coll_handle_t gasnet_coll_gather_all_nb(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags)
{
	return coll_move(EXCHANGE, team, 0, dst, src, 0, nbytes, flags);
}

gasnet_coll_handle_t gasnet_coll_exchange_nb(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags)
{
	return coll_move(EXCHANGE, team, 0, dst, src, nbytes, nbytes, flags);
}
