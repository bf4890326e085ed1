/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocks.c - blocks of bytes from node to node, for collectives
 *
 * A block travels as Medium messages to a handler that collects it in memory of its own
 * until a collective takes it; so a sender need not wait until the receiver has called.
 * A hash table finds the block of a message.  It is under blocks_lock.
 */
#include "coll.h"

enum { SLOTS = 256 };

struct block {
	struct block *next;
	struct gasneti_block_key key;
	size_t nbytes, got;
	char data[];
};

static gasneti_lock_t blocks_lock = GASNETI_UNLOCKED;
static struct block *blocks[SLOTS];

static bool is_same(const struct gasneti_block_key *a, const struct gasneti_block_key *b)
{
	return a->team == b->team && a->node == b->node && a->sequence == b->sequence &&
	       a->part == b->part;
}

/* Return the link to a block, or the link where it would be. */
static struct block **block_link(const struct gasneti_block_key *key)
{
	uint32_t slot =
		(uint32_t)key->team * 61 + key->node * 31 + key->sequence * 7 + key->part;
	struct block **link = &blocks[slot % SLOTS];
	while (*link && !is_same(&(*link)->key, key))
		link = &(*link)->next;
	return link;
}

static struct block *block_new(const struct gasneti_block_key *key, size_t nbytes)
{
	struct block *block = malloc(sizeof(*block) + nbytes);
	if (!block)
		gasneti_fatal("no memory for a block of %zu bytes", nbytes);
	*block = (struct block){.key = *key, .nbytes = nbytes};
	return block;
}

/* Collect one message of a block. */
void gasneti_coll_request(gasnet_token_t token, void *buf, size_t nbytes,
	gasnet_handlerarg_t team_hi, gasnet_handlerarg_t team_lo,
	gasnet_handlerarg_t sequence, gasnet_handlerarg_t part,
	gasnet_handlerarg_t off_hi, gasnet_handlerarg_t off_lo,
	gasnet_handlerarg_t all_hi, gasnet_handlerarg_t all_lo)
{
	size_t offset = (uintptr_t)gasneti_pointer(off_hi, off_lo);
	size_t all = (uintptr_t)gasneti_pointer(all_hi, all_lo);
	struct gasneti_block_key key = {
		.team = (uint64_t)(uintptr_t)gasneti_pointer(team_hi, team_lo),
		.sequence = (uint32_t)sequence,
		.part = (uint32_t)part};
	gasnet_AMGetMsgSource(token, &key.node);
	gasneti_lock(&blocks_lock);
	struct block **link = block_link(&key);
	if (!*link)
		*link = block_new(&key, all);
	struct block *block = *link;
	if (offset > block->nbytes || block->nbytes - offset < nbytes)
		gasneti_fatal("node %u sent %zu bytes at %zu of a block of %zu", key.node,
			nbytes, offset, block->nbytes);
	memcpy(block->data + offset, buf, nbytes);
	block->got += nbytes;
	gasneti_unlock(&blocks_lock);
}

static void send_piece(uint32_t node, const struct gasneti_block_key *key, char *data,
	size_t offset, size_t n, size_t all)
{
	void *team = (void *)(uintptr_t)key->team;
	void *off = (void *)(uintptr_t)offset, *total = (void *)(uintptr_t)all;
	gasneti_am_send(&(struct gasneti_message){.node = node,
		.handler = GASNETI_H_COLL,
		.category = GASNETI_MEDIUM,
		.src = data,
		.nbytes = n,
		.numargs = 8,
		.args = {gasneti_high(team), gasneti_low(team),
			(gasnet_handlerarg_t)key->sequence,
			(gasnet_handlerarg_t)key->part, gasneti_high(off),
			gasneti_low(off), gasneti_high(total), gasneti_low(total)}});
}

/* Send a block.  Wait for credits, and serve messages meanwhile. */
void gasneti_block_send(
	uint32_t node, struct gasneti_block_key key, void *data, size_t nbytes)
{
	size_t offset = 0;
	do {
		size_t n = nbytes - offset;
		if (n > GASNETI_MAX_MEDIUM)
			n = GASNETI_MAX_MEDIUM;
		char *piece = n ? (char *)data + offset : NULL;
		send_piece(node, &key, piece, offset, n, nbytes);
		offset += n;
	} while (offset < nbytes);
}

/* Take a block out of the table and store its bytes; return false if it has not come. */
bool gasneti_block_take(struct gasneti_block_key key, void *data, size_t nbytes)
{
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
