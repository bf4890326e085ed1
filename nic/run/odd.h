/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * odd - one word that says whether a node has more to do than its few hot lanes
 *
 * n->odd is 0 in the usual case.  Code that serves the usual case in few instructions
 * (a pass, a poll, a straight path) tests this word instead of all lists and flags.
 *
 *	bit		set by				cause
 *	TRACED		start of the NIC, for its life	the firmware records its actions
 *	WIRED		start of the NIC, for its life	passes poll a wire, and flush it
 *	NODES		start of the NIC, for its life	more than P3_ALL_HOT nodes: lanes
 *							are cold or become so
 *	LANES		p3_peer_heat			more than n->few lanes are hot
 *	BLOCKED		p3_tx_push			n->blocked is not empty
 *	PULLS		p3_pull_begin			n->pulls is not empty
 *	SOURCES		p3_xfer_publish,		n->sources is not empty
 *			p3_pending_release
 *	HUNGRY		append_hungry in commands.c	a command waits for memory
 *	BAD		p3_peer_ignore			n->some_bad
 *	SWAPPER		wait_to_swap in exchange.c	n->swapper: an exchange waits
 *	CCI		p3_cci_event_dirty		n->cci.dirty: an OS handle may
 *							need a signal
 *			p3_cci_timer_look_now		a timer is due
 *	GENERIC		start of the NIC, for its life	the host matches (nic/generic/)
 *
 * The code that makes something unusual sets its bit by p3_odd_set().  No code clears
 * bits but the pass: as long as a bit is set, its last step is p3_odd_settle(), which
 * looks at the lists and flags themselves.  A pass leaves that step out if the only bit
 * is LANES, and the lanes are many.  So a bit may be set for one pass too long, which
 * costs time only; a bit is never missing, which would leave work undone.  Builds with
 * P3_STRAIGHT=random check that none is missing each time that the lease is given up.
 *
 * Only the lease holder calls these functions.  Their state is n->odd.
 */
#ifndef P3_NIC_RUN_ODD_H
#define P3_NIC_RUN_ODD_H

#include "nic/state.h"

enum p3_odd {
	P3_ODD_TRACED = 1u << 0,
	P3_ODD_WIRED = 1u << 1,
	P3_ODD_NODES = 1u << 2,
	P3_ODD_LANES = 1u << 3,
	P3_ODD_BLOCKED = 1u << 4,
	P3_ODD_PULLS = 1u << 5,
	P3_ODD_SOURCES = 1u << 6,
	P3_ODD_HUNGRY = 1u << 7,
	P3_ODD_BAD = 1u << 8,
	P3_ODD_SWAPPER = 1u << 9,
	P3_ODD_CCI = 1u << 10,
	P3_ODD_GENERIC = 1u << 11
};

static inline void p3_odd_set(struct p3_nic *n, enum p3_odd bit)
{
	n->odd |= bit;
}

/* Return the bits that must be set now. */
static inline uint32_t p3_odd_now(const struct p3_nic *n)
{
	return (n->generic ? P3_ODD_GENERIC : 0u) | (n->traced ? P3_ODD_TRACED : 0u) |
	       (n->wired ? P3_ODD_WIRED : 0u) |
	       (n->conf.nnodes > P3_ALL_HOT ? P3_ODD_NODES : 0u) |
	       (n->nhot > n->few ? P3_ODD_LANES : 0u) |
	       (p3_list_empty(&n->blocked) ? 0u : P3_ODD_BLOCKED) |
	       (p3_list_empty(&n->pulls) ? 0u : P3_ODD_PULLS) |
	       (p3_list_empty(&n->sources) ? 0u : P3_ODD_SOURCES) |
	       (p3_get(&n->hungry) != P3_MBX_NONE ? P3_ODD_HUNGRY : 0u) |
	       (n->some_bad ? P3_ODD_BAD : 0u) | (n->swapper ? P3_ODD_SWAPPER : 0u) |
	       (n->cci.dirty ? P3_ODD_CCI : 0u);
}

/* Clear each bit whose cause is over. */
static inline void p3_odd_settle(struct p3_nic *n)
{
	n->odd = p3_odd_now(n);
}

#endif
