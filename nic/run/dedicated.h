/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dedicated - passes of a NIC thread that has a CPU to itself
 *
 * Only the NIC thread calls these functions, without the lease.  The state is struct
 * p3_dedicated, which lies on that thread's stack.
 */
#ifndef P3_NIC_RUN_DEDICATED_H
#define P3_NIC_RUN_DEDICATED_H

#include "nic/state.h"

struct p3_dedicated {
	bool resting;          /* the thread ticks, since no message has come for long
				* (with PTL3_MODE=auto only) */
	uint64_t shared_until; /* the CPU is left to other threads until this time; 0: it
				* is not */
	uint64_t shared_ns;    /* length of the last such period */
	uint64_t began_ns;     /* begin of dedication */
	uint64_t looked_ns;    /* the last readings of the clocks: real time, */
	uint64_t ran_ns;       /* and CPU time of the thread */
};

/* Return true if the thread shall be dedicated now. */
bool p3_dedicated_is(struct p3_nic *n, struct p3_dedicated *d);
/* Hold the lease and run passes while no other thread needs the CPU. */
void p3_dedicated_run(struct p3_nic *n, struct p3_dedicated *d);

#endif
