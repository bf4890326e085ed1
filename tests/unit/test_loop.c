/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of yod, and the streams that it serves. */
#include "launcher/yod/remote.h"
#include "support/cases.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct p3_loop loop;

/* A pipe whose end is watched, and which ends another watch when it is called. */
struct end {
	struct p3_loop_fd at;
	int other;
	uint32_t calls;
	struct end *rival;
};

static void on_ready(void *arg)
{
	struct end *e = arg;
	e->calls++;
	if (!e->rival)
		return;
	assert_int_equal(p3_loop_watch(&loop, &e->rival->at, 0), 0);
	memset(e->rival, 0xff, sizeof *e->rival); /* its memory may be another's by now */
}

static void open_end(struct end *e)
{
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	*e = (struct end){.at = {.fd = ends[0], .on = on_ready, .arg = e}};
	e->other = ends[1];
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(p3_loop_watch(&loop, &e->at, EPOLLIN), 0);
}

CASE(ended_watch_is_not_called)
{
	struct end a, b;
	(void)state;
	open_end(&a);
	open_end(&b);
	int fd[] = {a.at.fd, a.other, b.at.fd, b.other};
	a.rival = &b;
	b.rival = &a;
	p3_loop_run(&loop, 0); /* both are ready: the first one ends the second one */
	assert_int_equal((a.calls == 1) + (b.calls == 1), 1);
	struct end *first = a.calls == 1 ? &a : &b;
	first->rival = NULL;
	p3_loop_run(&loop, 0);
	assert_int_equal(first->calls, 2);
	assert_int_equal(p3_loop_watch(&loop, &first->at, 0), 0);
	for (int i = 0; i < 4; i++)
		close(fd[i]);
}

/* A timer that notes its call, and sets another one. */
struct alarm {
	struct p3_loop_timer timer;
	char name;
	struct alarm *next;
	int64_t in_ms;
};

static char calls[20];

static void on_time(void *arg)
{
	struct alarm *a = arg;
	strncat(calls, &a->name, 1);
	if (a->next)
		p3_loop_at(&loop, &a->next->timer, p3_now_ms() + a->in_ms);
}

CASE(timers_go_off_in_order)
{
	struct alarm a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};
	int64_t now = p3_now_ms();
	(void)state;
	a.timer = (struct p3_loop_timer){.on = on_time, .arg = &a};
	b.timer = (struct p3_loop_timer){.on = on_time, .arg = &b};
	c.timer = (struct p3_loop_timer){.on = on_time, .arg = &c};
	a.next = &a; /* again at once, but in the next run */
	p3_loop_at(&loop, &a.timer, now - 1);
	p3_loop_at(&loop, &b.timer, now + 1000000);
	p3_loop_before(&loop, &b.timer, now - 2);
	p3_loop_before(&loop, &b.timer, now + 1);
	p3_loop_at(&loop, &c.timer, now - 3);
	p3_loop_at(&loop, &c.timer, P3_NEVER);
	p3_loop_run(&loop, P3_NEVER);
	assert_string_equal(calls, "ba");
	p3_loop_run(&loop, P3_NEVER);
	assert_string_equal(calls, "baa");
	/* One that is always due holds up no other. */
	a.in_ms = -1000;
	p3_loop_at(&loop, &a.timer, 0);
	p3_loop_at(&loop, &b.timer, p3_now_ms());
	p3_loop_run(&loop, P3_NEVER);
	assert_string_equal(calls, "baaab");
	p3_loop_at(&loop, &a.timer, P3_NEVER);
	p3_loop_run(&loop, p3_now_ms() + 5);
	assert_string_equal(calls, "baaab");
}

static size_t moved;
static int failed;

static void on_moved(struct p3_drain *d, size_t n, int err)
{
	moved += n;
	failed = err;
	if (err)
		p3_drain_close(d);
}

CASE(drain_keeps_what_its_reader_does_not_take)
{
	static char bytes[P3_STREAM_ROOM], got[P3_STREAM_ROOM];
	struct p3_drain d = {.to.fd = -1, .moved = on_moved};
	int ends[2];
	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 4096);
	assert_int_equal(p3_drain_open(&d, &loop, ends[1]), 0);
	assert_true(p3_drain_take(&d, bytes, sizeof bytes));
	assert_true(moved < sizeof bytes);
	assert_false(p3_drain_take(&d, bytes, sizeof bytes));
	assert_true(p3_drain_take(&d, NULL, 0));
	assert_false(p3_drain_take(&d, bytes, 1)); /* behind the end */
	size_t n = 0;
	for (ssize_t k = 1; k > 0; n += (size_t)k) {
		p3_loop_run(&loop, 0);
		k = read(ends[0], got, sizeof got);
		assert_true(k >= 0);
	}
	assert_int_equal(n, sizeof bytes);
	assert_int_equal(moved, sizeof bytes);
	assert_int_equal(d.to.fd, -1);
	close(ends[0]);
}

static void no_move(void *arg, uint32_t i, size_t n)
{
	(void)arg, (void)i, (void)n;
}

/* The end of a stream may be told twice, while its last bytes wait for their reader. */
CASE(output_without_newline_is_written)
{
	struct p3_output_conf conf = {.loop = &loop, .ranks = 1, .moved = no_move};
	int ends[2];
	char got[20] = "";
	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	struct p3_output *o = p3_output_create(&conf, (const int[]){ends[1], ends[1]});
	assert_non_null(o);
	assert_int_equal(p3_output_add(o, 0), 0);
	assert_true(p3_output_take(o, 0, "one\ntwo", 7));
	assert_true(p3_output_take(o, 0, NULL, 0));
	assert_true(p3_output_take(o, 0, NULL, 0));
	assert_false(p3_output_take(o, 0, "three", 5));
	assert_int_equal(p3_output_start(o), 0);
	while (!p3_output_is_done(o))
		p3_loop_run(&loop, P3_NEVER);
	assert_int_equal(read(ends[0], got, sizeof got), 15);
	assert_string_equal(got, "[0] one\n[0] two");
	p3_output_close(o, false);
	close(ends[0]);
	close(ends[1]);
}

static int open_loop(void **state)
{
	(void)state;
	return p3_loop_open(&loop);
}

static int close_loop(void **state)
{
	(void)state;
	p3_loop_close(&loop);
	return 0;
}

int main(void)
{
	return cases_run_in(open_loop, close_loop);
}
