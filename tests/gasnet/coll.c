/* SPDX-License-Identifier: BSD-3-Clause */
/* The statement of collective operations, and teams. */
#include "gn.h"

#include <gasnet_coll.h>

const struct gn_program gn_program = {.segment = 0};

enum { SYNCS = GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC };
enum { FLAGS = GASNET_COLL_LOCAL | SYNCS };
enum { LOOSE = GASNET_COLL_LOCAL | GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC };

static void broadcast(gasnet_image_t root, size_t n)
{
	unsigned char *src = suite_alloc(n), *dst = suite_alloc(n + 1);
	fill_bytes(src, n, (unsigned)root + 1);
	dst[n] = 0x3c;
	gasnet_coll_broadcast(GASNET_TEAM_ALL, dst, root, src, n, FLAGS);
	CHECK_BYTES(dst, n, (unsigned)root + 1);
	CHECK_EQ(dst[n], 0x3c);
}

/* The bytes that a member sends to another one. */
static unsigned pattern(unsigned from, unsigned to, unsigned round)
{
	return from * 131 + to * 17 + round + 1;
}

/* Blocks of n bytes: of the members of a team in src, for them in dst. */
struct room {
	gasnet_team_handle_t team;
	unsigned size, rank;
	size_t n;
	unsigned char *src, *dst;
};

static struct room room_of(gasnet_team_handle_t team, size_t n, unsigned round)
{
	unsigned size = gasnet_coll_team_size(team);
	struct room r = {team, size, gasnet_coll_team_node2rank(team, gasnet_mynode()), n,
		suite_alloc(n * size + 1), suite_alloc(n * size + 1)};
	for (unsigned i = 0; i < size; i++)
		fill_bytes(r.src + i * n, n, pattern(r.rank, i, round));
	r.dst[n * size] = 0x3c;
	return r;
}

/* Check the block of a member: the one that it had for a rank. */
static void check_block(
	const struct room *r, unsigned at, unsigned from, unsigned to, unsigned round)
{
	CHECK_BYTES(r->dst + at * r->n, r->n, pattern(from, to, round));
	CHECK_EQ(r->dst[r->n * r->size], 0x3c);
}

static void check_roots(gasnet_team_handle_t team, size_t n, int flags)
{
	for (unsigned root = 0; root < gasnet_coll_team_size(team); root++) {
		struct room r = room_of(team, n, root);
		gasnet_coll_scatter(team, r.dst, root, r.src, n, flags);
		check_block(&r, 0, root, r.rank, root);
		r = room_of(team, n, root);
		gasnet_coll_gather(team, root, r.dst, r.src, n, flags);
		for (unsigned i = 0; r.rank == root && i < r.size; i++)
			check_block(&r, i, i, 0, root);
	}
}

static void gather_all(gasnet_team_handle_t team, size_t n, int flags)
{
	struct room r = room_of(team, n, 3);
	gasnet_coll_gather_all(team, r.dst, r.src, n, flags);
	for (unsigned i = 0; i < r.size; i++)
		check_block(&r, i, i, 0, 3);
	r = room_of(team, n, 4);
	gasnet_coll_exchange(team, r.dst, r.src, n, flags);
	for (unsigned i = 0; i < r.size; i++)
		check_block(&r, i, i, r.rank, 4);
}

/* Many operations at once; a member goes on before the others have called. */
static void check_nonblocking(gasnet_team_handle_t team)
{
	enum { MANY = 12 };
	struct room r[MANY];
	gasnet_coll_handle_t handles[MANY];
	for (unsigned k = 0; k < MANY; k++) {
		r[k] = room_of(team, 100 * k + 1, k);
		handles[k] = gasnet_coll_exchange_nb(
			team, r[k].dst, r[k].src, r[k].n, k % 2 ? FLAGS : LOOSE);
	}
	gn_barrier(); /* it polls, so the operations go on */
	while (gasnet_coll_try_sync_some(handles, MANY) != GASNET_OK)
		;
	gasnet_coll_wait_sync_all(handles, MANY);
	for (unsigned k = 0; k < MANY; k++) {
		CHECK(handles[k] == GASNET_COLL_INVALID_HANDLE);
		for (unsigned i = 0; i < r[k].size; i++)
			check_block(&r[k], i, i, r[k].rank, k);
	}
	CHECK_EQ(gasnet_coll_try_sync(GASNET_COLL_INVALID_HANDLE), GASNET_OK);
	CHECK_EQ(gasnet_coll_try_sync_all(handles, MANY), GASNET_OK);
	gasnet_coll_wait_sync_some(handles, MANY);
}

/* A root's broadcast ends while the others have not called yet. */
static void check_loose(gasnet_team_handle_t team)
{
	unsigned char data[64];
	unsigned rank = gasnet_coll_team_node2rank(team, gasnet_mynode());
	fill_bytes(data, sizeof data, rank ? 99 : 7);
	if (rank)
		gn_barrier();
	gasnet_coll_broadcast(team, data, 0, data, sizeof data, LOOSE);
	if (!rank)
		gn_barrier();
	CHECK_BYTES(data, sizeof data, 7);
}

