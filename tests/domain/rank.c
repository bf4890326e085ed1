/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank - a rank of a job that a launcher other than yod has started, or a test's
 * environment has simulated
 *
 *	rank scene SIZE [RANK_VARIABLE]
 *
 *	all	identities, before any rank has come; messages of all to all; barriers
 *	killed	the last rank dies by SIGKILL: barriers of the others fail, for good
 *	left	the last rank ends in order and is not in the barrier: the same
 *	swept	the last rank closes all descriptors: the same, with one line
 *	again	all leave in order and come back: barriers go on; at last from within one
 *	late	both leave and return, rank 1 later: a put waits for it (arguments: late 2
 *		FILE)
 *	stay	make FILE.there, and stay until there is FILE.go (arguments: stay SIZE
 *		FILE)
 *	family		rank BASE + OMPI_COMM_WORLD_RANK of SIZE by its own word, in one
 *			domain (arguments: family 1 BASE SIZE): messages of all to all
 *	kin		a job of a family meets the others (arguments: kin SIZE DIR FIRST
 *			ROUND... [stay]): in round FIRST, FIRST + 1, ... puts, gets and
 *			barriers with the jobs that ROUND names ("1:3,2:2": job 1 of three
 *			ranks, job 2 of two; "-4:2" in front: they are gone); then it
 *			waits for DIR/r0.0.0 and dies, if stay is the last word
 *	together	says by a file GO.PID that it has an interface, and waits for GO
 */
#include "member.h"
#include "../support/asleep.h"
#include "../support/sweep.h"

#include <cnos_mpi_os.h>
#include <portals3_runtime.h>
#include <portals3x.h>

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PORTAL = 4, ROUNDS = 30, MOST = 64, LONG = 50000 };

static struct {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_jid_t jid;
	unsigned rank, size;
	uint64_t *page; /* LONG words for each rank, which writes them */
	uint64_t *mine; /* as many words for each target */
} me;

#define DO(call)                                                                         \
	do {                                                                             \
		int rc_ = (call);                                                        \
		if (rc_ != PTL_OK)                                                       \
			fail("%s: %s", #call, PtlErrorStr((unsigned)rc_));               \
	} while (0)

_Noreturn void fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "rank %u: ", me.rank);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static uint64_t word(unsigned from, unsigned to, unsigned at)
{
	return (((uint64_t)from * MOST + to) << 32 | at) * 0x9e3779b97f4a7c15u;
}

/* Load a word; the order with the NIC's writing goes through other processes. */
__attribute__((no_sanitize("thread"))) static uint64_t peek(unsigned from, unsigned at)
{
	return *(volatile uint64_t *)&me.page[(size_t)from * LONG + at];
}

__attribute__((no_sanitize("thread"))) static void clear(unsigned from)
{
	*(volatile uint64_t *)&me.page[(size_t)from * LONG] = 0;
}

/* ---- identities ---- */

static void check_rank(const char *variable)
{
	if (PtlXBarrier() != (me.size > 1 ? PTL_FAIL : PTL_OK))
		fail("a barrier before PtlNIInit");
	if (variable &&
		(!getenv(variable) || me.rank != (unsigned)atoi(getenv(variable))))
		fail("%s is another", variable);
	if (cnos_get_rank() != (int)me.rank || cnos_get_size() != (int)me.size)
		fail("cnos: %d of %d", cnos_get_rank(), cnos_get_size());
	if (PtlSetRank(PTL_INVALID_HANDLE, (int)me.rank, (int)me.size) != PTL_OK ||
		PtlSetRank(PTL_INVALID_HANDLE, -1, -1) != PTL_OK ||
		PtlSetRank(PTL_INVALID_HANDLE, 0, (int)me.size + 1) == PTL_OK)
		fail("PtlSetRank disagrees with the launcher");
}

static ptl_process_id_t id_of(unsigned rank)
{
	return (ptl_process_id_t){0x7f000001, 100 + rank};
}

