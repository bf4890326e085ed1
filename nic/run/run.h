/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run - what all rooms use of the firmware's main loop: the word of pending work, looks
 * and wake-ups, the wires and their thread, and the state of the calling thread
 *
 * The lease holder calls these functions, except where a comment says (any).  Threads
 * that take the lease, run passes or wait include nic/run/lease.h.
 */
#ifndef P3_NIC_RUN_RUN_H
#define P3_NIC_RUN_RUN_H

#include "nic/state.h"
#include "shm/atomics.h"

/* ---- the calling thread: its number, and its calls of the library ---- */

/*
 * Any thread may call the functions of this part, also in a signal handler and without
 * the lease.
 *
 * A signal handler that interrupted a call of the library must not wait for a resource
 * of the interrupted call: it leaves its commands behind, and the interrupted call
 * executes them before it returns.
 */
struct p3_self {
	uint32_t inside; /* calls of this thread that are in the library now */
	uint32_t number; /* this thread's number, or P3_SELF_NONE */
	bool left_behind;
};

/* The number of a thread that has none yet: no queue has an owner of this number. */
#define P3_SELF_NONE 0xfffffffeu

extern __thread struct p3_self p3_self __attribute__((tls_model("initial-exec")));

/* Give this thread its number, and return it. */
P3_RARE uint32_t p3_self_new_number(void);

/* Return the number of the calling thread, never 0. */
static inline uint32_t p3_self_number(void)
{
	return p3_likely(p3_self.number != P3_SELF_NONE) ? p3_self.number
							 : p3_self_new_number();
}

/* ---- pending work: the word that says whether there is any ---- */

/*
 * n->odd is 0 in the usual case.  Code that serves the usual case in few instructions
 * (a pass, a poll, a put) tests this word instead of all lists and flags.
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
 *			p3_xfer_release
 *	HUNGRY		cmd_append_hungry		a command waits for memory
 *	BAD		p3_peer_ignore			n->some_bad
 *	SWAPPER		getput_begin_wait		n->swapper: an exchange waits
 *	CCI		p3_cci_timer_look_now		a timer is due
 *	GENERIC		start of the NIC, for its life	the host matches (nic/generic/)
 *	KEPT		p3_deliver_keeps		n->nkept: requests wait
 *
 * The code that makes something unusual sets its bit by p3_odd_set().  No code clears
 * bits but the pass: as long as a bit is set, its last step is p3_odd_settle(), which
 * looks at the lists and flags themselves.  A pass leaves that step out if the only bits
 * are WIRED, and LANES while the lanes are many.  So a bit may be set for one pass too
 * long, which costs time only; a bit is never missing, which would leave work undone.
 */
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
	P3_ODD_GENERIC = 1u << 11,
	P3_ODD_KEPT = 1u << 12
};

static inline void p3_odd_set(struct p3_nic *n, enum p3_odd bit)
{
	n->odd |= bit;
}

/* Clear each bit whose cause is over: set those that must be set now. */
static inline void p3_odd_settle(struct p3_nic *n)
{
	n->odd = n->odd_life | (n->nhot > n->few ? P3_ODD_LANES : 0u) |
		 (p3_list_empty(&n->blocked) ? 0u : P3_ODD_BLOCKED) |
		 (p3_list_empty(&n->pulls) ? 0u : P3_ODD_PULLS) |
		 (p3_list_empty(&n->sources) ? 0u : P3_ODD_SOURCES) |
		 (p3_get(&n->hungry) != P3_MBX_NONE ? P3_ODD_HUNGRY : 0u) |
		 (n->some_bad ? P3_ODD_BAD : 0u) | (n->swapper ? P3_ODD_SWAPPER : 0u) |
		 (n->nkept ? P3_ODD_KEPT : 0u);
}

/* ---- looks: deferred wake-ups ---- */

/*
 * A node that has written to peers fences, and then looks whether one of them sleeps or
 * does not poll this node's lane.  The lease holder notes each such peer by
 * p3_looks_add(), in n->touched.
 */

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

/* ---- wake-ups of sleeping threads of this node and of peers ---- */

/*
 * The thread that has just given up the lease, or that stops the NIC, may call these
 * functions, too.  Their state is the words that threads sleep on: the shared words
 * asleep and kick, and n->news.
 */

/* Return the word that a node sleeps on. */
static inline p3_a32 *p3_wake_word(
	const struct p3_nic *n, uint32_t node, struct p3_doorbell *doorbell)
{
	struct p3_sleeper *all = n->conf.sleepers;
	return all ? &all[node].asleep : &doorbell->asleep;
}

