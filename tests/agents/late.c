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
#include "../support/asleep.h"
#include "ranks.h"

#include <portals3.h>
#include <portals3_runtime.h>
#include <portals3x.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PORTAL = 4, PUTS = 100, STOP_S = 3 };

static ptl_handle_ni_t ni;
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
	struct patience p = patience_begin();
	while (count) {
		int which, rc = PtlEQPoll(&eq, 1, 100, &ev, &which);
		if (rc == PTL_EQ_EMPTY && !patience_is_over(&p))
			continue;
		if (rc == PTL_EQ_EMPTY) {
			printf("rank %u: %u events have not come\n", rank, count);
			exit(1);
		}
		check(rc, "PtlEQPoll");
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
		if (sigaction(signals[i], NULL, &now) == 0 &&
			now.sa_handler != before[i].sa_handler) {
			printf("rank %u: signal %d has got a handler\n", rank,
				signals[i]);
			exit(1);
		}
}

static ptl_md_t region(void *start, ptl_size_t length, unsigned options)
{
	return (ptl_md_t){.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = options | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
}

static void receive(int waker)
{
	static char into[PUTS];
	ptl_handle_me_t me;
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	DO(PtlMEAttach(ni, PORTAL, anyone, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	DO(PtlMDAttach(me, region(into, PUTS, PTL_MD_OP_PUT), PTL_RETAIN, NULL));
	DO(PtlXBarrier());
	if (write(waker, "", 1) != 1 || raise(SIGSTOP) != 0)
		exit(1);
	await(PTL_EVENT_PUT_END, PUTS);
}

static void send(void)
{
	static char from;
	ptl_process_id_t to;
	ptl_handle_md_t md;
	DO(PtlGetRankId(ni, 0, &to));
	DO(PtlMDBind(ni, region(&from, 1, 0), PTL_RETAIN, &md));
	DO(PtlXBarrier());
	sleep_ms(500); /* pause: rank 0 stops itself meanwhile */
	for (unsigned i = 0; i < PUTS; i++)
		DO(PtlPut(md, PTL_NO_ACK_REQ, to, PORTAL, 0, 0, 0, 0));
	await(PTL_EVENT_SEND_END, PUTS);
}

int main(void)
{
	int interfaces, waker = make_waker();
	note_signals();
	DO(PtlInit(&interfaces));
	DO(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni));
	DO(PtlGetRank(ni, &rank, &size));
	check_signals();
	DO(PtlEQAlloc(ni, 2 * PUTS + 8, PTL_EQ_HANDLER_NONE, &eq));
	if (rank == 0)
		receive(waker);
	else
		send();
	DO(PtlNIFini(ni));
	PtlFini();
	close(waker);
	(void)wait(NULL);
	if (rank == 0)
		printf("all messages have come\n");
	return 0;
}
