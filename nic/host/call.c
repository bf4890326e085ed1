/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of host threads: under the lease, or through the mailbox. */
#include "nic/host/call.h"

#include "nic/obj/obj.h"
#include "nic/proto/proto.h"
#include "nic/run/lease.h"
#include "shm/fault.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Static_assert(sizeof(struct p3_cmd) <= P3_MBX_CMD, "a command fits its slot");

/* ---- through the mailbox ---- */

static bool post_slot_is_done(void *slot)
{
	return p3_mbx_is_done(slot);
}

static int post_and_wait(struct p3_nic *n, struct p3_cmd *c)
{
	uint32_t slot;
	while ((slot = p3_mbx_alloc(n->mailbox)) == P3_MBX_NONE)
		sched_yield(); /* all slots are in use; an ended command frees its slot */
	struct p3_mbx_slot *s = p3_mbx_slot(n->mailbox, slot);
	p3_mbx_post(n->mailbox, slot, c, sizeof *c, false); /* MBX.4: sleep_for_news */
	if (p3_unlikely(n->generic != NULL)) {
		p3_fence(); /* PARK.1: only the NIC thread executes commands */
		if (p3_get(n->asleep) != P3_AWAKE)
			(void)p3_wake_sleeper(n->asleep);
	}
	const uint64_t op = c->op;
	const struct p3_wants wants = {P3_WAIT_COMMAND, 1, &op};
	while (!p3_wait_until(n, UINT64_MAX, &wants, post_slot_is_done, s))
		sched_yield(); /* the NIC closes: p3_nic_stop executes the command */
	int rc = s->result;
	memcpy(c, p3_mbx_cmd(s), sizeof *c);
	p3_mbx_free(n->mailbox, slot);
	return rc;
}

/* Return the PTL code of a command whose handle is invalid because the NIC closes. */
static int post_closed_code(const struct p3_cmd *c)
{
	switch (c->op) {
	case P3_OP_ME_ATTACH:
		return c->me.base == PTL_INVALID_HANDLE ? PTL_NI_INVALID : PTL_ME_INVALID;
	case P3_OP_ME_UNLINK:
	case P3_OP_MD_ATTACH:
		return PTL_ME_INVALID;
	case P3_OP_MD_UNLINK:
	case P3_OP_MD_UPDATE:
	case P3_OP_PUT:
	case P3_OP_GET:
	case P3_OP_GETPUT:
		return PTL_MD_INVALID;
	case P3_OP_WHOSE:
		return PTL_HANDLE_INVALID;
	case P3_OP_DUMP:
		return c->flag == P3_DUMP_ME ? PTL_ME_INVALID : PTL_NI_INVALID;
	case P3_OP_EQ_FREE:
	case P3_OP_EQ_WATCH:
	case P3_OP_WAITS_FOR:
		return PTL_EQ_INVALID;
	default:
		return PTL_NI_INVALID;
	}
}

int p3_post_command(struct p3_nic *n, struct p3_cmd *c)
{
	int rc = post_closed_code(c);
	p3_add32(&n->waiting, 1);
	p3_fence(); /* STOP.1: counted before the look at closing */
	if (!p3_get(&n->closing))
		rc = post_and_wait(n, c);
	p3_add32(&n->waiting, (uint32_t)-1);
	return rc;
}

/* Post a command in a signal handler, and do not wait for it. */
static int post_from_handler(struct p3_nic *n, struct p3_cmd *c)
{
	int rc = post_closed_code(c);
	p3_add32(&n->waiting, 1);
	p3_fence(); /* STOP.1 */
	if (p3_get(&n->closing))
		goto out;
	/* Use half of the slots at most: threads that can wait need some, too. */
	bool most = p3_add32(&n->detached, 1) >= P3_MBX_SLOTS / 2;
	uint32_t slot = most ? P3_MBX_NONE : p3_mbx_alloc(n->mailbox);
	if (slot == P3_MBX_NONE) {
		p3_add32(&n->detached, (uint32_t)-1);
		rc = PTL_NO_SPACE;
		goto out;
	}
	p3_mbx_post(n->mailbox, slot, c, sizeof *c, true);
	p3_self.left_behind = true;
	/* The interrupted call may be about to sleep. */
	p3_add32(&n->news, 1);
	p3_set(n->asleep, P3_AWAKE);
	p3_futex_wake(n->asleep, ~0u, true);
	rc = PTL_OK;
out:
	p3_add32(&n->waiting, (uint32_t)-1);
	return rc;
}

