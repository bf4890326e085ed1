/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life CASE - beginnings and ends of processes:
 *
 *	self	traffic with oneself; also for programs started without yod
 *	alone	a put to oneself, independent of the other ranks
 *	child	a forked child starts its own job of one node
 *	leave	exit without PtlFini, straight from a callback of exit
 *	crash	likewise by _exit
 *	again	PtlNIInit, traffic, PtlNIFini many times; PtlFini and PtlInit, too
 */
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 300000, BITS = 1 };

static char *sink;
static ptl_handle_eq_t eq, served;
static ptl_handle_md_t md;

static void open_all(void)
{
	sink = realloc(sink, LENGTH);
	mp_check(sink, "no memory");
	eq = mp_queue(256);
	served = mp_queue(256);
	md = mp_bind(mp_pattern, MP_PATTERN, eq, 0);
	mp_attach(BITS, sink, LENGTH, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, served);
	mp_attach(BITS, mp_pattern, LENGTH, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
}

/* Put to the next rank, which checks it, and get from it, each size. */
static void traffic(void)
{
	static const ptl_size_t lengths[] = {0, 8, 16, 17, 5000, LENGTH};
	static char got[LENGTH];
	unsigned to = (mp.rank + 1) % mp.size, from = (mp.rank + mp.size - 1) % mp.size;
	ptl_handle_md_t here = mp_bind(got, LENGTH, eq, 0);
	for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		mp_put(md, mp_cut(mp.rank, to, i), lengths[i], PTL_ACK_REQ, to, BITS, 0,
			i);
		(void)mp_expect(eq, PTL_EVENT_SEND_END);
		(void)mp_expect(eq, PTL_EVENT_ACK);
		ptl_event_t ev = mp_expect(served, PTL_EVENT_PUT_END);
		mp_check(ev.hdr_data == i && ev.mlength == lengths[i] &&
				 mp_same(sink, from, mp.rank, i, lengths[i]),
			"a wrong put of %llu bytes", (unsigned long long)lengths[i]);
		memset(got, 0, LENGTH);
		mp_get(here, 0, lengths[i], to, BITS, 0);
		(void)mp_expect(eq, PTL_EVENT_REPLY_END);
		mp_check(memcmp(got, mp_pattern, lengths[i]) == 0, "a wrong get");
		mp_barrier(); /* the buffer may be written again */
	}
	mp_ok(PtlMDUnlink(here));
}

/* Run without meeting other ranks. */
static void do_alone(void)
{
	mp_put(md, 0, 8, PTL_ACK_REQ, mp.rank, BITS, 0, 7);
	(void)mp_expect(eq, PTL_EVENT_SEND_END);
	(void)mp_expect(eq, PTL_EVENT_ACK);
	mp_check(mp_expect(served, PTL_EVENT_PUT_END).hdr_data == 7, "another put");
	PtlFini();
}

static pid_t fork_now(void)
{
	fflush(NULL);
	pid_t child = fork();
	mp_check(child >= 0, "fork");
	return child;
}

static void await_child(pid_t child)
{
	int status;
	mp_check(waitpid(child, &status, 0) == child && status == 0, "child: status %#x",
		status);
}

static void do_child(void)
{
	pid_t child = fork_now();
	if (child == 0) {
		mp_start();
		mp_check(mp.size == 1, "a forked child is in a job of %u", mp.size);
		sink = NULL;
		open_all();
		for (int i = 0; i < 20; i++)
			traffic();
		mp_end();
		exit(0);
	}
	for (int i = 0; i < 20; i++)
		traffic();
	await_child(child);
	traffic();
}

static void do_again(void)
{
	int most;
	for (int i = 0; i < 20; i++) {
		mp_barrier();
		if (i % 4 == 3) {
			PtlFini();
			mp_ok(PtlInit(&most));
		} else {
			mp_ok(PtlNIFini(mp.ni));
		}
		mp_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &mp.ni));
		open_all();
		mp_barrier();
		traffic();
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	mp_start();
	open_all();
	if (strcmp(what, "alone") == 0) {
		do_alone();
		puts("fine");
		return 0;
	}
	mp_barrier();
	traffic();
	if (strcmp(what, "child") == 0)
		do_child();
	else if (strcmp(what, "again") == 0)
		do_again();
	else if (strcmp(what, "leave") == 0)
		exit(0);
	else if (strcmp(what, "crash") == 0)
		_exit(0);
	else
		mp_check(strcmp(what, "self") == 0, "usage: life WHAT");
	puts("fine");
	mp_end();
	return 0;
}