static void check_lists(gasnet_team_handle_t team)
{
	struct room r = room_of(team, 200, 5);
	void *mine_src[] = {r.src}, *mine_dst[] = {r.dst};
	gasnet_coll_exchangeM(team, mine_dst, mine_src, r.n, FLAGS);
	for (unsigned i = 0; i < r.size; i++)
		check_block(&r, i, i, r.rank, 5);
	void **all = suite_alloc(r.size * sizeof(void *));
	for (unsigned i = 0; i < r.size; i++)
		all[i] = i == r.rank ? r.dst : NULL;
	gasnet_coll_wait_sync(gasnet_coll_broadcastM_nb(
		team, all, r.size - 1, r.src, r.n, GASNET_COLL_SINGLE | SYNCS));
	check_block(&r, 0, r.size - 1, 0, 5);
}

static void check_barriers(gasnet_team_handle_t team, unsigned color)
{
	unsigned rank = gasnet_coll_team_node2rank(team, gasnet_mynode());
	unsigned size = gasnet_coll_team_size(team);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(gasnet_coll_barrier(team, i + (int)color, 0), GASNET_OK);
	int expected = size > 1 ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK;
	gasnet_coll_barrier_notify(team, (int)rank, 0);
	CHECK_EQ(gasnet_coll_barrier_wait(team, (int)rank, 0), expected);
	gasnet_coll_barrier_notify(team, 1, GASNET_BARRIERFLAG_ANONYMOUS);
	int rc;
	do
		rc = gasnet_coll_barrier_try(team, 1, GASNET_BARRIERFLAG_ANONYMOUS);
	while (rc == GASNET_ERR_NOT_READY);
	CHECK_EQ(rc, GASNET_OK);
}

/* Even and odd nodes, in the reverse order of their numbers. */
static gasnet_team_handle_t check_split(void)
{
	unsigned color = gasnet_mynode() % 2;
	gasnet_team_handle_t team = gasnet_coll_team_split(
		GASNET_TEAM_ALL, color, gn.size - gasnet_mynode(), NULL);
	unsigned n = (gn.size + 1 - color) / 2;
	CHECK_EQ(gasnet_coll_team_size(team), n);
	for (unsigned i = 0; i < n; i++) {
		unsigned node = 2 * (n - 1 - i) + color;
		CHECK_EQ(gasnet_coll_team_rank2node(team, i), node);
		CHECK_EQ(gasnet_coll_team_node2rank(team, node), i);
	}
	CHECK_EQ(gasnet_coll_team_rank2node(team, n), (gasnet_node_t)-1);
	CHECK_EQ(gasnet_coll_team_node2rank(team, 1 - color), (gasnet_node_t)-1);
	return team;
}

static void check_team(gasnet_team_handle_t team)
{
	static const size_t sizes[] = {0, 1, 8, 1984, 1985, 20000};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (int loose = 0; loose < 2; loose++) {
			check_roots(team, sizes[i], loose ? LOOSE : FLAGS);
			gather_all(team, sizes[i], loose ? LOOSE : FLAGS);
		}
	check_nonblocking(team);
	check_loose(team);
	check_lists(team);
}

#ifdef GASNET_PAR
static gasnet_team_handle_t twins[2];

/* Split the team of a thread again and again, and meet in what comes of it. */
static void split_often(unsigned nth)
{
	for (unsigned i = 0; i < 50; i++) {
		gasnet_team_handle_t team =
			gasnet_coll_team_split(twins[nth], 0, gasnet_mynode(), NULL);
		CHECK_EQ(gasnet_coll_barrier(team, (int)(2 * i + nth), 0), GASNET_OK);
	}
}

/* Two threads use different teams at the same time. */
static void check_threads(void)
{
	twins[0] = GASNET_TEAM_ALL;
	twins[1] = gasnet_coll_team_split(twins[0], 0, gasnet_mynode(), NULL);
	gn_thread(split_often, 0);
	gn_thread(split_often, 1);
	gn_join();
}
#else
static void check_threads(void)
{
}
#endif

STATEMENT(153, broadcasts)
{
	gn_barrier();
	gasnet_coll_init(0, 0, 0, 0, 0);
	for (gasnet_image_t root = 0; root < gn.size; root++)
		for (size_t n = 1; n <= (size_t)1 << 20; n *= 4)
			broadcast(root, n);
	check_team(GASNET_TEAM_ALL);
	gasnet_team_handle_t half = check_split();
	check_barriers(GASNET_TEAM_ALL, 0);
	check_barriers(half, gasnet_mynode() % 2);
	check_team(half);
	check_threads();
	gn_barrier();
}