/* ---- under the lease ---- */

static inline int call_once(struct p3_nic *n, struct p3_cmd *c)
{
	int rc;
	P3_PROBE2(command, c->op, n->conf.nid);
	P3_TRACE(command, n, c);
	if (p3_likely(p3_lease_enter(n, P3_LEASE_HOST))) {
		FAULT_POINT("command.held");
		P3_TRACE(focus, n, (struct p3_topic){P3_TRACE_NOBODY, 0}, c->trace);
		rc = p3_likely(c->op == P3_OP_PUT) ? p3_tx_put(n, c)
						   : p3_command_execute(n, c);
		FAULT_POINT("command.executed");
		/* Run a pass for a program that only repeats its call: room in a lane, or
		 * the end of a transfer, which the program waits for, comes by passes. */
		if (p3_unlikely(!p3_list_empty(&n->blocked) || rc == PTL_MD_IN_USE ||
				rc == PTL_ME_IN_USE))
			(void)p3_pass_run(n);
		p3_lease_leave(n);
	} else {
		rc = p3_post_command(n, c);
	}
	return rc;
}

/* Add memory for objects to a table. */
static P3_RARE int call_add_chunk(struct p3_nic *n, enum p3_table_id id)
{
	struct p3_cmd c = {.op = P3_OP_GROW, .flag = id};
	uint64_t len = (uint64_t)n->table[id].elem * P3_TABLE_EACH;
	c.grow.life = p3_get(&n->life);
	if (id != P3_T_PENDING)
		c.grow.chunk = p3_table_more(&n->table[id]);
	/* A race of two threads may go over the limit by a chunk each. */
	else if ((p3_get(&n->table[id].nchunks) + 1) * len <= n->conf.pending_limit)
		c.grow.chunk = p3_host_alloc(n, len);
	return c.grow.chunk ? call_once(n, &c) : PTL_NO_SPACE;
}

bool p3_call_grow(struct p3_nic *n, enum p3_table_id id)
{
	p3_call_begin();
	int rc = call_add_chunk(n, id);
	p3_call_end(n);
	return rc == PTL_OK;
}

/* Provide the memory that the command needs, and execute it again. */
static P3_RARE int call_feed(struct p3_nic *n, struct p3_cmd *c, int rc)
{
	while (rc < 0 && rc >= -(int)P3_TABLES) {
		rc = call_add_chunk(n, (enum p3_table_id)(-rc - 1));
		if (rc == PTL_OK)
			rc = call_once(n, c);
		else if (rc == PTL_NI_INVALID)
			rc = post_closed_code(c);
	}
	if (rc == PTL_NO_SPACE)
		/* Let targets on this CPU answer before the program repeats its call. */
		sched_yield();
	return rc;
}

static P3_HOT int call_inside(struct p3_nic *n, struct p3_cmd *c)
{
	int rc = call_once(n, c);
	return p3_likely(rc == PTL_OK) ? rc : call_feed(n, c, rc);
}

int p3_call_inside(struct p3_nic *n, struct p3_cmd *c)
{
	return call_inside(n, c);
}

/* ---- from a signal handler that interrupted a call ---- */

void p3_call_run_left(struct p3_nic *n)
{
	/* The thread that executes this command first executes all commands that were
	 * posted before it, those of the handler included. */
	struct p3_cmd none = {.op = P3_OP_NI_CHECK};
	p3_call_begin();
	p3_self.left_behind = false;
	(void)call_once(n, &none);
	if (p3_get(&n->hungry) != P3_MBX_NONE)
		(void)call_add_chunk(n, P3_T_PENDING);
	p3_call_end(n);
}

/* Return the interface of a handle without the lease. */
static int call_whose(struct p3_nic *n, struct p3_cmd *c)
{
	enum p3_kind kind = p3_handle_kind(c->handle);
	uint32_t ni = p3_handle_ni(c->handle);
	if (ni >= P3_JOB_NIS || kind < P3_KIND_NI || kind > P3_KIND_EQ)
		return PTL_HANDLE_INVALID;
	uint32_t gen = p3_acquire(&n->ni[ni].gen); /* TABLE.2 */
	c->handle_out = p3_handle(P3_KIND_NI, ni, 0, gen);
	bool lives = kind == P3_KIND_NI ? (gen & 1) && c->handle == c->handle_out
					: p3_obj_named(n, kind, c->handle) != NULL;
	return lives ? PTL_OK : PTL_HANDLE_INVALID;
}

