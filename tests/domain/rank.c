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
#include "../mp/mp.h"
#include "../support/asleep.h"
#include "../support/sweep.h"

#include <cnos_mpi_os.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 30, MOST = 64, LONG = 50000 };

static struct {
	ptl_handle_eq_t eq;
	ptl_jid_t jid;
	uint64_t *page; /* LONG words for each rank, which writes them */
	uint64_t *mine; /* as many words for each target */
} me;

#define FAIL(...) mp_fail(__FILE__, __LINE__, __VA_ARGS__)

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
	if (PtlXBarrier() != (mp.size > 1 ? PTL_FAIL : PTL_OK))
		FAIL("a barrier before PtlNIInit");
	if (variable &&
		(!getenv(variable) || mp.rank != (unsigned)atoi(getenv(variable))))
		FAIL("%s is another", variable);
	if (cnos_get_rank() != (int)mp.rank || cnos_get_size() != (int)mp.size)
		FAIL("cnos: %d of %d", cnos_get_rank(), cnos_get_size());
	if (PtlSetRank(PTL_INVALID_HANDLE, (int)mp.rank, (int)mp.size) != PTL_OK ||
		PtlSetRank(PTL_INVALID_HANDLE, -1, -1) != PTL_OK ||
		PtlSetRank(PTL_INVALID_HANDLE, 0, (int)mp.size + 1) == PTL_OK)
		FAIL("PtlSetRank disagrees with the launcher");
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
	mp_ok(PtlGetNIDMap(mp.ni, nid, (int)mp.size));
	mp_ok(PtlGetPIDMap(mp.ni, pid, (int)mp.size));
	if (cnos_get_nidpid_map(&map) != (int)mp.size)
		FAIL("no map of cnos");
	for (unsigned i = 0; i < mp.size; i++) {
		ptl_process_id_t want = id_of(i);
		mp_ok(PtlGetRankId(mp.ni, i, &id));
		if (memcmp(&id, &want, sizeof id) != 0 || nid[i] != id.nid ||
			pid[i] != id.pid || map[i].nid != id.nid || map[i].pid != id.pid)
			FAIL("rank %u is %u,%u", i, id.nid, id.pid);
	}
	mp_ok(PtlGetId(mp.ni, &id));
	if (id.nid != nid[mp.rank] || id.pid != pid[mp.rank])
		FAIL("this is %u,%u", id.nid, id.pid);
}

static void open_portal(ptl_pid_t own_pid)
{
	mp_ok(PtlNIInit(PTL_IFACE_DEFAULT, own_pid, NULL, NULL, &mp.ni));
	me.eq = mp_queue(4096);
	(void)mp_attach(0, me.page, (ptl_size_t)MOST * LONG * 8,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, me.eq);
	mp_ok(PtlGetJid(mp.ni, &me.jid));
}

static void begin(unsigned size)
{
	int most;
	mp_ok(PtlInit(&most));
	mp_ok(PtlGetRank(PTL_INVALID_HANDLE, &mp.rank, &mp.size));
	if (mp.size != size || size > MOST)
		FAIL("one of %u, not of %u", mp.size, size);
	me.page = calloc((size_t)MOST * LONG, 8);
	me.mine = calloc((size_t)MOST * LONG, 8);
}

static void end(void)
{
	if (mp.ni != PTL_INVALID_HANDLE)
		mp_ok(PtlNIFini(mp.ni));
	PtlFini();
	free(me.page);
	free(me.mine);
}

/* ---- messages ---- */

/* Bind n words for one operation with this number of events. */
static ptl_handle_md_t bind_words(uint64_t *words, unsigned n, int events)
{
	ptl_handle_md_t h;
	ptl_md_t md =
		mp_region(words, (ptl_size_t)n * 8, PTL_MD_EVENT_START_DISABLE, me.eq);
	md.threshold = events;
	md.user_ptr = words;
	mp_ok(PtlMDBind(mp.ni, md, PTL_UNLINK, &h));
	return h;
}

static void put(unsigned to, unsigned n)
{
	uint64_t *words = &me.mine[(size_t)to * LONG];
	for (unsigned i = 0; i < n; i++)
		words[i] = word(mp.rank, to, i);
	ptl_handle_md_t h = bind_words(words, n, 2);
	mp_ok(PtlPut(h, PTL_ACK_REQ, id_of(to), MP_PORTAL, 0, 0,
		(ptl_size_t)mp.rank * LONG * 8, n));
}

