/* SPDX-License-Identifier: BSD-3-Clause */
/* The event loop of a thread. */
#include "launcher/loop.h"

#define EVENTS  64
#define WAIT_MS 100000 /* longest time in the kernel */

int p3_loop_open(struct p3_loop *l)
{
	*l = (struct p3_loop){.ep = epoll_create1(EPOLL_CLOEXEC)};
	return l->ep < 0 ? -errno : 0;
}

void p3_loop_close(struct p3_loop *l)
{
	if (l->ep > 0)
		close(l->ep);
	*l = (struct p3_loop){.ep = -1};
}

/* ---- descriptors ---- */

int p3_loop_watch(struct p3_loop *l, struct p3_loop_fd *f, uint32_t events)
{
	int op = !events ? EPOLL_CTL_DEL : f->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	struct epoll_event ev = {.events = events, .data.ptr = f};
	if (events == f->events)
		return 0;
	if (f->fd < 0 || epoll_ctl(l->ep, op, f->fd, &ev))
		return -errno;
	f->events = events;
	for (int k = 0; k < l->ready_n && !events; k++)
		if (l->ready[k].data.ptr == f)
			l->ready[k].data.ptr = NULL;
	return 0;
}

/* ---- timers ---- */

static void loop_unlink(struct p3_loop *l, struct p3_loop_timer *t)
{
	struct p3_loop_timer **at = &l->timers;
	while (*at && *at != t)
		at = &(*at)->next;
	if (*at)
		*at = t->next;
	t->linked = false;
}

void p3_loop_at(struct p3_loop *l, struct p3_loop_timer *t, int64_t at)
{
	if (t->linked)
		loop_unlink(l, t);
	if (at == P3_NEVER)
		return;
	t->at = at;
	t->turn = l->turn;
	t->linked = true;
	t->next = l->timers;
	l->timers = t;
}

void p3_loop_before(struct p3_loop *l, struct p3_loop_timer *t, int64_t at)
{
	if (!t->linked || at < t->at)
		p3_loop_at(l, t, at);
}

/* Return the first timer to go off of those that were not set in this run, or NULL. */
static struct p3_loop_timer *loop_first_timer(const struct p3_loop *l)
{
	struct p3_loop_timer *first = NULL;
	for (struct p3_loop_timer *t = l->timers; t; t = t->next)
		if (t->turn != l->turn && (!first || t->at < first->at))
			first = t;
	return first;
}

void p3_loop_run(struct p3_loop *l, int64_t until)
{
	struct epoll_event ev[EVENTS];
	l->turn++;
	struct p3_loop_timer *t = loop_first_timer(l);
	int64_t now = p3_now_ms(), at = p3_earlier(until, t ? t->at : P3_NEVER);
	int64_t ms = at <= now ? 0 : p3_earlier(at - now, WAIT_MS);
	int n = epoll_wait(l->ep, ev, EVENTS, at == P3_NEVER ? -1 : (int)ms);
	l->ready = ev;
	l->ready_n = n > 0 ? n : 0;
	for (int k = 0; k < n; k++) {
		struct p3_loop_fd *f = ev[k].data.ptr; /* NULL: its watch has ended */
		if (!f)
			continue;
		f->came = ev[k].events;
		f->on(f->arg);
	}
	l->ready_n = 0;
	now = p3_now_ms();
	while ((t = loop_first_timer(l)) && t->at <= now) {
		loop_unlink(l, t);
		t->on(t->arg);
	}
}