static void check_maps(void)
{
	ptl_nid_t nid[MOST];
	ptl_pid_t pid[MOST];
	cnos_nidpid_map_t *map;
	ptl_process_id_t id;
	DO(PtlGetNIDMap(me.ni, nid, (int)me.size));
	DO(PtlGetPIDMap(me.ni, pid, (int)me.size));
	if (cnos_get_nidpid_map(&map) != (int)me.size)
		fail("no map of cnos");
	for (unsigned i = 0; i < me.size; i++) {
		ptl_process_id_t want = id_of(i);
		DO(PtlGetRankId(me.ni, i, &id));
		if (memcmp(&id, &want, sizeof id) != 0 || nid[i] != id.nid ||
			pid[i] != id.pid || map[i].nid != id.nid || map[i].pid != id.pid)
			fail("rank %u is %u,%u", i, id.nid, id.pid);
	}
	DO(PtlGetId(me.ni, &id));
	if (id.nid != nid[me.rank] || id.pid != pid[me.rank])
		fail("this is %u,%u", id.nid, id.pid);
}

static void open_portal(ptl_pid_t own_pid)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.start = me.page,
		.length = (ptl_size_t)MOST * LONG * 8,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE |
			   PTL_MD_EVENT_START_DISABLE};
	ptl_handle_me_t at;
	DO(PtlNIInit(PTL_IFACE_DEFAULT, own_pid, NULL, NULL, &me.ni));
	DO(PtlEQAlloc(me.ni, 4096, PTL_EQ_HANDLER_NONE, &me.eq));
	md.eq_handle = me.eq;
	DO(PtlMEAttach(me.ni, PORTAL, anyone, 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER, &at));
	DO(PtlMDAttach(at, md, PTL_RETAIN, NULL));
	DO(PtlGetJid(me.ni, &me.jid));
}

static void begin(unsigned size)
{
	int most;
	DO(PtlInit(&most));
	DO(PtlGetRank(PTL_INVALID_HANDLE, &me.rank, &me.size));
	if (me.size != size || size > MOST)
		fail("one of %u, not of %u", me.size, size);
	me.page = calloc((size_t)MOST * LONG, 8);
	me.mine = calloc((size_t)MOST * LONG, 8);
}

static void end(void)
{
	if (me.ni != PTL_INVALID_HANDLE)
		DO(PtlNIFini(me.ni));
	PtlFini();
	free(me.page);
	free(me.mine);
}

/* ---- messages ---- */

/* Bind n words for one operation with this number of events. */
static ptl_handle_md_t bind_words(uint64_t *words, unsigned n, int events)
{
	ptl_md_t md = {.start = words,
		.length = (ptl_size_t)n * 8,
		.threshold = events,
		.options = PTL_MD_EVENT_START_DISABLE,
		.user_ptr = words,
		.eq_handle = me.eq};
	ptl_handle_md_t h;
	DO(PtlMDBind(me.ni, md, PTL_UNLINK, &h));
	return h;
}

static void put(unsigned to, unsigned n)
{
	uint64_t *words = &me.mine[(size_t)to * LONG];
	for (unsigned i = 0; i < n; i++)
		words[i] = word(me.rank, to, i);
	ptl_handle_md_t h = bind_words(words, n, 2);
	DO(PtlPut(h, PTL_ACK_REQ, id_of(to), PORTAL, 0, 0, (ptl_size_t)me.rank * LONG * 8,
		n));
}

static void take(const ptl_event_t *ev)
{
	unsigned from = ev->initiator.pid - 100, n = (unsigned)ev->hdr_data;
	if (ev->ni_fail_type != PTL_NI_OK)
		fail("event %d fails", (int)ev->type);
	if (ev->type != PTL_EVENT_PUT_END)
		return;
	if (from >= me.size || ev->jid != me.jid)
		fail("a message of %u, job %u", ev->initiator.pid, ev->jid);
	for (unsigned i = 0; i < n; i++)
		if (peek(from, i) != word(from, me.rank, i))
			fail("word %u of %u from rank %u is wrong", i, n, from);
}

/* Wait for this number of puts and acknowledgements. */
static void take_all(unsigned puts, unsigned acks)
{
	struct patience p = patience_begin();
	while (puts || acks) {
		ptl_event_t ev;
		int which;
		int rc = PtlEQPoll(&me.eq, 1, 100, &ev, &which);
		if (rc == PTL_EQ_EMPTY && patience_is_over(&p))
			fail("%u messages and %u acknowledgements are missing", puts,
				acks);
		if (rc == PTL_EQ_EMPTY)
			continue;
		DO(rc);
		take(&ev);
		puts -= ev.type == PTL_EVENT_PUT_END;
		acks -= ev.type == PTL_EVENT_ACK;
	}
}

static void all_to_all(void)
{
	static const unsigned words[] = {1, 300, LONG};
	for (unsigned k = 0; k < 3; k++) {
		for (unsigned i = 0; i < me.size; i++)
			put((me.rank + i) % me.size, words[k]);
		take_all(me.size, me.size);
		DO(PtlXBarrier());
	}
}

