/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * twins - a rank that forks before PtlInit, and both processes open the interface: the
 * first one is the rank, the second one gets an error at once and does no harm
 *
 *	twins parent	the parent is first
 *	twins child	the child is first
 *	twins off	the parent is the rank, and the child sets PTL3_LAUNCHED=off: it
 *			is a process started by hand
 */
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int ready[2], tried[2];

static void tell(int fd)
{
	mp_check(write(fd, "x", 1) == 1, "cannot tell the twin");
}

static void hear(int fd)
{
	char byte;
	mp_check(read(fd, &byte, 1) == 1, "the twin has ended");
}

/* Exchange a message with the neighbours, before and after the twin has tried. */
static void talk(unsigned round)
{
	static uint64_t here, there;
	ptl_handle_eq_t eq = mp_queue(8);
	mp_attach(round, &here, sizeof here, PTL_MD_OP_PUT, eq);
	mp_barrier();
	there = 100 * round + mp.rank;
	ptl_handle_md_t md = mp_bind(&there, sizeof there, PTL_EQ_NONE, 0);
	unsigned next = (mp.rank + 1) % mp.size;
	mp_ok(PtlPut(md, PTL_NOACK_REQ, mp.id[next], MP_PORTAL, 0, round, 0, 0));
	mp_check(mp_next(eq).type == PTL_EVENT_PUT_END, "another event");
	mp_check(here == 100 * round + (mp.rank + mp.size - 1) % mp.size, "got %llu",
		(unsigned long long)here);
}

static void be_first(void)
{
	mp_start();
	talk(1);
	tell(ready[1]);
	hear(tried[0]);
	talk(2);
	mp_end();
}

static void be_second(bool off)
{
	int most;
	ptl_handle_ni_t ni;
	unsigned rank, size;
	if (off)
		setenv("PTL3_LAUNCHED", "off", 1);
	hear(ready[0]);
	int rc = PtlInit(&most);
	rc = rc ? rc : PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni);
	printf("second: %s\n", PtlErrorStr((unsigned)rc));
	if (rc == PTL_OK && PtlGetRank(ni, &rank, &size) == PTL_OK)
		printf("second is rank %u of %u\n", rank, size);
	fflush(stdout);
	tell(tried[1]);
	PtlFini();
}

int main(int argc, char **argv)
{
	int status = 0;
	if (argc != 2)
		return 2;
	bool child_first = strcmp(argv[1], "child") == 0;
	if (pipe(ready) || pipe(tried))
		return 2;
	pid_t child = fork();
	if ((child == 0) == child_first)
		be_first();
	else
		be_second(strcmp(argv[1], "off") == 0);
	if (child)
		mp_check(waitpid(child, &status, 0) == child, "no child");
	return status ? 1 : 0;
}
