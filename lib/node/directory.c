/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of ids under RCU. */
#include "lib/node/directory.h"
#include "lib/node/call.h"
#include "shm/atomics.h"
#include "shm/process.h"

#include <stdlib.h>
#include <urcu-bp.h>

static p3_a32 readers_done; /* RCU.2 */
static p3_a32 forked;
static p3_directory_ptr kept; /* tables that cannot be freed, for leak checkers */

/* A variable of liburcu: 0 if liburcu found no membarrier when it was loaded, and so
 * does not use it. */
extern int urcu_bp_has_sys_membarrier __attribute__((weak));

struct p3_directory *p3_directory_new(uint32_t size)
{
	struct p3_directory *d = calloc(1, sizeof *d + size * sizeof d->member[0]);
	if (!d)
		return NULL;
	d->size = size;
	for (uint32_t i = 0; i < size; i++) {
		p3_set(&d->member[i].nid, P3_UNKNOWN);
		for (int k = 0; k < P3_JOB_NIS; k++)
			p3_set(&d->member[i].pid[k], P3_UNKNOWN);
	}
	return d;
}

const struct p3_directory *p3_directory_read(p3_directory_ptr *where)
{
	p3_busy();
	if (!p3_get(&forked)) /* no table is freed there */
		urcu_bp_read_lock();
	return p3_acquire(where); /* RCU.1 */
}

void p3_directory_done(void)
{
	(void)p3_add32(&readers_done, 1); /* RCU.2 */
	if (!p3_get(&forked))
		urcu_bp_read_unlock();
	p3_idle();
}

/* Return true if waiting for readers is safe.  It is not safe in a forked child, nor when
 * the kernel now refuses membarrier but granted it when liburcu was loaded: liburcu would
 * abort. */
static bool may_wait_for_readers(void)
{
	if (p3_get(&forked))
		return false;
	bool needs = !&urcu_bp_has_sys_membarrier || urcu_bp_has_sys_membarrier;
	return !needs || p3_fence_heavy_here();
}

void p3_directory_replace(p3_directory_ptr *where, struct p3_directory *now)
{
	P3_HB_WORD(where);
	P3_HB_BEFORE(where);
	struct p3_directory *old =
		atomic_exchange_explicit(where, now, memory_order_acq_rel); /* RCU.1 */
	P3_HB_AFTER(where);
	if (!old)
		return;
	if (!may_wait_for_readers()) {
		old->next_kept =
			atomic_exchange_explicit(&kept, old, memory_order_acq_rel);
		return;
	}
	urcu_bp_synchronize_rcu();
	(void)p3_add32(&readers_done, 0); /* RCU.2 */
	free(old);
}

void p3_directory_set(p3_directory_ptr *where, uint32_t rank, uint32_t nid,
	const uint32_t pid[P3_JOB_NIS])
{
	/* While an interface is open no thread replaces the table. */
	struct p3_directory *d = p3_acquire(where); /* RCU.1 */
	struct p3_member *who = &d->member[rank];
	p3_set(&who->nid, nid);
	for (int i = 0; i < P3_JOB_NIS; i++)
		if (pid[i] != P3_JOB_NO_PID)
			p3_set(&who->pid[i], pid[i]);
}

/* In a child, liburcu's locks may be those of threads that it does not have. */
static void be_forked(void)
{
	p3_set(&forked, 1);
}

P3_IN_FORKED_CHILD(be_forked)