static void take(const ptl_event_t *ev)
{
	unsigned from = ev->initiator.pid - 100, n = (unsigned)ev->hdr_data;
	if (ev->ni_fail_type != PTL_NI_OK)
		FAIL("event %d fails", (int)ev->type);
	if (ev->type != PTL_EVENT_PUT_END)
		return;
	if (from >= mp.size || ev->jid != me.jid)
		FAIL("a message of %u, job %u", ev->initiator.pid, ev->jid);
	for (unsigned i = 0; i < n; i++)
		if (peek(from, i) != word(from, mp.rank, i))
			FAIL("word %u of %u from rank %u is wrong", i, n, from);
}

/* Wait for this number of puts, acknowledgements and replies, and check each. */
static void take_events(unsigned puts, unsigned acks, unsigned replies,
	void (*check)(const ptl_event_t *ev))
{
	struct patience p = patience_begin();
	while (puts || acks || replies) {
		ptl_event_t ev;
		int which, rc = PtlEQPoll(&me.eq, 1, 100, &ev, &which);
		if (rc == PTL_EQ_EMPTY && patience_is_over(&p))
			FAIL("%u puts, %u acknowledgements and %u replies are missing",
				puts, acks, replies);
		if (rc == PTL_EQ_EMPTY)
			continue;
		mp_ok(rc);
		check(&ev);
		puts -= ev.type == PTL_EVENT_PUT_END;
		acks -= ev.type == PTL_EVENT_ACK;
		replies -= ev.type == PTL_EVENT_REPLY_END;
	}
}

static void take_all(unsigned puts, unsigned acks)
{
	take_events(puts, acks, 0, take);
}

static void all_to_all(void)
{
	static const unsigned words[] = {1, 300, LONG};
	for (unsigned k = 0; k < 3; k++) {
		for (unsigned i = 0; i < mp.size; i++)
			put((mp.rank + i) % mp.size, words[k]);
		take_all(mp.size, mp.size);
		mp_ok(PtlXBarrier());
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
		unsigned from = round % mp.size;
		clear(from);
		mp_ok(PtlXBarrier());
		if (peek(from, 0) != 0)
			FAIL("round %u: a message of rank %u is early", round, from);
		mp_ok(PtlXBarrier());
		for (unsigned i = 0; from == mp.rank && i < mp.size; i++)
			put(i, 1);
		if (from == mp.rank)
			take_all(1, mp.size);
		if (cnos_barrier() != 0)
			FAIL("cnos_barrier of round %u", round);
		if (from != mp.rank && !has_come())
			FAIL("round %u: nothing of rank %u", round, from);
		if (peek(from, 0) != word(from, mp.rank, 0))
			FAIL("round %u: other bytes of rank %u", round, from);
	}
}

/* Check the numbers of living nodes: peers in all jobs, and all of the own job. */
static void check_alive(unsigned peers)
{
	ptlx_stats_t stats = {.struct_size = sizeof stats};
	mp_ok(PtlXStats(mp.ni, &stats));
	if (stats.peers_alive < peers)
		FAIL("%llu peers are there", (unsigned long long)stats.peers_alive);
	if (stats.job_alive != mp.size)
		FAIL("%llu nodes of the job are there",
			(unsigned long long)stats.job_alive);
}

static void all(const char *variable)
{
	check_rank(variable);
	/* pause: a stagger: the ranks come one after the other */
	usleep(mp.rank * 20000);
	open_portal(PTL_PID_ANY);
	check_maps();
	mp_ok(PtlXBarrier());
	check_alive(mp.size);
	all_to_all();
	barriers();
	mp_ok(PtlXBarrier());
}

/* ---- the end of a rank ---- */

static void lose(bool killed)
{
	open_portal(PTL_PID_ANY);
	mp_ok(PtlXBarrier());
	if (mp.rank == mp.size - 1 && killed)
		(void)raise(SIGKILL);
	if (mp.rank == mp.size - 1)
		return;
	struct patience p = patience_begin();
	uint64_t from = now_ms();
	for (int i = 0; i < 3; i++) {
		if (PtlXBarrier() != PTL_FAIL)
			FAIL("barrier %d does not fail", i);
		/* pause: a stagger: the ranks come one after the other */
		usleep(10000 * mp.rank);
	}
	if (patience_is_over(&p))
		FAIL("it took %d ms", (int)(now_ms() - from));
}

