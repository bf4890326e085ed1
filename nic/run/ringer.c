/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire's thread. */
#define P3_LOG_AREA P3_AREA_NIC
#include "nic/run/ringer.h"
#include "nic/run/wake.h"
#include "nic/run/wires.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#define P3_LOOK_MS 1000 /* longest time until closed descriptors are noticed */

/* The descriptors that the thread waits for; those of the wires come last, in the order
 * of n->wires. */
enum watched { P3_RINGER_END, P3_RINGER_WIRE };

struct p3_ringer {
	struct p3_nic *nic;
	pthread_t thread;
	int ep;
	int end;               /* eventfd that ends the thread */
	int wire[P3_WIRE_IDS]; /* the descriptors of n->wires */
	p3_a32 stop;
	p3_a32 lost; /* the program has closed one of these descriptors */
};

/* ---- descriptors ---- */

/* Return 0 or -errno, and keep errno: the caller may be in a call of the program. */
static int control(const struct p3_ringer *r, int op, uint32_t what, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.u32 = what};
	int saved = errno;
	int fd = what == P3_RINGER_END ? r->end : r->wire[what - P3_RINGER_WIRE];
	int rc = epoll_ctl(r->ep, op, fd, &ev);
	rc = rc ? -errno : 0;
	errno = saved;
	return rc;
}

/* Return true if epoll watches the file of a wire's descriptor. */
static bool watches(const struct p3_ringer *r, uint32_t i)
{
	int rc = control(r, EPOLL_CTL_ADD, P3_RINGER_WIRE + i, 0);
	if (!rc) /* another file, which is watched now */
		(void)control(r, EPOLL_CTL_DEL, P3_RINGER_WIRE + i, 0);
	return rc == -EEXIST;
}

/*
 * Return true if ep and end still name the files of this thread, and those of the wires
 * the files that epoll watches: epoll knows its descriptors by number and file.  No call
 * changes the set, which a forked child shares with its parent.
 */
static bool owns(const struct p3_ringer *r)
{
	if (control(r, EPOLL_CTL_MOD, P3_RINGER_END, EPOLLIN))
		return false;
	for (uint32_t i = 0; i < r->nic->nwires; i++)
		if (!watches(r, i))
			return false;
	return true;
}

bool p3_ringer_owns(const struct p3_nic *n)
{
	return n->ringer && owns(n->ringer);
}

static int open_ends(struct p3_nic *n, struct p3_ringer *r)
{
	for (uint32_t i = 0; i < n->nwires; i++) {
		r->wire[i] = n->wires[i]->news(n);
		if (r->wire[i] < 0)
			return r->wire[i];
	}
	r->ep = p3_fd_high(epoll_create1(EPOLL_CLOEXEC));
	r->end = r->ep < 0 ? -1 : p3_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (r->end < 0)
		return -errno;
	int rc = control(r, EPOLL_CTL_ADD, P3_RINGER_END, EPOLLIN);
	for (uint32_t i = 0; !rc && i < n->nwires; i++)
		rc = control(r, EPOLL_CTL_ADD, P3_RINGER_WIRE + i, EPOLLONESHOT);
	return rc;
}

static void close_ends(struct p3_ringer *r)
{
	if (r->end >= 0)
		p3_fd_close(r->end);
	if (r->ep >= 0)
		p3_fd_close(r->ep);
}

/* Use the descriptors no more, and print one line.  Return true the first time. */
static bool lose(struct p3_ringer *r)
{
	if (p3_exchange32(&r->lost, 1))
		return false;
	p3_warn("the program has closed a descriptor that shows when the wire has work: "
		"threads that sleep look at the wire every 0.1 to 10 ms instead; close "
		"only descriptors that the program has opened");
	return true;
}

/* ---- the thread ---- */

void p3_ringer_wake(struct p3_nic *n)
{
	p3_add32(&n->rung, 1);
	(void)p3_wake_sleeper(n->asleep);
}

static void set_up_thread(const struct p3_nic *n)
{
	char name[16];
	snprintf(name, sizeof name, "p3wire.%u", n->conf.nid);
	if (n->conf.nic_cpus)
		(void)p3_cpuset_apply(n->conf.nic_cpus); /* the NIC thread warns */
	(void)prctl(PR_SET_NAME, name);
}

