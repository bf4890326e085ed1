/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak [--seconds N] [--seed N] [--still] - everything at once, for a given time, under
 * yod -sz 3 or more
 *
 *	main	streams.c: operations of all kinds with all partners
 *	gusts	a thread that sends, without waiting, messages that no entry accepts
 *		(LOST, NOGET), messages that may be accepted (FLICKER), and more than a
 *		queue holds (FLOOD)
 *	hands	a thread that takes FLICKER's entry away and puts it back under traffic,
 *		and reads FLOOD's queue of four, slowly
 *	driver	a process of its own that stops ranks (SIGSTOP) and lets them go on
 *
 * Time is cut into rounds.  In every third round a rank leaves (PtlNIFini), is missed,
 * and comes back.  After each round the counts must balance at every rank: the messages
 * sent are the sum of those that arrived, were dropped, and were overtaken.  In the
 * second half of the time the node must not have more memory nor descriptors than in
 * the first; of the peers' shared heaps it may have seen more.
 */
#include "shm/atomics.h"
#include "stress/streams.h"
#include "support/descriptors.h"
#include "support/memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOST = S_FREE, NOGET, FLICKER, FLOOD, PIDS, PING };

enum {
	ROUND_MS = 900,
	LEAST = 8, /* rounds */
	SLOTS = 32,
	SLOT = 96,
	GUST_MOST = 100000,
	UNANSWERED = 64,
	ANON_KIB = 2048,
	SHMEM_KIB = 8192
};

enum tally { T_NOBODYS, T_FLICKER, T_FLOOD };

static unsigned seconds = 10;
static uint64_t seed = 1;
static bool still, with[S_RANKS];
static p3_a32 blowing, handling;

/* Counts of one round, of gusts and hands. */
static struct round {
	uint64_t sent[S_RANKS][S_TALLY], gusts, gust_bytes, gust_events;
	uint64_t flickers, floods, overtaken, takes;
} now;

static struct {
	uint64_t gusts, bytes, events, drops, expected, overtaken, flickers, takes, left;
} sum;

static ptl_handle_eq_t gust_eq, flicker_eq, flood_eq, ping_eq, pids_eq;
static pid_t pids[S_RANKS];
static ptl_handle_md_t gust_md, gust_get, flood_md;
static unsigned char flicker[S_RANKS * SLOTS * SLOT], flood[64], nothing[4096];

/* ---- gusts ---- */

static uint64_t dice(unsigned thread, uint64_t n)
{
	return mp_mix(seed ^ mp_mix(n * 64 + mp.rank * 4 + thread));
}

static ptl_size_t flicker_length(unsigned slot)
{
	return mp_mix(slot + 1) % (SLOT - 8) + 1;
}

/* Return the bytes of a slot, always the same: a reader may be late. */
static const unsigned char *flicker_bytes(unsigned from, unsigned slot)
{
	return mp_pattern + mp_cut(from, slot, 1);
}

static void put_flicker(unsigned to, uint64_t d)
{
	unsigned slot = d % SLOTS;
	mp_put(gust_md, mp_cut(mp.rank, slot, 1), flicker_length(slot), PTL_NO_ACK_REQ,
		to, FLICKER, (mp.rank * SLOTS + slot) * (ptl_size_t)SLOT, slot);
	now.sent[to][T_FLICKER]++;
}

static void put_flood(unsigned to)
{
	uint64_t seq = now.sent[to][T_FLOOD]++;
	mp_put(flood_md, 0, seq % sizeof flood, PTL_NO_ACK_REQ, to, FLOOD, 0,
		(uint64_t)mp.rank << 32 | seq);
}

static void put_lost(unsigned to, uint64_t d)
{
	static const ptl_size_t most[] = {16, 2000, GUST_MOST};
	ptl_size_t len = (d >> 8) % most[d % 3];
	mp_put(gust_md, 0, len, d & 64 ? PTL_ACK_REQ : PTL_NO_ACK_REQ, to, LOST, 0, 0);
	now.gust_bytes += len;
	now.sent[to][T_NOBODYS]++;
}

static void get_nothing(unsigned to, uint64_t d)
{
	mp_get(gust_get, 0, d % sizeof nothing, to, NOGET, 0);
	now.sent[to][T_NOBODYS]++;
}

