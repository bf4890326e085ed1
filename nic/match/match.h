/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * match - access control, match lists and their index, acceptance by a descriptor
 *
 * Only the lease holder calls these functions.  Their state is the portal table, match
 * lists and access control list of each interface (struct p3_ni), n->acl_cache, and
 * n->prefetch with n->nprefetch.
 */
#ifndef P3_NIC_MATCH_MATCH_H
#define P3_NIC_MATCH_MATCH_H

#include "nic/state.h"

#ifndef P3_INDEX_FROM
#define P3_INDEX_FROM 32u /* entries that a search of a list walks along */
#endif
#ifndef P3_LONG
#define P3_LONG 1024u /* shorter lists fit the near cache */
#endif

/* Insert an entry before or after base, or as the only one of the list. */
void p3_match_list_insert(struct p3_ni *ni, struct p3_portal *list, struct p3_me *me,
	struct p3_me *base, uint32_t position);
void p3_match_list_remove(struct p3_ni *ni, struct p3_me *me);

static inline uint64_t p3_match_initiator(const struct p3_peer *p, uint32_t flags)
{
	return p3_pair(p->pid[flags & P3_F_NI1 ? 1 : 0], p->nid);
}

/* Return the initiator of the usual request. */
static inline uint64_t p3_match_usual(const struct p3_peer *p)
{
	return p3_pair(p->usual_pid, p->nid);
}

/* Return the interface that has this pid, or NULL. */
static inline struct p3_ni *p3_match_interface(struct p3_nic *n, uint32_t pid)
{
	for (uint32_t i = 0; i < P3_JOB_NIS; i++)
		if (p3_likely((p3_get(&n->ni[i].gen) & 1) && n->ni[i].pid == pid))
			return &n->ni[i];
	return NULL;
}

/* The parameters of a request, from the lane or from this node itself. */
struct p3_ask {
	uint8_t kind; /* p3_req_kind */
	uint8_t what; /* the atomic operation, 0: none */
	uint32_t pt_index;
	uint32_t ac_index;
	uint64_t bits;
	uint64_t hdr;
	uint64_t remote_offset;
	uint64_t length;
	uint64_t who;   /* the initiator, pid:nid */
	uint64_t owner; /* its owner, jid:uid */
};

/* Return the options that a descriptor needs for this kind of request.  A table of them
 * would touch one page more. */
static inline uint32_t p3_match_options(uint8_t kind)
{
	return (kind == P3_REQ_GET ? 0 : PTL_MD_OP_PUT) |
	       (kind == P3_REQ_PUT ? 0 : PTL_MD_OP_GET);
}

/* ---- targets of plain requests ---- */

/* Return the target in a request's word 1 (pid, portal and access index) as a key, never
 * 0. */
static inline uint64_t p3_acl_cache_key(uint64_t word1)
{
	return word1 << 16 | 1; /* without the room for a response */
}

static inline struct p3_acl_target *p3_acl_cache_at(struct p3_nic *n, uint64_t target)
{
	return &n->acl_cache[target >> 32 & (P3_ACL_CACHE - 1)];
}

static inline uint32_t p3_acl_cache_portal(const struct p3_acl_target *to)
{
	return (uint32_t)(to->target >> 32) & 0xffff;
}

static inline bool p3_acl_cache_has(
	const struct p3_acl_target *to, uint64_t target, uint64_t owner)
{
	return to->target == target && to->owner == owner;
}

/* Remember a target if the access list admits all processes of the owner there. */
void p3_acl_cache_add(struct p3_nic *n, uint64_t target, uint64_t owner);
void p3_acl_cache_clear(struct p3_nic *n);

/* ---- requests ---- */

struct p3_hit {
	struct p3_md *md;
	uint64_t offset;
	uint64_t mlength;
};

bool p3_match_request(struct p3_ni *ni, const struct p3_ask *ask, struct p3_hit *hit_out);
/* Do the same for the host of a node in generic mode.  A function that only the receiver
 * of accelerated mode calls can be inlined there. */
P3_RARE bool p3_match_on_host(
	struct p3_ni *ni, const struct p3_ask *ask, struct p3_hit *hit_out);
/* Search a list that has an index, and return the descriptor that accepts a request, or
 * NULL.  The arguments are words, not a struct, so that the caller can keep the request
 * in registers. */
struct p3_md *p3_match_search(const struct p3_ni *ni, uint32_t pt_index, uint8_t kind,
	uint64_t bits, uint64_t who, uint64_t length, uint64_t remote_offset);
/* Return true if the access control list admits the request. */
bool p3_match_allows(const struct p3_ni *ni, const struct p3_ask *ask);

static inline void p3_match_exhaust(struct p3_md *md)
{
	md->odd |= P3_MD_ODD_INACTIVE;
	md->exhausted = true;
}

static inline void p3_match_threshold(struct p3_md *md)
{
	/* a threshold that is not above 0 is infinite or used up */
	if (p3_unlikely(md->words.threshold > 0) && --md->words.threshold == 0)
		p3_match_exhaust(md);
}

/* Account for the operation on the descriptor: threshold, local offset, activity. */
static inline void p3_match_commit(struct p3_md *md, const struct p3_hit *hit)
{
	p3_match_threshold(md);
	if (md->sink.options & PTL_MD_MANAGE_REMOTE)
		return;
	md->local_offset += hit->mlength;
	if ((md->odd & P3_MD_ODD_MAX_SIZE) &&
		md->region.size - md->local_offset < md->words.max_size)
		p3_match_exhaust(md);
}

/* ---- requests that lie behind the current one ---- */

/* Prefetch for later requests, just before the current one, of ncells cells, is
 * matched. */
__attribute__((noinline)) void p3_prefetch_look(
	struct p3_nic *n, struct p3_peer *p, uint32_t ncells);
/* Forget prefetched buckets, because they are about to be freed. */
void p3_prefetch_forget(struct p3_nic *n);

#endif
