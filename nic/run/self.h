/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * self - the calling thread: its number, and its calls of the library
 *
 * Any thread may call these functions, also in a signal handler and without the lease.
 * The state is the calling thread's own struct p3_self.
 */
#ifndef P3_NIC_RUN_SELF_H
#define P3_NIC_RUN_SELF_H

#include "shm/atomics.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A signal handler that interrupted a call of the library must not wait for a resource
 * of the interrupted call: it leaves its commands behind, and the interrupted call
 * executes them before it returns.
 */
struct p3_self {
	uint32_t inside; /* calls of this thread that are in the library now */
	uint32_t number; /* this thread's number, or P3_SELF_NONE */
	bool left_behind;
};

/* The number of a thread that has none yet: no queue has an owner of this number. */
#define P3_SELF_NONE 0xfffffffeu

extern __thread struct p3_self p3_self __attribute__((tls_model("initial-exec")));

/* Give this thread its number, and return it. */
P3_RARE uint32_t p3_self_new_number(void);

/* Return the number of the calling thread, never 0. */
static inline uint32_t p3_self_number(void)
{
	return p3_likely(p3_self.number != P3_SELF_NONE) ? p3_self.number
							 : p3_self_new_number();
}

#endif
