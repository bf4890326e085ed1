/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that are readable while events wait; evfd.h has the states. */
#include "nic/run/evfd.h"
#include "nic/run/run.h"
#include "shm/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#define EVFD_YIELDS 64u

static struct p3_evfd *evfd_all(const struct p3_nic *n)
{
	return (struct p3_evfd *)(uintptr_t)p3_acquire(&n->evfd); /* EVFD.2 */
}

/* ---- states ---- */

/* Change the state, and count the descriptor among the parked threads while it is armed.
 * Return false if the state is not from. */
static bool evfd_change(
	struct p3_nic *n, struct p3_evfd *e, uint32_t from, enum p3_evfd_state to)
{
	uint32_t was = from;
	if (to == P3_EVFD_ARMED)
		p3_add32(&n->parked, 1);
	bool done = p3_cas32(&e->state, &was, to); /* EVFD.2 */
	if (done ? from == P3_EVFD_ARMED : to == P3_EVFD_ARMED)
		p3_add32(&n->parked, (uint32_t)-1);
	return done;
}

static bool evfd_is_busy(uint32_t state)
{
	return state == P3_EVFD_SIGNALLING || state == P3_EVFD_DRAINING;
}

/* Become the only thread that uses the file. */
static void evfd_seize(struct p3_nic *n, struct p3_evfd *e)
{
	uint32_t state = p3_get(&e->state);
	while (evfd_is_busy(state) || !evfd_change(n, e, state, P3_EVFD_DRAINING)) {
		sched_yield();
		state = p3_get(&e->state);
	}
}

void p3_evfd_turn(struct p3_nic *n, struct p3_evfd *e, enum p3_evfd_state next)
{
	uint32_t other = next == P3_EVFD_ARMED ? P3_EVFD_IDLE : P3_EVFD_ARMED;
	if (p3_get(&e->state) == other)
		(void)evfd_change(n, e, other, next);
}

/* A write of the eventfd may have woken the caller in place of the thread that has
 * written: let that thread finish, or the descriptor stays readable for one more look. */
bool p3_evfd_settle(
	struct p3_nic *n, struct p3_evfd *e, uint64_t owner, enum p3_evfd_state next)
{
	for (unsigned i = 0; i < EVFD_YIELDS && evfd_is_busy(p3_get(&e->state)); i++)
		sched_yield();
	if (p3_get(&e->state) != P3_EVFD_SIGNALLED)
		p3_evfd_turn(n, e, next);
	else if (evfd_change(n, e, P3_EVFD_SIGNALLED, P3_EVFD_DRAINING)) {
		if (p3_unlikely(p3_get(&e->owner) != owner)) {
			p3_release(&e->state, P3_EVFD_SIGNALLED); /* EVFD.2 */
			return false;
		}
		FAULT_POINT("evfd.draining");
		p3_fd_drain(e->fd);
		if (next == P3_EVFD_ARMED)
			p3_add32(&n->parked, 1);
		p3_release(&e->state, next); /* EVFD.2 */
	}
	return p3_get(&e->state) == next && p3_get(&e->owner) == owner;
}

void p3_evfd_signal(struct p3_nic *n, struct p3_evfd *e)
{
	uint32_t was = P3_EVFD_ARMED;
	/* Another thread may change ARMED to IDLE, or back, at the same time. */
	while (!evfd_change(n, e, was, P3_EVFD_SIGNALLING)) {
		was = p3_get(&e->state);
		if (was != P3_EVFD_ARMED && was != P3_EVFD_IDLE)
			return;
	}
	FAULT_POINT("evfd.signalling");
	p3_fd_signal(e->fd);
	p3_release(&e->state, P3_EVFD_SIGNALLED); /* EVFD.2 */
}

/* Return true if the owner is a queue that certainly has no event. */
static bool evfd_is_of_empty_queue(const struct p3_nic *n, uint64_t owner)
{
	if (p3_handle_kind(owner) != P3_KIND_EQ)
		return false;
	const struct p3_eq *eq = p3_eq_place(n, owner);
	return p3_evq_is_empty(&eq->rx, &eq->o.name, owner);
}

void p3_evfd_signal_news(struct p3_nic *n, uint32_t news)
{
	const uint32_t ends = p3_acquire(&n->evfd_ends); /* EVFD.2: the slots are there */
	struct p3_evfd *all = evfd_all(n);
	for (uint32_t i = 0; i < ends; i++) {
		struct p3_evfd *e = &all[i];
		if (p3_acquire(&e->state) == P3_EVFD_ARMED && /* EVFD.1, EVFD.2 */
			(p3_get(&e->news) & news) &&
			!evfd_is_of_empty_queue(n, p3_get(&e->owner)))
			p3_evfd_signal(n, e);
	}
}

