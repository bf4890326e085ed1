/* SPDX-License-Identifier: BSD-3-Clause */
/* The wires of a node: their choice, start, passes and stop; and the wire's thread. */
#define P3_LOG_AREA P3_AREA_NIC
#include "nic/run/run.h"
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

/* The descriptors that the thread waits for. */
enum wire_thread_watched { P3_WATCHED_END, P3_WATCHED_WIRE };

struct p3_wire_thread {
	struct p3_nic *nic;
	pthread_t thread;
	int ep;
	int end;  /* eventfd that ends the thread */
	int wire; /* the wire's descriptor */
	p3_a32 stop;
	p3_a32 lost; /* the program has closed one of these descriptors */
};

/* ---- descriptors of the thread ---- */

/* Return 0 or -errno, and keep errno: the caller may be in a call of the program. */
static int wire_thread_control(const struct p3_wire_thread *r, int op,
	enum wire_thread_watched what, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.u32 = what};
	int saved = errno;
	int fd = what == P3_WATCHED_END ? r->end : r->wire;
	int rc = epoll_ctl(r->ep, op, fd, &ev);
	rc = rc ? -errno : 0;
	errno = saved;
	return rc;
}

/*
 * Return true if ep and end still name the files of this thread, and wire the file that
 * epoll watches: epoll knows its descriptors by number and file.  No call changes the
 * set, which a forked child shares with its parent.
 */
static bool wire_thread_holds(const struct p3_wire_thread *r)
{
	if (wire_thread_control(r, EPOLL_CTL_MOD, P3_WATCHED_END, EPOLLIN))
		return false;
	int rc = wire_thread_control(r, EPOLL_CTL_ADD, P3_WATCHED_WIRE, 0);
	if (!rc) /* another file, which is watched now */
		(void)wire_thread_control(r, EPOLL_CTL_DEL, P3_WATCHED_WIRE, 0);
	return rc == -EEXIST;
}

bool p3_wire_thread_owns(const struct p3_nic *n)
{
	return n->wire_thread && wire_thread_holds(n->wire_thread);
}

static int wire_thread_open(struct p3_nic *n, struct p3_wire_thread *r)
{
	r->wire = p3_wire_far.news(n);
	if (r->wire < 0)
		return r->wire;
	r->ep = p3_fd_high(epoll_create1(EPOLL_CLOEXEC));
	r->end = r->ep < 0 ? -1 : p3_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (r->end < 0)
		return -errno;
	int rc = wire_thread_control(r, EPOLL_CTL_ADD, P3_WATCHED_END, EPOLLIN);
	return rc ? rc
		  : wire_thread_control(r, EPOLL_CTL_ADD, P3_WATCHED_WIRE, EPOLLONESHOT);
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
	struct epoll_event ev[2];
	int n = epoll_wait(r->ep, ev, 2, P3_LOOK_MS); /* PARK.2 */
	if (p3_get(&r->stop))
		return false;
	if (!wire_thread_holds(r))
		(void)wire_thread_lose(r);
	for (int i = 0; i < n && !p3_get(&r->lost); i++)
		if (ev[i].data.u32 == P3_WATCHED_WIRE)
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

/* Start the thread if passes poll the wire, and it can arm its descriptor. */
static void wire_thread_start(struct p3_nic *n)
{
	if (!n->wired)
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
	p3_fd_close(r->wire);
	wire_thread_close(r);
}

bool p3_wire_thread_arm(struct p3_nic *n)
{
	struct p3_wire_thread *r = n->wire_thread;
	int saved = errno, rc = p3_get(&r->lost) ? -EBADF : p3_wire_far.arm(n);
	if (!rc) /* epoll reports once that the wire needs a pass (PARK.2) */
		rc = wire_thread_control(
			r, EPOLL_CTL_MOD, P3_WATCHED_WIRE, EPOLLIN | EPOLLONESHOT);
	errno = saved;
	return rc == -EAGAIN || (rc && wire_thread_lose(r));
}

bool p3_wire_thread_serves(const struct p3_nic *n)
{
	return n->wire_thread && !p3_get(&n->wire_thread->lost);
}

bool p3_wire_thread_misses(struct p3_nic *n)
{
	if (p3_likely(!n->wired) || p3_wire_thread_serves(n) || !p3_wire_far.waits(n))
		return false;
	p3_count(&n->count[P3_C_WIRE_NAPS], 1);
	return true;
}

/* ---- the wires ---- */

int p3_wires_start(struct p3_nic *n)
{
	const struct p3_far_conf *c = n->conf.far;
	n->wired = false;
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		bool far = c && c->host[i] != c->host[n->conf.node];
		n->peer[i].wire = far ? &p3_wire_far : &p3_wire_shm;
		n->wired |= far;
	}
	int rc = n->wired ? p3_wire_far.start(n) : 0;
	if (!rc)
		wire_thread_start(n);
	return rc;
}

void p3_wires_stop(struct p3_nic *n)
{
	if (n->conf.far)
		p3_log(P3_LOG_INFO, P3_AREA_NIC,
			"frames of other hosts: %llu out, %llu in, %llu sent again, %llu "
			"failed, %llu of nodes that are not attached",
			(unsigned long long)p3_get(&n->count[P3_C_FAR_OUT]),
			(unsigned long long)p3_get(&n->count[P3_C_FAR_IN]),
			(unsigned long long)p3_get(&n->count[P3_C_FAR_RESENT]),
			(unsigned long long)p3_get(&n->count[P3_C_FAR_FAILED]),
			(unsigned long long)p3_get(&n->count[P3_C_FAR_STRANGERS]));
	struct p3_wire_thread *r = n->wire_thread;
	if (r) {
		p3_set(&r->stop, 1);
		p3_futex_wake(&r->stop, ~0u, false);
		if (wire_thread_holds(r))
			p3_fd_signal(r->end);
		pthread_join(r->thread, NULL);
	}
	if (n->wired)
		p3_wire_far.stop(n);
	if (!r)
		return;
	/* Close the thread's own descriptors, after the wire has closed its own. */
	if (!wire_thread_control(r, EPOLL_CTL_MOD, P3_WATCHED_END, EPOLLIN))
		wire_thread_close(r);
	n->wire_thread = NULL;
	free(r);
}

/* Passes run in the program's threads, and libfabric's calls change errno. */
void p3_wires_poll(struct p3_nic *n)
{
	int saved = errno;
	p3_wire_far.poll(n);
	errno = saved;
}
