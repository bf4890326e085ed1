/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node for orphans.sh: prints that it is up, and waits for a message that never
 * comes.
 *
 *	mp_orphan [deaf] [forks]
 *
 * deaf: it ignores all signals that ask it to end; forks: two processes, one in a
 * session of its own, hold its output and stay; USR1 ends it with status 3.
 */
#include "mp.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void on_usr1(int sig)
{
	(void)sig;
	_exit(3);
}

static void stay(bool apart)
{
	if (fork())
		return;
	if (apart && setsid() > 0 && fork())
		_exit(0);
	for (;;)
		pause();
}

static void be_deaf(void)
{
	static const int asks[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++)
		signal(asks[i], SIG_IGN);
}

int main(int argc, char **argv)
{
	signal(SIGUSR1, on_usr1);
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "deaf"))
			be_deaf();
	mp_start();
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "forks")) {
			stay(false);
			stay(true);
		}
	mp_barrier();
	printf("up %u %d\n", mp.rank, (int)getpid());
	fflush(stdout);
	mp_expect(mp_queue(4), PTL_EVENT_PUT_END);
	return 0;
}
