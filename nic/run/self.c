/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the calling thread. */
#include "nic/run/self.h"

__thread struct p3_self p3_self = {.number = P3_SELF_NONE};

uint32_t p3_self_new_number(void)
{
	static p3_a32 last;
	p3_self.number = p3_add32(&last, 1) + 1;
	return p3_self.number;
}
