/* SPDX-License-Identifier: BSD-3-Clause */
/* The wires of a node: their choice, start, passes and stop; and the wire's thread. */
#define P3_LOG_AREA P3_AREA_NIC
#include "nic/run/run.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/worker.h"

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
enum wire_thread_watched { P3_WATCHED_END, P3_WATCHED_WIRE };

struct p3_wire_thread {
	struct p3_nic *nic;
	pthread_t thread;
	int ep;
	int end;               /* eventfd that ends the thread */
	int wire[P3_WIRE_IDS]; /* the descriptors of n->wires */
	p3_a32 stop;
	p3_a32 lost; /* the program has closed one of these descriptors */
};

/* ---- descriptors of the thread ---- */

/* Return 0 or -errno, and keep errno: the caller may be in a call of the program. */
static int wire_thread_control(
	const struct p3_wire_thread *r, int op, uint32_t what, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.u32 = what};
	int saved = errno;
	int fd = what == P3_WATCHED_END ? r->end : r->wire[what - P3_WATCHED_WIRE];
	int rc = epoll_ctl(r->ep, op, fd, &ev);
	rc = rc ? -errno : 0;
	errno = saved;
	return rc;
}

/*
 * Return true if ep and end still name the files of this thread, and those of the wires
 * the files that epoll watches: epoll knows its descriptors by number and file.  No call
 * changes the set, which a forked child shares with its parent.
 */
static bool wire_thread_holds(const struct p3_wire_thread *r)
{
	if (wire_thread_control(r, EPOLL_CTL_MOD, P3_WATCHED_END, EPOLLIN))
		return false;
	for (uint32_t i = 0; i < r->nic->nwires; i++) {
		int rc = wire_thread_control(r, EPOLL_CTL_ADD, P3_WATCHED_WIRE + i, 0);
		if (!rc) /* another file, which is watched now */
			(void)wire_thread_control(
				r, EPOLL_CTL_DEL, P3_WATCHED_WIRE + i, 0);
		if (rc != -EEXIST)
			return false;
	}
	return true;
}

bool p3_wire_thread_owns(const struct p3_nic *n)
{
	return n->wire_thread && wire_thread_holds(n->wire_thread);
}

static int wire_thread_open(struct p3_nic *n, struct p3_wire_thread *r)
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
	int rc = wire_thread_control(r, EPOLL_CTL_ADD, P3_WATCHED_END, EPOLLIN);
	for (uint32_t i = 0; !rc && i < n->nwires; i++)
		rc = wire_thread_control(
			r, EPOLL_CTL_ADD, P3_WATCHED_WIRE + i, EPOLLONESHOT);
	return rc;
}

static void wire_thread_close(struct p3_wire_thread *r)
{
	if (r->end >= 0)
		p3_fd_close(r->end);
	if (r->ep >= 0)
		p3_fd_close(r->ep);
}

/* Use the descriptors no more, and print one line.  Return true the first time. */
static bool wire_thread_lose(struct p3_wire_thread *r)
{
	if (p3_exchange32(&r->lost, 1))
		return false;
	p3_warn("the program has closed a descriptor that shows when the wire has work: "
		"threads that sleep look at the wire every 0.1 to 10 ms instead; close "
		"only descriptors that the program has opened");
	return true;
}

/* ---- the thread ---- */

void p3_wire_thread_wake(struct p3_nic *n)
{
	p3_add32(&n->rung, 1);
	(void)p3_wake_sleeper(n->asleep);
}

/* Wake this node's sleeping thread, as a peer does that has published a message. */
static void wire_thread_ring(struct p3_nic *n)
{
	if (p3_get(n->asleep) == P3_AWAKE)
		return;
	p3_count(&n->count[P3_C_WIRE_RINGS], 1);
	p3_wire_thread_wake(n);
}

/* Sleep until a descriptor is readable.  Return false if the thread shall end, or has
 * lost its descriptors. */
static bool wire_thread_wait_and_ring(struct p3_wire_thread *r)
{
	struct epoll_event ev[1 + P3_WIRE_IDS];
	int n = epoll_wait(r->ep, ev, 1 + P3_WIRE_IDS, P3_LOOK_MS); /* PARK.2 */
	if (p3_get(&r->stop))
		return false;
	if (!wire_thread_holds(r))
		(void)wire_thread_lose(r);
	for (int i = 0; i < n && !p3_get(&r->lost); i++)
		if (ev[i].data.u32 >= P3_WATCHED_WIRE)
			wire_thread_ring(r->nic);
	return !p3_get(&r->lost);
}

static void *wire_thread_main(void *arg)
{
	struct p3_wire_thread *r = arg;
	struct p3_nic *n = r->nic;
	char name[16];
	snprintf(name, sizeof name, "p3wire.%u", n->conf.nid);
	if (n->conf.nic_cpus)
		(void)p3_cpuset_apply(n->conf.nic_cpus); /* the NIC thread warns */
	(void)prctl(PR_SET_NAME, name);
	while (wire_thread_wait_and_ring(r))
		;
	wire_thread_ring(n); /* sleepers look at the wire themselves from now on */
	while (!p3_get(&r->stop))
		(void)p3_futex_wait(&r->stop, 0, P3_SAFETY_MOST, ~0u, false);
	return NULL;
}

