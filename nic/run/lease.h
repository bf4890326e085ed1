/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease - for threads that run the firmware: the lease, commands, passes, and waits
 *
 * Any thread may call p3_lease_enter(), and the thread that got the lease calls
 * p3_lease_leave() later.  The lease itself is n->lease (shm/lease.h).  Only the lease
 * holder calls the other functions, except where a comment says (any).
 */
#ifndef P3_NIC_RUN_LEASE_H
#define P3_NIC_RUN_LEASE_H

#include "nic/proto/proto.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "shm/fault.h"

/* ---- commands, and those of the mailbox ---- */

/* Execute a command.  Return its PTL_* code, or -1 - t if table t must grow before. */
int p3_command_execute(struct p3_nic *n, struct p3_cmd *c);
/* Execute all posted commands. */
void p3_command_take_posted(struct p3_nic *n);
/* Execute the commands that waited for memory, as far as it reaches. */
void p3_command_feed(struct p3_nic *n);

/* ---- the lease ---- */

/* Give up the lease, fence, and look for sleepers to wake, cold lanes to ring for, and
 * commands in the mailbox. */
void p3_lease_leave(struct p3_nic *n);

/* Begin a hold of the lease, which this thread has just taken: execute the posted
 * commands. */
static inline void p3_lease_begin(struct p3_nic *n, enum p3_lease_holder who)
{
	p3_count(&n->count[who == P3_LEASE_NIC ? P3_C_LEASE_NIC : P3_C_LEASE_HOST], 1);
	FAULT_POINT("lease.taken");
	P3_TRACE(lease, n, who);
	if (p3_unlikely(p3_mbx_any(n->mailbox)))
		p3_command_take_posted(n);
}

/* Finish p3_lease_leave() in the uncommon cases, after the lease was given up.  The
 * arguments are words, not structs, so that the common case keeps them in registers. */
P3_RARE void p3_lease_left(struct p3_nic *n, p3_a32 *asleep, const p3_a32 *cold,
	struct p3_doorbell *bell, uint32_t posted, struct p3_mailbox *mailbox);

/* Give the lease back after a hold that wrote to one peer at most, whose words these are,
 * not on a wire, and posted these news. */
static P3_HOT void p3_lease_give_to(struct p3_nic *n, p3_a32 *asleep, const p3_a32 *cold,
	struct p3_doorbell *bell, uint32_t posted)
{
	struct p3_mailbox *mailbox = n->mailbox; /* still readable after the give */
	bool light = n->light;
	p3_lease_give(&n->lease);
	p3_fence_light(light); /* LEASE.2, PARK.1, COLD.1, EVFD.1 */
	uint32_t news = p3_get(cold) | p3_get(asleep) | p3_get(&n->parked);
	if (p3_unlikely(news || p3_mbx_any(mailbox))) /* MBX.4 */
		p3_lease_left(n, asleep, cold, bell, posted, mailbox);
}

/* Do as p3_lease_leave() after a hold that wrote to this peer and to no other one, not on
 * a wire, and posted these news. */
static P3_HOT void p3_lease_leave_to(
	struct p3_nic *n, const struct p3_peer *p, uint32_t posted)
{
	p3_lease_give_to(n, p->asleep, p->cold, p->doorbell, posted);
}

/* Give the lease back after a hold that wrote to no peer, and posted these news. */
static P3_HOT void p3_lease_give_alone(struct p3_nic *n, uint32_t posted)
{
	struct p3_mailbox *mailbox = n->mailbox; /* still readable after the give */
	bool light = n->light;
	p3_lease_give(&n->lease);
	p3_fence_light(light); /* LEASE.2, PARK.1, COLD.1, EVFD.1 */
	/* The same as p3_mbx_any(), so that one branch tests both words. */
	uint32_t command = p3_get(&mailbox->head) ^ P3_MBX_NONE; /* MBX.4 */
	if (p3_unlikely(command | p3_get(&n->parked)))
		p3_lease_left(n, &n->never_asleep, &n->never_cold, NULL, posted, mailbox);
}

/* Take the lease and execute the posted commands.  Return false if another thread has
 * the lease. */
static inline bool p3_lease_enter(struct p3_nic *n, enum p3_lease_holder who)
{
	if (p3_unlikely(!p3_lease_take(&n->lease, who)))
		return false;
	p3_lease_begin(n, who);
	return true;
}

/* Do as p3_lease_enter() on a node whose host matches.  Only its NIC thread, the host's
 * thread, and the thread that stops the node call this. */