/* Send one message; return true if its SEND_END comes to gust_eq. */
static bool blow(uint64_t d)
{
	unsigned to = (unsigned)(d >> 32) % mp.size;
	unsigned what = (unsigned)(d >> 56) % 8;
	now.gusts++;
	if (to == mp.rank || what < 3 || !with[to]) {
		put_lost(to, d);
		return true;
	}
	if (what < 5) {
		put_flicker(to, d);
		return true;
	}
	if (what < 7)
		put_flood(to);
	else
		get_nothing(to, d);
	return false;
}

static void count_sends(unsigned *open, unsigned most)
{
	ptl_event_t ev;
	struct patience p = patience_begin();
	while (*open > most) {
		if (!mp_next_within(gust_eq, 100, &ev)) {
			mp_check(!patience_is_over(&p), "%u gusts are not sent", *open);
			continue;
		}
		mp_check(ev.type == PTL_EVENT_SEND_END && ev.ni_fail_type == PTL_NI_OK,
			"%s in the gusts, fail %u", PtlEventKindStr(ev.type),
			ev.ni_fail_type);
		now.gust_events++;
		--*open;
	}
}

static void *gusts(void *arg)
{
	static uint64_t n;
	unsigned open = 0;
	(void)arg;
	while (p3_get(&blowing)) {
		uint64_t d = dice(1, ++n);
		for (uint64_t k = d % 24; k; k--)
			open += blow(dice(2, n * 32 + k));
		count_sends(&open, UNANSWERED);
		if (d & 0x100)
			/* pause: random load */
			usleep((useconds_t)(d >> 16) % 3000);
	}
	count_sends(&open, 0);
	return NULL;
}

/* ---- hands ---- */

static ptl_handle_me_t spread_flicker(void)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = mp_region(flicker, sizeof flicker,
		PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
		flicker_eq);
	ptl_handle_me_t me;
	mp_ok(PtlMEMDAttach(mp.ni, MP_PORTAL, anyone, FLICKER, 0, PTL_RETAIN,
		PTL_INS_AFTER, md, PTL_RETAIN, &me, NULL));
	return me;
}

static unsigned rank_of(ptl_nid_t nid)
{
	for (unsigned r = 0; r < mp.size; r++)
		if (mp.id[r].nid == nid)
			return r;
	mp_fail(__FILE__, __LINE__, "an event of nid %u", nid);
}

static bool written[S_RANKS * SLOTS];

static void take_flicker(const ptl_event_t *ev)
{
	unsigned from = rank_of(ev->initiator.nid), slot = (unsigned)ev->hdr_data;
	mp_check(ev->type == PTL_EVENT_PUT_END && ev->ni_fail_type == PTL_NI_OK &&
			 slot < SLOTS && ev->mlength == flicker_length(slot) &&
			 ev->offset == (from * SLOTS + slot) * (ptl_size_t)SLOT,
		"a flicker of rank %u is wrong", from);
	written[from * SLOTS + slot] = true;
	now.flickers++;
}

/* Check that the region holds the bytes that events reported, and no others. */
static void check_flicker(void)
{
	for (unsigned i = 0; i < mp.size * SLOTS; i++) {
		const unsigned char *at = flicker + i * SLOT;
		ptl_size_t len = written[i] ? flicker_length(i % SLOTS) : 0;
		bool right = !memcmp(at, flicker_bytes(i / SLOTS, i % SLOTS), len);
		for (ptl_size_t k = len; k < SLOT; k++)
			right &= at[k] == 0;
		mp_check(
			right, "wrong bytes in slot %u of rank %u", i % SLOTS, i / SLOTS);
	}
}

static void read_flickers(void)
{
	ptl_event_t ev;
	while (mp_poll(flicker_eq, &ev))
		take_flicker(&ev);
}

/* Unlink under traffic; no byte may arrive afterwards. */
static void take_away(ptl_handle_me_t me, uint64_t d)
{
	int rc;
	while ((rc = PtlMEUnlink(me)) == PTL_ME_IN_USE)
		;
	mp_ok(rc);
	read_flickers();
	check_flicker();
	memset(flicker, 0, sizeof flicker);
	memset(written, 0, sizeof written);
	/* pause: time for a wrong write to show */
	usleep((useconds_t)d % 2000);
	check_flicker();
	now.takes++;
}