bool p3_nic_interrupts(void)
{
	return p3_self.inside != 0;
}

static P3_RARE int call_interrupting(struct p3_nic *n, struct p3_cmd *c)
{
	switch (c->op) {
	case P3_OP_PUT:
	case P3_OP_GET:
	case P3_OP_GETPUT:
		return p3_md_named(n, c->handle) ? post_from_handler(n, c)
						 : PTL_MD_INVALID;
	case P3_OP_WHOSE:
		return call_whose(n, c);
	default:
		return PTL_NO_SPACE;
	}
}

P3_PATH
int p3_nic_do(struct p3_nic *n, struct p3_cmd *c)
{
	if (p3_unlikely(p3_self.inside != 0))
		return call_interrupting(n, c);
	p3_call_begin();
	int rc = call_inside(n, c);
	p3_call_end(n);
	return rc;
}

/* Return true if nothing is unusual but that there is a wire. */
static bool call_is_usual(const struct p3_nic *n)
{
	const uint32_t odd = P3_ODD_TRACED | P3_ODD_BLOCKED | P3_ODD_KEPT;
	return !p3_mbx_any(n->mailbox) && !(n->odd & odd);
}

bool p3_nic_put_wired(struct p3_nic *n, uint64_t handle, const struct p3_move *m)
{
	if (!n->wired || p3_self.inside)
		return false;
	p3_call_begin();
	if (!p3_lease_take(&n->lease, P3_LEASE_HOST)) {
		p3_call_end(n);
		return false;
	}
	FAULT_POINT("lease.taken");
	if (!call_is_usual(n) || !p3_tx_put_wired(n, handle, m))
		return p3_trylease_turn_back(n);
	P3_PROBE2(command, P3_OP_PUT, n->conf.nid);
	p3_count(&n->count[P3_C_LEASE_HOST], 1);
	FAULT_POINT("command.executed");
	p3_lease_leave(n); /* flushes a message for another host */
	p3_call_end(n);
	return true;
}

/* ---- passes that a program asks for, waits until its messages have left ---- */

void p3_nic_attend(struct p3_nic *n)
{
	for (uint32_t i = 0; i < P3_JOB_NIS; i++)
		p3_call_attend(n, i);
}

bool p3_call_pass(struct p3_nic *n)
{
	bool worked = false;
	if (p3_self.inside)
		return false;
	p3_call_begin();
	if (p3_lease_enter(n, P3_LEASE_HOST)) {
		worked = p3_pass_run(n);
		p3_lease_leave(n);
	} else {
		p3_call_look_in_vain(n);
	}
	p3_call_end(n);
	return worked;
}

void p3_nic_progress(struct p3_nic *n, uint64_t ns)
{
	uint64_t start = p3_now_ns();
	p3_nic_attend(n);
	while (p3_call_pass(n) && p3_now_ns() - start < ns)
		;
}

/* Run a pass, or, where only the NIC thread may, wake it for one: no peer rings for the
 * work that the caller waits for. */
static bool flush_pass(struct p3_nic *n)
{
	if (p3_unlikely(n->generic != NULL))
		(void)p3_wake_sleeper(n->asleep);
	return p3_call_pass(n);
}

#define CALL_NAP_NS   20000
#define P3_MEET_TIMES 30u

/* Return true if all copies with a posted SEND_END have left this node, and no message
 * waits for conf.meet. */
static bool flush_has_left(struct p3_nic *n)
{
	return !p3_acquire(&n->leaving) && !p3_get(&n->meeting); /* LEAVE.1 */
}

