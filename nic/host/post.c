/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands through the mailbox, for threads that do not get the lease. */
#include "nic/host/post.h"
#include "nic/run/lease.h"

#include <sched.h>
#include <string.h>

static bool slot_is_done(void *slot)
{
	return p3_mbx_is_done(slot);
}

static int post_and_wait(struct p3_nic *n, struct p3_cmd *c)
{
	uint32_t slot;
	while ((slot = p3_mbx_alloc(n->mailbox)) == P3_MBX_NONE)
		sched_yield(); /* all slots are in use; an ended command frees its slot */
	struct p3_mbx_slot *s = p3_mbx_slot(n->mailbox, slot);
	p3_mbx_post(n->mailbox, slot, c, sizeof *c); /* MBX.4: sleep_for_news */
	if (p3_unlikely(n->generic != NULL)) {
		p3_fence(); /* PARK.1: only the NIC thread executes commands */
		if (p3_get(n->asleep) != P3_AWAKE)
			(void)p3_wake_sleeper(n->asleep);
	}
	const uint64_t op = c->op;
	const struct p3_wants wants = {P3_WAIT_COMMAND, 1, &op};
	while (!p3_wait_until(n, UINT64_MAX, &wants, slot_is_done, s))
		sched_yield(); /* the NIC closes: p3_nic_stop executes the command */
	int rc = s->result;
	memcpy(c, p3_mbx_cmd(s), sizeof *c);
	p3_mbx_free(n->mailbox, slot);
	return rc;
}

int p3_post_closed_code(const struct p3_cmd *c)
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
		return PTL_EQ_INVALID;
	default:
		return PTL_NI_INVALID;
	}
}

int p3_post_command(struct p3_nic *n, struct p3_cmd *c)
{
	int rc = p3_post_closed_code(c);
	p3_add32(&n->waiting, 1);
	p3_fence(); /* STOP.1: counted before the look at closing */
	if (!p3_get(&n->closing))
		rc = post_and_wait(n, c);
	p3_add32(&n->waiting, (uint32_t)-1);
	return rc;
}

static int post_detached(struct p3_nic *n, struct p3_cmd *c)
{
	/* Use half of the slots at most: threads that can wait need some, too. */
	bool most = p3_add32(&n->detached, 1) >= P3_MBX_SLOTS / 2;
	uint32_t slot = most ? P3_MBX_NONE : p3_mbx_alloc(n->mailbox);
	if (slot == P3_MBX_NONE) {
		p3_add32(&n->detached, (uint32_t)-1);
		return PTL_NO_SPACE;
	}
	p3_mbx_post_detached(n->mailbox, slot, c, sizeof *c);
	p3_self.left_behind = true;
	/* The interrupted call may be about to sleep. */
	p3_add32(&n->news, 1);
	p3_set(n->asleep, P3_AWAKE);
	p3_futex_wake(n->asleep, ~0u, true);
	return PTL_OK;
}

int p3_post_detached(struct p3_nic *n, struct p3_cmd *c)
{
	int rc = p3_post_closed_code(c);
	p3_add32(&n->waiting, 1);
	p3_fence(); /* STOP.1 */
	if (!p3_get(&n->closing))
		rc = post_detached(n, c);
	p3_add32(&n->waiting, (uint32_t)-1);
	return rc;
}