/* The last rank closes all descriptors, and opens others: barriers fail for all. */
static void lose_by_sweep(void)
{
	static struct sweep files;
	open_portal(PTL_PID_ANY);
	mp_ok(PtlXBarrier());
	bool swept = mp.rank == mp.size - 1;
	if (swept && !sweep(&files))
		FAIL("%u pipes only", files.n);
	for (int i = 0; i < 3; i++)
		if (PtlXBarrier() != PTL_FAIL)
			FAIL("barrier %d does not fail", i);
	mp_ok(PtlNIFini(mp.ni));
	mp.ni = PTL_INVALID_HANDLE;
	if (swept && sweep_touched(&files) >= 0)
		FAIL("the library has used pipe %d", sweep_touched(&files));
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
		mp_ok(PtlXStats(mp.ni, &stats));
	} while (stats.peers_alive > 1 && !patience_is_over(&p));
	if (stats.peers_alive > 1)
		FAIL("%llu peers stay", (unsigned long long)stats.peers_alive);
}

/* The interface closes while another thread is in a barrier that one rank does not come
 * to. */
static void break_off(void)
{
	pthread_t other;
	int rc = -1;
	if (mp.rank + 1 == mp.size) {
		wait_until_alone();
		return;
	}
	if (pthread_create(&other, NULL, come, &rc))
		FAIL("no thread");
	while (!comer)
		usleep(1000);
	if (!await_thread_state(comer, 'S'))
		FAIL("the thread in the barrier does not sleep");
	mp_ok(PtlNIFini(mp.ni));
	mp.ni = PTL_INVALID_HANDLE;
	if (pthread_join(other, NULL) || rc != PTL_FAIL)
		FAIL("the broken barrier says %d", rc);
}

static void again(void)
{
	for (int i = 0; i < 5; i++) {
		open_portal(PTL_PID_ANY);
		mp_ok(PtlXBarrier());
		put((mp.rank + 1) % mp.size, 10);
		take_all(1, 1);
		mp_ok(PtlXBarrier());
		if (i < 4)
			mp_ok(PtlNIFini(mp.ni));
		if (PtlXBarrier() != (i < 4 ? PTL_FAIL : PTL_OK))
			FAIL("barrier after life %d", i);
	}
	break_off();
}

static void touch(const char *path)
{
	FILE *f = fopen(path, "we");
	if (!f || fclose(f))
		FAIL("%s cannot be made", path);
}