/* ---- begin and end ---- */

struct p3_evfd *p3_evfd_numbered(struct p3_nic *n, uint32_t number)
{
	return evfd_all(n) + (number - 1);
}

uint32_t p3_evfd_number(struct p3_nic *n, const struct p3_evfd *e)
{
	return (uint32_t)(e - evfd_all(n)) + 1;
}

/* Return the slots, or NULL without memory. */
static struct p3_evfd *evfd_slots(struct p3_nic *n)
{
	int saved = errno;
	uint64_t none = 0;
	struct p3_evfd *all = evfd_all(n);
	if (!all && (all = calloc(P3_EVFDS, sizeof *all)) &&
		!p3_cas64(&n->evfd, &none, (uintptr_t)all)) { /* EVFD.2 */
		free(all);
		all = evfd_all(n);
	}
	errno = saved;
	return all;
}

/* With the file: close it. */
static void evfd_end(struct p3_evfd *e)
{
	p3_fd_close_own(e->shown, e->file);
	p3_fd_close_own(e->fd, e->file);
	e->fd = e->shown = -1;
	e->file = 0;
}

/* With the file, which may be closed: make an eventfd that is readable, and the number
 * for the program. */
static bool evfd_make(struct p3_evfd *e)
{
	int saved = errno;
	if (!p3_fd_is(e->fd, e->file)) {
		e->fd = p3_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		e->file = p3_fd_file(e->fd);
		e->shown = -1;
	}
	if (e->fd >= 0 && !p3_fd_is(e->shown, e->file))
		e->shown = p3_fd_high(fcntl(e->fd, F_DUPFD_CLOEXEC, 0));
	bool made = e->shown >= 0;
	if (made)
		p3_fd_signal(e->fd);
	else
		evfd_end(e);
	errno = saved;
	return made;
}

struct p3_evfd *p3_evfd_open(struct p3_nic *n, uint64_t owner, uint32_t news)
{
	uint32_t i = 0;
	struct p3_evfd *all = evfd_slots(n);
	while (all && i < P3_EVFDS &&
		!evfd_change(n, &all[i], P3_EVFD_FREE, P3_EVFD_DRAINING))
		i++;
	if (!all || i == P3_EVFDS)
		return NULL;
	struct p3_evfd *e = &all[i];
	bool made = evfd_make(e);
	if (made) {
		p3_set(&e->owner, owner);
		p3_set(&e->news, news);
		p3_add32(&n->evfds, 1);
		uint32_t ends = p3_get(&n->evfd_ends);
		while (ends < i + 1 && !p3_cas32(&n->evfd_ends, &ends, i + 1))
			;
	}
	p3_release(&e->state, made ? P3_EVFD_SIGNALLED : P3_EVFD_FREE); /* EVFD.2 */
	return made ? e : NULL;
}

void p3_evfd_adopt(struct p3_nic *n)
{
	n->light = false; /* EVFD.1: threads that arm do so often, and fence here only */
}

int p3_evfd_renew(struct p3_nic *n, struct p3_evfd *e, uint64_t owner)
{
	int fd = -1;
	evfd_seize(n, e);
	uint64_t has = p3_get(&e->owner);
	if (has && evfd_make(e) && has == owner)
		fd = e->shown;
	p3_release(&e->state, has ? P3_EVFD_SIGNALLED : P3_EVFD_FREE); /* EVFD.2 */
	return fd;
}

void p3_evfd_close(struct p3_nic *n, struct p3_evfd *e)
{
	evfd_seize(n, e);
	if (p3_fd_is(e->fd, e->file))
		p3_fd_signal(e->fd);
	evfd_end(e);
	p3_set(&e->owner, 0);
	p3_add32(&n->evfds, (uint32_t)-1);
	p3_release(&e->state, P3_EVFD_FREE); /* EVFD.2 */
}

void p3_evfd_close_all(struct p3_nic *n)
{
	struct p3_evfd *all = evfd_all(n);
	for (uint32_t i = 0; i < p3_get(&n->evfd_ends); i++)
		if (p3_get(&all[i].state) != P3_EVFD_FREE)
			p3_evfd_close(n, &all[i]);
}
