/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fences MS [before|after] - messages to nodes that are falling asleep
 *
 *	compute	both ranks of a pair are outside the library, so that their NIC threads
 *		sleep: each message must ring.  The second of two comes when the NIC
 *		thread that the first one woke goes to sleep again
 *	wait	one rank waits for an event, after so long outside that its NIC thread
 *		sleeps: the message comes when the waiting thread parks
 *	both	likewise, and a second thread of that rank waits all the time for every
 *		third message: it watches, and wakes the first one
 *
 * An even number of ranks: each of the first half with one of the second.  Each scene
 * lasts MS.  before, after: membarrier is refused from before PtlInit, or from after
 * PtlNIInit on, which must be reported once.
 *
 * After a lost wake-up a thread finds work when its sleep ends by itself: park_late
 * counts that, and must be 0.  Where membarrier is refused it may be more: a thread that
 * stops sleeping then waits a millisecond for the stores of others before it looks, and
 * finds messages that came meanwhile, for which nobody had to ring.
 */
#include "mp.h"
#include "../support/deny.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MEMORY = 1, FIRST = 2, SECOND = 3 }; /* match bits */

#define OUTSIDE_NS 15000000u /* a NIC thread sleeps after this time */
#define WOKEN_NS   10000u    /* delay that shows that the receiver was asleep */

static struct {
	unsigned peer;
	bool first; /* of the pair */
	ptl_handle_md_t md;
	ptl_handle_eq_t eq[2];
	volatile uint64_t heard[2]; /* written by the peer */
	uint64_t said;              /* source of the words for the peer */
	pthread_mutex_t lock;       /* guards the records: */
	uint64_t rounds, edges, worst;
} at = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- a gap that ends when the other side falls asleep ---- */

struct gap {
	uint64_t ns, step, least, most;
	bool slept; /* last time */
};

static uint64_t wakes(void)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_ok(PtlXStats(mp.ni, &st));
	return st.wakes_sent;
}

/* Lengthen the gap until the peer sleeps, shorten it then; with a little randomness. */
static void adapt(struct gap *g, bool slept)
{
	bool same = slept == g->slept;
	at.edges += !same;
	g->slept = slept;
	g->step = same ? g->step + g->step / 2 : g->step / 2;
	if (g->step < 256)
		g->step = 256;
	if (g->step > g->ns / 2)
		g->step = g->ns / 2;
	g->ns += slept ? -g->step : g->step;
	g->ns += mp_mix(now_ns()) % 256;
	if (g->ns < g->least)
		g->ns = g->least;
	if (g->ns > g->most)
		g->ns = g->most;
}

/* Sleep but for the last millisecond, which is exact. */
static void stay_until(uint64_t ns)
{
	for (uint64_t now; (now = now_ns()) < ns;)
		if (ns - now >= 2000000)
			sleep_ms((unsigned)((ns - now) / 1000000 - 1)); /* pause: so */
}

/* Wait outside the library, and with the CPU free for NIC threads. */
static uint64_t compute_while(unsigned which, uint64_t old)
{
	const struct timespec nap = {.tv_nsec = 10000};
	struct patience p = patience_begin();
	uint64_t now;
	while ((now = at.heard[which]) == old) {
		mp_check(!patience_is_over(&p), "nothing came");
		(void)nanosleep(&nap, NULL);
	}
	return now;
}

static void note(uint64_t ns)
{
	pthread_mutex_lock(&at.lock);
	at.rounds++;
	if (ns > at.worst)
		at.worst = ns;
	pthread_mutex_unlock(&at.lock);
}

static void say(unsigned which, uint64_t word)
{
	at.said = word; /* copied before the call returns */
	mp_put(at.md, 0, sizeof at.said, PTL_NO_ACK_REQ, at.peer, MEMORY,
		which * sizeof at.said, 0);
}

/* ---- both compute ---- */

static void two_shots(struct gap *g, uint64_t number)
{
	say(0, number);
	stay_until(now_ns() + g->ns);
	uint64_t before = wakes();
	say(1, number);
	adapt(g, wakes() != before);
}

/* Exchange numbers with the peer until UINT64_MAX, which is the last one. */
static void compute(uint64_t ms)
{
	struct gap g = {30000, 1000, 1000, 300000, false};
	uint64_t end = now_ns() + ms * 1000000, number = 1;
	while (at.first) {
		uint64_t start = now_ns();
		number = start < end ? number + 1 : UINT64_MAX;
		uint64_t old = at.heard[0], old_too = at.heard[1];
		two_shots(&g, number);
		if (number == UINT64_MAX)
			return;
		(void)compute_while(0, old);
		(void)compute_while(1, old_too);
		note(now_ns() - start);
	}
	for (uint64_t old = 0; (number = compute_while(0, old)) != UINT64_MAX;
		old = number) {
		while (compute_while(1, old) != number)
			;
		two_shots(&g, number);
	}
}

/* ---- one waits ---- */

