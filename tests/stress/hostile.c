/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile lanes|lifeline SECONDS SEED OVER - honest nodes with verified traffic among
 * themselves (streams.c), and hostile ones (attack.h); under yod --keep-going
 *
 *	lanes		rank 1 is a program that ends and begins again, some ten times a
 *			second, each time as a node that writes over all that it can map
 *	lifeline	ranks from 3 on talk nonsense to yod, with descriptors of all
 *			kinds, for themselves and for others
 *
 * OVER is the beginning of the names of files: a hostile rank makes OVER.RANK when it
 * attacks no more.
 *
 * In lanes honest nodes also have endpoints of CCI (honest_cci.h), and the hostile one
 * writes messages of CCI, too.
 *
 * Honest nodes also exchange messages with the hostile ones: puts, gets and exchanges
 * with any outcome, which must end; and an entry for them (BAIT), around which no byte
 * may change.  Nothing may ever reach FORBIDDEN entries, which admit other users, other
 * jobs, and one honest rank.
 */
#include "shm/atomics.h"
#include "stress/hostile.h"
#include "stress/streams.h"
#include "support/descriptors.h"
#include "support/patience.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CALM_MS = 1000,
	HOSTILE = 1,
	HONEST = 3, /* lifeline: ranks below this */
	GUARD = 4096,
	PREY = 8192,
	LOOT = 200000,
	OPEN = 16,
	LIVES = 10
};

static unsigned seconds;
static uint64_t seed;
static bool lanes;
static const char *over_files;

static bool is_honest(unsigned rank)
{
	return lanes ? rank != HOSTILE : rank < HONEST;
}

/* ---- the hostile ones ---- */

static void await_life(pid_t child, struct patience p)
{
	int status;
	while (!patience_is_over(&p)) {
		if (waitpid(child, &status, WNOHANG) == child)
			return;
		/* pause: between two looks at the child */
		usleep(5000);
	}
	(void)kill(child, SIGKILL); /* it may have closed its own connection */
	(void)waitpid(child, &status, 0);
}

static void live_once(unsigned n)
{
	pid_t child = fork();
	if (child == 0) {
		(void)!freopen("/dev/null", "w", stderr);
		attack_seed(seed * 1000 + n);
		attack_live(n == 0);
	}
	if (child > 0)
		await_life(child, n == 0 ? patience_begin() : patience_ms(400));
}

/* Run one program after another, each of them the node, for this time after the quiet of
 * the first one, and LIVES of them at least. */
static unsigned live_on(uint64_t ns)
{
	unsigned n = 1;
	live_once(0);
	for (uint64_t until = now_ns() + ns; n < LIVES || now_ns() < until; n++)
		live_once(n);
	return n;
}

/* ---- messages to and from hostile nodes ---- */

static struct {
	ptl_handle_eq_t eq, prey_eq, forbidden_eq;
	ptl_handle_md_t out, in, swap;
	unsigned char *prey, *loot, *forbidden;
	uint64_t puts, sent, gets, swaps, replies, failed, preyed;
	int open; /* STARTs without END at the prey */
	p3_a32 over;
} deal;

static unsigned char *guarded(size_t length)
{
	unsigned char *at = malloc(length + 2 * GUARD);
	mp_check(at, "no memory");
	memset(at, 0x5a, length + 2 * GUARD);
	return at + GUARD;
}

static void check_guards(const unsigned char *at, size_t length, const char *what)
{
	for (size_t i = 0; i < GUARD; i++)
		mp_check(at[-1 - (long)i] == 0x5a && at[length + i] == 0x5a,
			"a byte beside %s was written", what);
}

static void allow(ptl_ac_index_t index, unsigned rank, ptl_uid_t uid, ptl_jid_t jid)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	mp_ok(PtlACEntry(mp.ni, index, rank < mp.size ? mp.id[rank] : anyone, uid, jid,
		index ? FORBIDDEN_PORTAL : MP_PORTAL));
}

static void forbid(ptl_match_bits_t bits)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = mp_region(deal.forbidden, PREY,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE,
		deal.forbidden_eq);
	ptl_handle_me_t me;
	mp_ok(PtlMEMDAttach(mp.ni, FORBIDDEN_PORTAL, anyone, bits, ~UINT64_C(0),
		PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN, &me, NULL));
}

static void open_forbidden(void)
{
	ptl_uid_t uid;
	ptl_jid_t jid;
	mp_ok(PtlGetUid(mp.ni, &uid));
	mp_ok(PtlGetJid(mp.ni, &jid));
	deal.forbidden = guarded(PREY);
	deal.forbidden_eq = mp_queue(1024);
	forbid(FORBIDDEN);
	allow(0, mp.size, PTL_UID_ANY, PTL_JID_ANY); /* but not to that portal */
	allow(1, mp.size, uid + 1, PTL_JID_ANY);
	allow(2, mp.size, PTL_UID_ANY, jid + 1);
	allow(3, 0, PTL_UID_ANY, PTL_JID_ANY);
}