static void take_flood(const ptl_event_t *ev)
{
	uint64_t seq = (uint32_t)ev->hdr_data;
	mp_check(ev->type == PTL_EVENT_PUT_END && ev->ni_fail_type == PTL_NI_OK &&
			 ev->match_bits == FLOOD &&
			 ev->hdr_data >> 32 == rank_of(ev->initiator.nid) &&
			 ev->mlength == seq % sizeof flood && ev->rlength == ev->mlength,
		"a torn event: %llx of %llu bytes", (unsigned long long)ev->hdr_data,
		(unsigned long long)ev->mlength);
}

static ptl_seq_t flood_last;

/* Read; four events at most are kept: overtaken ones show in the sequence. */
static void read_flood(void)
{
	ptl_event_t ev;
	int rc;
	while ((rc = PtlEQGet(flood_eq, &ev)) != PTL_EQ_EMPTY) {
		ptl_seq_t gap = ev.sequence - flood_last - 1;
		mp_check(rc == (gap ? PTL_EQ_DROPPED : PTL_OK),
			"%u events are missing, the queue says %s", gap,
			PtlErrorStr((unsigned)rc));
		take_flood(&ev);
		now.floods++;
		now.overtaken += gap;
		flood_last = ev.sequence;
	}
}

static void *hands(void *arg)
{
	static uint64_t n;
	ptl_handle_me_t me = spread_flicker();
	(void)arg;
	while (p3_get(&handling)) {
		uint64_t d = dice(3, ++n);
		read_flickers();
		if (d % 4 == 0)
			read_flood();
		if (d % 8 == 0) {
			take_away(me, d >> 8);
			me = spread_flicker();
		}
		usleep((useconds_t)(d >> 32) % 3000);
	}
	read_flood();
	take_away(me, 0);
	return NULL;
}

/* ---- rounds ---- */

static void open_all(void)
{
	bool all[S_RANKS];
	memset(all, true, sizeof all);
	streams_open(seed, all);
	gust_eq = mp_queue(2 * UNANSWERED);
	flicker_eq = mp_queue(1 << 16);
	flood_eq = mp_queue(4);
	gust_md = mp_bind(mp_pattern, MP_PATTERN, gust_eq, 0);
	gust_get = mp_bind(nothing, sizeof nothing, gust_eq, 0);
	flood_md = mp_bind(mp_pattern, MP_PATTERN, PTL_EQ_NONE, 0);
	mp_attach(FLOOD, flood, sizeof flood, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		flood_eq);
	mp_put(flood_md, 0, 0, PTL_NO_ACK_REQ, mp.rank, FLOOD, 0, 0);
	flood_last = mp_expect(flood_eq, PTL_EVENT_PUT_END).sequence;
	ping_eq = mp_queue(16);
	mp_attach(PING, nothing, 0, PTL_MD_OP_PUT, PTL_EQ_NONE);
	pids_eq = mp_queue(S_RANKS);
	mp_attach(PIDS, pids, sizeof pids, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, pids_eq);
}

/* Put; the ACK shows that the target has matched this rank's earlier messages. */
static void put_and_ack(unsigned to, unsigned bits, void *at, ptl_size_t length)
{
	ptl_handle_md_t md = mp_bind(at, length, ping_eq, 0);
	mp_put(md, 0, length, PTL_ACK_REQ, to, bits, mp.rank * length, 0);
	(void)mp_expect(ping_eq, PTL_EVENT_SEND_END);
	(void)mp_expect(ping_eq, PTL_EVENT_ACK);
	mp_ok(PtlMDUnlink(md));
}

static pthread_t begin_thread(void *(*run)(void *))
{
	pthread_t thread;
	mp_check(pthread_create(&thread, NULL, run, NULL) == 0, "no thread");
	return thread;
}

static uint64_t dropped(void)
{
	ptl_sr_value_t n;
	mp_ok(PtlNIStatus(mp.ni, PTL_SR_DROP_COUNT, &n));
	return (uint64_t)n;
}

