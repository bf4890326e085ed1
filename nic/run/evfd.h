/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * evfd - descriptors that are readable while events wait: those of event queues, and the
 * OS handles of CCI's endpoints
 *
 * A descriptor is an eventfd in a slot of the NIC, whose memory comes with the first one
 * and is kept.  A slot is never put to another use, so a thread that is late finds a
 * slot, though perhaps one of another queue.  The owner of a slot is the handle of its
 * queue, or the address of its endpoint.
 *
 * The states of a slot:
 *
 *	FREE		it has no descriptor
 *	IDLE		CCI: a thread is inside of a call on the endpoint and will look at
 *			the queue when it leaves, or the program polls and a tick of the
 *			NIC thread will look
 *	ARMED		the queue was seen empty: the next event writes the eventfd
 *	SIGNALLING	a thread is about to write the eventfd
 *	SIGNALLED	the eventfd is readable
 *	DRAINING	a thread is about to read the eventfd, to make it, or to close it
 *
 * The thread that has set SIGNALLING or DRAINING is the only one that changes it, and the
 * only one that uses the file.  So in the state SIGNALLED, and in no other of the rest,
 * the eventfd is readable.
 *
 * An armed descriptor counts as a parked thread (n->parked), which waits for the news of
 * its queue.  So the firmware does nothing for descriptors but at its wake-ups of parked
 * threads, and a process without a descriptor pays nothing.
 *
 * Memory ordering:
 *	EVFD.1	Dekker: a thread raises parked and stores ARMED, fences, and looks at the
 *		queue; the firmware posts, fences, and looks at parked, then at the
 *		state.  Both fences are full: from the first descriptor on n->light is
 *		false.  Without either of them an event waits, and the program sleeps
 *	EVFD.2	publish: state: the thread that has written or read the eventfd -> the
 *		next thread that changes the state.  Without it the eventfd stays readable
 *		in a state in which no thread reads it
 *
 * Any thread may call these functions, with the lease or without it, except where a
 * comment says otherwise.
 */
#ifndef P3_NIC_RUN_EVFD_H
#define P3_NIC_RUN_EVFD_H

#include "shm/atomics.h"
#include "shm/fd.h"

struct p3_nic;

#define P3_EVFDS 1024u /* descriptors of a process, at most */

enum p3_evfd_state {
	P3_EVFD_FREE,
	P3_EVFD_IDLE,
	P3_EVFD_ARMED,
	P3_EVFD_SIGNALLING,
	P3_EVFD_SIGNALLED,
	P3_EVFD_DRAINING
};

struct p3_evfd {
	p3_a32 state; /* p3_evfd_state */
	p3_a32 news;  /* those that arm it */
	p3_a64 owner;
	int fd;    /* of the library alone, */
	int shown; /* and the number that the program has, and may close by mistake */
	p3_fd_id file;
};

/* Return the slot with this number, from 1 on, which p3_evfd_number() has given. */
struct p3_evfd *p3_evfd_numbered(struct p3_nic *n, uint32_t number);
uint32_t p3_evfd_number(struct p3_nic *n, const struct p3_evfd *e);

/* Return a slot with a new descriptor, which is readable, or NULL if there is no slot or
 * no descriptor. */
struct p3_evfd *p3_evfd_open(struct p3_nic *n, uint64_t owner, uint32_t news);
/* The lease holder calls this before any thread arms the first descriptor. */
void p3_evfd_adopt(struct p3_nic *n);
/* Close the descriptor; threads that sleep on it wake. */
void p3_evfd_close(struct p3_nic *n, struct p3_evfd *e);
/* Close all of them.  No other thread uses the NIC. */
void p3_evfd_close_all(struct p3_nic *n);

/* Return the number of the owner's descriptor, and make it readable.  If the program has
 * closed it, make another one.  Return -1 if there is none, or if the slot has another
 * owner. */
int p3_evfd_renew(struct p3_nic *n, struct p3_evfd *e, uint64_t owner);

/*
 * The owner's queue was seen empty: make the descriptor unreadable, and its state ARMED
 * or IDLE.  Return false if it is in another state, since another thread uses it, or if
 * the slot has another owner.
 */
bool p3_evfd_settle(
	struct p3_nic *n, struct p3_evfd *e, uint64_t owner, enum p3_evfd_state next);
/* Change ARMED to IDLE, or IDLE to ARMED; leave any other state. */
void p3_evfd_turn(struct p3_nic *n, struct p3_evfd *e, enum p3_evfd_state next);
/* Make the descriptor readable, if the state is ARMED or IDLE. */
void p3_evfd_signal(struct p3_nic *n, struct p3_evfd *e);
/* Make the armed descriptors readable whose queues have got these news. */
void p3_evfd_signal_news(struct p3_nic *n, uint32_t news);

#endif
