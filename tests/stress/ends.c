/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ends HOW - rank 1 leaves with operations of every kind pending, in both directions: its
 * partner (rank 0) is stopped, and was stopped while it began its own; under yod -sz 3
 *
 *	nifini, fini	a call; afterwards not a byte of its memory changes
 *	return, exit, _exit, thread	without any; thread: another thread calls exit
 *	atexit, destructor	that calls the library, and PtlFini last
 *
 * Rank 2 stops the others and lets them go on.  Leaving waits for no process.  The
 * partner's operations end, its memory is left alone from then on, and its traffic with
 * rank 2 is right.
 */
#include "stress/streams.h"
#include "support/asleep.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPS = S_FREE, CUE, PIDS };
enum { PARTNER, LEAVER, CONDUCTOR };

enum { LENGTH = 300000, MANY = 4 };

static const char *how;
static const bool stay[S_RANKS] = {[PARTNER] = true, [CONDUCTOR] = true};
static pid_t pids[S_RANKS];
static ptl_handle_eq_t eq, cue_eq;
static ptl_handle_md_t out, heap_out, in, word;
static unsigned char *source, *heap, *got, *sink;
static unsigned puts_begun, sends, replies;

/* ---- operations of every kind ---- */

static void *bytes(void)
{
	void *at = calloc(1, LENGTH);
	mp_check(at, "no memory");
	return at;
}

static void open_all(void)
{
	void *block;
	unsigned both =
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE;
	mp_ok(PtlXAlloc(LENGTH, &block));
	heap = block;
	source = bytes();
	got = bytes();
	sink = bytes();
	eq = mp_queue(1024);
	cue_eq = mp_queue(16);
	out = mp_bind(source, LENGTH, eq, 0);
	heap_out = mp_bind(heap, LENGTH, eq, 0);
	in = mp_bind(got, LENGTH, eq, 0);
	word = mp_bind(&pids[mp.rank], sizeof pids[0], PTL_EQ_NONE, 0);
	mp_attach(OPS, sink, LENGTH, both, eq);
	mp_attach(CUE, NULL, 0, PTL_MD_OP_PUT, cue_eq);
	mp_attach(PIDS, pids, sizeof pids, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, cue_eq);
}

static void begin_with(unsigned to)
{
	static const ptl_size_t length[] = {8, 1000, LENGTH};
	for (int i = 0; i < MANY; i++)
		for (int k = 0; k < 3; k++) {
			mp_put(out, 0, length[k], PTL_ACK_REQ, to, OPS, 0, 0);
			mp_put(heap_out, 0, length[k], PTL_ACK_REQ, to, OPS, 0, 0);
			mp_get(in, 0, length[k], to, OPS, 0);
			puts_begun += 2;
		}
	for (int i = 0; i < MANY; i++, puts_begun++)
		mp_ok(PtlGetPutRegion(
			in, 0, out, 0, 64, mp.id[to], MP_PORTAL, 0, OPS, 0, 0));
}

static uint64_t under_way(void)
{
	ptl_sr_value_t n;
	mp_ok(PtlNIStatus(mp.ni, PTL_SR_MSGS_CUR, &n));
	return (uint64_t)n;
}

static void let_all_end(void)
{
	struct patience p = patience_begin();
	ptl_event_t ev;
	while ((under_way() || sends < puts_begun) && !patience_is_over(&p))
		if (mp_next_within(eq, 5, &ev)) {
			sends += ev.type == PTL_EVENT_SEND_END;
			replies += ev.type == PTL_EVENT_REPLY_END;
		}
	mp_check(!under_way() && sends == puts_begun,
		"%llu operations are under way, %u of %u sends have ended",
		(unsigned long long)under_way(), sends, puts_begun);
}

static void fill_all(int byte)
{
	memset(source, byte, LENGTH);
	memset(got, byte, LENGTH);
	memset(sink, byte, LENGTH);
}

static void check_all(int byte)
{
	for (int i = 0; i < LENGTH; i++)
		mp_check(source[i] == byte && got[i] == byte && sink[i] == byte,
			"byte %d has changed", i);
}

/* ---- cues ---- */

static void cue(unsigned to)
{
	mp_put(word, 0, 0, PTL_NO_ACK_REQ, to, CUE, 0, 0);
}

