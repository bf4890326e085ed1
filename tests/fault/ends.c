/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault_ends - rank 1 is stopped in the middle of a transfer (tests/fault/ends.sh), and
 * rank 0 ends the use of its memory meanwhile: PtlNIFini, PtlMDUnlink, or exec.  From
 * then on no process may touch that memory, nor take its content for sent bytes.
 *
 *	fault_ends fini|unlink|exec [after]
 *
 * Both put to and get from each other, long, from ordinary memory and from the shared
 * heap.  Rank 0 paints all its memory after the call, continues rank 1, and looks at
 * the paint.  Rank 1 must see failures, or the bytes that were sent.
 */
#include "../mp/mp.h"
#include "../support/asleep.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SINK,
	HEAP_SINK,
	SOURCE,
	HEAP_SOURCE,
	OKAY,
	LONG = 1 << 20,
	PAINT = 0xee,
	REST_MS = 300
};
enum { PUT, PUT_HEAP, GET, GET_HEAP, FLOWS };

static ptl_handle_eq_t eq;
static char *sink[2], *source, *heap, *got[2];
static ptl_handle_md_t md[FLOWS], word;
static pid_t victim;
static unsigned done;

static ptl_handle_md_t bind(void *at, uintptr_t flow)
{
	ptl_md_t d = {.start = at,
		.length = LONG,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.user_ptr = (void *)(flow + 1),
		.eq_handle = eq};
	ptl_handle_md_t handle;
	mp_ok(PtlMDBind(mp.ni, d, PTL_RETAIN, &handle));
	return handle;
}

static void start(unsigned flow)
{
	unsigned to = 1 - mp.rank;
	if (flow <= PUT_HEAP)
		mp_put(md[flow], 0, LONG, PTL_NO_ACK_REQ, to, SINK + flow, 0, 0);
	else
		mp_get(md[flow], 0, LONG, to, flow == GET ? SOURCE : HEAP_SOURCE, 0);
}

static void *block(void)
{
	void *at;
	mp_ok(PtlXAlloc(LONG, &at));
	return at;
}

static void open_all(void)
{
	unsigned get = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
	unsigned put = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE;
	eq = mp_queue(1024);
	source = malloc(LONG);
	heap = block();
	memcpy(source, mp_pattern, LONG);
	memcpy(heap, mp_pattern, LONG);
	md[PUT] = bind(source, PUT);
	md[PUT_HEAP] = bind(heap, PUT_HEAP);
	for (int i = 0; i < 2; i++) {
		got[i] = calloc(1, LONG);
		sink[i] = calloc(1, LONG);
		md[GET + i] = bind(got[i], GET + (unsigned)i);
		mp_attach(SINK + (unsigned)i, sink[i], LONG, put, eq);
	}
	word = mp_bind(NULL, 0, PTL_EQ_NONE, 0);
	mp_attach(OKAY, NULL, 0, put, eq);
	mp_attach(SOURCE, source, LONG, get, PTL_EQ_NONE);
	mp_attach(HEAP_SOURCE, heap, LONG, get, PTL_EQ_NONE);
}

/* Check bytes whose END has come: they must be the sent ones. */
static void look_at(const char *bytes, const char *what)
{
	mp_check(!memcmp(bytes, mp_pattern, LONG), "%s: not what was sent", what);
	done++;
}

/* Check a put; the next one comes when this has been checked. */
static void look_at_put(unsigned flow)
{
	look_at(sink[flow], "a put");
	mp_put(word, 0, 0, PTL_NO_ACK_REQ, 1 - mp.rank, OKAY, 0, flow);
}

/* Process an event.  Return false if it failed. */
static bool on_event(const ptl_event_t *ev)
{
	unsigned flow = (unsigned)(uintptr_t)ev->md.user_ptr - 1;
	if (ev->ni_fail_type != PTL_NI_OK)
		return false;
	if (ev->type == PTL_EVENT_PUT_END && ev->match_bits == OKAY)
		start((unsigned)ev->hdr_data);
	else if (ev->type == PTL_EVENT_PUT_END)
		look_at_put((unsigned)ev->match_bits);
	if (ev->type != PTL_EVENT_REPLY_END)
		return true;
	look_at(got[flow - GET], "a reply");
	start(flow);
	return true;
}

static void paint(char *at)
{
	memset(at, PAINT, LONG);
}

