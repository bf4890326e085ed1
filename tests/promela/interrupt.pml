/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interrupt of nic/generic/interrupt.c: the firmware writes entries of the generic
 * event queue, and wakes the host's thread if it sleeps.
 *
 * Checked: each entry is handled; the host's thread does not sleep while there is one.
 *
 * Bounds: ENTRIES entries, one interrupt for each; the futex compares the word's last
 * value.
 */
#ifndef ENTRIES
#define ENTRIES 3
#endif

#define IRQ_1_p3_interrupt_raise 1
#define IRQ_1_interrupt_sleep_until_raised 2

#define PROCS  2
#define STAGED 0
#define ASLEEP 1
#define WORDS  2
#define DATA   0
#include "weak.inc"

inline p3_interrupt_raise()
{
	p3_fence(IRQ_1_p3_interrupt_raise);
	p3_get(ASLEEP, x);
	if
	:: x -> p3_exchange(ASLEEP, 0, x, 0, 0)
	:: else
	fi
}

active proctype firmware()
{
	byte x, number;
	do
	:: number < ENTRIES ->
		number++;
		p3_release(STAGED, number, ALWAYS);
		p3_interrupt_raise()
	:: else -> break
	od
}

inline interrupt_sleep_until_raised()
{
	p3_set(ASLEEP, 1);
	p3_fence(IRQ_1_interrupt_sleep_until_raised);
	p3_acquire(STAGED, x, ALWAYS);
	if
	:: x > handled
	:: else -> mem[ASLEEP] == 0
	fi;
	p3_set(ASLEEP, 0)
}

active proctype host()
{
	byte x, handled;
	do
	:: handled == ENTRIES -> break
	:: else ->
		interrupt_sleep_until_raised();
		p3_acquire(STAGED, x, ALWAYS);
		if
		:: x > handled -> handled = x
		:: else
		fi
	od
}