/* Return true if a message has come by now. */
static bool has_come(void)
{
	ptl_event_t ev;
	while (PtlEQGet(me.eq, &ev) == PTL_OK) {
		take(&ev);
		if (ev.type == PTL_EVENT_PUT_END)
			return true;
	}
	return false;
}

/* A put before a barrier is there after it, and not before the previous one. */
static void barriers(void)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned from = round % me.size;
		clear(from);
		DO(PtlXBarrier());
		if (peek(from, 0) != 0)
			fail("round %u: a message of rank %u is early", round, from);
		DO(PtlXBarrier());
		for (unsigned i = 0; from == me.rank && i < me.size; i++)
			put(i, 1);
		if (from == me.rank)
			take_all(1, me.size);
		if (cnos_barrier() != 0)
			fail("cnos_barrier of round %u", round);
		if (from != me.rank && !has_come())
			fail("round %u: nothing of rank %u", round, from);
		if (peek(from, 0) != word(from, me.rank, 0))
			fail("round %u: other bytes of rank %u", round, from);
	}
}

/* Check the numbers of living nodes: peers in all jobs, and all of the own job. */
static void check_alive(unsigned peers)
{
	ptlx_stats_t stats = {.struct_size = sizeof stats};
	DO(PtlXStats(me.ni, &stats));
	if (stats.peers_alive < peers)
		fail("%llu peers are there", (unsigned long long)stats.peers_alive);
	if (stats.job_alive != me.size)
		fail("%llu nodes of the job are there",
			(unsigned long long)stats.job_alive);
}

static void all(const char *variable)
{
	check_rank(variable);
	/* pause: a stagger: the ranks come one after the other */
	usleep(me.rank * 20000);
	open_portal(PTL_PID_ANY);
	check_maps();
	DO(PtlXBarrier());
	check_alive(me.size);
	all_to_all();
	barriers();
	DO(PtlXBarrier());
}

/* ---- the end of a rank ---- */

static void lose(bool killed)
{
	open_portal(PTL_PID_ANY);
	DO(PtlXBarrier());
	if (me.rank == me.size - 1 && killed)
		(void)raise(SIGKILL);
	if (me.rank == me.size - 1)
		return;
	struct patience p = patience_begin();
	uint64_t from = now_ms();
	for (int i = 0; i < 3; i++) {
		if (PtlXBarrier() != PTL_FAIL)
			fail("barrier %d does not fail", i);
		/* pause: a stagger: the ranks come one after the other */
		usleep(10000 * me.rank);
	}
	if (patience_is_over(&p))
		fail("it took %d ms", (int)(now_ms() - from));
}

/* The last rank closes all descriptors, and opens others: barriers fail for all. */
static void lose_by_sweep(void)
{
	static struct sweep files;
	open_portal(PTL_PID_ANY);
	DO(PtlXBarrier());
	bool swept = me.rank == me.size - 1;
	if (swept && !sweep(&files))
		fail("%u pipes only", files.n);
	for (int i = 0; i < 3; i++)
		if (PtlXBarrier() != PTL_FAIL)
			fail("barrier %d does not fail", i);
	DO(PtlNIFini(me.ni));
	me.ni = PTL_INVALID_HANDLE;
	if (swept && sweep_touched(&files) >= 0)
		fail("the library has used pipe %d", sweep_touched(&files));
}

static _Atomic pid_t comer;

static void *come(void *rc_out)
{
	comer = gettid();
	*(int *)rc_out = PtlXBarrier();
	return NULL;
}

static void wait_until_alone(void)
{
	ptlx_stats_t stats = {.struct_size = sizeof stats};
	struct patience p = patience_begin();
	do {
		usleep(1000);
		DO(PtlXStats(me.ni, &stats));
	} while (stats.peers_alive > 1 && !patience_is_over(&p));
	if (stats.peers_alive > 1)
		fail("%llu peers stay", (unsigned long long)stats.peers_alive);
}

/* The interface closes while another thread is in a barrier that one rank does not come
 * to. */
static void break_off(void)
{
	pthread_t other;
	int rc = -1;
	if (me.rank + 1 == me.size) {
		wait_until_alone();
		return;
	}
	if (pthread_create(&other, NULL, come, &rc))
		fail("no thread");
	while (!comer)
		usleep(1000);
	if (!await_thread_state(comer, 'S'))
		fail("the thread in the barrier does not sleep");
	DO(PtlNIFini(me.ni));
	me.ni = PTL_INVALID_HANDLE;
	if (pthread_join(other, NULL) || rc != PTL_FAIL)
		fail("the broken barrier says %d", rc);
}