/* (any) Disarm the word that a node sleeps on, and wake the thread that armed it.
 * Return false if no thread has armed it. */
bool p3_wake_sleeper(p3_a32 *asleep);
/* Do as p3_wake_sleeper(), and count the wake-up. */
void p3_wake_peer(struct p3_nic *n, p3_a32 *asleep);
/* Wake this node's parked host threads that wait for one of these news, the watcher of
 * the doorbell included, and make their descriptors readable. */
void p3_wake_hosts(struct p3_nic *n, uint32_t news);
/* Wake one of the parked host threads that tend the node when no other thread does. */
void p3_wake_tender(struct p3_nic *n);
/* Wake this node's sleeping thread, because work has begun for which no peer rings the
 * doorbell. */
void p3_wake_self(struct p3_nic *n);
/* Make a peer look for messages: wake its sleeping thread, or if none sleeps on the
 * doorbell, make its NIC thread tick at once. */
void p3_wake_kick(struct p3_nic *n, struct p3_peer *p);

/* ---- wires ---- */

/*
 * Each peer has a wire (nic/wire/wire.h), chosen when the NIC starts: shared memory,
 * which needs no pass, or the wire between hosts.  If some peer has the latter
 * (n->wired), passes poll and flush it.  start and stop run with the NIC's.
 */

/* Choose the wire of each peer, and start the wire between hosts, and the thread that
 * rings for it.  Return 0 or -errno. */
int p3_wires_start(struct p3_nic *n);
void p3_wires_stop(struct p3_nic *n);

/* Only if n->wired. */
P3_RARE void p3_wires_poll(struct p3_nic *n);
P3_RARE void p3_wires_flush(struct p3_nic *n);

/* (any) Return true if the wire has delivered the messages that lay in the lanes at this
 * call of p3_nic_settle(). */
static inline bool p3_wires_have_settled(const struct p3_nic *n, uint32_t call)
{
	return !n->wired || (int32_t)(p3_get(&n->settled) - call) >= 0;
}

/* ---- the thread that rings the doorbell when the wire needs a pass ---- */

/*
 * A thread that sleeps waits for the word asleep, and the kernel lets no thread wait for
 * a word and a descriptor at once.  So where a wire has a descriptor (news), one
 * more thread sleeps in epoll_wait.  When it becomes readable, this thread does what a
 * peer does after publishing: it wakes the thread of this node that sleeps.  epoll
 * reports the descriptor once, and then not before a thread arms it again: the lease
 * holder does so when it gives the lease up while the word asleep is armed.
 *
 * A NIC whose peers all share memory has no such thread (n->wire_thread is NULL).  A
 * process that gets no descriptor or thread has none either, and prints a line.  A
 * program may close the descriptors that the library uses: then the thread does nothing
 * more.  Without the thread, sleeps are short while the wire waits; P3_C_WIRE_NAPS counts
 * them.
 *
 * Memory ordering:
 *	PARK.2	publish: the thread that arms the descriptor (its node's asleep is
 *		stored) -> the wire's thread, which loads asleep.  The kernel's lock of
 *		the epoll set orders the two.
 */

/* (any) In a forked child: close the descriptors of the parent's thread. */
void p3_wire_thread_forget(struct p3_nic *n);
/* Arm the descriptor.  Return true if the node's threads shall not sleep now: the wire
 * needs a pass, or its descriptor is gone. */
P3_RARE bool p3_wire_thread_arm(struct p3_nic *n);
/* (any) Wake the thread of this node that sleeps, if there is one. */
P3_RARE void p3_wire_thread_wake(struct p3_nic *n);
/* Return true if the descriptors of the thread and of the wire still name their files.
 * The wire asks before it closes its descriptor. */
bool p3_wire_thread_owns(const struct p3_nic *n);
/* Return true if the thread rings for the wire. */
bool p3_wire_thread_serves(const struct p3_nic *n);
/* Return true, and count, if the wire waits and no thread rings for it: the caller must
 * look at the wire again soon. */
bool p3_wire_thread_misses(struct p3_nic *n);

/* ---- the NIC's thread ---- */

/* Start the thread with all signals blocked: handlers run in threads of the program.
 * Return 0 or -errno.  The thread that starts the NIC calls this. */
int p3_thread_start(struct p3_nic *n);

#endif
