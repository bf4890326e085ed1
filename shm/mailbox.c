/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of the mailbox: allocating, posting and taking slots. */
#include "shm/mailbox.h"
#include "shm/fault.h"

#include <string.h>

void p3_mbx_format(struct p3_mailbox *m)
{
	p3_set(&m->head, P3_MBX_NONE);
	for (uint32_t i = 1; i <= P3_MBX_SLOTS; i++)
		p3_set(&m->slot[i - 1].next, i < P3_MBX_SLOTS ? i + 1 : P3_MBX_NONE);
	p3_set(&m->free, (uint64_t)0xfffffffe << 32 | 1);
}

uint32_t p3_mbx_alloc(struct p3_mailbox *m)
{
	uint64_t old = p3_acquire(&m->free); /* MBX.3 */
	for (;;) {
		uint32_t slot = (uint32_t)old;
		if (slot - 1 >= P3_MBX_SLOTS)
			return P3_MBX_NONE;
		/* The tag makes a swap fail if the list changed: next may be stale. */
		uint32_t next = p3_get(&m->slot[slot - 1].next);
		if (p3_cas64(&m->free, &old, ((old >> 32) + 1) << 32 | next)) {
			FAULT_POINT("mailbox.claimed");
			return slot;
		}
	}
}

void p3_mbx_free(struct p3_mailbox *m, uint32_t slot)
{
	uint64_t old = p3_get(&m->free);
	do
		p3_set(&m->slot[slot - 1].next, (uint32_t)old);
	while (!p3_cas64(&m->free, &old, ((old >> 32) + 1) << 32 | slot)); /* MBX.3 */
}

void p3_mbx_post(
	struct p3_mailbox *m, uint32_t slot, const void *cmd, size_t len, bool detached)
{
	struct p3_mbx_slot *s = p3_mbx_slot(m, slot);
	memcpy(s->cmd, cmd, len);
	s->detached = detached;
	p3_set(&s->state, P3_MBX_POSTED);
	FAULT_POINT("mailbox.filled");
	uint32_t old = p3_get(&m->head);
	do
		p3_set(&s->next, old);
	while (!p3_cas32(&m->head, &old, slot)); /* MBX.1 */
	FAULT_POINT("mailbox.pushed");
}

uint32_t p3_mbx_take_all(struct p3_mailbox *m)
{
	uint32_t slot = p3_exchange32(&m->head, P3_MBX_NONE); /* MBX.1 */
	uint32_t oldest = P3_MBX_NONE;
	FAULT_POINT("mailbox.taken");
	/* Even if the words are damaged, the list has valid, posted slots only, and
	 * none twice. */
	while (slot - 1 < P3_MBX_SLOTS &&
		p3_get(&m->slot[slot - 1].state) == P3_MBX_POSTED) {
		uint32_t next = p3_get(&m->slot[slot - 1].next);
		p3_set(&m->slot[slot - 1].state, P3_MBX_TAKEN);
		p3_set(&m->slot[slot - 1].next, oldest);
		oldest = slot;
		slot = next;
	}
	return oldest;
}
