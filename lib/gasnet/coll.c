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
 * The word busy keeps two threads, or a thread and the polls within its own sends, from
 * advancing at the same time; its holder alone uses the stages.  The list of running
 * collectives is under runs_lock.  complete is released by the word's holder and acquired
 * by the thread that syncs, which reads the received bytes then.
 */
#include "coll.h"

enum kind { BROADCAST, SCATTER, GATHER, EXCHANGE, MEET };
enum stage { IN, MOVE, OUT, END };
/* Parts of a collective: its data, and the rounds of both meetings. */
enum { DATA = 0, IN_ROUND = 1, OUT_ROUND = 64 };

struct gasneti_coll {
	struct gasneti_coll *next;
	gasnet_team_handle_t team;
	uint32_t sequence;
	enum kind kind;
	int flags;
	uint32_t root;
	char *dst, *src;
	size_t nbytes, stride; /* stride: between the blocks of src */
	uint64_t *value;       /* MEET: the join of all members' values */
	enum stage stage;
	uint32_t distance, round; /* of a meeting */
	uint32_t received;        /* members whose blocks are there */
	bool sent;
	uint32_t complete;
};

static gasneti_lock_t runs_lock = GASNETI_UNLOCKED;
static struct gasneti_coll *runs;
static uint32_t busy;

static struct gasneti_block_key key_of(
	const struct gasneti_coll *c, uint32_t rank, uint32_t part)
{
	return (struct gasneti_block_key){.team = c->team->id,
		.node = gasneti_member(c->team, rank),
		.sequence = c->sequence,
		.part = part};
}

static void send_to(
	struct gasneti_coll *c, uint32_t rank, uint32_t part, void *data, size_t n)
{
	struct gasneti_block_key key = key_of(c, rank, part);
	gasneti_block_send(key.node, key, data, n);
}

static bool take_from(
	struct gasneti_coll *c, uint32_t rank, uint32_t part, void *data, size_t n)
{
	return gasneti_block_take(key_of(c, rank, part), data, n);
}

/* ---- meetings ---- */

/* Do a round of a dissemination; return false if its message has not come. */
static bool round_done(struct gasneti_coll *c, uint32_t part)
{
	uint32_t n = c->team->size, rank = c->team->rank;
	uint64_t value;
	size_t nbytes = c->value ? sizeof value : 0;
	if (!c->sent)
		send_to(c, (rank + c->distance) % n, part, c->value, nbytes);
	c->sent = true;
	if (!take_from(c, (rank + n - c->distance) % n, part, &value, nbytes))
		return false;
	if (c->value)
		*c->value = gasneti_barrier_join(*c->value, value);
	c->sent = false;
	return true;
}

/* Meet all members; return false if that is not done.  first: the part of round 0. */
static bool have_met(struct gasneti_coll *c, uint32_t first)
{
	while (c->distance < c->team->size) {
		if (!round_done(c, first + c->round))
			return false;
		c->distance *= 2;
		c->round++;
	}
	c->distance = 1;
	c->round = 0;
	return true;
}

/* ---- moving data ---- */

static void keep(void *dst, const void *src, size_t nbytes)
{
	if (nbytes && dst != src)
		memmove(dst, src, nbytes);
}

static char *src_block(const struct gasneti_coll *c, uint32_t rank)
{
	return c->src + rank * c->stride;
}

static char *dst_block(const struct gasneti_coll *c, uint32_t rank)
{
	return c->dst + rank * c->nbytes;
}

static bool is_root(const struct gasneti_coll *c)
{
	return c->team->rank == c->root;
}

static uint32_t lowest_bit(uint32_t n)
{
	return n & (~n + 1);
}

/* Return the least power of two that is not below n. */
static uint32_t power_from(uint32_t n)
{
	uint32_t power = 1;
	while (power < n)
		power *= 2;
	return power;
}

/* A binomial tree: the parent's rank from the root is this one without its lowest bit. */
static bool broadcast(struct gasneti_coll *c)
{
	uint32_t n = c->team->size, mine = (c->team->rank + n - c->root) % n;
	uint32_t bit = mine ? lowest_bit(mine) : power_from(n);
	char *data = mine ? c->dst : c->src;
	if (mine && !take_from(c, (c->root + mine - bit) % n, DATA, data, c->nbytes))
		return false;
	while (bit >>= 1)
		if (mine + bit < n)
			send_to(c, (c->root + mine + bit) % n, DATA, data, c->nbytes);
	keep(c->dst, data, c->nbytes);
	return true;
}

