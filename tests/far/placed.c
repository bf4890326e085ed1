/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of one process on several hosts. */
#include "far/placed.h"

#include "far/loop.h"
#include "far/net.h"
#include "nic/nic.h"
#include "nic/wire/wire.h"
#include "shm/atomics.h"

#include <stdio.h>

#define NODES 64u

static uint32_t hosts[NODES];
static struct p3_far_conf far = {.host = hosts, .ops = &loop_ops};
static bool on_hosts, on_net;
static p3_a64 frames; /* that came from other hosts */

const struct p3_far_conf *placed_on_hosts(void)
{
	uint32_t each = loop_from_environment();
	on_hosts = each != 0;
	on_net = on_hosts && net_from_environment(&far);
	for (uint32_t i = 0; on_hosts && i < NODES; i++)
		hosts[i] = i / each;
	return on_hosts ? &far : NULL;
}

void placed_count(struct p3_nic *nic)
{
	p3_add64(&frames, p3_nic_counter(nic, P3_C_FAR_IN));
}

static bool no_frames(void)
{
	uint64_t n = p3_get(&frames);
	printf("# net: %llu frames came\n", (unsigned long long)n);
	return n == 0;
}

bool placed_missed(void)
{
	return on_hosts && (on_net ? no_frames() : loop_missed());
}
