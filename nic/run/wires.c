/* SPDX-License-Identifier: BSD-3-Clause */
/* The wires of a node: their choice, start, passes and stop. */
#include "nic/run/wires.h"
#include "nic/run/ringer.h"
#include "shm/log.h"

#include <errno.h>

static bool is_far(const struct p3_nic *n, uint32_t node)
{
	const struct p3_far_conf *far = n->conf.far;
	return far && far->host[node] != far->host[n->conf.node];
}

int p3_wires_start(struct p3_nic *n)
{
	n->wired = false;
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		bool far = is_far(n, i);
		n->peer[i].wire = far ? &p3_wire_far : &p3_wire_shm;
		n->wired |= far;
	}
	int rc = n->wired ? p3_wire_far.start(n) : 0;
	if (!rc)
		p3_ringer_start(n);
	return rc;
}

/* Log the number of frames to and from other hosts. */
static void say_far(const struct p3_nic *n)
{
	if (n->conf.far)
		p3_log(P3_LOG_INFO, P3_AREA_NIC,
			"frames of other hosts: %llu out, %llu in, %llu sent again, %llu "
			"failed, %llu of nodes that are not attached",
			(unsigned long long)p3_get(&n->wire_count[P3_W_FAR_OUT]),
			(unsigned long long)p3_get(&n->wire_count[P3_W_FAR_IN]),
			(unsigned long long)p3_get(&n->wire_count[P3_W_RESENT]),
			(unsigned long long)p3_get(&n->wire_count[P3_W_FAR_BROKEN]),
			(unsigned long long)p3_get(&n->wire_count[P3_W_FAR_STRANGERS]));
}

void p3_wires_stop(struct p3_nic *n)
{
	say_far(n);
	p3_ringer_stop(n);
	if (n->wired)
		p3_wire_far.stop(n);
	p3_ringer_drop(n);
}

/* Passes run in the program's threads, and libfabric's calls change errno. */
P3_RARE void p3_wires_poll(struct p3_nic *n)
{
	int saved = errno;
	p3_wire_far.poll(n);
	errno = saved;
}

P3_RARE void p3_wires_flush(struct p3_nic *n)
{
	int saved = errno;
	p3_wire_far.flush(n);
	errno = saved;
}
