/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mailbox of shm/mailbox.h and mailbox.c: host threads that post, and the firmware.
 *
 * Checked: each command is executed once, in the order of a thread's posts; a command
 * and its result are never read before they are written, nor rewritten before they were
 * read; no slot is lost or allocated twice; no thread waits for ever.
 *
 * Bounds: two threads with COMMANDS each, SLOTS for all; a 4-bit tag.  The lease, its
 * fence and parking are in lease.pml: here one process is the firmware.
 */
#define HOSTS 2
#define SLOTS 2
#ifndef COMMANDS
#define COMMANDS 2
#endif

#define MBX_1_p3_mbx_post     1
#define MBX_1_p3_mbx_take_all 2
#define MBX_2_p3_mbx_done     3
#define MBX_2_p3_mbx_is_done  4
#define MBX_3_p3_mbx_free     5
#define MBX_3_p3_mbx_alloc    6

/* Words; slots have numbers from 1.  Data: command and result of each slot. */
#define PROCS       (HOSTS + 1)
#define HEAD        0
#define FREE        1
#define NEXT(slot)  (1 + (slot))
#define STATE(slot) (1 + SLOTS + (slot))
#define WORDS       (2 + 2 * SLOTS)
#define DATA        SLOTS
#define IN(slot)    ((slot) - 1)
#include "weak.inc"

#define NONE   0
#define POSTED 1
#define DONE   2
#define TAKEN  3

/* The free list's word: a tag above the number of the first slot. */
#define FIRST(free)            ((free) & 15)
#define TAGGED(old_free, slot) ((((old_free) >> 4) + 1 & 15) << 4 | (slot))

byte cmd_host[SLOTS], cmd_number[SLOTS], result[SLOTS];
byte executed[HOSTS];
bool formatted;

inline p3_mbx_alloc(slot)
{
	p3_acquire(FREE, old, MBX_3_p3_mbx_alloc);
	do
	:: FIRST(old) == NONE ->
		slot = NONE;
		break
	:: else ->
		slot = FIRST(old);
		p3_get(NEXT(slot), next);
		p3_cas(FREE, old, TAGGED(old, next), got, MBX_3_p3_mbx_alloc, 0);
		if
		:: got == old -> break
		:: else -> old = got
		fi
	od
}

inline p3_mbx_free(slot)
{
	p3_get(FREE, old);
	do
	:: p3_set(NEXT(slot), FIRST(old));
		p3_cas(FREE, old, TAGGED(old, slot), got, 0, MBX_3_p3_mbx_free);
		if
		:: got == old -> break
		:: else -> old = got
		fi
	od
}

inline push(slot)
{
	access(IN(slot));
	cmd_host[IN(slot)] = me;
	cmd_number[IN(slot)] = number;
	p3_set(STATE(slot), POSTED);
	p3_get(HEAD, old);
	do
	:: p3_set(NEXT(slot), old);
		p3_cas(HEAD, old, slot, got, 0, MBX_1_p3_mbx_post);
		if
		:: got == old -> break
		:: else -> old = got
		fi
	od
}

inline p3_mbx_is_done(slot)
{
	do
	:: p3_acquire(STATE(slot), state, MBX_2_p3_mbx_is_done);
		if
		:: state == DONE -> break
		:: else -> mem[STATE(slot)] != state
		fi
	od
}

active [HOSTS] proctype host()
{
	byte slot, old, got, next, number, state;
	formatted;
	do
	:: number < COMMANDS ->
		p3_mbx_alloc(slot);
		assert(slot != NONE);
		push(slot);
		p3_mbx_is_done(slot);
		access(IN(slot));
		assert(result[IN(slot)] == me * COMMANDS + number);
		p3_mbx_free(slot);
		number++
	:: else -> break
	od
}

inline p3_mbx_take_all(oldest)
{
	p3_exchange(HEAD, NONE, slot, MBX_1_p3_mbx_take_all, 0);
	oldest = NONE;
	do
	:: slot != NONE ->
		p3_get(STATE(slot), state);
		assert(state == POSTED);
		p3_get(NEXT(slot), next);
		p3_set(STATE(slot), TAKEN);
		p3_set(NEXT(slot), oldest);
		oldest = slot;
		slot = next
	:: else -> break
	od
}

inline execute(slot)
{
	access(IN(slot));
	assert(cmd_number[IN(slot)] == executed[cmd_host[IN(slot)]]);
	result[IN(slot)] = cmd_host[IN(slot)] * COMMANDS + cmd_number[IN(slot)];
	executed[cmd_host[IN(slot)]]++
}

active proctype firmware()
{
	byte slot, next, state, here, i = 1;
	d_step {
		mem[FREE] = TAGGED(14 << 4, 1);
		prev[FREE] = mem[FREE];
		do
		:: i < SLOTS -> mem[NEXT(i)] = i + 1; prev[NEXT(i)] = i + 1; i++
		:: else -> break
		od;
		formatted = true
	}
end:
	do
	:: mem[HEAD] != NONE ->
		p3_mbx_take_all(here);
		do
		:: here != NONE ->
			p3_get(NEXT(here), next);
			execute(here);
			p3_release(STATE(here), DONE, MBX_2_p3_mbx_done);
			here = next
		:: else -> break
		od
	od
}