static void make_file(const char *name, const char *end)
{
	char path[300];
	snprintf(path, sizeof path, "%s.%s", name, end);
	touch(path);
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
	mp_ok(PtlXBarrier());
	mp_ok(PtlNIFini(mp.ni));
	if (mp.rank == 0) {
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
	mp_ok(PtlXBarrier());
}

static void stay(const char *file)
{
	open_portal(PTL_PID_ANY);
	mp_ok(PtlXBarrier());
	make_file(file, "there");
	await_file(file, "go");
	mp_ok(PtlXBarrier());
}

/* Say all ids, as an MPI library does that brings processes together by itself. */
static void say_who_is_who(void)
{
	ptl_nid_t nid[MOST];
	ptl_pid_t pid[MOST];
	for (unsigned i = 0; i < mp.size; i++) {
		nid[i] = id_of(i).nid;
		pid[i] = id_of(i).pid;
	}
	mp_ok(PtlSetRank(PTL_INVALID_HANDLE, (int)mp.rank, (int)mp.size));
	mp_ok(PtlSetNIDMap(PTL_INVALID_HANDLE, nid, (int)mp.size));
	mp_ok(PtlSetPIDMap(PTL_INVALID_HANDLE, pid, (int)mp.size));
	mp_ok(PtlSetJID(PTL_INVALID_HANDLE, 4711));
}

static void family(const char *base, const char *size)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	if (!rank)
		FAIL("OMPI_COMM_WORLD_RANK is not set");
	mp.rank = (unsigned)(atoi(base) + atoi(rank));
	mp.size = (unsigned)atoi(size);
	say_who_is_who();
	open_portal(100 + mp.rank);
	for (unsigned i = 0; i < mp.size; i++)
		put(i, LONG);
	take_all(mp.size, mp.size);
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
		FAIL("no variable names the job");
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
	snprintf(name, sizeof name, "%s/r%u.%u.%u", dir, round, own_job(), mp.rank);
	touch(name);
	for (unsigned i = 0; i < n; i++)
		while (!kin[i].gone && !is_there(dir, round, kin[i])) {
			if (patience_is_over(&p))
				FAIL("round %u: no rank %u of job %u", round, kin[i].rank,
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
	mp_ok(PtlPut(h, PTL_ACK_REQ, kin_id(to), MP_PORTAL, 0, 0,
		(ptl_size_t)row(own) * LONG * 8, n));
}

static void is_no_failure(const ptl_event_t *ev)
{
	if (ev->ni_fail_type != PTL_NI_OK)
		FAIL("event %d with %u,%u fails", (int)ev->type, ev->initiator.nid,
			ev->initiator.pid);
}

static void check_row(struct kin from, struct kin own, unsigned round, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (peek(row(from), i) != word(row(from), row(own), i) + round)
			FAIL("round %u: word %u from rank %u of job %u is wrong", round,
				i, from.rank, from.job);
}

/* Get the words that `third` has put into the memory of `of`, and check them. */
static void get_row(struct kin of, struct kin third, unsigned round)
{
	enum { WORDS = 64 };
	uint64_t *words = &me.mine[(size_t)row((struct kin){7, 7, false}) * LONG];
	memset(words, 0, WORDS * 8);
	ptl_handle_md_t h = bind_words(words, WORDS, 1);
	mp_ok(PtlGet(h, kin_id(of), MP_PORTAL, 0, 0, (ptl_size_t)row(third) * LONG * 8));
	take_events(0, 0, 1, is_no_failure);
	for (unsigned i = 0; i < WORDS; i++)
		if (words[i] != word(row(third), row(of), i) + round)
			FAIL("round %u: a get from rank %u of job %u is wrong", round,
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
	mp_ok(PtlPut(h, PTL_NOACK_REQ, kin_id(gone), MP_PORTAL, 0, 0, 0, 0));
	do /* also take the SEND_END events of former puts */
		rc = PtlEQPoll(&me.eq, 1, 100, &ev, &which);
	while ((rc == PTL_EQ_EMPTY || ev.md.user_ptr != words) && !patience_is_over(&p));
	mp_ok(rc);
	return ev.type == PTL_EVENT_SEND_END && ev.ni_fail_type != PTL_NI_OK;
}

/* Puts to a process that is gone fail, as soon as this one has heard of its end. */
static void miss_kin(struct kin gone)
{
	struct patience p = patience_begin();
	while (!misses(gone))
		if (patience_is_over(&p))
			FAIL("a put to rank %u of job %u, which is gone, does not fail",
				gone.rank, gone.job);
}

/* Every job has another number of barriers. */
static void own_barriers(struct kin own)
{
	for (unsigned i = 0; i < 5 * own.job; i++)
		mp_ok(PtlXBarrier());
}

static void meet_kin(const char *dir, unsigned round, const char *text)
{
	static const unsigned words[] = {64, LONG};
	struct kin kin[MOST], own = {own_job(), mp.rank, false};
	unsigned n = read_round(text, kin), gone = 0;
	gather(dir, round, kin, n);
	for (unsigned k = 0; k < 2; k++) {
		gone = 0;
		for (unsigned i = 0; i < n; i++)
			if (kin[i].gone)
				gone++;
			else
				send_kin(kin[i], own, round, words[k]);
		take_events(n - gone, n - gone, 0, is_no_failure);
		for (unsigned i = 0; i < n; i++)
			if (!kin[i].gone)
				check_row(kin[i], own, round, words[k]);
		gather(dir, 2 * round + 100 + k, kin, n); /* all have all messages */
		if (k == 0)
			own_barriers(own);
		check_alive(n - gone);
	}
	for (unsigned i = gone; i < n; i++)
		get_row(kin[i], kin[gone + (i - gone + mp.rank) % (n - gone)], round);
	for (unsigned i = 0; i < gone; i++)
		miss_kin(kin[i]);
	own_barriers(own);
	gather(dir, 2 * round + 200, kin, n);
}

static void check_own_id(void)
{
	struct kin own = {own_job(), mp.rank, false};
	ptl_process_id_t want = kin_id(own), id;
	for (int after = 0; after < 2; after++) {
		mp_ok(PtlGetRankId(PTL_INVALID_HANDLE, mp.rank, &id));
		if (memcmp(&id, &want, sizeof id) != 0)
			FAIL("this rank is %#x,%u, not %#x,%u", id.nid, id.pid, want.nid,
				want.pid);
		if (!after)
			open_portal(PTL_PID_ANY);
	}
	mp_ok(PtlGetId(mp.ni, &id));
	if (memcmp(&id, &want, sizeof id) != 0)
		FAIL("PtlGetId says %#x,%u", id.nid, id.pid);
	for (unsigned r = 0; r < mp.size; r++) {
		want.pid = 100 + r;
		mp_ok(PtlGetRankId(mp.ni, r, &id));
		if (memcmp(&id, &want, sizeof id) != 0)
			FAIL("rank %u is %#x,%u", r, id.nid, id.pid);
	}
}

static void kin(char **words)
{
	unsigned round = (unsigned)atoi(words[1]);
	bool stay = false;
	check_own_id();
	mp_ok(PtlXBarrier());
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
	touch(name);
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
