/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.h - types and functions that the files of collective operations share
 *
 * blocks.c moves blocks of bytes between nodes, coll.c makes collectives of them, team.c
 * makes teams and their barriers.
 */
#ifndef GASNETI_COLL_H
#define GASNETI_COLL_H

#pragma GCC visibility push(default)
#include <gasnet_coll.h>
#pragma GCC visibility pop

#include "internal.h"

#pragma GCC visibility push(hidden)

/* Some nodes in an order: member k has rank k. */
struct gasneti_team {
	uint64_t id;
	uint32_t sequence; /* of the next collective, alike on all members */
	uint32_t rank, size;
	uint32_t *members; /* nodes by rank; NULL: all nodes, by number */
	struct gasneti_team_barrier {
		gasnet_coll_handle_t handle; /* between notify and wait */
		uint64_t value;
	} barrier;
};

/* A block: its sender, and where it belongs. */
struct gasneti_block_key {
	uint64_t team;
	uint32_t node;     /* the sender; the receiver's side fills it in */
	uint32_t sequence; /* of the collective in the team */
	uint32_t part;     /* of the collective */
};

static inline uint32_t gasneti_member(const struct gasneti_team *team, uint32_t rank)
{
	return team->members ? team->members[rank] : rank;
}

/* blocks.c */
void gasneti_block_send(
	uint32_t node, struct gasneti_block_key key, void *data, size_t nbytes);
bool gasneti_block_take(struct gasneti_block_key key, void *data, size_t nbytes);

/* coll.c */
gasnet_coll_handle_t gasneti_coll_meet(gasnet_team_handle_t team, uint64_t *value);

/* barrier.c */
uint64_t gasneti_barrier_value(int id, int flags);
uint64_t gasneti_barrier_join(uint64_t a, uint64_t b);
int gasneti_barrier_outcome(uint64_t known, int id, int flags);

#pragma GCC visibility pop

#endif /* GASNETI_COLL_H */
