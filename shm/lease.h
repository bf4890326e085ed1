/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease - the word that says which thread runs the firmware
 *
 * The lease is one word in memory of the process.  The thread that holds the lease may
 * touch the firmware's private state and run passes.  No thread spins on the word: a
 * thread that cannot get the lease posts its command in the mailbox, sets WANT, and waits
 * for its result or event, trying again at each turn.  Any host thread and the NIC thread
 * may call p3_lease_take(), and the lease holder p3_lease_give().
 *
 * Memory ordering:
 *	LEASE.1	word: give releases -> take acquires (the firmware's state is whole)
 *	LEASE.2	Dekker, with MBX.4: the giver stores FREE, fences lightly (atomics.h), and
 *		looks at the mailbox, at the parked threads, and at ASLEEP and cold of the
 *		peers that it wrote to; the poster of a command looks at the word in each
 *		turn, and before it sleeps fences heavily and looks at word and mailbox.
 *		A command posted after the holder's last look at the mailbox is thus seen
 *		either by the holder (which takes the lease again) or by the poster (which
 *		finds it free).  Without the fences the poster sleeps for a result that
 *		no thread computes.
 *		When the watcher (the thread that sleeps on the doorbell for all) stops
 *		watching, it stores that no thread watches, fences heavily if others are
 *		parked, and tries the lease: either the giver sees that no thread watches,
 *		and wakes one of the parked threads, or the former watcher takes the
 *		lease, and wakes one when it gives the lease.  The one that is woken
 *		tries the lease in its turn.  If it finds the lease taken, that holder
 *		gives it later, and wakes the next one.
 *
 * WANT is a hint: if it is lost, the thread that set it waits until the holder gives the
 * lease for another reason.  If a thread waits (P3_WANT_LEASE), the NIC thread gives the
 * lease after its pass.  If a thread has only looked for an event (P3_WANT_LOOK), the NIC
 * thread stops spinning, but does not leave a transfer that is under way.
 */
#ifndef P3_SHM_LEASE_H
#define P3_SHM_LEASE_H

#include "shm/atomics.h"
#include "shm/fault.h"

enum p3_lease_holder {
	P3_LEASE_FREE = 0,
	P3_LEASE_HOST = 1,
	P3_LEASE_NIC = 2,
	P3_LEASE_RESERVED = 3 /* free, but only for threads that call
			       * p3_lease_take_reserved() */
};

struct p3_lease {
	_Alignas(P3_LINE) p3_a32 word; /* p3_lease_holder */
	_Alignas(P3_LINE) p3_a32 want; /* p3_lease_wanted */
};

enum p3_lease_wanted {
	P3_WANT_NONE = 0,
	P3_WANT_LEASE = 1, /* a host thread waits for the lease */
	P3_WANT_LOOK = 2   /* a host thread looked for an event, and does not wait */
};

static inline bool p3_lease_take(struct p3_lease *l, enum p3_lease_holder who)
{
	return p3_likely(p3_get(&l->word) == P3_LEASE_FREE) &&
	       p3_likely(p3_cas_acquire32(&l->word, P3_LEASE_FREE, who)); /* LEASE.1 */
}

/* Take the lease of a node whose program threads never get it (nic/generic/generic.h). */
static inline bool p3_lease_take_reserved(struct p3_lease *l, enum p3_lease_holder who)
{
	return p3_get(&l->word) == P3_LEASE_RESERVED &&
	       p3_cas_acquire32(&l->word, P3_LEASE_RESERVED, who); /* LEASE.1 */
}

/* Give the lease of such a node up. */
static inline void p3_lease_give_reserved(struct p3_lease *l)
{
	p3_release(&l->word, P3_LEASE_RESERVED); /* LEASE.1 */
	FAULT_POINT("lease.freed");
}

/* Give the lease up.  The caller must fence and do its looks (LEASE.2) afterwards. */
static inline void p3_lease_give(struct p3_lease *l)
{
	p3_release(&l->word, P3_LEASE_FREE); /* LEASE.1 */
	FAULT_POINT("lease.freed");
}

static inline enum p3_lease_holder p3_lease_held_by(struct p3_lease *l)
{
	return (enum p3_lease_holder)p3_get(&l->word);
}

#endif
