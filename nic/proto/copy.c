/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of short puts and exchanges whose request cannot leave at once.
 *
 * The call itself posts their SEND_END, in any state of the lane, so their bytes need
 * memory of the NIC.  This memory is private, bounded, and mapped when the NIC starts,
 * because the firmware never allocates; pages that no copy has used cost nothing.  The
 * copies for one target get a quarter at most, so a stopped target leaves the rest to
 * others.  A put that finds no room for its copy is treated as a long one: its bytes stay
 * in the program's memory, and SEND_END comes when they have left.
 *
 * The bytes of a put to a target that has yet to join stay in the program's memory, until
 * the program unlinks the descriptor (close.c): a program that waits for SEND_END before
 * it ends by _exit then loses nothing.  All these targets together count as one.
 *
 * The memory is made of blocks.  All pieces of a block have the same size, a power of
 * two; a block without a piece in use may be cut anew.
 */
#include "nic/proto/copy.h"
#include "shm/seg.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define P3_COPY_LEAST   ((uint32_t)P3_CELL)
#define P3_COPY_CLASSES 8u /* P3_COPY_LEAST to P3_SHORT_MOST bytes */
#define P3_COPY_BLOCKS  (P3_COPIES_LEN / P3_SHORT_MOST)

_Static_assert(P3_COPY_LEAST << (P3_COPY_CLASSES - 1) == P3_SHORT_MOST,
	"the largest piece is a block");
_Static_assert(P3_SHORT_MOST / P3_COPY_LEAST <= 128, "a bit for each piece");

struct block {
	struct p3_link link; /* in the list of empty blocks, or of its class's blocks
			      * with room */
	uint64_t free[2];    /* a bit for each free piece */
	uint32_t class;
	uint32_t used; /* number of pieces in use */
};

struct p3_copies {
	char *at;
	struct p3_link empty;
	struct p3_link roomy[P3_COPY_CLASSES];
	struct block block[P3_COPY_BLOCKS];
};

int p3_copy_start(struct p3_nic *n)
{
	struct p3_copies *c = calloc(1, sizeof *c);
	if (!c)
		return -ENOMEM;
	c->at = p3_pages_map(NULL, P3_COPIES_LEN, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c->at == MAP_FAILED) {
		free(c);
		return -ENOMEM;
	}
	p3_list_init(&c->empty);
	for (uint32_t i = 0; i < P3_COPY_CLASSES; i++)
		p3_list_init(&c->roomy[i]);
	for (uint32_t i = 0; i < P3_COPY_BLOCKS; i++)
		p3_list_add(&c->empty, &c->block[i].link);
	n->copies = c;
	return 0;
}

void p3_copy_stop(struct p3_nic *n)
{
	if (!n->copies)
		return;
	(void)munmap(n->copies->at, P3_COPIES_LEN);
	free(n->copies);
	n->copies = NULL;
}

static uint32_t class_of(uint64_t len)
{
	uint32_t class = 0;
	while ((uint64_t)P3_COPY_LEAST << class < len)
		class ++;
	return class;
}

static uint32_t pieces_of(uint32_t class)
{
	return (P3_SHORT_MOST / P3_COPY_LEAST) >> class;
}

static void cut(struct block *b, uint32_t class)
{
	uint32_t n = pieces_of(class);
	b->class = class;
	b->used = 0;
	b->free[0] = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	b->free[1] = n > 64 ? UINT64_MAX : 0;
}

/* Return a block of the class with a free piece, or NULL. */
static struct block *roomy_block(struct p3_copies *c, uint32_t class)
{
	struct p3_link *list = &c->roomy[class];
	if (!p3_list_empty(list))
		return p3_item(list->next, struct block, link);
	if (p3_list_empty(&c->empty))
		return NULL;
	struct block *b = p3_item(c->empty.next, struct block, link);
	p3_list_del(&b->link);
	p3_list_add(list, &b->link);
	cut(b, class);
	return b;
}

char *p3_copy_alloc(struct p3_nic *n, struct p3_peer *p, uint64_t len)
{
	struct p3_copies *c = n->copies;
	uint32_t class = class_of(len), size = P3_COPY_LEAST << class;
	if (p->copied + size > P3_COPIES_LEN / 4)
		return NULL;
	struct block *b = roomy_block(c, class);
	if (!b)
		return NULL;
	uint32_t half = b->free[0] ? 0 : 1;
	uint32_t bit = (uint32_t)__builtin_ctzll(b->free[half]);
	b->free[half] &= b->free[half] - 1;
	if (++b->used == pieces_of(class))
		p3_list_del(&b->link);
	p->copied += size;
	return c->at + (size_t)(b - c->block) * P3_SHORT_MOST +
	       (size_t)(half * 64 + bit) * size;
}

static struct block *block_of(struct p3_copies *c, const char *copy)
{
	return &c->block[(size_t)(copy - c->at) / P3_SHORT_MOST];
}

static uint32_t size_of(const struct block *b)
{
	return P3_COPY_LEAST << b->class;
}

void p3_copy_readdress(
	struct p3_nic *n, struct p3_peer *from, struct p3_peer *to, const char *copy)
{
	uint32_t size = size_of(block_of(n->copies, copy));
	from->copied -= size;
	to->copied += size;
}

/* Put a block first in the list, so that the next copy uses a page that was used
 * lately. */
static void put_first(struct p3_link *list, struct block *b)
{
	p3_list_add(list->next, &b->link);
}

void p3_copy_free(struct p3_nic *n, struct p3_peer *p, const char *copy)
{
	struct p3_copies *c = n->copies;
	struct block *b = block_of(c, copy);
	uint32_t size = size_of(b);
	uint32_t piece = (uint32_t)((size_t)(copy - c->at) % P3_SHORT_MOST) / size;
	b->free[piece / 64] |= UINT64_C(1) << piece % 64;
	p->copied -= size;
	if (b->used-- == pieces_of(b->class))
		put_first(&c->roomy[b->class], b);
	if (b->used)
		return;
	p3_list_del(&b->link);
	put_first(&c->empty, b);
}