static void again(void)
{
	for (int i = 0; i < 5; i++) {
		open_portal(PTL_PID_ANY);
		DO(PtlXBarrier());
		put((me.rank + 1) % me.size, 10);
		take_all(1, 1);
		DO(PtlXBarrier());
		if (i < 4)
			DO(PtlNIFini(me.ni));
		if (PtlXBarrier() != (i < 4 ? PTL_FAIL : PTL_OK))
			fail("barrier after life %d", i);
	}
	break_off();
}

static void make_file(const char *name, const char *end)
{
	char path[300];
	snprintf(path, sizeof path, "%s.%s", name, end);
	FILE *f = fopen(path, "we");
	if (!f || fclose(f))
		fail("%s cannot be made", path);
}

static void await_file(const char *name, const char *end)
{
	char path[300];
	snprintf(path, sizeof path, "%s.%s", name, end);
	while (access(path, F_OK))
		usleep(1000);
}

/* In its second life a node waits for a rank again that had come in the first one. */
static void late(const char *file)
{
	open_portal(PTL_PID_ANY);
	DO(PtlXBarrier());
	DO(PtlNIFini(me.ni));
	if (me.rank == 0) {
		await_file(file, "left");
		open_portal(PTL_PID_ANY);
		put(1, 10);
		make_file(file, "sent");
		take_all(0, 1);
	} else {
		make_file(file, "left");
		await_file(file, "sent");
		open_portal(PTL_PID_ANY);
		take_all(1, 0);
	}
	DO(PtlXBarrier());
}

static void stay(const char *file)
{
	open_portal(PTL_PID_ANY);
	DO(PtlXBarrier());
	make_file(file, "there");
	await_file(file, "go");
	DO(PtlXBarrier());
}

/* Say all ids, as an MPI library does that brings processes together by itself. */
static void say_who_is_who(void)
{
	ptl_nid_t nid[MOST];
	ptl_pid_t pid[MOST];
	for (unsigned i = 0; i < me.size; i++) {
		nid[i] = id_of(i).nid;
		pid[i] = id_of(i).pid;
	}
	DO(PtlSetRank(PTL_INVALID_HANDLE, (int)me.rank, (int)me.size));
	DO(PtlSetNIDMap(PTL_INVALID_HANDLE, nid, (int)me.size));
	DO(PtlSetPIDMap(PTL_INVALID_HANDLE, pid, (int)me.size));
	DO(PtlSetJID(PTL_INVALID_HANDLE, 4711));
}

static void family(const char *base, const char *size)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	if (!rank)
		fail("OMPI_COMM_WORLD_RANK is not set");
	me.rank = (unsigned)(atoi(base) + atoi(rank));
	me.size = (unsigned)atoi(size);
	say_who_is_who();
	open_portal(100 + me.rank);
	for (unsigned i = 0; i < me.size; i++)
		put(i, LONG);
	take_all(me.size, me.size);
}

/* ---- a family of jobs ---- */

struct kin {
	unsigned job, rank;
	bool gone;
};

/* Return the number of this job in its family: the lower 16 bits of the ORTE job id,
 * or the text behind the last '@'. */
static unsigned own_job(void)
{
	const char *id = getenv("OMPI_MCA_orte_ess_jobid");
	id = id ? id : getenv("PMIX_NAMESPACE");
	if (!id)
		fail("no variable names the job");
	const char *at = strrchr(id, '@');
	return at ? (unsigned)atoi(at + 1) : (unsigned)(strtoul(id, NULL, 10) & 0xffff);
}

static ptl_process_id_t kin_id(struct kin k)
{
	return (ptl_process_id_t){0x7f000000 + k.job, 100 + k.rank};
}

/* The rows of the pages: eight for a job. */
static unsigned row(struct kin k)
{
	return k.job * 8 + k.rank;
}

static unsigned read_round(const char *text, struct kin kin[MOST])
{
	unsigned n = 0;
	char *at = (char *)(uintptr_t)text;
	while (*at) {
		bool gone = *at == '-';
		unsigned job = (unsigned)strtoul(at + gone, &at, 10);
		unsigned size = (unsigned)strtoul(at + 1, &at, 10);
		for (unsigned r = 0; r < size; r++)
			kin[n++] = (struct kin){job, r, gone};
		at += *at == ',';
	}
	return n;
}

