/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host segment: mailbox, event rings, pendings.  Host threads allocate from it,
 * never the firmware.  When hugepages run out a second segment of ordinary pages
 * carries on.
 *
 *	0	mailbox
 *	...	arena: rings (kept by size when freed), chunks of pendings
 */
#include "nic/fw.h"
#include "shm/footprint.h"

#include <errno.h>
#include <string.h>

static int create(struct p3_nic *n)
{
	int fell_back;
	int rc = p3_seg_create("p3-host", P3_HOST_LEN, sizeof *n->mailbox, n->conf.huge,
		&n->host_seg[0], &fell_back);
	if (rc)
		return rc;
	n->mailbox = n->host_seg[0].base;
	n->host_used[0] = sizeof *n->mailbox;
	n->host_seg[1].fd = -1;
	p3_mbx_format(n->mailbox);
	rc = p3_seg_seal(&n->host_seg[0]);
	if (rc)
		p3_seg_destroy(&n->host_seg[0]);
	return rc;
}

int p3_host_create(struct p3_nic *n)
{
	pthread_mutex_lock(&n->arena_lock);
	int rc = create(n);
	pthread_mutex_unlock(&n->arena_lock);
	if (!rc)
		p3_seg_bind_here(&n->host_seg[0]);
	return rc;
}

/* Threads that come late, with the handles of this life, find nothing. */
void p3_host_drop(struct p3_nic *n)
{
	pthread_mutex_lock(&n->arena_lock);
	p3_count(&n->life, 1);
	for (int i = 0; i < 2; i++)
		if (n->host_seg[i].fd >= 0)
			p3_seg_destroy(&n->host_seg[i]);
	memset(n->free_rings, 0, sizeof n->free_rings);
	pthread_mutex_unlock(&n->arena_lock);
}

static void *carve(struct p3_nic *n, int which, uint64_t len)
{
	uint64_t off = p3_round_up(n->host_used[which], P3_PAGE);
	if (p3_seg_reserve(&n->host_seg[which], off + len) != 0)
		return NULL;
	n->host_used[which] = off + len;
	return (char *)n->host_seg[which].base + off;
}

static bool have_second(struct p3_nic *n)
{
	int fell_back;
	if (n->host_seg[1].fd >= 0)
		return true;
	if (n->host_seg[0].page == P3_PAGE)
		return false; /* the first had ordinary pages already */
	n->host_used[1] = 0;
	if (p3_seg_create("p3-host", P3_HOST_LEN, 0, P3_HUGE_OFF, &n->host_seg[1],
		    &fell_back) != 0)
		return false;
	if (p3_seg_seal(&n->host_seg[1]) == 0)
		return true;
	p3_seg_destroy(&n->host_seg[1]);
	return false;
}

void *p3_host_alloc(struct p3_nic *n, uint64_t len)
{
	int saved = errno;
	pthread_mutex_lock(&n->arena_lock);
	bool here = n->host_seg[0].fd >= 0;
	void *p = here ? carve(n, 0, len) : NULL;
	if (!p && here && have_second(n))
		p = carve(n, 1, len);
	pthread_mutex_unlock(&n->arena_lock);
	errno = saved;
	return p;
}

struct p3_eq *p3_host_unburied(struct p3_nic *n, struct p3_eq *more)
{
	pthread_mutex_lock(&n->arena_lock);
	struct p3_eq *were = n->unburied, *last = more;
	while (last && last->next_dead)
		last = last->next_dead;
	if (last)
		last->next_dead = were;
	n->unburied = more;
	pthread_mutex_unlock(&n->arena_lock);
	return were;
}

/* Freed rings are linked through their first word. */
static struct p3_evq_ring *kept_ring(struct p3_nic *n, uint32_t records)
{
	struct p3_evq_ring **list = &n->free_rings[p3_log2(records)];
	pthread_mutex_lock(&n->arena_lock);
	struct p3_evq_ring *ring = *list;
	if (ring)
		*list = (struct p3_evq_ring *)(uintptr_t)ring->pad0[0];
	pthread_mutex_unlock(&n->arena_lock);
	return ring;
}

struct p3_evq_ring *p3_host_ring(struct p3_nic *n, uint32_t records)
{
	struct p3_evq_ring *ring = kept_ring(n, records);
	return ring ? ring : p3_host_alloc(n, p3_evq_bytes(records));
}

void p3_host_ring_free(
	struct p3_nic *n, struct p3_evq_ring *ring, uint32_t records, uint64_t life)
{
	struct p3_evq_ring **list = &n->free_rings[p3_log2(records)];
	pthread_mutex_lock(&n->arena_lock);
	if (life == p3_get(&n->life)) {
		ring->pad0[0] = (uintptr_t)*list;
		*list = ring;
	}
	pthread_mutex_unlock(&n->arena_lock);
}