/* Answer the next message, and return its time; 0: it was the last. */
static uint64_t answer_next(unsigned queue)
{
	ptl_event_t ev = mp_expect(at.eq[queue], PTL_EVENT_PUT_END);
	uint64_t now = now_ns();
	if (!ev.hdr_data)
		return 0;
	note(now - ev.hdr_data);
	say(1, now - ev.hdr_data);
	say(0, now);
	return now;
}

static void *wait_for_second(void *arg)
{
	(void)arg;
	while (answer_next(1))
		;
	return NULL;
}

static void wait_for_first(void)
{
	for (uint64_t now; (now = answer_next(0)) != 0;)
		stay_until(now + OUTSIDE_NS);
}

static void ask(unsigned bits, uint64_t hdr)
{
	mp_put(at.md, 0, 8, PTL_NO_ACK_REQ, at.peer, bits, 0, hdr);
}

/* Send again and again.  After an answer the other rank stays outside the library until
 * began + OUTSIDE_NS; then it waits inside. */
static void ask_often(uint64_t ms, bool both)
{
	struct gap g = {1030000, 10000, 20000, 30000000, false};
	uint64_t end = now_ns() + ms * 1000000, began = now_ns();
	for (unsigned i = 0; now_ns() < end; i++) {
		uint64_t old = at.heard[0];
		bool second = both && i % 3 == 2, late = i % 4 == 3;
		stay_until(began + OUTSIDE_NS + (late ? g.most : g.ns));
		ask(second ? SECOND : FIRST, now_ns());
		uint64_t now = compute_while(0, old);
		began = second ? began + OUTSIDE_NS : now;
		if (!second && !late)
			adapt(&g, at.heard[1] > WOKEN_NS);
	}
	ask(FIRST, 0);
	if (both)
		ask(SECOND, 0);
}

static void wait_scene(uint64_t ms, bool both)
{
	pthread_t thread;
	if (at.first) {
		ask_often(ms, both);
		return;
	}
	if (both && pthread_create(&thread, NULL, wait_for_second, NULL) != 0)
		mp_fail(__FILE__, __LINE__, "no thread");
	wait_for_first();
	if (both)
		pthread_join(thread, NULL);
}

/* ---- refused ---- */

static void refuse_membarrier(void)
{
	if (deny_call(SYS_membarrier))
		return;
	perror("skipped: seccomp");
	exit(77);
}

/* Catch this process' stderr from now on. */
static int catch_stderr(int *own_out)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC);
	*own_out = dup(2);
	mp_check(fd >= 0 && *own_out >= 0 && dup2(fd, 2) == 2, "no memfd");
	return fd;
}

static unsigned count_warnings(int fd, int own)
{
	static char text[65536];
	unsigned n = 0;
	(void)dup2(own, 2);
	ssize_t len = pread(fd, text, sizeof text - 1, 0);
	text[len > 0 ? len : 0] = 0;
	fputs(text, stderr);
	for (const char *s = text; (s = strstr(s, "refuses membarrier")); s++)
		n++;
	return n;
}

/* ---- all ---- */

static void prepare(void)
{
	static char sink[8];
	mp_check(mp.size % 2 == 0, "an even number of ranks, please");
	(void)prctl(PR_SET_TIMERSLACK, 1);
	at.peer = (mp.rank + mp.size / 2) % mp.size;
	at.first = mp.rank < at.peer;
	at.md = mp_bind(&at.said, sizeof at.said, PTL_EQ_NONE, 0);
	mp_attach(MEMORY, (void *)(uintptr_t)at.heard, sizeof at.heard,
		PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE);
	for (unsigned i = 0; i < 2; i++) {
		at.eq[i] = mp_queue(64);
		mp_attach(FIRST + i, sink, sizeof sink,
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, at.eq[i]);
	}
	mp_barrier();
}

static void judge(const char *scene, bool refused)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_ok(PtlXStats(mp.ni, &st));
	printf("rank %u %s: %llu rounds, %llu edges, worst %.3f ms, late %llu\n", mp.rank,
		scene, (unsigned long long)at.rounds, (unsigned long long)at.edges,
		(double)at.worst / 1e6, (unsigned long long)st.park_late);
	mp_check(st.park_late == 0 || refused, "%s: %llu wakes were lost", scene,
		(unsigned long long)st.park_late);
	at.rounds = at.edges = at.worst = 0;
	mp_barrier();
}

int main(int argc, char **argv)
{
	uint64_t ms = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	const char *refused = argc > 2 ? argv[2] : "";
	bool after = strcmp(refused, "after") == 0;
	if (strcmp(refused, "before") == 0) {
		refuse_membarrier();
		argv[2] = (char[]){"before it was loaded"};
		execv("/proc/self/exe", argv);
	}
	int own, fd = catch_stderr(&own);
	mp_start();
	if (after)
		refuse_membarrier();
	prepare();
	compute(ms);
	judge("compute", *refused);
	wait_scene(ms, false);
	judge("wait", *refused);
	wait_scene(ms, true);
	judge("both", *refused);
	unsigned warnings = count_warnings(fd, own);
	mp_check(warnings == after, "%u warnings of a refused membarrier", warnings);
	mp_end();
	return 0;
}
