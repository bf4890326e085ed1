/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.c - teams of nodes, and the calls of collectives and barriers that wait: syncs,
 * blocking forms, forms with lists of addresses, and barriers of teams and of all nodes
 */
#include "internal.h"

/* ---- syncs ---- */

int gasnet_coll_try_sync(gasnet_coll_handle_t handle)
{
	if (!handle || gasneti_coll_finish(handle))
		return GASNET_OK;
	gasneti_poll_full();
	return gasneti_coll_finish(handle) ? GASNET_OK : GASNET_ERR_NOT_READY;
}

void gasnet_coll_wait_sync(gasnet_coll_handle_t handle)
{
	if (handle)
		gasneti_wait_for(full, gasneti_coll_finish(handle));
}

/* Sync all handles that are complete.  It is enough if one was, unless all are wanted. */
static int coll_try_each(gasnet_coll_handle_t *handles, size_t n, bool all)
{
	size_t some = 0, left = 0;
	gasneti_poll_full();
	for (size_t i = 0; i < n; i++) {
		if (!handles[i])
			continue;
		if (gasneti_coll_finish(handles[i])) {
			handles[i] = GASNET_COLL_INVALID_HANDLE;
			some++;
		} else {
			left++;
		}
	}
	return left && (all || !some) ? GASNET_ERR_NOT_READY : GASNET_OK;
}

int gasnet_coll_try_sync_all(gasnet_coll_handle_t *handles, size_t n)
{
	return coll_try_each(handles, n, true);
}

int gasnet_coll_try_sync_some(gasnet_coll_handle_t *handles, size_t n)
{
	return coll_try_each(handles, n, false);
}

void gasnet_coll_wait_sync_all(gasnet_coll_handle_t *handles, size_t n)
{
	gasneti_wait_for(full, gasnet_coll_try_sync_all(handles, n) == GASNET_OK);
}

void gasnet_coll_wait_sync_some(gasnet_coll_handle_t *handles, size_t n)
{
	gasneti_wait_for(full, gasnet_coll_try_sync_some(handles, n) == GASNET_OK);
}

/* ---- blocking forms, and forms with lists of addresses ---- */

/* Return this node's address: LOCAL lists have that of each image here, others of all. */
static void *coll_pick(gasnet_team_handle_t team, void *const list[], int flags)
{
	return list[flags & GASNET_COLL_LOCAL ? 0 : team->rank];
}

/*
 * Define the blocking form of a collective, whose arguments are args, and its two forms
 * with lists of addresses, whose arguments are list_args.
 */
