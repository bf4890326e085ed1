/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of CCI: the OS handle, readable while events wait. */
#include "frame.h"
#include "../support/asleep.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int rc = poll(&p, 1, ms);
	CHECK(rc >= 0 || errno == EINTR);
	return rc > 0 && (p.revents & POLLIN);
}

/* Look in vain until the handle stays unreadable for that time.  A thread that was about
 * to write the handle when the event was taken makes it readable for one more look, or
 * for more of them while that thread waits for a CPU; that happens seldom. */
static void quiet(cci_endpoint_t *ep, int fd, int ms)
{
	static unsigned calls, again;
	struct patience p = patience_begin();
	calls++;
	SILENCE(ep, 0);
	for (bool first = true; readable(fd, ms); first = false) {
		look_at(__FILE__, __LINE__, &p, "a handle that is not readable");
		again += first;
		SILENCE(ep, 0);
	}
	CHECK(again <= 3 + calls / 10);
}

/* Wait without a limit, as programs do; the test's own limit ends a hang. */
static void block(int fd)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(fd, &set);
	while (select(fd + 1, &set, NULL, NULL, NULL) < 0)
		CHECK(errno == EINTR);
}

/* Block, then take one event. */
static cci_event_t *block_next(struct side s, int fd)
{
	cci_event_t *event;
	int rc;
	do {
		block(fd);
		rc = cci_get_event(s.ep, &event);
		CHECK(rc == CCI_SUCCESS || rc == CCI_EAGAIN || rc == CCI_ENOBUFS);
	} while (rc != CCI_SUCCESS);
	return event;
}

STATEMENT(64, poll_on_the_handle, 2, 0)
{
	EACH_ATTRIBUTE(a)
	{
		int fd;
		struct side s = meet_fd(a, &fd);
		if (me.is_server) {
			quiet(s.ep, fd, 30);
			barrier();
			CHECK(readable(fd, -1));
			RETURN(EXPECT(s.ep, CCI_EVENT_RECV));
			quiet(s.ep, fd, 0);
		} else {
			barrier();
			OK(cci_send(s.conn, "x", 1, NULL, CCI_FLAG_SILENT));
		}
		barrier();
	}
}

STATEMENT(65, one_event_per_select, 2, 0)
{
	EACH_ATTRIBUTE(a)
	{
		int fd;
		struct side s = meet_fd(a, &fd);
		for (int i = 0; i < 10 && me.is_client; i++)
			OK(cci_send(s.conn, "x", 1, NULL, CCI_FLAG_SILENT));
		barrier();
		for (int i = 0; i < 10 && me.is_server; i++) {
			cci_event_t *event = block_next(s, fd);
			CHECK(event->type == CCI_EVENT_RECV);
			RETURN(event);
		}
		quiet(s.ep, fd, 20);
		barrier();
	}
}

/*
 * The receiver looks and finds nothing, so the handle is unreadable; the message that
 * comes then must make it readable, or be found.  The sender does not wait for the
 * receiver's look, so that both meet at each point.
 */
STATEMENT(66, unreadable_after_again, 2, 0)
{
	int fd;
	struct side s = meet_fd(CCI_CONN_ATTR_UU, &fd);
	unsigned long rounds = many(1000000);
	for (unsigned long i = 0; i < rounds; i++) {
		cci_event_t *event;
		if (me.is_client) {
			OK(cci_send(s.conn, &i, sizeof i, NULL, CCI_FLAG_SILENT));
			if (i % 16 == 15)
				RETURN(EXPECT(s.ep, CCI_EVENT_RECV));
			for (volatile unsigned k = 0; k < mix(i) % 500; k++)
				;
			continue;
		}
		while (cci_get_event(s.ep, &event) != CCI_SUCCESS)
			block(fd);
		CHECK(memcmp(event->recv.ptr, &i, sizeof i) == 0);
		RETURN(event);
		if (i % 16 == 15)
			OK(cci_send(s.conn, "go", 2, NULL, CCI_FLAG_SILENT));
	}
	barrier();
	quiet(s.ep, fd, 0);
}