static inline bool p3_lease_enter_reserved(struct p3_nic *n, enum p3_lease_holder who)
{
	if (!p3_lease_take_reserved(&n->lease, who))
		return false;
	p3_lease_begin(n, who);
	return true;
}

/* Do as p3_lease_begin(), except that the posted commands wait for the pass with which
 * the caller goes on. */
static P3_HOT void p3_lease_begin_to_pass(struct p3_nic *n)
{
	p3_count(&n->count[P3_C_LEASE_HOST], 1);
	FAULT_POINT("lease.taken");
	P3_TRACE(lease, n, P3_LEASE_HOST);
}

/* Do as p3_lease_enter(), but begin by p3_lease_begin_to_pass(). */
static P3_HOT bool p3_lease_enter_to_pass(struct p3_nic *n)
{
	if (p3_unlikely(!p3_cas_acquire32(
		    &n->lease.word, P3_LEASE_FREE, P3_LEASE_HOST))) /* LEASE.1 */
		return false;
	p3_lease_begin_to_pass(n);
	return true;
}

/* Do as p3_lease_leave(), inlined if this hold has written to no peer. */
static P3_HOT void p3_lease_leave_here(struct p3_nic *n)
{
	uint32_t posted = n->posted;
	if (p3_unlikely(n->ntouched | n->odd)) {
		p3_lease_leave(n);
		return;
	}
	n->unlooked = 0;
	n->posted = 0;
	p3_lease_give_alone(n, posted);
}

/* ---- passes ---- */

#define P3_PASS_MSGS 16u

/* Return the share of a pass in a limit of passes: one that took many messages counts as
 * several. */
static inline uint32_t p3_pass_share(const struct p3_nic *n)
{
	return 1 + n->msgs / (2 * P3_PASS_MSGS);
}

/* Run one pass.  Return true if it found work and may have left as much. */
bool p3_pass_run(struct p3_nic *n);

/*
 * A pass in two steps, for a thread that waits for one event.  The caller makes sure that
 * there is no more to do than to poll a few hot lanes: n->brief is set, n->odd is 0, and
 * the mailbox is empty.  When the first step has brought the event, and the caller gives
 * the lease up at once, p3_pass_count() is all that is left of the second step.
 */
void p3_pass_poll_briefly(struct p3_nic *n);
bool p3_pass_end(struct p3_nic *n); /* Return as p3_pass_run(). */

static P3_HOT bool p3_pass_is_brief(const struct p3_nic *n)
{
	return p3_likely(!n->odd && !p3_mbx_any(n->mailbox));
}

/* Write the gauges, and look for timers that are due. */
P3_RARE void p3_pass_report(struct p3_nic *n);

static P3_HOT void p3_pass_count(struct p3_nic *n)
{
	FAULT_POINT("pass.done");
	uint64_t passes = p3_get(&n->count[P3_C_PASSES]) + 1;
	p3_set(&n->count[P3_C_PASSES], passes);
	if (p3_unlikely(passes % P3_MIRROR_PASSES == 0))
		p3_pass_report(n);
}

/* ---- a pass that finds nothing, in few instructions ---- */

/*
 * A program that polls finds nothing most of the time.  p3_peek() then does all that a
 * pass would do: it takes the lease (the memory of a peer may be read under the lease
 * only), looks at one word of each hot lane, counts a hold of the lease and a pass, and
 * gives the lease up.  If there is work, it keeps the lease for the caller.  Any host
 * thread that is in no other call of the library may call it.
 */

enum p3_peeked {
	P3_PEEK_BUSY,    /* another thread has the lease */
	P3_PEEK_NEWS,    /* this thread has the lease: it calls p3_lease_begin(), and runs
			  * passes */
	P3_PEEK_NOTHING, /* there is nothing to do, and the lease is given up */
	P3_PEEK_LEFT     /* as P3_PEEK_NOTHING, but a thread is parked or a command was
			  * posted: the caller calls p3_lease_left() with *mailbox_out */
};

/* Return true if no hot lane has a message. */
static P3_HOT bool p3_peek_has_emptied(struct p3_nic *n)
{
	struct p3_peer **at = n->hot;
	for (uint32_t left = n->nhot; left; left--, at++) {
		struct p3_peer *p = *at;
		if (p3_unlikely(p3_ring_any(&p->req_in) || p3_peer_has_response(p)))
			return false;
		p->deep = 0; /* as after a visit that finds nothing (pass.c) */
	}
	return true;
}

