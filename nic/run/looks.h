/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * looks - fences, and the looks at sleeping peers and cold lanes
 *
 * A node that has written to peers fences, and then looks whether one of them sleeps or
 * does not poll this node's lane.  The lease holder notes each such peer by
 * p3_looks_add(), in touched of struct p3_nic; that is all the state of these functions.
 * Only the lease holder calls them, except where a comment says (any).
 */
#ifndef P3_NIC_RUN_LOOKS_H
#define P3_NIC_RUN_LOOKS_H

#include "nic/state.h"
#include "shm/atomics.h"

/* ---- fences ---- */

P3_RARE void p3_looks_warn_refused(void); /* (any) */
/* (any) Fence before this thread sleeps or stops polling a lane: by the heavy fence of
 * the kernel, or by a full one of this CPU if no thread uses light fences. */
static inline void p3_looks_fence(struct p3_nic *n, bool (*heavy)(void))
{
	if (!n->conf.membarrier)
		p3_fence();
	else if (p3_unlikely(!heavy()))
		p3_looks_warn_refused();
}

/* ---- looks ---- */

/* Look at all peers that were touched, while a thread holds the lease for long. */
void p3_looks_take(struct p3_nic *n);

/* Note that this node has written to the peer. */
static inline void p3_looks_add(struct p3_nic *n, struct p3_peer *p)
{
	if (p->touched)
		return;
	if (p3_unlikely(n->ntouched == P3_TOUCHED))
		p3_looks_take(n);
	p->touched = true;
	n->touched[n->ntouched++] = p;
}

/* The words of one peer to look at after the fence.  They are copied before the lease
 * is given up, since another holder may change the peer then. */
struct p3_look {
	p3_a32 *asleep;
	const p3_a32 *cold;
	struct p3_doorbell *bell; /* NULL: the peer always polls this node's lane */
};

static inline struct p3_look p3_looks_copy(struct p3_nic *n, struct p3_peer *p)
{
	p->touched = false;
	return (struct p3_look){.asleep = p->asleep,
		.cold = p->cold,
		.bell = p3_likely(p->cold == &n->never_cold) ? NULL : p->doorbell};
}

/* (any) Ring the doorbell if the peer does not poll this node's lane, and wake the peer
 * if it sleeps. */
P3_RARE void p3_looks_tell(struct p3_nic *n, struct p3_look l);

struct p3_looks {
	uint32_t n;
	uint32_t posted;
	struct p3_look at[P3_TOUCHED];
};

static inline void p3_looks_gather(struct p3_nic *n, struct p3_looks *l)
{
	l->n = n->ntouched;
	l->posted = n->posted;
	for (uint32_t i = 0; i < l->n; i++)
		l->at[i] = p3_looks_copy(n, n->touched[i]);
	n->ntouched = 0;
	n->unlooked = 0;
	n->posted = 0;
}

/* (any) Wake the peers that sleep, and ring those that do not poll this node's lane.
 * The caller has fenced (PARK.1, COLD.1), so they see what was written. */
static inline void p3_looks_check(struct p3_nic *n, const struct p3_looks *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (p3_unlikely(p3_get(l->at[i].cold) | p3_get(l->at[i].asleep)))
			p3_looks_tell(n, l->at[i]);
}

#endif