static bool is_there(const char *dir, unsigned round, struct kin k)
{
	char name[400];
	snprintf(name, sizeof name, "%s/r%u.%u.%u", dir, round, k.job, k.rank);
	return access(name, F_OK) == 0;
}

/* Say by a file that this process is ready for the round, and wait for all its kin: the
 * exchange of names by which MPI brings parents and children together. */
static void gather(const char *dir, unsigned round, const struct kin *kin, unsigned n)
{
	char name[400];
	struct patience p = patience_times(2);
	snprintf(name, sizeof name, "%s/r%u.%u.%u", dir, round, own_job(), me.rank);
	FILE *f = fopen(name, "we");
	if (!f || fclose(f))
		fail("%s cannot be made", name);
	for (unsigned i = 0; i < n; i++)
		while (!kin[i].gone && !is_there(dir, round, kin[i])) {
			if (patience_is_over(&p))
				fail("round %u: no rank %u of job %u", round, kin[i].rank,
					kin[i].job);
			usleep(2000);
		}
}

static void send_kin(struct kin to, struct kin own, unsigned round, unsigned n)
{
	uint64_t *words = &me.mine[(size_t)row(to) * LONG];
	for (unsigned i = 0; i < n; i++)
		words[i] = word(row(own), row(to), i) + round;
	ptl_handle_md_t h = bind_words(words, n, 2);
	DO(PtlPut(h, PTL_ACK_REQ, kin_id(to), PORTAL, 0, 0,
		(ptl_size_t)row(own) * LONG * 8, n));
}

/* Wait for this number of puts, acknowledgements and replies, none of which fails. */
static void take_kin(unsigned puts, unsigned acks, unsigned replies)
{
	struct patience p = patience_begin();
	while (puts || acks || replies) {
		ptl_event_t ev;
		int which, rc = PtlEQPoll(&me.eq, 1, 100, &ev, &which);
		if (rc == PTL_EQ_EMPTY && patience_is_over(&p))
			fail("%u puts, %u acknowledgements and %u replies are missing",
				puts, acks, replies);
		if (rc == PTL_EQ_EMPTY)
			continue;
		DO(rc);
		if (ev.ni_fail_type != PTL_NI_OK)
			fail("event %d with %u,%u fails", (int)ev.type, ev.initiator.nid,
				ev.initiator.pid);
		puts -= ev.type == PTL_EVENT_PUT_END;
		acks -= ev.type == PTL_EVENT_ACK;
		replies -= ev.type == PTL_EVENT_REPLY_END;
	}
}

static void check_row(struct kin from, struct kin own, unsigned round, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (peek(row(from), i) != word(row(from), row(own), i) + round)
			fail("round %u: word %u from rank %u of job %u is wrong", round,
				i, from.rank, from.job);
}

/* Get the words that `third` has put into the memory of `of`, and check them. */
static void get_row(struct kin of, struct kin third, unsigned round)
{
	enum { WORDS = 64 };
	uint64_t *words = &me.mine[(size_t)row((struct kin){7, 7, false}) * LONG];
	memset(words, 0, WORDS * 8);
	ptl_handle_md_t h = bind_words(words, WORDS, 1);
	DO(PtlGet(h, kin_id(of), PORTAL, 0, 0, (ptl_size_t)row(third) * LONG * 8));
	take_kin(0, 0, 1);
	for (unsigned i = 0; i < WORDS; i++)
		if (words[i] != word(row(third), row(of), i) + round)
			fail("round %u: a get from rank %u of job %u is wrong", round,
				of.rank, of.job);
}

/* Put to a process that is gone.  Return true if that fails. */
static bool misses(struct kin gone)
{
	uint64_t *words = &me.mine[(size_t)row(gone) * LONG];
	ptl_event_t ev = {.ni_fail_type = PTL_NI_OK};
	struct patience p = patience_begin();
	int which, rc;
	ptl_handle_md_t h = bind_words(words, 1, 1);
	DO(PtlPut(h, PTL_NOACK_REQ, kin_id(gone), PORTAL, 0, 0, 0, 0));
	do /* also take the SEND_END events of former puts */
		rc = PtlEQPoll(&me.eq, 1, 100, &ev, &which);
	while ((rc == PTL_EQ_EMPTY || ev.md.user_ptr != words) && !patience_is_over(&p));
	DO(rc);
	return ev.type == PTL_EVENT_SEND_END && ev.ni_fail_type != PTL_NI_OK;
}

