/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life CASE - beginnings and ends of processes:
 *
 *	self	traffic with oneself; also for programs started without yod
 *	alone	a put to oneself, independent of the other ranks
 *	fork	a forked child gets PTL_NO_INIT from every call and disturbs nothing
 *	child	a forked child starts its own job of one node
 *	exec	system(), popen(), fork + exec during traffic
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

/* ---- fork ---- */

#define no_init(call)                                                                    \
	mp_check((call) == PTL_NO_INIT, "%s: %s in a forked child", #call,               \
		PtlErrorStr((unsigned)(call)))

static void others_say_no_init(void)
{
	ptl_handle_any_t h;
	ptl_process_id_t id = mp.id[0];
	ptl_md_t d = {.eq_handle = PTL_EQ_NONE};
	ptl_event_t ev;
	ptl_sr_value_t value;
	ptl_nid_t map[MP_MOST] = {0};
	ptl_pt_index_t pt;
	unsigned long distance;
	void *block;
	no_init(PtlNIStatus(mp.ni, PTL_SR_DROP_COUNT, &value));
	no_init(PtlNIDist(mp.ni, id, &distance));
	no_init(PtlNIHandle(md, &h));
	no_init(PtlACEntry(mp.ni, 1, id, 0, 0, 1));
	no_init(PtlMEAttachAny(mp.ni, &pt, id, 0, 0, PTL_RETAIN, &h));
	no_init(PtlMEInsert(md, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &h));
	no_init(PtlMEMDAttach(
		mp.ni, 1, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, d, PTL_RETAIN, &h, NULL));
	no_init(PtlMEMDInsert(
		md, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, d, PTL_RETAIN, &h, NULL));
	no_init(PtlMEMDPost(mp.ni, md, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, d, PTL_RETAIN,
		&h, NULL, PTL_EQ_NONE));
	no_init(PtlMDUpdate(md, NULL, &d, PTL_EQ_NONE));
	no_init(PtlEQPeek(eq, &ev));
	no_init(PtlGetPut(md, md, id, MP_PORTAL, 0, BITS, 0, 0));
	no_init(PtlGetPutRegion(md, 0, md, 0, 8, id, MP_PORTAL, 0, BITS, 0, 0));
	no_init(PtlProgress(mp.ni, 1));
	no_init(PtlTblDump(mp.ni, 1));
	no_init(PtlMEDump(md));
	no_init(PtlNIEqDump(mp.ni));
	no_init(PtlSetRank(mp.ni, 0, 1));
	no_init(PtlSetNIDMap(mp.ni, map, 1));
	no_init(PtlSetPIDMap(mp.ni, map, 1));
	no_init(PtlGetNIDMap(mp.ni, map, 1));
	no_init(PtlGetPIDMap(mp.ni, map, 1));
	no_init(PtlSetJID(mp.ni, 1));
	no_init(PtlXAlloc(8, &block));
	no_init(PtlXFree(sink));
}

static void all_say_no_init(void)
{
	ptl_handle_any_t h;
	ptl_process_id_t id = mp.id[0];
	ptl_md_t d = {
		.start = sink, .length = 8, .threshold = 1, .eq_handle = PTL_EQ_NONE};
	ptl_event_t ev;
	ptl_uid_t uid;
	ptl_jid_t jid;
	unsigned rank, size;
	int which;
	ptlx_stats_t st = {.struct_size = sizeof st};
	no_init(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &h));
	no_init(PtlNIFini(mp.ni));
	no_init(PtlGetId(mp.ni, &id));
	no_init(PtlGetUid(mp.ni, &uid));
	no_init(PtlGetJid(mp.ni, &jid));
	no_init(PtlGetRank(mp.ni, &rank, &size));
	no_init(PtlGetRankId(mp.ni, 0, &id));
	no_init(PtlMEAttach(mp.ni, 1, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &h));
	no_init(PtlMEUnlink(md));
	no_init(PtlMDAttach(md, d, PTL_RETAIN, NULL));
	no_init(PtlMDBind(mp.ni, d, PTL_RETAIN, &h));
	no_init(PtlMDUnlink(md));
	no_init(PtlEQAlloc(mp.ni, 8, PTL_EQ_HANDLER_NONE, &h));
	no_init(PtlEQFree(eq));
	no_init(PtlEQGet(eq, &ev));
	no_init(PtlEQWait(eq, &ev));
	no_init(PtlEQPoll(&eq, 1, 10, &ev, &which));
	no_init(PtlPut(md, PTL_ACK_REQ, id, MP_PORTAL, 0, BITS, 0, 0));
	no_init(PtlPutRegion(md, 0, 8, PTL_ACK_REQ, id, MP_PORTAL, 0, BITS, 0, 0));
	no_init(PtlGet(md, id, MP_PORTAL, 0, BITS, 0));
	no_init(PtlGetRegion(md, 0, 8, id, MP_PORTAL, 0, BITS, 0));
	no_init(PtlXBarrier());
	others_say_no_init();
	no_init(PtlXStats(mp.ni, &st));
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

static void do_fork(void)
{
	for (int i = 0; i < 10; i++) {
		pid_t child = fork_now();
		if (child == 0) {
			all_say_no_init();
			exit(0); /* runs all atexit functions */
		}
		traffic();
		await_child(child);
		traffic();
	}
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

static void do_exec(void)
{
	char line[100] = "";
	for (int i = 0; i < 5; i++) {
		mp_check(system("exit 3") == 3 << 8, "system()");
		traffic();
		FILE *f = popen("echo hello; sleep 0.01", "re");
		mp_check(f && fgets(line, sizeof line, f) && !strcmp(line, "hello\n"),
			"popen()");
		traffic();
		mp_check(pclose(f) == 0, "pclose()");
		pid_t child = fork_now();
		if (child == 0)
			execl("/bin/true", "true", (char *)NULL);
		traffic();
		await_child(child);
	}
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
	if (strcmp(what, "fork") == 0)
		do_fork();
	else if (strcmp(what, "child") == 0)
		do_child();
	else if (strcmp(what, "exec") == 0)
		do_exec();
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
