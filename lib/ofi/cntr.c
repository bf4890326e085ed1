/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cntr.c - counters
 *
 * A counter counts when an event is handled.  So a read of the counter first handles the
 * events of its queues: those of the endpoints that it is bound to, and its own queue of
 * remote reads and writes.  Events that the latter has lost count, too: the queue tells
 * their number.
 *
 * A thread that waits sleeps in all these queues, and in one more, news.  It takes most
 * events itself; where another thread has counted, or no event has, a message to itself
 * in news wakes it.
 */
#include "prov.h"

#include <stdlib.h>

enum { CNTR_STEPS = 256 }; /* events of a queue that one look handles at most */

static struct ofi_counted *cntr_find(
	const struct ofi_cntr *cntr, const struct ofi_queue *queue)
{
	for (int i = 0; i < cntr->nqueues; i++)
		if (cntr->queues[i].queue == queue)
			return &cntr->queues[i];
	return NULL;
}

int ofi_cntr_watch(struct ofi_cntr *cntr, struct ofi_queue *queue)
{
	struct ofi_counted *known = cntr_find(cntr, queue);
	if (known) {
		known->reasons++;
		return 0;
	}
	void *queues =
		realloc(cntr->queues, (size_t)(cntr->nqueues + 1) * sizeof *cntr->queues);
	if (!queues)
		return -FI_ENOMEM;
	cntr->queues = queues;
	cntr->queues[cntr->nqueues++] = (struct ofi_counted){queue, 1};
	ofi_queue_wake(&cntr->news); /* threads that wait do not know this queue yet */
	return 0;
}

void ofi_cntr_unwatch(struct ofi_cntr *cntr, struct ofi_queue *queue)
{
	struct ofi_counted *known = cntr_find(cntr, queue);
	if (known && !--known->reasons)
		*known = cntr->queues[--cntr->nqueues];
}

/* Handle events with the domain entered. */
static void cntr_look(struct ofi_cntr *cntr)
{
	for (int i = 0; i < cntr->nqueues; i++)
		for (int n = 0; n < CNTR_STEPS && ofi_queue_step(cntr->queues[i].queue);
			n++)
			;
	if (cntr->remote.domain) {
		for (int n = 0; n < CNTR_STEPS && ofi_queue_step(&cntr->remote); n++)
			;
		cntr->value += cntr->remote.lost;
		cntr->remote.lost = 0;
		ofi_cntr_wake(cntr);
		for (int n = 0; cntr->domain->data && n < CNTR_STEPS; n++)
			if (!ofi_queue_step(cntr->domain->data))
				break;
	}
	ofi_progress(cntr->domain, false);
}

uint64_t ofi_cntr_counted(struct ofi_cntr *cntr)
{
	cntr_look(cntr);
	return cntr->value + cntr->errors - cntr->given;
}

static uint64_t cntr_get(struct fid_cntr *fid, bool errors)
{
	struct ofi_cntr *cntr = container_of(fid, struct ofi_cntr, fid);
	if (ofi_enter(cntr->domain))
		return 0;
	cntr_look(cntr);
	uint64_t value = errors ? cntr->errors : cntr->value;
	ofi_leave(cntr->domain);
	return value;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	return cntr_get(fid, false);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	return cntr_get(fid, true);
}

static bool cntr_is_over(const struct ofi_cntr *cntr, const struct ofi_waiter *waiter)
{
	return cntr->value >= waiter->threshold || cntr->errors != waiter->errors;
}

/* A thread that goes on to wait may take the message: it calls this again. */
void ofi_cntr_wake(struct ofi_cntr *cntr)
{
	struct ofi_waiter *waiter;
	LIST_FOREACH(waiter, &cntr->waiters, next)
	if (cntr_is_over(cntr, waiter)) {
		ofi_queue_wake(&cntr->news);
		return;
	}
}

/* Change one of the two numbers. */
static int cntr_change(struct fid_cntr *fid, bool errors, bool adds, uint64_t by)
{
	struct ofi_cntr *cntr = container_of(fid, struct ofi_cntr, fid);
	uint64_t *at = errors ? &cntr->errors : &cntr->value;
	OFI_ENTER(cntr->domain);
	cntr->given += by - (adds ? 0 : *at);
	*at = by + (adds ? *at : 0);
	ofi_cntr_wake(cntr);
	ofi_leave(cntr->domain);
	return 0;
}