/* Send each other member its block of src, and keep the own one. */
static void send_all(struct gasneti_coll *c, char *own)
{
	uint32_t n = c->team->size, me = c->team->rank;
	for (uint32_t k = 1; k < n; k++) {
		uint32_t to = (me + k) % n;
		send_to(c, to, DATA, src_block(c, to), c->nbytes);
	}
	keep(own, src_block(c, me), c->nbytes);
}

/* Take the blocks of all other members; return false if one has not come. */
static bool have_all(struct gasneti_coll *c)
{
	for (; c->received < c->team->size; c->received++)
		if (c->received != c->team->rank &&
			!take_from(c, c->received, DATA, dst_block(c, c->received),
				c->nbytes))
			return false;
	return true;
}

static bool scatter(struct gasneti_coll *c)
{
	if (!is_root(c))
		return take_from(c, c->root, DATA, c->dst, c->nbytes);
	send_all(c, c->dst);
	return true;
}

static bool gather(struct gasneti_coll *c)
{
	if (!is_root(c)) {
		send_to(c, c->root, DATA, c->src, c->nbytes);
		return true;
	}
	if (!c->received)
		keep(dst_block(c, c->root), c->src, c->nbytes);
	return have_all(c);
}

static bool exchange(struct gasneti_coll *c)
{
	if (!c->sent)
		send_all(c, dst_block(c, c->team->rank));
	c->sent = true;
	return have_all(c);
}

static bool have_moved(struct gasneti_coll *c)
{
	static bool (*const move[])(struct gasneti_coll *) = {[BROADCAST] = broadcast,
		[SCATTER] = scatter,
		[GATHER] = gather,
		[EXCHANGE] = exchange};
	if (c->kind != MEET && !move[c->kind](c))
		return false;
	c->sent = false;
	return true;
}

/* ---- progress ---- */

static bool stage_done(struct gasneti_coll *c)
{
	switch (c->stage) {
	case IN:
		return !(c->flags & GASNET_COLL_IN_ALLSYNC) || have_met(c, IN_ROUND);
	case MOVE:
		return have_moved(c);
	default:
		return !(c->flags & GASNET_COLL_OUT_ALLSYNC) || have_met(c, OUT_ROUND);
	}
}

/* Go on as far as the messages allow; return true at the end. */
static bool go_on(struct gasneti_coll *c)
{
	while (c->stage != END && stage_done(c))
		c->stage++;
	return c->stage == END;
}

static struct gasneti_coll *next_run(struct gasneti_coll *c)
{
	gasneti_lock(&runs_lock);
	struct gasneti_coll *next = c ? c->next : runs;
	gasneti_unlock(&runs_lock);
	return next;
}

static void end_run(struct gasneti_coll *c)
{
	gasneti_lock(&runs_lock);
	struct gasneti_coll **link = &runs;
	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	gasneti_set(&gasneti.collectives, gasneti.collectives - 1);
	gasneti_unlock(&runs_lock);
	gasneti_release(&c->complete, 1);
	gasneti_wake();
}

/* Let all collectives of this node go on, unless a thread, or this one, does so now. */
void gasneti_coll_advance(void)
{
	struct gasneti_coll *next;
	if (!gasneti_cas(&busy, 0, 1))
		return;
	for (struct gasneti_coll *c = next_run(NULL); c; c = next) {
		next = next_run(c);
		if (go_on(c))
			end_run(c);
	}
	gasneti_release(&busy, 0);
}

static gasnet_coll_handle_t begin(const struct gasneti_coll *from)
{
	gasneti_check_main("a collective");
	if (from->root >= from->team->size)
		gasneti_fatal("a collective with root %u in a team of %u", from->root,
			from->team->size);
	struct gasneti_coll *c = malloc(sizeof *c);
	if (!c)
		gasneti_fatal("no memory for a collective");
	*c = *from;
	c->sequence = c->team->sequence++;
	c->distance = 1;
	gasneti_lock(&runs_lock);
	struct gasneti_coll **link = &runs;
	while (*link)
		link = &(*link)->next;
	*link = c;
	gasneti_set(&gasneti.collectives, gasneti.collectives + 1);
	gasneti_unlock(&runs_lock);
	gasneti_coll_advance();
	return c;
}

