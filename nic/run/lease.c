/* SPDX-License-Identifier: BSD-3-Clause */
/* The lease: commands that its holder executes, and the looks and wake-ups at its end. */
#include "nic/run/lease.h"
#include "nic/cci/firmware.h"
#include "nic/generic/generic.h"
#include "nic/obj/obj.h"
#include "nic/proto/proto.h"
#include "nic/report/report.h"

/* ---- commands ---- */

static void cmd_append_hungry(struct p3_nic *n, uint32_t slot)
{
	uint32_t at = p3_get(&n->hungry);
	p3_set(&p3_mbx_slot(n->mailbox, slot)->next, P3_MBX_NONE);
	p3_odd_set(n, P3_ODD_HUNGRY);
	if (at == P3_MBX_NONE) {
		p3_set(&n->hungry, slot);
		return;
	}
	while (p3_get(&p3_mbx_slot(n->mailbox, at)->next) != P3_MBX_NONE)
		at = p3_get(&p3_mbx_slot(n->mailbox, at)->next);
	p3_set(&p3_mbx_slot(n->mailbox, at)->next, slot);
}

/*
 * Execute a command whose poster does not wait.  A command that needs memory waits until
 * a call of a host thread provides the memory, and all later such commands wait behind
 * it.
 */
static void cmd_execute_detached(struct p3_nic *n, uint32_t slot)
{
	int rc = -1;
	struct p3_cmd *c = p3_mbx_cmd(p3_mbx_slot(n->mailbox, slot));
	P3_TRACE(execute, n, c);
	if (p3_get(&n->hungry) == P3_MBX_NONE)
		rc = p3_command_execute(n, c);
	if (rc < 0) {
		cmd_append_hungry(n, slot);
		return;
	}
	if (p3_unlikely(rc == PTL_NO_SPACE))
		p3_tx_refuse(n, c);
	p3_mbx_free(n->mailbox, slot);
	p3_add32(&n->detached, (uint32_t)-1);
}

void p3_command_feed(struct p3_nic *n)
{
	uint32_t slot = p3_get(&n->hungry);
	p3_set(&n->hungry, P3_MBX_NONE);
	while (slot != P3_MBX_NONE) {
		uint32_t next = p3_get(&p3_mbx_slot(n->mailbox, slot)->next);
		cmd_execute_detached(n, slot);
		slot = next;
	}
}

static int cmd_grow(struct p3_nic *n, struct p3_cmd *c)
{
	if (c->flag >= P3_TABLES || p3_get(&n->table[c->flag].nchunks) == P3_TABLE_CHUNKS)
		return PTL_NO_SPACE;
	struct p3_table *t = &n->table[c->flag];
	if (c->flag == P3_T_PENDING && c->grow.life != p3_get(&n->life))
		return PTL_NI_INVALID;
	/* Another thread has added a chunk at this place meanwhile. */
	if (t->base &&
		c->grow.chunk != p3_table_at(t, p3_get(&t->nchunks) * P3_TABLE_EACH))
		return PTL_OK;
	p3_table_add(t, c->grow.chunk);
	if (p3_get(&n->hungry) != P3_MBX_NONE)
		p3_command_feed(n);
	return PTL_OK;
}

#define CMD_BIT(op) (UINT64_C(1) << P3_OP_##op)
_Static_assert(P3_OPS <= 64, "a word has a bit for each command");

/* Commands that remove, change or read the objects, queues, counters and peers that
 * entries of the generic event queue are about: the host handles all entries before them.
 * PtlMEMDPost and PtlMDUpdate look whether a queue has an event. */
#define P3_BEHIND_ENTRIES                                                                \
	(CMD_BIT(NI_CLOSE) | CMD_BIT(ME_ATTACH) | CMD_BIT(ME_UNLINK) |                   \
		CMD_BIT(MD_UNLINK) | CMD_BIT(MD_UPDATE) | CMD_BIT(EQ_FREE) |             \
		CMD_BIT(NI_STATUS) | CMD_BIT(PEER_DOWN))

