/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.c - collective operations, by Medium messages
 *
 * The nodes call collectives in the same order, so each one has the same number
 * everywhere.  A block travels as Medium messages to a handler that collects it in memory
 * of its own until the receiving call takes it; so a sender need not wait for the
 * receiver to call.  Blocks are under blocks_lock.
 */
#pragma GCC visibility push(default)
#include <gasnet_coll.h>
#pragma GCC visibility pop

#include "internal.h"

enum { DATA = 0, ROUND = 1 }; /* parts of a collective: data, then rounds of barriers */

struct gasneti_team {
	uint32_t sequence;
};
struct gasneti_team gasneti_team_all;

struct block {
	struct block *next;
	uint32_t node, sequence, part;
	size_t nbytes, got;
	char data[];
};

static gasneti_lock_t blocks_lock = GASNETI_UNLOCKED;
static struct block *blocks;

static struct block **block_link(uint32_t node, uint32_t sequence, uint32_t part)
{
	struct block **link = &blocks;
	while (*link && ((*link)->node != node || (*link)->sequence != sequence ||
				(*link)->part != part))
		link = &(*link)->next;
	return link;
}

static struct block *block_new(
	uint32_t node, uint32_t sequence, uint32_t part, size_t nbytes)
{
	struct block *block = malloc(sizeof(*block) + nbytes);
	if (!block)
		gasneti_fatal("no memory for a block of %zu bytes", nbytes);
	*block = (struct block){.next = blocks,
		.node = node,
		.sequence = sequence,
		.part = part,
		.nbytes = nbytes};
	blocks = block;
	return block;
}

/* Collect one message of a block. */
void gasneti_coll_request(gasnet_token_t token, void *buf, size_t nbytes,
	gasnet_handlerarg_t sequence, gasnet_handlerarg_t part,
	gasnet_handlerarg_t off_hi, gasnet_handlerarg_t off_lo,
	gasnet_handlerarg_t all_hi, gasnet_handlerarg_t all_lo)
{
	size_t offset = (uintptr_t)gasneti_pointer(off_hi, off_lo);
	size_t all = (uintptr_t)gasneti_pointer(all_hi, all_lo);
	gasnet_node_t node = 0;
	gasnet_AMGetMsgSource(token, &node);
	gasneti_lock(&blocks_lock);
	struct block *block = *block_link(node, (uint32_t)sequence, (uint32_t)part);
	if (!block)
		block = block_new(node, (uint32_t)sequence, (uint32_t)part, all);
	if (offset > block->nbytes || block->nbytes - offset < nbytes)
		gasneti_fatal("node %u sent %zu bytes at %zu of a block of %zu", node,
			nbytes, offset, block->nbytes);
	memcpy(block->data + offset, buf, nbytes);
	block->got += nbytes;
	gasneti_unlock(&blocks_lock);
}

static void send_piece(uint32_t node, uint32_t sequence, uint32_t part, char *data,
	size_t offset, size_t n, size_t all)
{
	void *off = (void *)(uintptr_t)offset, *total = (void *)(uintptr_t)all;
	gasnet_AMRequestMedium6(node, GASNETI_H_COLL, data + offset, n, sequence, part,
		gasneti_high(off), gasneti_low(off), gasneti_high(total),
		gasneti_low(total));
}

static void send_block(
	uint32_t node, uint32_t sequence, uint32_t part, void *data, size_t nbytes)
{
	size_t offset = 0;
	do {
		size_t n = nbytes - offset;
		if (n > GASNETI_MAX_MEDIUM)
			n = GASNETI_MAX_MEDIUM;
		send_piece(node, sequence, part, data, offset, n, nbytes);
		offset += n;
	} while (offset < nbytes);
}

/* Take a block out of the list if it is complete. */
static struct block *take(uint32_t node, uint32_t sequence, uint32_t part)
{
	gasneti_lock(&blocks_lock);
	struct block **link = block_link(node, sequence, part), *block = *link;
	if (block && block->got == block->nbytes)
		*link = block->next;
	else
		block = NULL;
	gasneti_unlock(&blocks_lock);
	return block;
}

static void receive_block(
	uint32_t node, uint32_t sequence, uint32_t part, void *data, size_t nbytes)
{
	struct block *block = NULL;
	gasneti_wait_for(GASNETI_FULL, (block = take(node, sequence, part)) != NULL);
	if (block->nbytes != nbytes)
		gasneti_fatal("a collective of %zu bytes here, of %zu bytes on node %u",
			nbytes, block->nbytes, node);
	if (nbytes)
		memcpy(data, block->data, nbytes);
	free(block);
}

