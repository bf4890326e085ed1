/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dedicated - passes of a NIC thread that has a CPU to itself
 *
 * Only the NIC thread calls these functions, without the lease.  It owns the state.
 */
#ifndef P3_NIC_RUN_DEDICATED_H
#define P3_NIC_RUN_DEDICATED_H

#include "nic/state.h"

struct p3_dedicated {
	bool resting;          /* dedicated by choice of the library, but no message has
				* come for long */
	uint64_t shared_until; /* another thread needs the CPU until this time; 0: none */
	uint64_t shared_ns;    /* length of that time */
	uint64_t began_ns;     /* begin of dedication */
	uint64_t looked_ns;    /* the last reading of the clocks: real time, and the
				* thread's own */
	uint64_t ran_ns;
};

/* Return true if the thread shall be dedicated now. */
bool p3_dedicated_is(struct p3_nic *n, struct p3_dedicated *d);
/* Hold the lease and run passes while no other thread needs the CPU. */
void p3_dedicated_run(struct p3_nic *n, struct p3_dedicated *d);

#endif
