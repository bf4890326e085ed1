/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions of yod, and the programs that answer them. */
#include "launcher/yod/asks.h"
#include "launcher/clock.h"
#include "launcher/yod/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define READ_AT_ONCE 65536u
#define EVENTS       8
#define KEY_TIMER    P3_ASKS_MOST

struct ask {
	int from; /* the read end of the program's output; -1: free */
	uint64_t number;
	int64_t end_at;
	size_t len, room;
	char *bytes;
};

struct p3_asks {
	struct p3_agent *agent;
	struct p3_attach *attach;
	int ep, timer;
	struct ask ask[P3_ASKS_MOST];
};

static int watch(struct p3_asks *a, int fd, uint32_t key)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = key};
	return fd < 0 || epoll_ctl(a->ep, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

struct p3_asks *p3_asks_create(struct p3_agent *agent, struct p3_attach *attach)
{
	struct p3_asks *a = calloc(1, sizeof *a);
	if (!a)
		return NULL;
	a->agent = agent;
	a->attach = attach;
	for (uint32_t i = 0; i < P3_ASKS_MOST; i++)
		a->ask[i].from = -1;
	a->ep = epoll_create1(EPOLL_CLOEXEC);
	a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (a->ep >= 0 && !watch(a, a->timer, KEY_TIMER))
		return a;
	p3_asks_destroy(a);
	return NULL;
}

static void clear(struct ask *q)
{
	if (q->from >= 0)
		close(q->from);
	free(q->bytes);
	*q = (struct ask){.from = -1};
}

void p3_asks_destroy(struct p3_asks *a)
{
	if (!a)
		return;
	for (uint32_t i = 0; i < P3_ASKS_MOST; i++)
		clear(&a->ask[i]);
	if (a->timer >= 0)
		close(a->timer);
	if (a->ep >= 0)
		close(a->ep);
	free(a);
}

int p3_asks_fd(const struct p3_asks *a)
{
	return a->ep;
}

/* ---- answers ---- */

static void answer(
	struct p3_asks *a, uint64_t number, const char *bytes, size_t len, int status)
{
	struct p3_frame f = {
		.op = P3_FRAME_REPORT, .number = number, .value = status, .len = len};
	p3_agent_tell(a->agent, f, bytes);
}

/* Send what there is; status is 0 or an errno. */
static void finish(struct p3_asks *a, struct ask *q, int status)
{
	answer(a, q->number, q->bytes, q->len, status);
	clear(q); /* the program gets SIGPIPE if it writes more */
}

static bool make_room(struct ask *q)
{
	if (q->room - q->len >= READ_AT_ONCE)
		return true;
	size_t room = 2 * q->room + READ_AT_ONCE;
	char *bytes = room <= 2 * P3_ASKS_LONG ? realloc(q->bytes, room) : NULL;
	if (!bytes)
		return false;
	q->bytes = bytes;
	q->room = room;
	return true;
}

static void read_answer(struct p3_asks *a, struct ask *q)
{
	if (q->from < 0)
		return;
	if (!make_room(q)) {
		finish(a, q, ENOMEM);
		return;
	}
	ssize_t n = read(q->from, q->bytes + q->len, READ_AT_ONCE);
	if (n > 0)
		q->len += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		finish(a, q, 0);
}

/* Set the timer to the first deadline. */
static void arm(struct p3_asks *a)
{
	int64_t at = P3_NEVER;
	for (uint32_t i = 0; i < P3_ASKS_MOST; i++)
		if (a->ask[i].from >= 0)
			at = p3_earlier(at, a->ask[i].end_at);
	p3_timer_set(a->timer, at);
}

static void end_late(struct p3_asks *a)
{
	(void)p3_timer_passed(a->timer);
	for (uint32_t i = 0; i < P3_ASKS_MOST; i++)
		if (a->ask[i].from >= 0 && a->ask[i].end_at <= p3_now_ms())
			finish(a, &a->ask[i], ETIMEDOUT);
}

void p3_asks_step(struct p3_asks *a)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(a->ep, ev, EVENTS, 0);
	for (int k = 0; k < n; k++)
		if (ev[k].data.u32 == KEY_TIMER)
			end_late(a);
		else
			read_answer(a, &a->ask[ev[k].data.u32]);
	arm(a);
}

/* ---- questions ---- */

/* Start the program.  Return 0 or -errno. */
static int start(struct p3_asks *a, const struct p3_frame *f, int *from_out)
{
	int look[2], out[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, look))
		return -errno;
	int rc = pipe2(out, O_CLOEXEC) ? -errno : 0;
	if (!rc) {
		fcntl(out[0], F_SETFL, O_NONBLOCK);
		rc = p3_report_answer(f, out[1], look[1]);
		close(out[1]);
		*from_out = out[0];
	}
	close(look[1]);
	if (rc)
		close(look[0]);
	else
		p3_attach_admit(a->attach, look[0]);
	return rc;
}

static struct ask *free_place(struct p3_asks *a)
{
	for (uint32_t i = 0; i < P3_ASKS_MOST; i++)
		if (a->ask[i].from < 0)
			return &a->ask[i];
	return NULL;
}

void p3_asks_take(struct p3_asks *a, const struct p3_frame *f)
{
	struct ask *q = free_place(a);
	int rc = q ? start(a, f, &q->from) : -EBUSY;
	if (!rc)
		rc = watch(a, q->from, (uint32_t)(q - a->ask));
	if (rc) {
		if (q)
			clear(q);
		answer(a, f->number, NULL, 0, -rc);
		return;
	}
	q->number = f->number;
	q->end_at = p3_now_ms() + P3_REPORT_MS + f->node;
	arm(a);
}