static void open_dealings(void)
{
	deal.eq = mp_queue(1 << 12);
	deal.prey_eq = mp_queue(1 << 14);
	deal.prey = guarded(PREY);
	deal.loot = guarded(LOOT);
	deal.out = mp_bind(mp_pattern, MP_PATTERN, deal.eq, 0);
	deal.in = mp_bind(deal.loot, LOOT, deal.eq, 0);
	deal.swap = mp_bind(mp_pattern, 64, deal.eq, 0);
	for (unsigned r = 0; r < mp.size; r++)
		if (!is_honest(r))
			mp_attach(BAIT, deal.prey, PREY,
				PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE |
					PTL_MD_TRUNCATE | MP_STARTS,
				deal.prey_eq);
	open_forbidden();
}

static void look_at_prey(void)
{
	ptl_event_t ev;
	int rc;
	while ((rc = PtlEQGet(deal.prey_eq, &ev)) != PTL_EQ_EMPTY) {
		mp_check(rc == PTL_OK || rc == PTL_EQ_DROPPED, "%s",
			PtlErrorStr((unsigned)rc));
		mp_check(ev.offset <= PREY && ev.mlength <= PREY - ev.offset,
			"an event of %llu bytes at %llu", (unsigned long long)ev.mlength,
			(unsigned long long)ev.offset);
		deal.preyed++;
	}
	mp_check(PtlEQGet(deal.forbidden_eq, &ev) == PTL_EQ_EMPTY,
		"nid %u, uid %u, jid %u came through access control", ev.initiator.nid,
		ev.uid, ev.jid);
}

static void take_outcome(const ptl_event_t *ev)
{
	deal.failed += ev->ni_fail_type != PTL_NI_OK;
	mp_check(ev->mlength <= LOOT, "%llu bytes", (unsigned long long)ev->mlength);
	if (ev->type == PTL_EVENT_SEND_END)
		deal.sent++;
	else if (ev->type == PTL_EVENT_REPLY_END)
		deal.replies++;
	else
		mp_check(ev->type == PTL_EVENT_ACK, "%s", PtlEventKindStr(ev->type));
}

static uint64_t under_way(void)
{
	ptl_sr_value_t n;
	mp_ok(PtlNIStatus(mp.ni, PTL_SR_MSGS_CUR, &n));
	return (uint64_t)n;
}

static void exchange_with(unsigned to, uint64_t d)
{
	int rc = PtlGetPutRegion(deal.in, 0, deal.swap, 0, d % 65, mp.id[to], MP_PORTAL,
		0, BAIT, d >> 32, d);
	mp_check(rc == PTL_OK || rc == PTL_NO_SPACE, "%s", PtlErrorStr((unsigned)rc));
	deal.swaps += rc == PTL_OK;
	deal.puts += rc == PTL_OK;
}

static void deal_with(unsigned to, uint64_t d)
{
	ptl_size_t len = (d >> 40) % ((d >> 8) % 2 ? 2000 : LOOT);
	if (d % 8 == 0) {
		exchange_with(to, d);
	} else if (d % 8 < 5) {
		mp_put(deal.out, (d >> 8) % 1000, len, PTL_ACK_REQ, to, BAIT, 0, d);
		deal.puts++;
	} else {
		mp_get(deal.in, 0, len, to, BAIT, (d >> 24) % 2000);
		deal.gets++;
	}
}

/* Do a few operations at a time: an unanswered one holds up no other. */
static void *dealings(void *arg)
{
	ptl_event_t ev;
	(void)arg;
	for (uint64_t n = 1; !p3_get(&deal.over); n++) {
		uint64_t d = mp_mix(seed ^ mp_mix(n * 16 + mp.rank));
		unsigned to = (unsigned)(d >> 48) % mp.size;
		while (mp_poll(deal.eq, &ev))
			take_outcome(&ev);
		look_at_prey();
		if (!is_honest(to) && deal.puts - deal.sent < OPEN &&
			under_way() < 10 * OPEN)
			deal_with(to, d);
		usleep((useconds_t)(d >> 16) % 400);
	}
	return NULL;
}

static uint64_t alive(void)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_ok(PtlXStats(mp.ni, &st));
	return st.peers_alive;
}

static unsigned honest_ones(void)
{
	unsigned n = 0;
	for (unsigned r = 0; r < mp.size; r++)
		n += is_honest(r);
	return n;
}

/* Each hostile rank makes a file when it attacks no more. */
static const char *file_of(unsigned rank)
{
	static char name[300];
	snprintf(name, sizeof name, "%s.%u", over_files, rank);
	return name;
}