#define COLL_FORMS(name, params, args, list_params, list_args)                           \
	void gasnet_coll_##name params                                                   \
	{                                                                                \
		gasnet_coll_wait_sync(gasnet_coll_##name##_nb args);                     \
	}                                                                                \
	gasnet_coll_handle_t gasnet_coll_##name##M_nb list_params                        \
	{                                                                                \
		return gasnet_coll_##name##_nb list_args;                                \
	}                                                                                \
	void gasnet_coll_##name##M list_params                                           \
	{                                                                                \
		gasnet_coll_wait_sync(gasnet_coll_##name##_nb list_args);                \
	}

/* Those of a root that sends. */
#define COLL_FORMS_FROM(name)                                                            \
	COLL_FORMS(name,                                                                 \
		(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage,          \
			void *src, size_t nbytes, int flags),                            \
		(team, dst, srcimage, src, nbytes, flags),                               \
		(gasnet_team_handle_t team, void *const dstlist[],                       \
			gasnet_image_t srcimage, void *src, size_t nbytes, int flags),   \
		(team, coll_pick(team, dstlist, flags), srcimage, src, nbytes, flags))

/* Those in which all members send and receive. */
#define COLL_FORMS_ALL(name)                                                             \
	COLL_FORMS(name,                                                                 \
		(gasnet_team_handle_t team, void *dst, void *src, size_t nbytes,         \
			int flags),                                                      \
		(team, dst, src, nbytes, flags),                                         \
		(gasnet_team_handle_t team, void *const dstlist[],                       \
			void *const srclist[], size_t nbytes, int flags),                \
		(team, coll_pick(team, dstlist, flags), coll_pick(team, srclist, flags), \
			nbytes, flags))

COLL_FORMS_FROM(broadcast)
COLL_FORMS_FROM(scatter)
COLL_FORMS(gather,
	(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst, void *src,
		size_t nbytes, int flags),
	(team, dstimage, dst, src, nbytes, flags),
	(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst,
		void *const srclist[], size_t nbytes, int flags),
	(team, dstimage, dst, coll_pick(team, srclist, flags), nbytes, flags))
COLL_FORMS_ALL(gather_all)
COLL_FORMS_ALL(exchange)

/* ---- teams ---- */

struct gasneti_team gasneti_team_all;

void gasnet_coll_init(const gasnet_image_t images[], gasnet_image_t my_image,
	gasnet_coll_fn_entry_t fn_tbl[], size_t fn_count, int init_flags)
{
	(void)my_image, (void)fn_tbl, (void)fn_count, (void)init_flags;
	gasneti_check_main("gasnet_coll_init");
	if (gasneti.state != GASNETI_ATTACHED)
		gasneti_fatal("gasnet_coll_init before gasnet_attach");
	for (uint32_t i = 0; images && i < gasneti.nodes; i++)
		if (images[i] != 1)
			gasneti_fatal(
				"gasnet_coll_init: %u images on node %u; there must be 1",
				images[i], i);
	gasneti_team_all.rank = gasneti.me;
	gasneti_team_all.size = gasneti.nodes;
}

/* A member of the old team, as it tells the others. */
struct candidate {
	uint32_t color, key, node, rank;
	uint64_t id; /* of the new team, if this member gets rank 0 */
};

static int candidate_by_key(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : 1;
}

gasnet_team_handle_t gasnet_coll_team_split(gasnet_team_handle_t team,
	gasnet_node_t mycolor, gasnet_node_t myrelrank, gasnet_seginfo_t *clientdata)
{
	static uint32_t splits;
	(void)clientdata;
	struct candidate mine = {.color = mycolor,
		.key = myrelrank,
		.node = gasneti.me,
		.rank = team->rank,
		.id = (uint64_t)(gasneti.me + 1) << 32 | gasneti_add(&splits, 1)};
	struct candidate *all = gasneti_alloc(team->size, sizeof *all);
	uint32_t n = 0;
	gasnet_coll_gather_all(team, all, &mine, sizeof mine,
		GASNET_COLL_LOCAL | GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC);
	for (uint32_t i = 0; i < team->size; i++)
		if (all[i].color == mycolor)
			all[n++] = all[i];
	qsort(all, n, sizeof *all, candidate_by_key);
	struct gasneti_team *new = gasneti_alloc(1, sizeof *new);
	new->id = all[0].id;
	new->size = n;
	new->members = gasneti_alloc(n, sizeof *new->members);
	for (uint32_t i = 0; i < n; i++) {
		new->members[i] = all[i].node;
		if (all[i].node == gasneti.me)
			new->rank = i;
	}
	free(all);
	return new;
}

gasnet_node_t gasnet_coll_team_size(gasnet_team_handle_t team)
{
	return team->size;
}

gasnet_node_t gasnet_coll_team_rank2node(gasnet_team_handle_t team, gasnet_node_t rank)
{
	return rank < team->size ? gasneti_member(team, rank) : (gasnet_node_t)-1;
}

gasnet_node_t gasnet_coll_team_node2rank(gasnet_team_handle_t team, gasnet_node_t node)
{
	for (uint32_t i = 0; i < team->size; i++)
		if (gasneti_member(team, i) == node)
			return i;
	return (gasnet_node_t)-1;
}

/* ---- barriers ---- */

int gasnet_barrier_try(int id, int flags)
{
	gasneti_barrier_want_notified("gasnet_barrier_try");
	gasneti_poll_full();
	return gasneti_barrier_finish(id, flags);
}

int gasnet_barrier_wait(int id, int flags)
{
	int rc;
	gasneti_barrier_want_notified("gasnet_barrier_wait");
	gasneti_wait_for(
		full, (rc = gasneti_barrier_finish(id, flags)) != GASNET_ERR_NOT_READY);
	return rc;
}

int gasnet_barrier(int id, int flags)
{
	gasnet_barrier_notify(id, flags);
	return gasnet_barrier_wait(id, flags);
}

void gasnet_coll_barrier_notify(gasnet_team_handle_t team, int id, int flags)
{
	struct gasneti_team_barrier *b = &team->barrier;
	if (team == GASNET_TEAM_ALL) {
		gasnet_barrier_notify(id, flags);
		return;
	}
	if (b->handle)
		gasneti_fatal("gasnet_coll_barrier_notify twice without a wait between");
	b->value = gasneti_barrier_value(id, flags);
	b->handle = gasneti_coll_meet(team, &b->value);
}

int gasnet_coll_barrier_try(gasnet_team_handle_t team, int id, int flags)
{
	struct gasneti_team_barrier *b = &team->barrier;
	if (team == GASNET_TEAM_ALL)
		return gasnet_barrier_try(id, flags);
	if (!b->handle)
		gasneti_fatal("gasnet_coll_barrier_try without a notify");
	if (gasnet_coll_try_sync(b->handle) != GASNET_OK)
		return GASNET_ERR_NOT_READY;
	b->handle = GASNET_COLL_INVALID_HANDLE;
	return gasneti_barrier_outcome(b->value, id, flags);
}

int gasnet_coll_barrier_wait(gasnet_team_handle_t team, int id, int flags)
{
	int rc;
	if (team == GASNET_TEAM_ALL)
		return gasnet_barrier_wait(id, flags);
	gasneti_wait_for(full,
		(rc = gasnet_coll_barrier_try(team, id, flags)) != GASNET_ERR_NOT_READY);
	return rc;
}

int gasnet_coll_barrier(gasnet_team_handle_t team, int id, int flags)
{
	gasnet_coll_barrier_notify(team, id, flags);
	return gasnet_coll_barrier_wait(team, id, flags);
}