/* ---- syncs ---- */

int gasnet_coll_try_sync(gasnet_coll_handle_t handle)
{
	if (!handle)
		return GASNET_OK;
	if (!gasneti_acquire(&handle->complete))
		gasneti_poll_full();
	if (!gasneti_acquire(&handle->complete))
		return GASNET_ERR_NOT_READY;
	free(handle);
	return GASNET_OK;
}

void gasnet_coll_wait_sync(gasnet_coll_handle_t handle)
{
	if (!handle)
		return;
	gasneti_wait_for(GASNETI_FULL, gasneti_acquire(&handle->complete));
	free(handle);
}

/* Sync all handles that are complete.  Count them in *some; return those left. */
static size_t try_each(gasnet_coll_handle_t *handles, size_t n, size_t *some)
{
	size_t left = 0;
	*some = 0;
	gasneti_poll_full();
	for (size_t i = 0; i < n; i++) {
		if (!handles[i])
			continue;
		if (gasneti_acquire(&handles[i]->complete)) {
			free(handles[i]);
			handles[i] = GASNET_COLL_INVALID_HANDLE;
			++*some;
		} else {
			left++;
		}
	}
	return left;
}

int gasnet_coll_try_sync_all(gasnet_coll_handle_t *handles, size_t n)
{
	size_t some;
	return try_each(handles, n, &some) ? GASNET_ERR_NOT_READY : GASNET_OK;
}

int gasnet_coll_try_sync_some(gasnet_coll_handle_t *handles, size_t n)
{
	size_t some, left = try_each(handles, n, &some);
	return left && !some ? GASNET_ERR_NOT_READY : GASNET_OK;
}

void gasnet_coll_wait_sync_all(gasnet_coll_handle_t *handles, size_t n)
{
	gasneti_wait_for(GASNETI_FULL, gasnet_coll_try_sync_all(handles, n) == GASNET_OK);
}

void gasnet_coll_wait_sync_some(gasnet_coll_handle_t *handles, size_t n)
{
	gasneti_wait_for(
		GASNETI_FULL, gasnet_coll_try_sync_some(handles, n) == GASNET_OK);
}

/* ---- the operations ---- */

/* Join the members' values by a meeting that IN stands for; see team.c. */
gasnet_coll_handle_t gasneti_coll_meet(gasnet_team_handle_t team, uint64_t *value)
{
	return begin(&(struct gasneti_coll){.team = team,
		.kind = MEET,
		.flags = GASNET_COLL_IN_ALLSYNC,
		.value = value});
}

gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void *dst,
	gasnet_image_t srcimage, void *src, size_t nbytes, int flags)
{
	return begin(&(struct gasneti_coll){.team = team,
		.kind = BROADCAST,
		.root = srcimage,
		.dst = dst,
		.src = src,
		.nbytes = nbytes,
		.flags = flags});
}

gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void *dst,
	gasnet_image_t srcimage, void *src, size_t nbytes, int flags)
{
	return begin(&(struct gasneti_coll){.team = team,
		.kind = SCATTER,
		.root = srcimage,
		.dst = dst,
		.src = src,
		.nbytes = nbytes,
		.stride = nbytes,
		.flags = flags});
}

gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team,
	gasnet_image_t dstimage, void *dst, void *src, size_t nbytes, int flags)
{
	return begin(&(struct gasneti_coll){.team = team,
		.kind = GATHER,
		.root = dstimage,
		.dst = dst,
		.src = src,
		.nbytes = nbytes,
		.flags = flags});
}

/* Send each member its block, at a distance of stride in src; take theirs. */
static gasnet_coll_handle_t all_to_all(gasnet_team_handle_t team, void *dst, void *src,
	size_t stride, size_t nbytes, int flags)
{
	return begin(&(struct gasneti_coll){.team = team,
		.kind = EXCHANGE,
		.dst = dst,
		.src = src,
		.nbytes = nbytes,
		.stride = stride,
		.flags = flags});
}

gasnet_coll_handle_t gasnet_coll_gather_all_nb(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags)
{
	return all_to_all(team, dst, src, 0, nbytes, flags);
}

gasnet_coll_handle_t gasnet_coll_exchange_nb(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags)
{
	return all_to_all(team, dst, src, nbytes, nbytes, flags);
}