/* Check that each message to this rank arrived, was dropped, or was overtaken. */
static void balance(uint64_t drops)
{
	uint64_t nobodys = now.sent[mp.rank][T_NOBODYS], sent = 0, floods = 0;
	for (unsigned r = 0; r < mp.size; r++) {
		if (!with[r] || r == mp.rank)
			continue;
		nobodys += streams_heard(r)[T_NOBODYS];
		sent += streams_heard(r)[T_FLICKER];
		floods += streams_heard(r)[T_FLOOD];
	}
	uint64_t want = nobodys + sent - now.flickers;
	mp_check(now.flickers <= sent && drops == want,
		"%llu dropped; %llu for nobody, and of %llu flickers %llu came",
		(unsigned long long)drops, (unsigned long long)nobodys,
		(unsigned long long)sent, (unsigned long long)now.flickers);
	mp_check(now.floods + now.overtaken == floods,
		"flood: %llu events and %llu overtaken of %llu puts",
		(unsigned long long)now.floods, (unsigned long long)now.overtaken,
		(unsigned long long)floods);
	sum.drops += drops;
	sum.expected += want;
}

static void add_up(void)
{
	sum.gusts += now.gusts;
	sum.bytes += now.gust_bytes;
	sum.events += now.gust_events + now.flickers + now.floods;
	sum.overtaken += now.overtaken;
	sum.flickers += now.flickers;
	sum.takes += now.takes;
}

static void say_bye(void)
{
	for (unsigned r = 0; r < mp.size; r++)
		if (with[r] && r != mp.rank)
			streams_bye(r, now.sent[r]);
}

static void do_round(unsigned ms)
{
	uint64_t until = now_ns() + ms * 1000000ull, before = dropped();
	memset(&now, 0, sizeof now);
	p3_set(&blowing, 1);
	p3_set(&handling, 1);
	mp_barrier(); /* all ranks have counted their drops */
	pthread_t busy = begin_thread(hands), wind = begin_thread(gusts);
	streams_begin(with);
	while (now_ns() < until)
		(void)streams_step();
	streams_stop();
	p3_set(&blowing, 0);
	while (streams_step())
		;
	pthread_join(wind, NULL);
	say_bye();
	while (!streams_heard_all())
		(void)streams_step();
	p3_set(&handling, 0);
	pthread_join(busy, NULL);
	balance(dropped() - before);
	add_up();
	streams_rest();
}

/* Be away for two barriers, as the others have: all count their drops, then begin. */
static void be_away(uint64_t d)
{
	mp_ok(PtlNIFini(mp.ni));
	mp_barrier();
	/* pause: away for a random part of the round */
	sleep_ms((unsigned)d % ROUND_MS);
	mp_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &mp.ni));
	open_all();
	sum.left++;
}

static void one_round(unsigned n, unsigned ms)
{
	uint64_t d = mp_mix(seed * 1000 + n);
	unsigned away = n % 3 == 2 ? (unsigned)d % mp.size : mp.size;
	for (unsigned r = 0; r < mp.size; r++)
		with[r] = r != away;
	mp_barrier();
	if (away == mp.rank)
		be_away(d >> 8);
	else
		do_round(ms);
	mp_barrier();
	if (away < mp.size && away != mp.rank)
		put_and_ack(away, PING, nothing, 0);
}

/* ---- memory and descriptors ---- */

struct size {
	unsigned long anon, shmem;
};

static unsigned long larger(unsigned long a, unsigned long b)
{
	return a > b ? a : b;
}

static void measure(struct size *most)
{
	most->anon = larger(most->anon, memory_kib("RssAnon"));
	most->shmem = larger(most->shmem, memory_kib("RssShmem"));
}

static void check_flat(struct size a, struct size b, unsigned fds)
{
	unsigned after = descriptors_within("self", fds);
	mp_check(after == fds, "%u descriptors, %u before all rounds", after, fds);
#ifdef P3_SANITIZED
	(void)a, (void)b; /* the sanitizer's own memory grows, too */
#else
	mp_check(b.anon <= a.anon + ANON_KIB && b.shmem <= a.shmem + SHMEM_KIB,
		"memory: %lu and %lu KiB, shared %lu and %lu", a.anon, b.anon, a.shmem,
		b.shmem);
#endif
}

/* ---- the driver ---- */

static void stop_one(uint64_t d)
{
	pid_t pid = pids[d % mp.size];
	unsigned us = (d >> 8) % 16 ? (unsigned)(d >> 16) % 30000 : 300000;
	(void)kill(pid, SIGSTOP);
	/* pause: the rank is stopped for a random time */
	usleep(us);
	(void)kill(pid, SIGCONT);
	/* pause: random distances between stops */
	usleep((unsigned)(d >> 40) % 60000);
}