/* The state of a wait in p3_nic_settle() until all copies have left. */
struct flush_patience {
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
static bool flush_is_spent(struct p3_nic *n, struct flush_patience *w)
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
static void flush_pass_or_nap(struct p3_nic *n, struct flush_patience *w)
{
	const struct timespec nap = {.tv_nsec = w->nap_ns};
	if (flush_pass(n)) {
		w->nap_ns = CALL_NAP_NS;
		return;
	}
	(void)nanosleep(&nap, NULL);
	if ((uint64_t)w->nap_ns < n->tick_ns / 4)
		w->nap_ns *= 2;
}

/* Return the longest wait for other hosts, or 0 if there are none. */
static uint64_t flush_far_ns(const struct p3_nic *n)
{
	return n->conf.far ? n->conf.far->settle_ns : 0;
}

static struct flush_patience flush_patience(const struct p3_nic *n, uint64_t ns)
{
	uint64_t now = p3_now_ns(), far = flush_far_ns(n);
	return (struct flush_patience){.start = now,
		.last = now,
		.ns = ns,
		.stall = far > ns / 2 ? far : ns / 2,
		.most = far > 10 * ns ? UINT64_MAX : 10 * ns,
		.nap_ns = CALL_NAP_NS};
}

bool p3_nic_settle(struct p3_nic *n, uint64_t ns, uint32_t *late_out)
{
	struct flush_patience patience = flush_patience(n, ns);
	bool settled = true;
	if ((!n->wired && flush_has_left(n)) || p3_self.inside)
		return true;
	while (!flush_has_left(n) && !flush_is_spent(n, &patience))
		flush_pass_or_nap(n, &patience);
	p3_set(&n->unsettled, n->conf.nnodes);
	if (n->wired) {
		/* Wait until the wires have delivered what lies in the lanes now. */
		struct flush_patience w = flush_patience(n, ns);
		uint64_t limit = flush_far_ns(n) > ns ? flush_far_ns(n) : ns;
		uint32_t call = p3_add32(&n->settle, 1) + 1;
		while (!(settled = p3_wires_have_settled(n, call)) &&
			p3_now_ns() - w.start < limit)
			flush_pass_or_nap(n, &w);
	}
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
		if (!flush_pass(n))
			(void)nanosleep(&nap, NULL);
	return left;
}

/* ---- births, ends and ids of peers ---- */

int p3_nic_peer_up(struct p3_nic *n, struct p3_peer_info *info)
{
	if (info->node >= n->conf.nnodes)
		return -EPROTO;
	const struct p3_wire *wire = n->peer[info->node].wire;
	int rc = wire->map(n, info);
	FAULT_POINT("peer.mapped");
	struct p3_cmd c = {.op = P3_OP_PEER_UP, .peer = info};
	if (!rc)
		rc = p3_nic_do(n, &c);
	if (rc)
		wire->unmap(info);
	return rc;
}

void p3_nic_peer_expect(struct p3_nic *n, struct p3_peer_info *info)
{
	struct p3_cmd c = {.op = P3_OP_PEER_UP, .peer = info};
	info->base = NULL;
	if (info->node < n->conf.nnodes)
		(void)p3_nic_do(n, &c);
}

void p3_nic_peer_pids(struct p3_nic *n, struct p3_peer_info *info)
{
	struct p3_cmd c = {.op = P3_OP_PEER_PIDS, .peer = info};
	if (info->node < n->conf.nnodes)
		(void)p3_nic_do(n, &c);
}

void p3_nic_peer_heard(struct p3_nic *n, uint32_t node, uint64_t at)
{
	p3_set(&n->peer[node].shown->shown_heard, at);
}

void p3_nic_peer_told(struct p3_nic *n, uint32_t question, const uint64_t *coming)
{
	struct p3_cmd c = {.op = P3_OP_PEER_TOLD, .handle = question, .coming = coming};
	(void)p3_nic_do(n, &c);
}

bool p3_nic_peer_down(struct p3_nic *n, struct p3_peer_info *info)
{
	struct p3_cmd c = {.op = P3_OP_PEER_DOWN, .peer = info};
	int rc = info->node < n->conf.nnodes ? p3_nic_do(n, &c) : -EPROTO;
	if (!rc && info->base)
		n->peer[info->node].wire->unmap(info);
	return rc != -EAGAIN;
}

void p3_nic_peer_over(struct p3_nic *n, struct p3_peer_info *info)
{
	struct p3_cmd c = {.op = P3_OP_PEER_OVER, .peer = info};
	if (info->node < n->conf.nnodes)
		(void)p3_nic_do(n, &c);
}

void p3_nic_held(struct p3_nic *n, struct p3_on_hold *held_out)
{
	struct p3_cmd c = {.op = P3_OP_HELD};
	(void)p3_nic_do(n, &c);
	*held_out = c.held;
}

void p3_nic_list(struct p3_nic *n, struct p3_listed *listed)
{
	struct p3_cmd c = {.op = P3_OP_LIST, .listed = listed};
	(void)p3_nic_do(n, &c);
	free(c.listed);
}
