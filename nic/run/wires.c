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

/* Return the wire to a node.  Both nodes of a pair choose alike, as their settings are
 * alike (check_wire in nic/wire/shm.c). */
static const struct p3_wire *wire_to(const struct p3_nic *n, uint32_t node)
{
	const struct p3_faults *f = n->conf.faults;
	if (is_far(n, node))
		return &p3_wire_far;
	if (!f || (f->near && node / f->near == n->conf.node / f->near))
		return &p3_wire_shm;
	return &p3_wire_faulty;
}

/* Add a wire to those that passes poll, if it needs that and is not one of them yet. */
static void add(struct p3_nic *n, const struct p3_wire *wire)
{
	for (uint32_t i = 0; i < n->nwires; i++)
		if (n->wires[i] == wire)
			return;
	if (wire->poll)
		n->wires[n->nwires++] = wire;
}

static void choose(struct p3_nic *n)
{
	const struct p3_faults *f = n->conf.faults;
	((struct p3_seg_header *)n->published.base)->wire =
		f ? P3_WIRE_FAULTY | f->near << 8 : 0;
	n->nwires = 0;
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		n->peer[i].wire = wire_to(n, i);
		add(n, n->peer[i].wire);
	}
}

static void stop(struct p3_nic *n, uint32_t count)
{
	while (count)
		n->wires[--count]->stop(n);
}

int p3_wires_start(struct p3_nic *n)
{
	int rc = 0;
	uint32_t started = 0;
	choose(n);
	while (!rc && started < n->nwires) {
		rc = n->wires[started]->start(n);
		started += !rc;
	}
	n->conf.faults = NULL; /* the caller's memory */
	if (rc)
		stop(n, started);
	else
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
	stop(n, n->nwires);
	p3_ringer_drop(n);
}

/* Passes run in the program's threads, and libfabric's calls change errno. */
P3_RARE void p3_wires_poll(struct p3_nic *n)
{
	int saved = errno;
	for (uint32_t i = 0; i < n->nwires; i++)
		n->wires[i]->poll(n);
	errno = saved;
}

P3_RARE void p3_wires_flush(struct p3_nic *n)
{
	int saved = errno;
	for (uint32_t i = 0; i < n->nwires; i++)
		n->wires[i]->flush(n);
	errno = saved;
}

void p3_wires_show(struct p3_nic *n)
{
	for (uint32_t i = 0; i < n->nwires; i++)
		if (n->wires[i]->show)
			n->wires[i]->show(n);
}

bool p3_wires_have_settled(const struct p3_nic *n, uint32_t call)
{
	for (uint32_t i = 0; i < n->nwires; i++)
		if ((int32_t)(p3_get(&n->settled[n->wires[i]->id]) - call) < 0)
			return false;
	return true;
}