/* Run until rank 0 closes the pipe or ends; let all ranks go on in the end. */
static void drive(int from, unsigned size)
{
	uint64_t n = 0;
	char *lifeline = getenv("PTL3_YOD_FD");
	if (lifeline)
		close(atoi(lifeline));
	if (read(from, pids, sizeof pids) != sizeof pids)
		_exit(0);
	(void)fcntl(from, F_SETFL, O_NONBLOCK);
	mp.size = size;
	char byte;
	while (read(from, &byte, 1) < 0 && getppid() == pids[0])
		stop_one(dice(0, ++n));
	_exit(0);
}

static pid_t start_driver(int *pipe_out)
{
	int ends[2];
	mp_check(pipe(ends) == 0, "no pipe");
	pid_t child = fork();
	mp_check(child >= 0, "fork");
	if (child == 0) {
		close(ends[1]);
		drive(ends[0], mp.size);
	}
	close(ends[0]);
	*pipe_out = ends[1];
	return child;
}

static void end_driver(pid_t child, int pipe)
{
	int status;
	close(pipe);
	mp_check(waitpid(child, &status, 0) == child && status == 0,
		"the driver: status %#x", status);
}

/* ---- beginning and end ---- */

static void report(struct size a, struct size b)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_ok(PtlXStats(mp.ni, &st));
	/* the same check as in each round */
	mp_check(sum.drops == sum.expected, "drops");
	printf("rank %u: %llu messages, %llu MB, %llu events; %llu drops of %llu, %llu "
	       "events overtaken; %llu times unlinked under traffic, %llu times away; "
	       "p50 %.1f us\n",
		mp.rank, (unsigned long long)(streams.messages + sum.gusts),
		(unsigned long long)(streams.bytes + sum.bytes) / 1000000,
		(unsigned long long)(streams.events + sum.events),
		(unsigned long long)sum.drops, (unsigned long long)sum.expected,
		(unsigned long long)sum.overtaken, (unsigned long long)sum.takes,
		(unsigned long long)sum.left, streams_median_us());
	printf("rank %u: inline %llu, eager %llu; MB by window %llu, read %llu, direct "
	       "%llu; memory %lu then %lu KiB, shared %lu then %lu\n",
		mp.rank, (unsigned long long)st.puts_inline,
		(unsigned long long)st.puts_eager,
		(unsigned long long)st.moved_bulk_bytes / 1000000,
		(unsigned long long)st.moved_cma_bytes / 1000000,
		(unsigned long long)st.moved_direct_bytes / 1000000, a.anon, b.anon,
		a.shmem, b.shmem);
}

static void options(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			seconds = (unsigned)atoi(argv[++i]);
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			seed = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--still"))
			still = true;
		else
			mp_fail(__FILE__, __LINE__,
				"usage: soak [--seconds N] [--seed N] [--still]");
	snprintf(mp_note, sizeof mp_note, "seed %llu", (unsigned long long)seed);
}

/* Run all rounds; their number is the same everywhere, independent of clocks. */
static void all_rounds(struct size *first, struct size *second)
{
	unsigned rounds = seconds * 1000 / (ROUND_MS + 100), ms = ROUND_MS;
	if (rounds < LEAST) {
		rounds = LEAST;
		ms = seconds * 1000 / LEAST;
	}
	for (unsigned n = 0; n < rounds; n++) {
		one_round(n, ms);
		measure(n < rounds / 2 ? first : second);
	}
}

int main(int argc, char **argv)
{
	struct size first = {0}, second = {0};
	pid_t child = 0;
	int pipe = -1;
	options(argc, argv);
	mp_start();
	mp_check(mp.size >= 3 && mp.size <= S_RANKS, "3 to %d ranks, please", S_RANKS);
	if (mp.rank == 0 && !still)
		child = start_driver(&pipe);
	open_all();
	mp_barrier();
	pid_t self = getpid();
	put_and_ack(0, PIDS, &self, sizeof self);
	for (unsigned n = 0; mp.rank == 0 && n < mp.size; n++)
		(void)mp_expect(pids_eq, PTL_EVENT_PUT_END);
	mp_barrier();
	if (child)
		mp_check(write(pipe, pids, sizeof pids) == sizeof pids, "driver?");
	unsigned fds = descriptors_settled("self") - (child != 0); /* but for the pipe */
	all_rounds(&first, &second);
	if (child)
		end_driver(child, pipe);
	mp_barrier();
	check_flat(first, second, fds);
	report(first, second);
	mp_end();
	return 0;
}