/* Ranks 0 and 1 play, and so do 2 and 3: 4 processes, on whatever CPUs there are. */
STATEMENT(67, blocking_ping_pong, 4, 0)
{
	int fd;
	struct side s;
	up();
	s.ep = endpoint_fd(&fd);
	bool first = me.rank % 2 == 0;
	s.conn =
		first ? connect_to(s.ep, told_uri(me.rank + 1, 0), CCI_CONN_ATTR_RO, NULL)
		      : accept_one(s.ep, NULL);
	unsigned long rounds = many(100000);
	unsigned long sent = 0;
	for (unsigned long i = 0; i < rounds; i++) {
		bool got = false;
		if (first)
			OK(cci_send(s.conn, &i, sizeof i, NULL, 0));
		while (!got) {
			cci_event_t *event = block_next(s, fd);
			CHECK_EQ(status_of(event), CCI_SUCCESS);
			got = event->type == CCI_EVENT_RECV;
			CHECK(!got || memcmp(event->recv.ptr, &i, sizeof i) == 0);
			sent += !got;
			RETURN(event);
		}
		if (!first)
			OK(cci_send(s.conn, &i, sizeof i, NULL, 0));
	}
	for (; sent < rounds; sent++) {
		cci_event_t *event = block_next(s, fd);
		CHECK(event->type == CCI_EVENT_SEND);
		RETURN(event);
	}
}

/* ---- system calls ---- */

HELPER(polls_only)
{
	int fd;
	cci_event_t *event;
	(void)argument;
	up();
	cci_endpoint_t *ep = endpoint_fd(&fd);
	(void)accept_one(ep, NULL);
	for (unsigned long i = 0, n = word(2); i < n;) {
		if (cci_get_event(ep, &event) != CCI_SUCCESS)
			continue;
		i++;
		OK(cci_return_event(event));
		if (i == 100)
			raise(SIGUSR1); /* from here on the tracer counts */
	}
	raise(SIGUSR2);
}

/* Return true at the beginning of a system call, unless it shows that other programs want
 * the CPUs: a poller that finds nothing for a while yields, and a sender sleeps for its
 * answer, so that the one that answers wakes it. */
static bool is_counted(int pid)
{
	struct __ptrace_syscall_info info;
	return ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) > 0 &&
	       info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr != SYS_futex &&
	       info.entry.nr != SYS_sched_yield;
}

/* Run a process under ptrace; return its system calls between the two signals, those of
 * its main thread, and the number of times that its threads have lost a CPU. */
static unsigned long count_calls(int pid, unsigned long *losses_out)
{
	unsigned long calls = 0;
	struct rusage used = {0};
	bool counting = false;
	int status, signal = 0;
	CHECK(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD) == 0);
	set_word(1, 1);
	while (wait4(pid, &status, 0, &used) == pid && WIFSTOPPED(status)) {
		int stop = WSTOPSIG(status);
		signal = stop == (SIGTRAP | 0x80) || stop == SIGTRAP ? 0 : stop;
		if (stop == (SIGTRAP | 0x80) && counting)
			calls += is_counted(pid);
		if (stop == SIGUSR1 || stop == SIGUSR2) {
			counting = stop == SIGUSR1;
			signal = 0;
		}
		CHECK(ptrace(counting ? PTRACE_SYSCALL : PTRACE_CONT, pid, 0,
			      (long)signal) == 0);
	}
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	*losses_out = (unsigned long)used.ru_nivcsw;
	return calls;
}

static void send_while(void *argument)
{
	cci_connection_t *conn =
		connect_to(argument, told_uri(0, 1), CCI_CONN_ATTR_RO, NULL);
	await_word(1, 1);
	for (unsigned long i = 0, n = word(2); i < n; i++)
		OK(cci_send(conn, "x", 1, NULL, CCI_FLAG_BLOCKING));
	OK(cci_disconnect(conn));
}

/* Return the system calls of a program that takes n messages and polls. */
static unsigned long calls_of_poller(cci_endpoint_t *ep, unsigned long *losses_out)
{
	int pid = spawn("polls_only", NULL, NULL);
	struct thread *sender = thread_start(send_while, (void *)ep);
	AWAIT(pid != 0);
	unsigned long calls = count_calls(pid, losses_out);
	thread_join(sender);
	return calls;
}