/* Commands after which an entry may accept a request that none has accepted before, or
 * its index may keep it no longer. */
#define P3_BEFORE_KEPT                                                                   \
	(CMD_BIT(NI_CLOSE) | CMD_BIT(AC_ENTRY) | CMD_BIT(ME_ATTACH) |                    \
		CMD_BIT(MD_ATTACH) | CMD_BIT(MD_UPDATE) | CMD_BIT(PT_HOLD))

typedef int cmd_function(struct p3_nic *n, struct p3_cmd *c);

static cmd_function *const cmd_functions[P3_OPS] = {
	[P3_OP_NI_OPEN] = p3_ni_open,
	[P3_OP_NI_CLOSE] = p3_close_ni,
	[P3_OP_NI_CHECK] = p3_ni_check,
	[P3_OP_NI_STATUS] = p3_ni_status,
	[P3_OP_WHOSE] = p3_ni_of_handle,
	[P3_OP_AC_ENTRY] = p3_ni_ac_entry,
	[P3_OP_ME_ATTACH] = p3_me_attach,
	[P3_OP_ME_UNLINK] = p3_close_me,
	[P3_OP_MD_ATTACH] = p3_me_attach_md,
	[P3_OP_MD_BIND] = p3_md_bind,
	[P3_OP_MD_UNLINK] = p3_close_md,
	[P3_OP_MD_UPDATE] = p3_md_update,
	[P3_OP_EQ_ALLOC] = p3_eq_alloc,
	[P3_OP_EQ_FREE] = p3_eq_free,
	[P3_OP_EQ_WATCH] = p3_eq_watch,
	[P3_OP_EQ_RECLAIM] = p3_eq_reclaim,
	[P3_OP_PUT] = p3_tx_put,
	[P3_OP_GET] = p3_tx_get,
	[P3_OP_GETPUT] = p3_tx_getput,
	[P3_OP_DUMP] = p3_dump_write,
	[P3_OP_GROW] = cmd_grow,
	[P3_OP_PEER_UP] = p3_peer_up,
	[P3_OP_PEER_PIDS] = p3_peer_pids,
	[P3_OP_PEER_DOWN] = p3_peer_down,
	[P3_OP_PEER_TOLD] = p3_peer_told,
	[P3_OP_PEER_OVER] = p3_peer_over,
	[P3_OP_HELD] = p3_hold_expire,
	[P3_OP_LIST] = p3_ids_list,
	[P3_OP_CCI] = p3_cci_command,
	[P3_OP_PT_HOLD] = p3_ni_hold,
	[P3_OP_INJECT] = p3_tx_inject,
	[P3_OP_WAITS_FOR] = p3_mirror_poll,
};

/* Execute a command of a node whose host matches, or that keeps requests. */
static P3_RARE int cmd_execute_watched(struct p3_nic *n, struct p3_cmd *c)
{
	if (n->staging && (P3_BEHIND_ENTRIES >> c->op & 1))
		p3_generic_handle(n);
	int rc = cmd_functions[c->op](n, c);
	if (n->nkept && (P3_BEFORE_KEPT >> c->op & 1))
		p3_rx_try_kept(n);
	return rc;
}

P3_PATH
int p3_command_execute(struct p3_nic *n, struct p3_cmd *c)
{
	if (c->op >= P3_OPS || !cmd_functions[c->op])
		return PTL_FAIL;
	if (p3_unlikely(n->odd & (P3_ODD_GENERIC | P3_ODD_KEPT)))
		return cmd_execute_watched(n, c);
	return cmd_functions[c->op](n, c);
}

