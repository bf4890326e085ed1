/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late - messages to a rank that is stopped while their sender ends
 *
 *	yod --hosts a,b -sz 2 late
 *
 * Rank 0 stops itself for STOP_S seconds.  Meanwhile rank 1 puts messages to it, takes
 * the SEND_END of each, and ends.  Rank 0 must get all of them.  Both check that no
 * signal has got a handler.
 */
#include "../mp/mp.h"
#include "../support/asleep.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PUTS = 100, STOP_S = 3 };

static ptl_handle_eq_t eq;

/* Start a process that continues this one STOP_S seconds after a byte through the pipe;
 * return the pipe's end. */
static int make_waker(void)
{
	int pipes[2];
	pid_t me = getpid();
	char byte;
	if (pipe(pipes) != 0)
		exit(1);
	if (fork() == 0) {
		close(pipes[1]);
		if (read(pipes[0], &byte, 1) == 1 && await_stopped(me)) {
			sleep(STOP_S); /* pause: the other process is stopped */
			kill(me, SIGCONT);
		}
		_exit(0);
	}
	close(pipes[0]);
	return pipes[1];
}

static void await(ptl_event_kind_t type, unsigned count)
{
	ptl_event_t ev;
	while (count) {
		mp_check(mp_next_soon(eq, &ev), "%u events have not come", count);
		count -= ev.type == type && ev.ni_fail_type == PTL_NI_OK;
	}
}

static const int signals[] = {SIGINT, SIGILL, SIGABRT, SIGBUS, SIGSEGV, SIGTERM};
enum { SIGNALS = sizeof signals / sizeof *signals };
static struct sigaction before[SIGNALS];

static void note_signals(void)
{
	for (unsigned i = 0; i < SIGNALS; i++)
		(void)sigaction(signals[i], NULL, &before[i]);
}

/* Libraries that the network needs must not handle the program's signals. */
static void check_signals(void)
{
	struct sigaction now;
	for (unsigned i = 0; i < SIGNALS; i++)
		mp_check(sigaction(signals[i], NULL, &now) != 0 ||
				 now.sa_handler == before[i].sa_handler,
			"signal %d has got a handler", signals[i]);
}

static void receive(int waker)
{
	static char into[PUTS];
	mp_attach(0, into, PUTS, PTL_MD_OP_PUT, eq);
	mp_barrier();
	if (write(waker, "", 1) != 1 || raise(SIGSTOP) != 0)
		exit(1);
	await(PTL_EVENT_PUT_END, PUTS);
}

static void send(void)
{
	static char from;
	ptl_handle_md_t md = mp_bind(&from, 1, eq, 0);
	mp_barrier();
	sleep_ms(500); /* pause: rank 0 stops itself meanwhile */
	for (unsigned i = 0; i < PUTS; i++)
		mp_put(md, 0, 1, PTL_NO_ACK_REQ, 0, 0, 0, 0);
	await(PTL_EVENT_SEND_END, PUTS);
}

int main(void)
{
	int waker = make_waker();
	note_signals();
	mp_start();
	check_signals();
	eq = mp_queue(2 * PUTS + 8);
	if (mp.rank == 0)
		receive(waker);
	else
		send();
	mp_ok(PtlNIFini(mp.ni));
	PtlFini();
	close(waker);
	(void)wait(NULL);
	if (mp.rank == 0)
		printf("all messages have come\n");
	return 0;
}