#define CNTR_CHANGE(name, errors, adds)                                                  \
	static int name(struct fid_cntr *fid, uint64_t value)                            \
	{                                                                                \
		return cntr_change(fid, errors, adds, value);                            \
	}

CNTR_CHANGE(cntr_add, false, true)
CNTR_CHANGE(cntr_set, false, false)
CNTR_CHANGE(cntr_adderr, true, true)
CNTR_CHANGE(cntr_seterr, true, false)

/* Sleep until an event, or for some time, with the domain entered. */
static void cntr_sleep(struct ofi_cntr *cntr, int timeout)
{
	struct ofi_queue *queues[OFI_SLEEPS] = {&cntr->news};
	int n = 1;
	for (int i = 0; i < cntr->nqueues; i++)
		queues[n++] = cntr->queues[i].queue;
	if (cntr->remote.domain)
		queues[n++] = &cntr->remote;
	if (cntr->remote.domain && cntr->domain->data)
		queues[n++] = cntr->domain->data;
	(void)ofi_sleep(cntr->domain, queues, n, timeout);
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct ofi_cntr *cntr = container_of(fid, struct ofi_cntr, fid);
	uint64_t end = ofi_now() + (uint64_t)timeout;
	int rc;
	OFI_ENTER(cntr->domain);
	struct ofi_waiter waiter = {.threshold = threshold, .errors = cntr->errors};
	LIST_INSERT_HEAD(&cntr->waiters, &waiter, next);
	for (;;) {
		cntr_look(cntr);
		uint64_t now = ofi_now();
		if (cntr_is_over(cntr, &waiter)) {
			rc = cntr->value >= threshold ? 0 : -FI_EAVAIL;
			break;
		}
		if (timeout >= 0 && now >= end) {
			rc = -FI_ETIMEDOUT;
			break;
		}
		ofi_cntr_wake(cntr);
		cntr_sleep(cntr, timeout < 0 ? -1 : (int)(end - now));
	}
	LIST_REMOVE(&waiter, next);
	ofi_cntr_wake(cntr);
	ofi_leave(cntr->domain);
	return rc;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct ofi_cntr *cntr = container_of(fid, struct ofi_cntr, fid.fid);
	return ofi_wait_control(cntr->wait, -1, command, arg);
}

static int cntr_close(struct fid *fid)
{
	struct ofi_cntr *cntr = container_of(fid, struct ofi_cntr, fid.fid);
	OFI_ENTER(cntr->domain);
	bool held = ofi_is_held(&cntr->refs) || !LIST_EMPTY(&cntr->waiters);
	if (!held) {
		ofi_queue_close(&cntr->remote);
		ofi_queue_close(&cntr->news);
	}
	ofi_leave(cntr->domain);
	if (held)
		return -FI_EBUSY;
	ofi_let_go(&cntr->domain->refs);
	free(cntr->queues);
	free(cntr);
	return 0;
}

static struct fi_ops cntr_fid_ops = OFI_FID_OPS(cntr_close, ofi_no_bind, cntr_control);
static struct fi_ops_cntr cntr_ops = {
	.size = sizeof cntr_ops,
	.read = cntr_read,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.readerr = cntr_readerr,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

int ofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
	struct fid_cntr **cntr, void *context)
{
	if (!cntr || (attr && attr->events != FI_CNTR_EVENTS_COMP))
		return -FI_EINVAL;
	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	if (attr && !ofi_wait_is_known(attr->wait_obj, false))
		return -FI_ENOSYS;
	struct ofi_cntr *made = calloc(1, sizeof *made);
	if (!made)
		return -FI_ENOMEM;
	made->domain = container_of(domain, struct ofi_domain, fid);
	int rc = ofi_queue_open(&made->news, made->domain, OFI_NEWS);
	if (rc) {
		free(made);
		return rc;
	}
	LIST_INIT(&made->waiters);
	made->fid.fid = (struct fid){FI_CLASS_CNTR, context, &cntr_fid_ops};
	made->fid.ops = &cntr_ops;
	made->wait = attr ? attr->wait_obj : FI_WAIT_UNSPEC;
	ofi_hold(&made->domain->refs);
	*cntr = &made->fid;
	return 0;
}
