/* SPDX-License-Identifier: BSD-3-Clause */
/* The coin of the straight paths, for builds that throw one. */
#include "shm/straight.h"

#ifdef P3_STRAIGHT_RANDOM

#include <stdint.h>

bool p3_straight(void)
{
	/* Threads start at different places of the sequence, since their copies have
	 * different addresses. */
	static __thread uint64_t state __attribute__((tls_model("initial-exec")));
	if (!state)
		state = (uintptr_t)&state;
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return state >> 63;
}

#endif
