/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flood SECONDS - five ranks, of one host or of several, send to rank 2, which is stopped
 * (SIGSTOP) for this time
 *
 * Each sends until a call says PTL_NO_SPACE, and goes on trying.  As long as no call
 * succeeds, no rank's memory grows any more.  The five reach each other meanwhile.  When
 * rank 2 goes on, all that was accepted arrives, once, in its order, with its bytes.
 */
#include "../mp/mp.h"
#include "../support/asleep.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VICTIM = 2, HELPER = 3, RANKS = 6 };
enum { WORD = 1, PID, BITS /* and the sender's rank */ };
enum { SETTLED_MS = 500, GROWTH_KIB = 1024, SHORT = 64, LONG = 30000 };
/* For the messages of one sender. */
enum { EVENTS = 1 << 18, ROOM = 24 << 20 };

static pid_t victim_pid;

static bool is_long(uint64_t seq)
{
	return seq % 500 == 7;
}

static ptl_size_t length_of(uint64_t seq)
{
	return is_long(seq) ? LONG : (mp_mix(seq) >> 8) % SHORT;
}

static unsigned long resident_kib(pid_t pid)
{
	unsigned long kib = 0;
	char line[200];
	snprintf(line, sizeof line, "/proc/%d/status", (int)pid);
	FILE *f = fopen(line, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "VmRSS: %lu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	mp_check(kib, "the resident memory of process %d is unknown", (int)pid);
	return kib;
}

/* ---- the senders ---- */

static bool put(ptl_handle_md_t md, uint64_t seq)
{
	int rc = PtlPutRegion(md, mp_cut(mp.rank, VICTIM, seq), length_of(seq),
		PTL_ACK_REQ, mp.id[VICTIM], MP_PORTAL, 0, BITS + mp.rank, 0, seq);
	mp_check(rc == PTL_OK || rc == PTL_NO_SPACE, "%s", PtlErrorStr((unsigned)rc));
	return rc == PTL_OK;
}

/* Put as long as there is room, and until no call has succeeded for SETTLED_MS. */
static uint64_t fill(ptl_handle_md_t md)
{
	uint64_t n = 0, refused = now_ns();
	while (now_ns() - refused < SETTLED_MS * UINT64_C(1000000)) {
		if (!put(md, n))
			continue;
		n++;
		refused = now_ns();
	}
	return n;
}

static void check_growth(const char *whose, unsigned long before, unsigned long after)
{
	printf("rank %u: memory of %s %lu -> %lu KiB\n", mp.rank, whose, before, after);
	mp_check(after < before + GROWTH_KIB, "memory grows while calls are refused");
}

/* Try in vain for the time, while no memory grows.  If a call succeeds after all, because
 * the other side's kernel has taken something, begin again.  Return the number of puts
 * that were accepted. */
static uint64_t try_on(ptl_handle_md_t md, uint64_t n, unsigned seconds)
{
	unsigned long self = 0, other = 0, more = 0, refusals = 0;
	for (uint64_t end = 0; !end || now_ns() < end; refusals++) {
		bool accepted = put(md, n + more);
		more += accepted;
		if (end && !accepted)
			continue;
		end = now_ns() + seconds * UINT64_C(1000000000);
		self = resident_kib(getpid());
		other = mp.rank == HELPER ? resident_kib(victim_pid) : 0;
	}
	check_growth("itself", self, resident_kib(getpid()));
	if (mp.rank == HELPER)
		check_growth("the stopped rank", other, resident_kib(victim_pid));
	printf("rank %u: refused after %llu puts, %lu times more; %lu accepted later\n",
		mp.rank, (unsigned long long)n, refusals - more, more);
	return n + more;
}

static void tell(unsigned to, uint64_t what)
{
	static uint64_t word;
	ptl_handle_md_t md = mp_bind(&word, sizeof word, PTL_EQ_NONE, 0);
	mp_put(md, 0, sizeof word, PTL_NO_ACK_REQ, to, WORD, 0, what);
}

static void meet_senders(ptl_handle_eq_t told)
{
	for (unsigned i = 0; i < RANKS - 2; i++)
		(void)mp_expect(told, PTL_EVENT_PUT_END);
}

/* Let rank 2 go on when all senders have measured. */
static void end_stop(ptl_handle_eq_t told)
{
	meet_senders(told);
	mp_check(kill(victim_pid, SIGCONT) == 0, "cannot wake rank 2");
}

static void send(unsigned seconds, ptl_handle_eq_t told)
{
	ptl_handle_eq_t eq = mp_queue(EVENTS);
	ptl_handle_md_t md =
		mp_bind(mp_pattern, MP_PATTERN, eq, PTL_MD_EVENT_END_DISABLE);
	uint64_t n = try_on(md, fill(md), seconds);
	if (mp.rank == HELPER)
		end_stop(told);
	else
		tell(HELPER, 0);
	for (uint64_t i = 0; i < n; i++)
		(void)mp_expect(eq, PTL_EVENT_ACK);
	tell(VICTIM, n);
}

/* ---- the victim ---- */

struct from {
	ptl_handle_eq_t eq;
	uint64_t came;
	uint64_t next[2]; /* least number of the next short and long message */
	const char *in;
};

/* All have come once and in order if the numbers grow, and are as many as were sent.  The
 * bytes of a long message may come later than a short one that follows it. */
static void take(unsigned from, struct from *f, const ptl_event_t *ev)
{
	uint64_t seq = ev->hdr_data, *next = &f->next[is_long(seq)];
	mp_check(ev->ni_fail_type == PTL_NI_OK && ev->mlength == length_of(seq),
		"message %llu of rank %u is short", (unsigned long long)seq, from);
	mp_check(seq >= *next, "message %llu of rank %u comes twice or late",
		(unsigned long long)seq, from);
	mp_check(mp_same(f->in + ev->offset, from, VICTIM, seq, ev->mlength),
		"message %llu of rank %u: wrong bytes", (unsigned long long)seq, from);
	*next = seq + 1;
	f->came++;
}

/* Make room for the messages of one sender. */
static struct from listen_to(unsigned from)
{
	static char in[RANKS][ROOM];
	struct from f = {.eq = mp_queue(EVENTS), .in = in[from]};
	mp_attach(BITS + from, in[from], ROOM, PTL_MD_OP_PUT, f.eq);
	return f;
}

static void take_all(struct from *of, ptl_handle_eq_t told)
{
	uint64_t all = 0, came = 0;
	unsigned over = 0;
	ptl_event_t ev;
	while (over < RANKS - 1 || came < all) {
		for (unsigned i = 0; i < RANKS; i++)
			while (i != VICTIM && mp_poll(of[i].eq, &ev)) {
				take(i, &of[i], &ev);
				came++;
			}
		if (!mp_next_within(told, 1, &ev))
			continue;
		all += ev.hdr_data;
		over++;
	}
	mp_check(came == all, "%llu messages too many", (unsigned long long)(came - all));
	printf("rank %u: %llu messages have arrived, all once and in order\n", mp.rank,
		(unsigned long long)all);
}

/* ---- both ---- */

static void find_victim(void)
{
	static pid_t pid;
	ptl_handle_eq_t got = mp_queue(8);
	mp_get(mp_bind(&pid, sizeof pid, got, 0), 0, sizeof pid, VICTIM, PID, 0);
	(void)mp_expect(got, PTL_EVENT_REPLY_END);
	victim_pid = pid;
}

int main(int argc, char **argv)
{
	static char word[8];
	static struct from of[RANKS];
	mp_start();
	mp_check(mp.size == RANKS && argc == 2, "six ranks and a time, please");
	ptl_handle_eq_t told = mp_queue(8);
	victim_pid = getpid();
	mp_attach(WORD, word, sizeof word, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, told);
	mp_attach(PID, &victim_pid, sizeof victim_pid,
		PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE);
	for (unsigned i = 0; i < RANKS && mp.rank == VICTIM; i++)
		if (i != VICTIM)
			of[i] = listen_to(i);
	mp_barrier();
	if (mp.rank != HELPER && mp.rank != VICTIM)
		tell(HELPER, 0);
	if (mp.rank == HELPER) {
		meet_senders(told); /* the connections take memory now, and not later */
		find_victim();
	}
	mp_barrier();
	if (mp.rank == HELPER)
		mp_check(await_stopped(victim_pid), "rank 2 does not stop");
	if (mp.rank == VICTIM) {
		raise(SIGSTOP);
		take_all(of, told);
	} else {
		send((unsigned)atoi(argv[1]), told);
	}
	mp_end();
	return 0;
}
