/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes that a program asks for, and waits until its messages have left. */
#include "nic/host/settle.h"
#include "nic/host/call.h"
#include "nic/run/lease.h"

#include <time.h>

void p3_nic_attend(struct p3_nic *n)
{
	for (uint32_t i = 0; i < P3_JOB_NIS; i++)
		p3_settle_attend(n, i);
}

bool p3_settle_pass(struct p3_nic *n)
{
	bool worked = false;
	if (p3_self.inside)
		return false;
	p3_call_begin();
	if (p3_lease_enter(n, P3_LEASE_HOST)) {
		worked = p3_pass_run(n);
		p3_lease_leave(n);
	} else {
		p3_settle_look_in_vain(n);
	}
	p3_call_end(n);
	return worked;
}

void p3_nic_progress(struct p3_nic *n, uint64_t ns)
{
	uint64_t start = p3_now_ns();
	p3_nic_attend(n);
	while (p3_settle_pass(n) && p3_now_ns() - start < ns)
		;
}

/* Run a pass, or, where only the NIC thread may, wake it for one: no peer rings for the
 * work that the caller waits for. */
static bool pass_here_or_there(struct p3_nic *n)
{
	if (p3_unlikely(n->generic != NULL))
		(void)p3_wake_sleeper(n->asleep);
	return p3_settle_pass(n);
}

#define P3_NAP_NS     20000
#define P3_MEET_TIMES 30u

/* Return true if all copies with a posted SEND_END have left this node, and no message
 * waits for conf.meet. */
static bool has_left(struct p3_nic *n)
{
	return !p3_acquire(&n->leaving) && !p3_get(&n->meeting); /* LEAVE.1 */
}

/* The state of a wait in p3_nic_settle() until all copies have left. */
struct patience {
	uint64_t start, ns;
	uint64_t stall, most; /* limits of the time since last, and since start */
	uint64_t last;        /* time of the last change of copies or meeting */
	uint32_t copies;      /* number of copies that have not left */
	uint32_t meeting;     /* number of peers that conf.meet is fetching */
	long nap_ns;
};

/* Return true if the wait shall end with copies left: none has left for w->stall (a
 * stopped target takes none), or w->most has passed.  While conf.meet is under way, which
 * no other node can hold up, the limit is P3_MEET_TIMES * w->ns alone. */
static bool is_spent(struct p3_nic *n, struct patience *w)
{
	uint64_t now = p3_now_ns();
	uint32_t copies = p3_get(&n->leaving), meeting = p3_get(&n->meeting);
	if (copies != w->copies || meeting != w->meeting)
		w->last = now;
	w->copies = copies;
	w->meeting = meeting;
	if (meeting)
		return now - w->start >= P3_MEET_TIMES * w->ns;
	return now - w->last >= w->stall || now - w->start >= w->most;
}

/* Run a pass.  If it finds no work, sleep, longer each time: many nodes may wait for few
 * CPUs. */
static void pass_or_nap(struct p3_nic *n, struct patience *w)
{
	const struct timespec nap = {.tv_nsec = w->nap_ns};
	if (pass_here_or_there(n)) {
		w->nap_ns = P3_NAP_NS;
		return;
	}
	(void)nanosleep(&nap, NULL);
	if ((uint64_t)w->nap_ns < n->tick_ns / 4)
		w->nap_ns *= 2;
}

/* Return the longest wait for other hosts, or 0 if there are none. */
static uint64_t far_ns(const struct p3_nic *n)
{
	return n->conf.far ? n->conf.far->settle_ns : 0;
}

static struct patience patience_of(const struct p3_nic *n, uint64_t ns)
{
	uint64_t now = p3_now_ns(), far = far_ns(n);
	return (struct patience){.start = now,
		.last = now,
		.ns = ns,
		.stall = far > ns / 2 ? far : ns / 2,
		.most = far > 10 * ns ? UINT64_MAX : 10 * ns,
		.nap_ns = P3_NAP_NS};
}

/* Wait until the wire has delivered the messages that lie in the lanes now. */
static bool settle_wires(struct p3_nic *n, uint64_t ns)
{
	struct patience w = patience_of(n, ns);
	uint64_t limit = far_ns(n) > ns ? far_ns(n) : ns;
	uint32_t call = p3_add32(&n->settle, 1) + 1;
	bool settled;
	while (!(settled = p3_wires_have_settled(n, call)) &&
		p3_now_ns() - w.start < limit)
		pass_or_nap(n, &w);
	return settled;
}

bool p3_nic_settle(struct p3_nic *n, uint64_t ns, uint32_t *late_out)
{
	struct patience patience = patience_of(n, ns);
	if ((!n->wired && has_left(n)) || p3_self.inside)
		return true;
	while (!has_left(n) && !is_spent(n, &patience))
		pass_or_nap(n, &patience);
	p3_set(&n->unsettled, n->conf.nnodes);
	bool settled = !n->wired || settle_wires(n, ns);
	if (late_out)
		*late_out = p3_get(&n->unsettled);
	return settled;
}

uint32_t p3_nic_await_absent(struct p3_nic *n, uint64_t ns)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	uint64_t start = p3_now_ns();
	uint32_t left = 0;
	while (!p3_self.inside && (left = p3_acquire(&n->promised)) != 0 && /* LEAVE.1 */
		p3_now_ns() - start < ns)
		if (!pass_here_or_there(n))
			(void)nanosleep(&nap, NULL);
	return left;
}