static void wire_thread_warn_none(int why)
{
	p3_warn("no thread waits for the wire (%s): threads that sleep look at the wire "
		"every 0.1 to 10 ms instead; check the limits of open files and of "
		"threads (ulimit -n, -u; after mlockall also -l)",
		strerror(why));
}

/* Start the thread if passes poll wires, and all of these can arm their descriptors. */
static void wire_thread_start(struct p3_nic *n)
{
	if (!n->nwires)
		return;
	struct p3_wire_thread *r = calloc(1, sizeof *r);
	if (!r) {
		wire_thread_warn_none(ENOMEM);
		return;
	}
	*r = (struct p3_wire_thread){.nic = n, .ep = -1, .end = -1};
	int rc = wire_thread_open(n, r);
	rc = rc ? rc : p3_worker_start(&r->thread, wire_thread_main, r);
	if (!rc) {
		n->wire_thread = r;
		return;
	}
	wire_thread_warn_none(-rc);
	wire_thread_close(r);
	free(r);
}

void p3_wire_thread_forget(struct p3_nic *n)
{
	struct p3_wire_thread *r = n->wire_thread;
	if (!r || !wire_thread_holds(r))
		return;
	for (uint32_t i = 0; i < n->nwires; i++)
		p3_fd_close(r->wire[i]);
	wire_thread_close(r);
}

bool p3_wire_thread_arm(struct p3_nic *n)
{
	struct p3_wire_thread *r = n->wire_thread;
	int saved = errno, rc = p3_get(&r->lost) ? -EBADF : 0;
	/* Make each wire show when it needs a pass, and epoll report that once. */
	for (uint32_t i = 0; !rc && i < n->nwires; i++) {
		int fd = n->wires[i]->arm(n);
		if (fd < 0)
			rc = fd;
		else if (fd != r->wire[i])
			rc = -EBADF;
		else /* PARK.2 */
			rc = wire_thread_control(r, EPOLL_CTL_MOD, P3_WATCHED_WIRE + i,
				EPOLLIN | EPOLLONESHOT);
	}
	errno = saved;
	return rc == -EAGAIN || (rc && wire_thread_lose(r));
}

bool p3_wire_thread_serves(const struct p3_nic *n)
{
	return n->wire_thread && !p3_get(&n->wire_thread->lost);
}

bool p3_wire_thread_misses(struct p3_nic *n)
{
	if (p3_likely(!n->nwires) || p3_wire_thread_serves(n) || !p3_wires_wait(n))
		return false;
	p3_count(&n->count[P3_C_WIRE_NAPS], 1);
	return true;
}

/* ---- the wires ---- */

/* Return the wire to a node.  Both nodes of a pair choose alike, as their settings are
 * alike (check_wire in nic/wire/shm.c). */
static const struct p3_wire *wires_choose_for(const struct p3_nic *n, uint32_t node)
{
	const struct p3_faults *f = n->conf.faults;
	const struct p3_far_conf *far = n->conf.far;
	if (far && far->host[node] != far->host[n->conf.node])
		return &p3_wire_far;
	if (!f || (f->near && node / f->near == n->conf.node / f->near))
		return &p3_wire_shm;
	return &p3_wire_faulty;
}

/* Add a wire to those that passes poll, if it needs that and is not one of them yet. */
static void wires_add(struct p3_nic *n, const struct p3_wire *wire)
{
	for (uint32_t i = 0; i < n->nwires; i++)
		if (n->wires[i] == wire)
			return;
	if (wire->poll)
		n->wires[n->nwires++] = wire;
}

static void wires_stop(struct p3_nic *n, uint32_t count)
{
	while (count)
		n->wires[--count]->stop(n);
}

int p3_wires_start(struct p3_nic *n)
{
	int rc = 0;
	uint32_t started = 0;
	const struct p3_faults *f = n->conf.faults;
	((struct p3_seg_header *)n->published.base)->wire =
		f ? P3_WIRE_FAULTY | f->near << 8 : 0;
	n->nwires = 0;
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		n->peer[i].wire = wires_choose_for(n, i);
		wires_add(n, n->peer[i].wire);
	}
	while (!rc && started < n->nwires) {
		rc = n->wires[started]->start(n);
		started += !rc;
	}
	n->conf.faults = NULL; /* the caller's memory */
	if (rc)
		wires_stop(n, started);
	else
		wire_thread_start(n);
	return rc;
}

void p3_wires_stop(struct p3_nic *n)
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
	struct p3_wire_thread *r = n->wire_thread;
	if (r) {
		p3_set(&r->stop, 1);
		p3_futex_wake(&r->stop, ~0u, false);
		if (wire_thread_holds(r))
			p3_fd_signal(r->end);
		pthread_join(r->thread, NULL);
	}
	wires_stop(n, n->nwires);
	if (!r)
		return;
	/* Close the thread's own descriptors, after the wires have closed theirs. */
	if (!wire_thread_control(r, EPOLL_CTL_MOD, P3_WATCHED_END, EPOLLIN))
		wire_thread_close(r);
	n->wire_thread = NULL;
	free(r);
}

/* Passes run in the program's threads, and libfabric's calls change errno. */
void p3_wires_poll(struct p3_nic *n)
{
	int saved = errno;
	for (uint32_t i = 0; i < n->nwires; i++)
		n->wires[i]->poll(n);
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