STATEMENT(68, polling_with_a_handle, 1, DOMAIN)
{
	if (on_one_cpu())
		skip("on one CPU a poller gives the CPU away, by a system call");
	cci_endpoint_t *ep = first_endpoint();
	unsigned long n = many(100000) + 1000;
	set_word(2, n);
	/* Peers take a poller without a CPU for one that sleeps, and ring for it. */
	unsigned long losses, calls = calls_of_poller(ep, &losses);
	if (calls >= n / 100 + 2 * losses)
		check_failed(__FILE__, __LINE__,
			"%lu system calls for %lu messages, %lu losses of a CPU", calls,
			n, losses);
	printf("# %lu system calls for %lu messages, %lu losses of a CPU\n", calls, n,
		losses);
}

/* ---- all types ---- */

static cci_event_t *blocked(struct side s, int fd, cci_event_type_t type)
{
	cci_event_t *event = block_next(s, fd);
	if (event->type != type)
		check_failed(__FILE__, __LINE__, "%s comes, not %s",
			cci_event_type_str(event->type), cci_event_type_str(type));
	return event;
}

STATEMENT(69, all_types_wake, 2, 0)
{
	int fd;
	struct side s = {NULL, NULL};
	up();
	s.ep = endpoint_fd(&fd);
	if (me.is_server) {
		cci_event_t *request = blocked(s, fd, CCI_EVENT_CONNECT_REQUEST);
		OK(cci_accept(request, NULL));
		RETURN(request);
		RETURN(blocked(s, fd, CCI_EVENT_ACCEPT));
		barrier();
		RETURN(blocked(s, fd, CCI_EVENT_RECV));
		may_die(1);
		barrier();
		for (;;)
			pause();
	}
	ask(s.ep, told_uri(1, 0), CCI_CONN_ATTR_RO, NULL);
	cci_event_t *event = blocked(s, fd, CCI_EVENT_CONNECT);
	s.conn = event->connect.connection;
	RETURN(event);
	barrier();
	OK(cci_send(s.conn, "x", 1, NULL, 0));
	RETURN(blocked(s, fd, CCI_EVENT_SEND));
	barrier();
	signal_rank(1, SIGSTOP);
	set_option(s.conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, 50000);
	event = blocked(s, fd, CCI_EVENT_KEEPALIVE_TIMEDOUT);
	CHECK(event->keepalive.connection == s.conn);
	RETURN(event);
	signal_rank(1, SIGKILL);
}

/* ---- epoll, and two threads ---- */

static struct side waited;
static int waited_fd;
static _Atomic unsigned long woken;
static unsigned long woken_most;

static void wait_in_poll(void *argument)
{
	(void)argument;
	while (woken < woken_most) {
		cci_event_t *event;
		(void)readable(waited_fd, 50);
		if (cci_get_event(waited.ep, &event) != CCI_SUCCESS)
			continue;
		CHECK(event->type == CCI_EVENT_RECV);
		RETURN(event);
		woken++;
	}
}

static void epoll_rounds(struct side s, int fd, unsigned long rounds)
{
	int set = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event one = {.events = EPOLLIN, .data.fd = fd};
	CHECK(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &one) == 0);
	for (unsigned long i = 0; i < rounds; i++) {
		cci_event_t *event;
		while (cci_get_event(s.ep, &event) != CCI_SUCCESS)
			while (epoll_wait(set, &one, 1, -1) < 0)
				CHECK(errno == EINTR);
		RETURN(event);
		OK(cci_send(s.conn, "go", 2, NULL, CCI_FLAG_SILENT));
	}
	(void)close(set);
}

STATEMENT(70, epoll_and_two_threads, 2, 0)
{
	int fd;
	struct side s = meet_fd(CCI_CONN_ATTR_RO, &fd);
	unsigned long rounds = many(20000);
	if (me.is_client) {
		for (unsigned long i = 0; i < rounds; i++) {
			OK(cci_send(s.conn, "x", 1, NULL, CCI_FLAG_SILENT));
			TAKE(s.ep, CCI_EVENT_RECV);
		}
		for (unsigned long i = 0; i < rounds; i++)
			OK(cci_send(s.conn, "y", 1, NULL, CCI_FLAG_BLOCKING));
		return;
	}
	epoll_rounds(s, fd, rounds);
	waited = s;
	waited_fd = fd;
	woken_most = rounds;
	struct thread *a = thread_start(wait_in_poll, NULL),
		      *b = thread_start(wait_in_poll, NULL);
	thread_join(a);
	thread_join(b);
	CHECK_EQ(woken, rounds);
}