/* Meet all nodes by dissemination; first is the part of the first round. */
static void meet(uint32_t sequence, uint32_t first)
{
	uint32_t n = gasneti.nodes, part = first;
	for (uint32_t step = 1; step < n; step *= 2, part++) {
		send_block((gasneti.me + step) % n, sequence, part, NULL, 0);
		receive_block((gasneti.me + n - step) % n, sequence, part, NULL, 0);
	}
}

static uint32_t enter(gasnet_team_handle_t team, int flags)
{
	gasneti_check_main("a collective");
	uint32_t sequence = team->sequence++;
	if (flags & GASNET_COLL_IN_ALLSYNC)
		meet(sequence, ROUND);
	return sequence;
}

static void leave(uint32_t sequence, int flags)
{
	if (flags & GASNET_COLL_OUT_ALLSYNC)
		meet(sequence, ROUND + 32);
}

void gasnet_coll_init(const gasnet_image_t images[], gasnet_image_t my_image,
	gasnet_coll_fn_entry_t fn_tbl[], size_t fn_count, int init_flags)
{
	(void)images, (void)my_image, (void)fn_tbl, (void)fn_count, (void)init_flags;
	gasneti_check_main("gasnet_coll_init");
	gasneti_team_all.sequence = 0;
}

static char *block_at(void *blocks_of_nodes, uint32_t node, size_t nbytes)
{
	return (char *)blocks_of_nodes + node * nbytes;
}

static void keep(void *dst, const void *src, size_t nbytes)
{
	if (nbytes && dst != src)
		memmove(dst, src, nbytes);
}

void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage,
	void *src, size_t nbytes, int flags)
{
	uint32_t sequence = enter(team, flags);
	if (gasneti.me == srcimage) {
		for (uint32_t i = 0; i < gasneti.nodes; i++)
			if (i != gasneti.me)
				send_block(i, sequence, DATA, src, nbytes);
		keep(dst, src, nbytes);
	} else {
		receive_block(srcimage, sequence, DATA, dst, nbytes);
	}
	leave(sequence, flags);
}

void gasnet_coll_scatter(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage,
	void *src, size_t nbytes, int flags)
{
	uint32_t sequence = enter(team, flags);
	if (gasneti.me == srcimage) {
		for (uint32_t i = 0; i < gasneti.nodes; i++)
			if (i != gasneti.me)
				send_block(i, sequence, DATA, block_at(src, i, nbytes),
					nbytes);
		keep(dst, block_at(src, gasneti.me, nbytes), nbytes);
	} else {
		receive_block(srcimage, sequence, DATA, dst, nbytes);
	}
	leave(sequence, flags);
}

/* Receive the blocks of all other nodes. */
static void receive_all(uint32_t sequence, void *dst, size_t nbytes)
{
	for (uint32_t i = 0; i < gasneti.nodes; i++)
		if (i != gasneti.me)
			receive_block(
				i, sequence, DATA, block_at(dst, i, nbytes), nbytes);
}

void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst,
	void *src, size_t nbytes, int flags)
{
	uint32_t sequence = enter(team, flags);
	if (gasneti.me == dstimage) {
		keep(block_at(dst, gasneti.me, nbytes), src, nbytes);
		receive_all(sequence, dst, nbytes);
	} else {
		send_block(dstimage, sequence, DATA, src, nbytes);
	}
	leave(sequence, flags);
}

/* Send each node its block, at a distance of stride in src; receive theirs. */
static void all_to_all(gasnet_team_handle_t team, void *dst, void *src, size_t stride,
	size_t nbytes, int flags)
{
	uint32_t sequence = enter(team, flags);
	for (uint32_t k = 1; k < gasneti.nodes; k++) {
		uint32_t to = (gasneti.me + k) % gasneti.nodes;
		send_block(to, sequence, DATA, block_at(src, to, stride), nbytes);
	}
	keep(block_at(dst, gasneti.me, nbytes), block_at(src, gasneti.me, stride),
		nbytes);
	receive_all(sequence, dst, nbytes);
	leave(sequence, flags);
}

void gasnet_coll_gather_all(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags)
{
	all_to_all(team, dst, src, 0, nbytes, flags);
}

void gasnet_coll_exchange(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags)
{
	all_to_all(team, dst, src, nbytes, nbytes, flags);
}
