/* SPDX-License-Identifier: BSD-3-Clause */
/* Dispatch of commands, and the commands of the mailbox. */
#include "nic/run/commands.h"
#include "nic/cci/firmware.h"
#include "nic/generic/handle.h"
#include "nic/obj/eq.h"
#include "nic/obj/md.h"
#include "nic/obj/me.h"
#include "nic/obj/ni.h"
#include "nic/proto/close.h"
#include "nic/proto/ids.h"
#include "nic/proto/hold.h"
#include "nic/proto/join.h"
#include "nic/proto/lose.h"
#include "nic/proto/peer.h"
#include "nic/proto/tx.h"
#include "nic/report/dump.h"
#include "nic/report/trace.h"
#include "nic/run/odd.h"
#include "shm/fault.h"

static void append_hungry(struct p3_nic *n, uint32_t slot)
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
static void execute_detached(struct p3_nic *n, uint32_t slot)
{
	int rc = -1;
	struct p3_cmd *c = p3_mbx_cmd(p3_mbx_slot(n->mailbox, slot));
	P3_TRACE(execute, n, c);
	if (p3_get(&n->hungry) == P3_MBX_NONE)
		rc = p3_command_execute(n, c);
	if (rc < 0) {
		append_hungry(n, slot);
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
		execute_detached(n, slot);
		slot = next;
	}
}

static int grow(struct p3_nic *n, struct p3_cmd *c)
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

/* Commands that remove, change or read the objects, queues, counters and peers that
 * entries of the generic event queue are about: the host handles all entries before them.
 * PtlMEMDPost and PtlMDUpdate look whether a queue has an event. */
#define P3_BEHIND_ENTRIES                                                                \
	(1u << P3_OP_NI_CLOSE | 1u << P3_OP_ME_ATTACH | 1u << P3_OP_ME_UNLINK |          \
		1u << P3_OP_MD_UNLINK | 1u << P3_OP_MD_UPDATE | 1u << P3_OP_EQ_FREE |    \
		1u << P3_OP_NI_STATUS | 1u << P3_OP_PEER_DOWN)
_Static_assert(P3_OPS <= 32, "a word has a bit for each command");

typedef int command(struct p3_nic *n, struct p3_cmd *c);

static command *const commands[P3_OPS] = {
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
	[P3_OP_EQ_RECLAIM] = p3_eq_reclaim,
	[P3_OP_PUT] = p3_tx_put,
	[P3_OP_GET] = p3_tx_get,
	[P3_OP_GETPUT] = p3_tx_getput,
	[P3_OP_DUMP] = p3_dump_write,
	[P3_OP_GROW] = grow,
	[P3_OP_PEER_UP] = p3_join_peer,
	[P3_OP_PEER_PIDS] = p3_join_pids,
	[P3_OP_PEER_DOWN] = p3_lose_peer,
	[P3_OP_PEER_TOLD] = p3_join_told,
	[P3_OP_PEER_OVER] = p3_lose_rank,
	[P3_OP_HELD] = p3_hold_expire,
	[P3_OP_LIST] = p3_ids_list,
	[P3_OP_CCI] = p3_cci_command,
};

P3_PATH
int p3_command_execute(struct p3_nic *n, struct p3_cmd *c)
{
	if (c->op >= P3_OPS || !commands[c->op])
		return PTL_FAIL;
	if (p3_unlikely(n->staging) && (P3_BEHIND_ENTRIES >> c->op & 1))
		p3_generic_handle(n);
	return commands[c->op](n, c);
}

static void finish(struct p3_nic *n, struct p3_mbx_slot *s)
{
	struct p3_cmd *c = p3_mbx_cmd(s);
	P3_TRACE(execute, n, c);
	int rc = p3_command_execute(n, c);
	FAULT_POINT("mailbox.executed");
	p3_mbx_done(s, rc);
}

void p3_command_take_posted(struct p3_nic *n)
{
	uint32_t slot = p3_mbx_take_all(n->mailbox);
	while (slot != P3_MBX_NONE) {
		struct p3_mbx_slot *s = p3_mbx_slot(n->mailbox, slot);
		uint32_t here = slot;
		slot = p3_get(&s->next);
		if (s->detached)
			execute_detached(n, here);
		else
			finish(n, s);
		n->worked = true;
		n->posted |= P3_NEWS_RESULT;
	}
}
