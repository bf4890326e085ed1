/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * last - processes whose first thread ends by pthread_exit, with a Portals interface or
 * a CCI endpoint: they go on while the program has a thread, then end as without
 * libportals, and a signal that is pending by then is taken
 */
#include "../support/plain.h"

#include <cci.h>
#include <portals3.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int news[2]; /* from the child: a byte when it calls its atexit handler */
static pthread_t first;
static ptl_handle_ni_t ni;
static bool raises;

static void tell(void)
{
	CHECK(write(news[1], "e", 1) == 1);
}

static void open_portals(void)
{
	int most;
	CHECK(PtlInit(&most) == PTL_OK);
	CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK);
}

static void open_cci(void)
{
	uint32_t caps;
	cci_endpoint_t *endpoint;
	CHECK(cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS);
	CHECK(cci_create_endpoint(NULL, 0, &endpoint, NULL) == CCI_SUCCESS);
}

/* The last thread of the program, when the first one is gone. */
static void *outlive(void *arg)
{
	sigset_t term;
	CHECK(pthread_join(first, NULL) == 0);
	if (raises) {
		sigemptyset(&term);
		sigaddset(&term, SIGTERM);
		CHECK(pthread_sigmask(SIG_BLOCK, &term, NULL) == 0);
		CHECK(kill(getpid(), SIGTERM) == 0);
	}
	return arg;
}

static void be_child(void (*open_it)(void))
{
	pthread_t thread;
	alarm(50);
	CHECK(atexit(tell) == 0);
	open_it();
	first = pthread_self();
	CHECK(pthread_create(&thread, NULL, outlive, NULL) == 0);
	CHECK(pthread_detach(thread) == 0);
	pthread_exit(NULL);
}

static void ends(void (*open_it)(void), bool by_signal)
{
	int status;
	char c;
	raises = by_signal;
	CHECK(pipe(news) == 0);
	pid_t child = fork();
	if (child == 0)
		be_child(open_it);
	CHECK(child > 0 && close(news[1]) == 0);
	CHECK(waitpid(child, &status, 0) == child);
	if (by_signal) {
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
		CHECK(read(news[0], &c, 1) == 0);
	} else {
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		CHECK(read(news[0], &c, 1) == 1);
	}
	CHECK(close(news[0]) == 0);
}

int main(void)
{
	for (int i = 0; i < 2; i++) {
		ends(open_portals, i);
		ends(open_cci, i);
	}
	return 0;
}