static void look_at_paint(const char *at, const char *what)
{
	for (size_t i = 0; i < LONG; i++)
		mp_check((unsigned char)at[i] == PAINT,
			"%s: byte %zu was touched after the end of its use", what, i);
}

static bool is_stopped(void)
{
	return thread_state(victim) == 'T';
}

/* ---- rank 0 ---- */

static void end_by_fini(void)
{
	mp_ok(PtlNIFini(mp.ni));
	char *all[] = {sink[0], sink[1], source, heap, got[0], got[1]};
	for (int i = 0; i < 6; i++)
		paint(all[i]);
	mp_check(kill(victim, SIGCONT) == 0, "SIGCONT");
	/* pause: time for a wrong write to show */
	sleep_ms(REST_MS);
	for (int i = 0; i < 6; i++)
		look_at_paint(all[i], "after PtlNIFini");
}

/* Unlink: memory in use stays; memory that is given back is painted. */
static void end_by_unlink(void)
{
	char *at[FLOWS] = {NULL, NULL, got[0], got[1]};
	bool gone[FLOWS];
	for (int i = GET; i < FLOWS; i++) {
		int rc = PtlMDUnlink(md[i]);
		mp_check(rc == PTL_OK || rc == PTL_MD_IN_USE, "PtlMDUnlink: %d", rc);
		gone[i] = rc == PTL_OK;
		if (gone[i])
			paint(at[i]);
	}
	mp_check(kill(victim, SIGCONT) == 0, "SIGCONT");
	/* pause: time for a wrong write to show */
	sleep_ms(REST_MS);
	for (int i = GET; i < FLOWS; i++)
		if (gone[i])
			look_at_paint(at[i], "after PtlMDUnlink");
}

/* Execute a program with the same process id, and other bytes at all addresses. */
static void end_by_exec(char **argv)
{
	char pid[12];
	snprintf(pid, sizeof pid, "%d", (int)victim);
	execl("/proc/self/exe", argv[0], argv[1], pid, (char *)NULL);
	mp_fail(__FILE__, __LINE__, "exec");
}

static int after_exec(const char *pid)
{
	for (int i = 0; i < 40; i++)
		memset(malloc(LONG), PAINT, LONG);
	(void)kill((pid_t)atoi(pid), SIGCONT);
	/* pause: time for a wrong write to show */
	sleep_ms(REST_MS);
	return 0;
}

static void end_use(char **argv)
{
	if (!strcmp(argv[1], "fini"))
		end_by_fini();
	else if (!strcmp(argv[1], "unlink"))
		end_by_unlink();
	else
		end_by_exec(argv);
}

/* Open the file that rank 1 marks; a message could come before rank 0 knows of the
 * stop. */
static FILE *victims_file(const char *mode, char name[40])
{
	snprintf(name, 40, "/tmp/fault_ends.%d", (int)getppid());
	FILE *f = fopen(name, mode);
	mp_check(f, "%s", name);
	return f;
}

static void say_victim(void)
{
	char name[40];
	FILE *f = victims_file("w", name);
	fprintf(f, "%d\n", (int)getpid());
	mp_check(fclose(f) == 0, "%s", name);
}

static void find_victim(void)
{
	char name[40];
	FILE *f = victims_file("r", name);
	mp_check(fscanf(f, "%d", &victim) == 1, "%s", name);
	fclose(f);
	(void)unlink(name);
}

/* Run until rank 1 has been stopped or is gone, or enough was done. */
static bool run(bool ends)
{
	uint64_t until = now_ns() + 1000000000u;
	while (now_ns() < until && !(ends && is_stopped())) {
		ptl_event_t ev;
		if (mp_next_within(eq, 1, &ev) && !on_event(&ev))
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	mp_check(argc > 1, "fini, unlink or exec?");
	if (argc > 2)
		return after_exec(argv[2]);
	mp_start();
	mp_check(mp.size == 2, "two ranks, please");
	open_all();
	if (mp.rank == 1)
		say_victim();
	mp_barrier();
	if (mp.rank == 0)
		find_victim();
	for (unsigned flow = 0; flow < FLOWS; flow++)
		start(flow);
	if (!run(mp.rank == 0))
		printf("rank %u: failed after %u\n", mp.rank, done);
	else if (mp.rank == 0 && is_stopped())
		end_use(argv);
	printf("rank %u: fine after %u\n", mp.rank, done);
	return 0;
}