static void await_cue(void)
{
	ptl_event_t ev;
	mp_check(mp_next_soon(cue_eq, &ev), "no cue");
}

static void stop(unsigned rank)
{
	mp_check(kill(pids[rank], SIGSTOP) == 0 && await_stopped(pids[rank]), "SIGSTOP");
}

static void go_on(unsigned rank)
{
	mp_check(kill(pids[rank], SIGCONT) == 0, "kill");
}

static uint64_t alive(void)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_ok(PtlXStats(mp.ni, &st));
	return st.peers_alive;
}

static void conduct(void)
{
	stop(LEAVER);
	cue(PARTNER);
	await_cue();
	stop(PARTNER);
	go_on(LEAVER);
	cue(LEAVER);
	struct patience p = patience_begin();
	while (alive() == 3 && !patience_is_over(&p))
		usleep(1000);
	bool left = alive() == 2;
	go_on(PARTNER);
	mp_check(left, "it has not left, while its partner is stopped");
	cue(PARTNER);
}

static void be_partner(void)
{
	await_cue();
	begin_with(LEAVER);
	cue(CONDUCTOR);
	await_cue();
	let_all_end();
	fill_all(0x33);
	/* pause: time for a wrong write to show */
	usleep(50000);
	check_all(0x33);
}

/* ---- leaving ---- */

static bool late;

/* Make calls that a program may still make while it ends. */
static void call_at_the_end(void)
{
	ptl_event_t ev;
	if (!late)
		return;
	(void)PtlPut(out, PTL_ACK_REQ, mp.id[PARTNER], MP_PORTAL, 0, OPS, 0, 0);
	(void)PtlEQGet(eq, &ev);
	(void)PtlNIFini(mp.ni);
	PtlFini();
	PtlFini();
}

static void at_exit(void)
{
	if (!strcmp(how, "atexit"))
		call_at_the_end();
}

__attribute__((destructor)) static void at_unload(void)
{
	if (how && !strcmp(how, "destructor"))
		call_at_the_end();
}

static void *exit_here(void *arg)
{
	(void)arg;
	/* pause: a stagger: the main thread is inside the library, or not */
	usleep(2000);
	exit(0);
}

static void leave_by_call(void)
{
	struct patience p = patience_begin();
	uint64_t begun = now_ns();
	if (!strcmp(how, "fini"))
		PtlFini();
	else
		mp_ok(PtlNIFini(mp.ni));
	mp_check(!patience_is_over(&p), "it took %llu ms",
		(unsigned long long)(now_ns() - begun) / 1000000);
	fill_all(0x77);
	/* pause: the partner goes on meanwhile, and a wrong write would show */
	usleep(300000);
	check_all(0x77);
}

static void leave(void)
{
	ptl_event_t ev;
	pthread_t thread;
	await_cue();
	begin_with(PARTNER);
	mp_check(under_way(), "nothing is pending");
	late = true;
	if (!strcmp(how, "nifini") || !strcmp(how, "fini"))
		leave_by_call();
	if (!strcmp(how, "_exit"))
		_exit(0);
	if (!strcmp(how, "exit"))
		exit(0);
	if (!strcmp(how, "thread")) {
		mp_check(!pthread_create(&thread, NULL, exit_here, NULL), "no thread");
		for (;;)
			(void)PtlEQWait(cue_eq, &ev);
	}
}

int main(int argc, char **argv)
{
	how = argc > 1 ? argv[1] : "";
	atexit(at_exit);
	mp_start();
	mp_check(mp.size == 3, "three ranks, please");
	streams_open(1, stay);
	open_all();
	mp_barrier();
	pids[mp.rank] = getpid();
	mp_put(word, 0, sizeof pids[0], PTL_NO_ACK_REQ, CONDUCTOR, PIDS,
		mp.rank * sizeof pids[0], 0);
	for (unsigned r = 0; r < mp.size && mp.rank == CONDUCTOR; r++)
		await_cue();
	mp_barrier();
	if (mp.rank == LEAVER) {
		leave();
		return 0;
	}
	if (mp.rank == CONDUCTOR)
		conduct();
	else
		be_partner();
	streams_round(stay, 100);
	if (mp.rank == CONDUCTOR)
		puts("fine");
	PtlFini();
	return 0;
}