void p3_command_take_posted(struct p3_nic *n)
{
	uint32_t slot = p3_mbx_take_all(n->mailbox);
	while (slot != P3_MBX_NONE) {
		struct p3_mbx_slot *s = p3_mbx_slot(n->mailbox, slot);
		uint32_t here = slot;
		slot = p3_get(&s->next);
		if (s->detached) {
			cmd_execute_detached(n, here);
		} else {
			struct p3_cmd *c = p3_mbx_cmd(s);
			P3_TRACE(execute, n, c);
			int rc = p3_command_execute(n, c);
			FAULT_POINT("mailbox.executed");
			p3_mbx_done(s, rc);
		}
		n->worked = true;
		n->posted |= P3_NEWS_RESULT;
	}
}

/* ---- the end of a hold ---- */

/* Wake the parked threads that wait for the posted news; and one of them to tend the node
 * if the lease is free for it, and no watcher looks after the node. */
static void lease_wake_parked(struct p3_nic *n, uint32_t posted)
{
	if (!p3_get(&n->parked))
		return;
	if (posted)
		p3_wake_hosts(n, posted);
	if (!n->generic && !p3_get(&n->watcher))
		p3_wake_tender(n);
}

/* Give up the lease and do the looks.  Return true if the mailbox has a command now:
 * its poster saw the lease taken and relies on this thread. */
static bool lease_leave(struct p3_nic *n)
{
	struct p3_looks l;
	struct p3_mailbox *mailbox = n->mailbox; /* still readable here */
	p3_looks_gather(n, &l);
	bool light = n->light;
	P3_TRACE(given, n);
	if (p3_unlikely(n->generic != NULL))
		p3_lease_give_reserved(&n->lease);
	else
		p3_lease_give(&n->lease);
	p3_fence_light(light); /* LEASE.2, PARK.1, COLD.1, EVFD.1 */
	p3_looks_check(n, &l);
	lease_wake_parked(n, l.posted);
	return p3_mbx_any(mailbox); /* MBX.4 */
}

/* Do as lease_leave() where a wire carries frames.  If a thread of this node sleeps,
 * arm the wire's descriptor for that thread: the passes and commands of this hold may
 * have changed the time of the wire's next pass. */
static P3_RARE bool lease_leave_wired(struct p3_nic *n)
{
	p3_wires_flush(n);
	bool due = n->wire_thread && p3_get(n->asleep) != P3_AWAKE &&
		   p3_wire_thread_arm(n); /* PARK.2 */
	bool more = lease_leave(n);
	if (due)
		p3_wire_thread_wake(n);
	return more;
}

P3_PATH
static __attribute__((noinline)) void lease_leave_many(struct p3_nic *n)
{
	while ((n->wired ? lease_leave_wired(n) : lease_leave(n)) &&
		p3_lease_enter(n, P3_LEASE_HOST))
		;
}

P3_RARE void p3_lease_left(struct p3_nic *n, p3_a32 *asleep, const p3_a32 *cold,
	struct p3_doorbell *bell, uint32_t posted, struct p3_mailbox *mailbox)
{
	p3_looks_tell(n, (struct p3_look){asleep, cold, bell});
	lease_wake_parked(n, posted);
	if (p3_mbx_any(mailbox) && p3_lease_enter(n, P3_LEASE_HOST)) /* MBX.4 */
		lease_leave_many(n);
}

/* Do as lease_leave_many(), and without arrays if this hold has written to one peer at
 * most. */
P3_PATH
void p3_lease_leave(struct p3_nic *n)
{
	const uint32_t odd = P3_ODD_WIRED | P3_ODD_TRACED | P3_ODD_GENERIC;
	if (p3_unlikely(n->ntouched > 1 || n->odd & odd)) {
		lease_leave_many(n);
		return;
	}
	struct p3_look l = {.asleep = &n->never_asleep, .cold = &n->never_cold};
	if (p3_likely(n->ntouched != 0))
		l = p3_looks_copy(n, n->touched[0]);
	uint32_t posted = n->posted;
	n->ntouched = 0;
	n->unlooked = 0;
	n->posted = 0;
	p3_lease_give_to(n, l.asleep, l.cold, l.bell, posted);
}
