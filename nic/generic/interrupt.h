/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * interrupt - the line from the firmware to the host's thread
 *
 * The host's thread stands for the kernel of the machine that the papers describe.  It
 * sleeps, and an interrupt wakes it, by a futex or by a signal to this thread.  With
 * PTL3_INTERRUPT=poll it polls for a while before it sleeps.  No interrupt is raised
 * while it handles entries, since it handles all of them before it sleeps.
 *
 * Any thread may call p3_interrupt_raise(), which does not block.  The state is that part
 * of struct p3_generic.
 */
#ifndef P3_NIC_GENERIC_INTERRUPT_H
#define P3_NIC_GENERIC_INTERRUPT_H

#include "nic/state.h"

/* Wake the host's thread if it sleeps and there is an entry for it. */
void p3_interrupt_raise(struct p3_nic *n);
/* The host's thread: wait for an entry, or for the stop. */
void p3_interrupt_await(struct p3_nic *n);
/* End a wait for good. */
void p3_interrupt_stop(struct p3_generic *g);

#endif
