/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mailbox - command list and result words between host threads and firmware
 *
 *	host threads  --post--> [ newest -> .. -> oldest ] --all, reversed--> firmware
 *	host threads  <--result word of the slot--  firmware
 *
 * A push-all/pop-all list of slots linked by index.  One compare-and-swap publishes a
 * command and gives it its place; the firmware takes the whole list with one exchange
 * and reverses it.  So the firmware never finds a place that a poster has claimed and not
 * filled, and a command that is posted after another one is executed after it.
 *
 * A slot carries its command by value; the firmware writes its answer into the slot.
 *
 * A thread that cannot wait (in a signal handler) may post a command detached: the
 * firmware then frees the slot.
 *
 * A slot belongs to the thread that allocated it until that thread posts it, then to
 * the firmware until the result word is done, then to the thread again, which frees it.
 *
 * All functions may run at the same time in any threads, except that only the lease
 * holder calls take_all and done.  The state is struct p3_mailbox, in the host segment.
 *
 * Progress: alloc, post and free are lock-free among the threads of one process;
 * take_all is wait-free.  A thread that is killed dies with the whole process.
 *
 * Memory ordering:
 *	MBX.1	head: post releases -> take_all acquires (the command is written)
 *	MBX.2	done: done releases -> result acquires (the result is written)
 *	MBX.3	free list: free releases -> alloc acquires (the slot is unused)
 *	MBX.4	Dekker: poster = push, heavy fence before it sleeps, look at the lease;
 *		lease holder = store FREE, light fence, look at head.  Without either
 *		fence a command stays in the list and no thread executes it (lease.h)
 */
#ifndef P3_SHM_MAILBOX_H
#define P3_SHM_MAILBOX_H

#include "shm/atomics.h"

#include <stddef.h>

#define P3_MBX_SLOTS 256u
#define P3_MBX_NONE  0u /* slot numbers are index + 1 */

enum { P3_MBX_POSTED = 1, P3_MBX_DONE = 2, P3_MBX_TAKEN = 3 };

#define P3_MBX_CMD 240u /* longest command, bytes */

struct p3_mbx_slot {
	p3_a32 next;  /* slot number of the next older command */
	p3_a32 state; /* P3_MBX_* */
	int32_t result;
	uint32_t detached; /* no thread waits: the firmware frees the slot */
	uint8_t cmd[P3_MBX_CMD];
};

_Static_assert(sizeof(struct p3_mbx_slot) == 256, "slots do not share lines");

struct p3_mailbox {
	_Alignas(P3_LINE) p3_a32 head;
	_Alignas(P3_LINE) p3_a64 free; /* tag << 32 | slot number */
	_Alignas(P3_LINE) struct p3_mbx_slot slot[P3_MBX_SLOTS];
};

void p3_mbx_format(struct p3_mailbox *m);

/* Allocate a slot.  Return its number, or P3_MBX_NONE when all are in use. */
uint32_t p3_mbx_alloc(struct p3_mailbox *m);
void p3_mbx_free(struct p3_mailbox *m, uint32_t slot);
void p3_mbx_post(
	struct p3_mailbox *m, uint32_t slot, const void *cmd, size_t len, bool detached);

static inline struct p3_mbx_slot *p3_mbx_slot(struct p3_mailbox *m, uint32_t slot)
{
	return &m->slot[slot - 1];
}

static inline void *p3_mbx_cmd(struct p3_mbx_slot *s)
{
	return s->cmd;
}

static inline bool p3_mbx_any(struct p3_mailbox *m)
{
	return p3_get(&m->head) != P3_MBX_NONE;
}

/* Take all posted commands.  Return the oldest, linked by next to the newer ones, or
 * P3_MBX_NONE if there are none. */
uint32_t p3_mbx_take_all(struct p3_mailbox *m);

static inline void p3_mbx_done(struct p3_mbx_slot *s, int32_t result)
{
	s->result = result;
	p3_release(&s->state, P3_MBX_DONE); /* MBX.2 */
}

static inline bool p3_mbx_is_done(struct p3_mbx_slot *s)
{
	return p3_acquire(&s->state) == P3_MBX_DONE; /* MBX.2 */
}

#endif