static P3_HOT enum p3_peeked p3_peek(struct p3_nic *n, struct p3_mailbox **mailbox_out)
{
	if (p3_unlikely(!p3_lease_take(&n->lease, P3_LEASE_HOST)))
		return P3_PEEK_BUSY;
	struct p3_mailbox *mailbox = n->mailbox; /* still readable after the give */
	if (p3_unlikely(n->odd || p3_mbx_any(mailbox) || !p3_peek_has_emptied(n)))
		return P3_PEEK_NEWS;
	uint64_t passes = p3_get(&n->count[P3_C_PASSES]) + 1;
	if (p3_unlikely(passes % P3_MIRROR_PASSES == 0)) /* this pass writes the gauges */
		return P3_PEEK_NEWS;
	p3_set(&n->count[P3_C_PASSES], passes);
	p3_count(&n->count[P3_C_LEASE_HOST], 1);
	p3_count(&n->drained, 1);
	p3_set(&n->emptied, 0);
	bool light = n->light;
	p3_lease_give(&n->lease);
	p3_fence_light(light); /* LEASE.2 */
	*mailbox_out = mailbox;
	bool left = p3_get(&n->parked) || p3_mbx_any(mailbox); /* MBX.4 */
	return p3_unlikely(left) ? P3_PEEK_LEFT : P3_PEEK_NOTHING;
}

/* ---- pauses between two looks of a thread that polls ---- */

/*
 * A peer's message comes into a line that this CPU has read, so the peer's CPU must take
 * the line back before it can write.  A look in that moment takes the line away once
 * more, and the message comes later.  Pauses between the looks make this rare.  They pay
 * where the peer's CPU is far; where it is near, the message is there before a pause has
 * ended.  So the duration of one wait in P3_REST_EVERY tells how long to pause
 * (docs/design/lease-and-waiting.md).
 */

#define P3_REST_EVERY 64u  /* waits */
#define P3_REST_NS    200u /* of a wait, for each pause */
#define P3_REST_MOST  2u   /* pauses */

/* Spend the time between two looks. */
static P3_HOT void p3_rest(const struct p3_nic *n)
{
	for (uint32_t left = n->pauses; left; left--)
		p3_relax();
}

/* Begin a wait.  Return its time if it is one to learn from, else 0. */
static P3_HOT uint64_t p3_rest_begin(struct p3_nic *n)
{
	return p3_likely(++n->waits % P3_REST_EVERY) ? 0 : p3_now_ns();
}

/* Learn from a wait that began at that time. */
static P3_HOT void p3_rest_end(struct p3_nic *n, uint64_t since)
{
	if (p3_likely(!since))
		return;
	uint64_t pauses = (p3_now_ns() - since) / P3_REST_NS;
	n->pauses = pauses < P3_REST_MOST ? (uint32_t)pauses : P3_REST_MOST;
}

/* ---- waits of host threads until an event or a result is there ---- */

/* A pass may leave messages behind, so a look at all lanes takes several passes: at most
 * this number. */
#define P3_WHOLE_TURNS 16u
/* time after which a waiting thread kicks a peer that has not taken a message */
#define P3_KICK_NS 100000u

/* passes within a tick, or a sleep, of hosts that do not poll */
#define P3_FEW_PASSES 16u

/* (any) Wait until ready(arg), for ns at most (UINT64_MAX: no limit), or until the
 * NIC's end. Return true if ready.  Tools see that the thread waits for wants. */
bool p3_wait_until(struct p3_nic *n, uint64_t ns, const struct p3_wants *wants,
	bool (*ready)(void *), void *arg);
/* (any) Begin a wait for an event where nodes share CPUs: if the last pass emptied the
 * lanes, yield the CPU, and run a pass, which most likely brings the event. */
void p3_wait_in_turn(struct p3_nic *n);
/* Return true if a thread must not sleep for long: a pull or a blocked request is under
 * way, a wire has frames to send and no thread that does it, or a peer has not taken a
 * message of this node yet, which no thread of a wire repeats. */
bool p3_wait_is_restless(struct p3_nic *n);
/* (any) Return the longest sleep: a short one of a restless thread, twice as long as its
 * last one (*nap_ns, 0: it had none), and most_ns at most. */
uint64_t p3_wait_longest_sleep(
	bool restless, uint64_t safety_ns, uint64_t most_ns, uint64_t *nap_ns);
/* Kick peers that have not looked at their messages from this node. */
void p3_wait_kick_idle(struct p3_nic *n);

#endif