/* Wake this node's sleeping thread, as a peer does that has published a message. */
static void ring(struct p3_nic *n)
{
	if (p3_get(n->asleep) == P3_AWAKE)
		return;
	p3_count(&n->count[P3_C_WIRE_RINGS], 1);
	p3_ringer_wake(n);
}

/* Sleep until a descriptor is readable.  Return false if the thread shall end, or has
 * lost its descriptors. */
static bool wait_and_ring(struct p3_ringer *r)
{
	struct epoll_event ev[1 + P3_WIRE_IDS];
	int n = epoll_wait(r->ep, ev, 1 + P3_WIRE_IDS, P3_LOOK_MS); /* PARK.2 */
	if (p3_get(&r->stop))
		return false;
	if (!owns(r))
		(void)lose(r);
	for (int i = 0; i < n && !p3_get(&r->lost); i++)
		if (ev[i].data.u32 >= P3_RINGER_WIRE)
			ring(r->nic);
	return !p3_get(&r->lost);
}

static void *ringer_main(void *arg)
{
	struct p3_ringer *r = arg;
	set_up_thread(r->nic);
	while (wait_and_ring(r))
		;
	ring(r->nic); /* sleepers look at the wire themselves from now on */
	while (!p3_get(&r->stop))
		(void)p3_futex_wait(&r->stop, 0, P3_SAFETY_MOST, ~0u, false);
	return NULL;
}

static void warn_none(int why)
{
	p3_warn("no thread waits for the wire (%s): threads that sleep look at the wire "
		"every 0.1 to 10 ms instead; check the limits of open files and of "
		"threads (ulimit -n, -u; after mlockall also -l)",
		strerror(why));
}

void p3_ringer_start(struct p3_nic *n)
{
	if (!n->nwires)
		return;
	struct p3_ringer *r = calloc(1, sizeof *r);
	if (!r) {
		warn_none(ENOMEM);
		return;
	}
	*r = (struct p3_ringer){.nic = n, .ep = -1, .end = -1};
	int rc = open_ends(n, r);
	rc = rc ? rc : p3_worker_start(&r->thread, ringer_main, r);
	if (!rc) {
		n->ringer = r;
		return;
	}
	warn_none(-rc);
	close_ends(r);
	free(r);
}

void p3_ringer_stop(struct p3_nic *n)
{
	struct p3_ringer *r = n->ringer;
	if (!r)
		return;
	p3_set(&r->stop, 1);
	p3_futex_wake(&r->stop, ~0u, false);
	if (owns(r))
		p3_fd_signal(r->end);
	pthread_join(r->thread, NULL);
}

void p3_ringer_drop(struct p3_nic *n)
{
	struct p3_ringer *r = n->ringer;
	if (!r)
		return;
	if (!control(r, EPOLL_CTL_MOD, P3_RINGER_END, EPOLLIN))
		close_ends(r);
	n->ringer = NULL;
	free(r);
}

void p3_ringer_forget(struct p3_nic *n)
{
	struct p3_ringer *r = n->ringer;
	if (!r || !owns(r))
		return;
	for (uint32_t i = 0; i < n->nwires; i++)
		p3_fd_close(r->wire[i]);
	close_ends(r);
}

/* ---- the lease holder ---- */

/* Make a wire show when it needs a pass, and epoll report that once.  Return 0, or
 * -errno as arm does. */
static int arm_wire(struct p3_ringer *r, uint32_t i)
{
	int fd = r->nic->wires[i]->arm(r->nic);
	if (fd < 0)
		return fd;
	if (fd != r->wire[i])
		return -EBADF;
	return control(r, EPOLL_CTL_MOD, P3_RINGER_WIRE + i, EPOLLIN | EPOLLONESHOT);
}

bool p3_ringer_arm(struct p3_nic *n)
{
	struct p3_ringer *r = n->ringer;
	int saved = errno, rc = p3_get(&r->lost) ? -EBADF : 0;
	for (uint32_t i = 0; !rc && i < n->nwires; i++)
		rc = arm_wire(r, i); /* PARK.2 */
	errno = saved;
	return rc == -EAGAIN || (rc && lose(r));
}

bool p3_ringer_serves(const struct p3_nic *n)
{
	return n->ringer && !p3_get(&n->ringer->lost);
}

bool p3_ringer_misses(struct p3_nic *n)
{
	if (p3_likely(!n->nwires) || p3_ringer_serves(n) || !p3_wires_wait(n))
		return false;
	p3_count(&n->count[P3_C_WIRE_NAPS], 1);
	return true;
}
