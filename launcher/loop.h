/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop - what event loops need: milliseconds of the monotonic clock, timers that count
 * in them, and descriptors that epoll watches
 *
 * Any thread may call these functions; there is no state.
 */
#ifndef P3_LAUNCHER_LOOP_H
#define P3_LAUNCHER_LOOP_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
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

/* Let a timer of timerfd_create go off at a time, or never. */
static inline void p3_timer_set(int timer, int64_t at_ms)
{
	struct itimerspec t = {{0, 0}, {0, 0}};
	if (at_ms != P3_NEVER)
		t.it_value = (struct timespec){at_ms / 1000, at_ms % 1000 * 1000000};
	timerfd_settime(timer, TFD_TIMER_ABSTIME, &t, NULL);
}

/* Let a timer that goes off at *armed go off at a time before that, too. */
static inline void p3_timer_arm(int timer, int64_t *armed, int64_t at)
{
	if (at >= *armed)
		return;
	*armed = at;
	p3_timer_set(timer, at);
}

/* Return true if a timer that does not block has gone off since it was set, and let its
 * descriptor be readable no longer. */
static inline bool p3_timer_passed(int timer)
{
	uint64_t times;
	return read(timer, &times, sizeof times) == sizeof times;
}

/* Begin to watch a descriptor, or change or end that (op, as of epoll_ctl).  Return 0 or
 * -errno, of the call that has made no descriptor if fd is negative. */
static inline int p3_watch(int ep, int op, int fd, uint64_t key, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.u64 = key};
	return fd < 0 || epoll_ctl(ep, op, fd, &ev) ? -errno : 0;
}

/* Close a descriptor, unless it is negative. */
static inline void p3_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

static inline int p3_watch_input(int ep, int fd, uint64_t key)
{
	return p3_watch(ep, EPOLL_CTL_ADD, fd, key, EPOLLIN);
}

#endif