static void say_over(unsigned rank)
{
	FILE *f = fopen(file_of(rank), "we");
	mp_check(f && !fclose(f), "%s cannot be made", file_of(rank));
}

static void await_over(void)
{
	struct patience p = patience_begin();
	ptl_event_t ev;
	for (unsigned r = 0; r < mp.size; r++)
		while (!is_honest(r) && access(file_of(r), F_OK) != 0) {
			mp_check(!patience_is_over(&p), "rank %u attacks on", r);
			while (mp_next_within(deal.eq, 5, &ev))
				take_outcome(&ev);
			look_at_prey();
		}
}

/* Wait until the hostile nodes are gone; then all operations with them must end. */
static void settle(void)
{
	await_over();
	struct patience p = patience_begin();
	ptl_event_t ev;
	do {
		while (mp_next_within(deal.eq, 5, &ev))
			take_outcome(&ev);
		look_at_prey();
	} while (!patience_is_over(&p) &&
		 (alive() > honest_ones() || under_way() || deal.sent != deal.puts));
	mp_check(deal.sent == deal.puts && !under_way(),
		"after the end %llu operations are under way, %llu of %llu sends "
		"are over, %llu nodes alive",
		(unsigned long long)under_way(), (unsigned long long)deal.sent,
		(unsigned long long)deal.puts, (unsigned long long)alive());
	mp_check(alive() <= honest_ones(), "%llu nodes are said to be alive",
		(unsigned long long)alive());
	mp_check(deal.replies <= deal.gets + deal.swaps, "more replies than gets");
}

/* ---- the honest ones ---- */

static double round_of(const bool *with, unsigned ms)
{
	streams_round(with, ms);
	return streams_median_us();
}

static unsigned next_honest(unsigned rank)
{
	do
		rank = (rank + 1) % mp.size;
	while (!is_honest(rank));
	return rank;
}

static void be_honest(void)
{
	bool with[S_RANKS];
	pthread_t thread;
	for (unsigned r = 0; r < S_RANKS; r++)
		with[r] = is_honest(r);
	mp_start();
	snprintf(mp_note, sizeof mp_note, "seed %llu", (unsigned long long)seed);
	streams_open(seed, with);
	open_dealings();
	if (lanes)
		honest_cci_open();
	mp_barrier();
	unsigned before = descriptors_settled("self");
	double calm = round_of(with, CALM_MS);
	mp_barrier(); /* the hostile ones wait for it */
	uint64_t done = streams.messages;
	mp_check(!pthread_create(&thread, NULL, dealings, NULL), "no thread");
	if (lanes)
		honest_cci_start(next_honest(mp.rank));
	double stormy = round_of(with, seconds * 1000);
	uint64_t cci = lanes ? honest_cci_stop() : 0;
	mp_check(!lanes || cci, "no message of CCI has come");
	p3_set(&deal.over, 1);
	pthread_join(thread, NULL);
	settle();
	check_guards(deal.prey, PREY, "the prey");
	check_guards(deal.loot, LOOT, "the loot");
	check_guards(deal.forbidden, PREY, "what is forbidden");
	for (size_t i = 0; i < PREY; i++)
		mp_check(deal.forbidden[i] == 0x5a, "a forbidden byte was written");
	unsigned after = descriptors_within("self", before);
	mp_check(after == before, "%u descriptors, %u before", after, before);
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_ok(PtlXStats(mp.ni, &st));
	printf("rank %u: %llu messages before the attacks, %llu beside them, p50 %.1f "
	       "and %.1f us; "
	       "%llu puts, %llu gets, %llu exchanges with the hostile, %llu failed; "
	       "%llu events of theirs; %llu times cut off\n",
		mp.rank, (unsigned long long)done,
		(unsigned long long)(streams.messages - done), calm, stormy,
		(unsigned long long)(deal.puts - deal.swaps),
		(unsigned long long)deal.gets, (unsigned long long)deal.swaps,
		(unsigned long long)deal.failed, (unsigned long long)deal.preyed,
		(unsigned long long)st.bad_headers);
	PtlFini();
}

int main(int argc, char **argv)
{
	const char *rank = getenv("PTL_MY_RID");
	mp_check(argc == 5 && rank,
		"usage: yod ... hostile lanes|lifeline SECONDS SEED OVER");
	lanes = !strcmp(argv[1], "lanes");
	seconds = (unsigned)atoi(argv[2]);
	seed = strtoull(argv[3], NULL, 0);
	over_files = argv[4];
	uint64_t ns = seconds * 1000000000ull;
	unsigned own = (unsigned)atoi(rank);
	if (is_honest(own)) {
		be_honest();
		return 0;
	}
	if (lanes)
		printf("%u lives\n", live_on(ns));
	else
		printf("%u attacks\n", lifeline_attack(own, ns));
	say_over(own);
	return 0;
}