/* Puts to a process that is gone fail, as soon as this one has heard of its end. */
static void miss_kin(struct kin gone)
{
	struct patience p = patience_begin();
	while (!misses(gone))
		if (patience_is_over(&p))
			fail("a put to rank %u of job %u, which is gone, does not fail",
				gone.rank, gone.job);
}

/* Every job has another number of barriers. */
static void own_barriers(struct kin own)
{
	for (unsigned i = 0; i < 5 * own.job; i++)
		DO(PtlXBarrier());
}

static void meet_kin(const char *dir, unsigned round, const char *text)
{
	static const unsigned words[] = {64, LONG};
	struct kin kin[MOST], own = {own_job(), me.rank, false};
	unsigned n = read_round(text, kin), gone = 0;
	gather(dir, round, kin, n);
	for (unsigned k = 0; k < 2; k++) {
		gone = 0;
		for (unsigned i = 0; i < n; i++)
			if (kin[i].gone)
				gone++;
			else
				send_kin(kin[i], own, round, words[k]);
		take_kin(n - gone, n - gone, 0);
		for (unsigned i = 0; i < n; i++)
			if (!kin[i].gone)
				check_row(kin[i], own, round, words[k]);
		gather(dir, 2 * round + 100 + k, kin, n); /* all have all messages */
		if (k == 0)
			own_barriers(own);
		check_alive(n - gone);
	}
	for (unsigned i = gone; i < n; i++)
		get_row(kin[i], kin[gone + (i - gone + me.rank) % (n - gone)], round);
	for (unsigned i = 0; i < gone; i++)
		miss_kin(kin[i]);
	own_barriers(own);
	gather(dir, 2 * round + 200, kin, n);
}

static void check_own_id(void)
{
	struct kin own = {own_job(), me.rank, false};
	ptl_process_id_t want = kin_id(own), id;
	for (int after = 0; after < 2; after++) {
		DO(PtlGetRankId(PTL_INVALID_HANDLE, me.rank, &id));
		if (memcmp(&id, &want, sizeof id) != 0)
			fail("this rank is %#x,%u, not %#x,%u", id.nid, id.pid, want.nid,
				want.pid);
		if (!after)
			open_portal(PTL_PID_ANY);
	}
	DO(PtlGetId(me.ni, &id));
	if (memcmp(&id, &want, sizeof id) != 0)
		fail("PtlGetId says %#x,%u", id.nid, id.pid);
	for (unsigned r = 0; r < me.size; r++) {
		want.pid = 100 + r;
		DO(PtlGetRankId(me.ni, r, &id));
		if (memcmp(&id, &want, sizeof id) != 0)
			fail("rank %u is %#x,%u", r, id.nid, id.pid);
	}
}

static void kin(char **words)
{
	unsigned round = (unsigned)atoi(words[1]);
	bool stay = false;
	check_own_id();
	DO(PtlXBarrier());
	for (char **at = words + 2; *at; at++) {
		stay = strcmp(*at, "stay") == 0;
		if (!stay)
			meet_kin(words[0], round++, *at);
	}
	while (stay && !is_there(words[0], 0, (struct kin){0}))
		usleep(2000);
	if (stay)
		(void)raise(SIGKILL);
}

static void together(const char *go)
{
	char name[300];
	open_portal(PTL_PID_ANY);
	snprintf(name, sizeof name, "%s.%d", go, (int)getpid());
	FILE *f = fopen(name, "we");
	if (!f || fclose(f))
		fail("%s cannot be made", name);
	while (access(go, F_OK))
		usleep(10000);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	begin((unsigned)atoi(argv[2]));
	if (strcmp(argv[1], "all") == 0)
		all(argv[3]);
	else if (strcmp(argv[1], "again") == 0)
		again();
	else if (strcmp(argv[1], "late") == 0)
		late(argv[3]);
	else if (strcmp(argv[1], "stay") == 0)
		stay(argv[3]);
	else if (strcmp(argv[1], "family") == 0 && argc > 4)
		family(argv[3], argv[4]);
	else if (strcmp(argv[1], "kin") == 0 && argc > 5)
		kin(argv + 3);
	else if (strcmp(argv[1], "swept") == 0)
		lose_by_sweep();
	else if (strcmp(argv[1], "together") == 0)
		together(argv[3]);
	else
		lose(strcmp(argv[1], "killed") == 0);
	end();
	return 0;
}
