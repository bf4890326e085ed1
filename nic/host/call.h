/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call - commands of host threads: under the lease, through the mailbox, or left behind
 * by a signal handler that interrupts a call
 *
 * Any host thread may call these functions, without the lease, except those that end a
 * hold of it (p3_trylease_...).  The state is the calling thread's own (nic/run/run.h),
 * the mailbox (shm/mailbox.h), n->detached (the number of slots with commands whose
 * poster does not wait), the word attended of each interface (struct p3_ni), and the hint
 * want of the lease.
 */
#ifndef P3_NIC_HOST_CALL_H
#define P3_NIC_HOST_CALL_H

#include "nic/run/lease.h"
#include "nic/state.h"
#include "shm/trace.h"
#include "shm/variant.h"

/* ---- the begin and the end of a call ---- */

/* Execute the commands that a signal handler has left behind. */
P3_RARE void p3_call_run_left(struct p3_nic *n);

/* Mark this thread as inside the library. */
static inline void p3_call_begin(void)
{
	p3_self.inside++;
	atomic_signal_fence(memory_order_seq_cst);
}

/* Unmark this thread.  Return false if the caller must call p3_call_run_left(). */
static inline bool p3_call_leave(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	p3_self.inside--;
	atomic_signal_fence(memory_order_seq_cst);
	return p3_likely(!p3_self.left_behind) || p3_self.inside;
}

/* Unmark this thread, and execute the commands that a signal handler has left behind
 * meanwhile. */
static inline void p3_call_end(struct p3_nic *n)
{
	if (p3_unlikely(!p3_call_leave()))
		p3_call_run_left(n);
}

/* ---- commands ---- */

/* Execute a command, between p3_call_begin() and p3_call_end(). */
int p3_call_inside(struct p3_nic *n, struct p3_cmd *c);
/* Add memory for objects to a table.  Return false without memory. */
P3_RARE bool p3_call_grow(struct p3_nic *n, enum p3_table_id id);
/* Post a command, and wait until a lease holder has executed it.  Return its code. */
P3_RARE int p3_post_command(struct p3_nic *n, struct p3_cmd *c);

/* ---- passes that a program asks for ---- */

/* Note that the program has looked for an event of interface ni: the interface has
 * settled. */
static inline void p3_call_attend(struct p3_nic *n, uint32_t ni)
{
	if (ni < P3_JOB_NIS && p3_unlikely(!p3_get(&n->ni[ni].attended)))
		p3_set(&n->ni[ni].attended, 1);
}

/* Tell the lease holder that this thread has looked for messages and found the lease
 * taken, and that it does not wait for the lease. */
static inline void p3_call_look_in_vain(struct p3_nic *n)
{
	if (!p3_get(&n->lease.want))
		p3_set(&n->lease.want, P3_WANT_LOOK);
}

/* Run a pass.  Return false if it found no work, or another thread has the lease. */
bool p3_call_pass(struct p3_nic *n);

/* ---- short holds of the lease, for calls that execute their command at once ---- */

/* Such a call begins with p3_trylease_enter().  It ends with p3_trylease_turn_back(),
 * having done nothing, if its command must go through p3_nic_do(); with
 * p3_trylease_leave() if it has written to no peer and posted no event; and with
 * p3_trylease_leave_to() if it has written to one peer. */

/* Give the lease back, having done nothing.  Return false. */
static P3_RARE bool p3_trylease_turn_back(struct p3_nic *n)
{
	p3_lease_give_alone(n, 0);
	p3_call_end(n);
	return false;
}

/* Return true if the lease holder has no other duty: no command was posted before, and
 * there is no trace, wire, peer without room or kept request that needs it. */
static P3_HOT bool p3_trylease_is_usual(const struct p3_nic *n)
{
	const uint32_t odd = P3_ODD_TRACED | P3_ODD_WIRED | P3_ODD_BLOCKED | P3_ODD_KEPT;
	return p3_likely(!p3_mbx_any(n->mailbox) && !(n->odd & odd));
}

/* Return true if this thread has the lease now, and nothing is unusual. */
static P3_HOT bool p3_trylease_enter(struct p3_nic *n)
{
	if (p3_unlikely(p3_self.inside != 0))
		return false;
	p3_call_begin();
	if (p3_unlikely(!p3_cas_acquire32(
		    &n->lease.word, P3_LEASE_FREE, P3_LEASE_HOST))) { /* LEASE.1 */
		p3_call_end(n);
		return false;
	}
	FAULT_POINT("lease.taken");
	FAULT_POINT("command.held");
	if (p3_likely(p3_trylease_is_usual(n)))
		return true;
	p3_trylease_turn_back(n);
	return false;
}

/* End a hold that has sent a request to p, and has posted these news.  Return true. */
static P3_HOT bool p3_trylease_leave_to(
	struct p3_nic *n, const struct p3_peer *p, uint32_t posted)
{
	p3_count(&n->count[P3_C_LEASE_HOST], 1);
	FAULT_POINT("command.executed");
	p3_lease_leave_to(n, p, posted);
	p3_call_end(n);
	return true;
}

/* End a hold that has executed a command. */
static P3_HOT void p3_trylease_leave(struct p3_nic *n, enum p3_op op)
{
	P3_PROBE2(command, op, n->conf.nid);
	FAULT_POINT("command.executed");
	p3_count(&n->count[P3_C_LEASE_HOST], 1);
	p3_lease_give_alone(n, 0);
	p3_call_end(n);
}

#endif
