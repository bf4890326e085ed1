/* SPDX-License-Identifier: BSD-3-Clause */
/* Milliseconds of the monotonic clock, the event loop of a thread, and its parts. */
#ifndef P3_LAUNCHER_LOOP_H
#define P3_LAUNCHER_LOOP_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define P3_NEVER INT64_MAX

static inline int64_t p3_now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline int64_t p3_earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Close a descriptor, unless it is negative. */
static inline void p3_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Close these descriptors and set them to -1. */
static inline void p3_close_fds(int *fds, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		p3_close(fds[k]);
		fds[k] = -1;
	}
}

/* Return 0 or -errno. */
static inline int p3_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

/*
 * loop - the descriptors and deadlines that a thread waits for
 *
 *	p3_loop_watch	call fd.on when the descriptor is ready
 *	p3_loop_at	call timer.on at a time, once
 *	p3_loop_run	wait for the first of them, and call all that are due
 *
 * Descriptors and timers lie in the memory of their owners, which set `on` and `arg`
 * before.  A function that the loop calls may change or end any of them, its own
 * included, and free the memory: the loop then calls none of those that have ended.
 * The thread of the loop calls all functions; the state is struct p3_loop.
 */

struct p3_loop_fd {
	int fd;
	uint32_t events; /* of epoll; 0: it is not watched */
	uint32_t came;   /* those of this call */
	void (*on)(void *arg);
	void *arg;
};

struct p3_loop_timer {
	int64_t at; /* while it is linked */
	bool linked;
	uint32_t turn; /* the run of the loop in which it was set */
	void (*on)(void *arg);
	void *arg;
	struct p3_loop_timer *next;
};

struct p3_loop {
	int ep;
	struct p3_loop_timer *timers;
	struct epoll_event *ready; /* those of this run that are yet to be called */
	int ready_n;
	uint32_t turn; /* number of this run */
};

/* Open a loop.  Return 0 or -errno. */
int p3_loop_open(struct p3_loop *l);
/* Close a loop that nothing uses; a zeroed one may be closed, too. */
void p3_loop_close(struct p3_loop *l);
/* Watch a descriptor for these events, and for errors; 0: watch it no longer, which must
 * be before it is closed.  Return 0 or -errno, of the call that has made no descriptor if
 * fd is negative. */
int p3_loop_watch(struct p3_loop *l, struct p3_loop_fd *f, uint32_t events);
/* Let a timer go off at a time (p3_now_ms()), or P3_NEVER. */
void p3_loop_at(struct p3_loop *l, struct p3_loop_timer *t, int64_t at);
/* Let a timer that may go off already go off at this time at the latest. */
void p3_loop_before(struct p3_loop *l, struct p3_loop_timer *t, int64_t at);
/* Wait for the first descriptor or timer, until a time at most, and call all that are
 * due.  A timer that is set meanwhile goes off in the next run. */
void p3_loop_run(struct p3_loop *l, int64_t until);

#endif
