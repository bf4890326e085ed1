/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steady - verified traffic and barriers that go on for some time
 *
 *	steady SECONDS FILE
 *
 * Each rank puts numbered messages of many lengths to all others.  The receiver checks
 * that each comes once, in order and with the right bytes, and answers; a sender has at
 * most WINDOW messages to a rank without an answer, and in runs of a few seconds pauses
 * behind them.  A second thread of each rank passes barriers all the time.  Rank 0
 * writes a word to FILE.begun when the traffic begins.  It goes on until FILE.enough is
 * there, however long that takes.  A rank prints how much it has done, the longest time
 * that a message has waited for its answer, or a barrier for all ranks, and by how much a
 * sleep was too long: that is what the machine adds to such a wait.
 */
#include "../mp/mp.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WINDOW = 4, SLOT = 128 << 10, ANSWERS = 1 << 12 };
enum { PACE_MS = 20, PACED_S = 4 };
#define LAST UINT64_MAX

static struct pair {
	uint64_t sent, answered;      /* messages to the rank */
	uint64_t since[WINDOW];       /* times of those without an answer */
	uint64_t started, came, ends; /* messages of the rank; came: bits from ends on */
	bool said_last, has_last;
} pair[MP_MOST];
static char *buffer; /* WINDOW slots for each rank */
static ptl_handle_eq_t eq;
static ptl_handle_md_t data, answer;
static uint64_t events, barriers;
static uint64_t stall_ns[2], late_ns[2]; /* of main and of the other thread */
static unsigned seconds;

static ptl_size_t length_of(unsigned from, unsigned to, uint64_t seq)
{
	uint64_t dice = mp_mix(seq * 7919 + from * 131 + to);
	if (dice % 64 == 0)
		return SLOT - (dice >> 8) % 100;
	return dice % 8 ? (dice >> 8) % 200 : (dice >> 8) % 9000;
}

static char *slot(unsigned from, uint64_t seq)
{
	return buffer + (from * WINDOW + seq % WINDOW) * SLOT;
}

/* ---- times ---- */

static void note_longest(uint64_t *longest, uint64_t since)
{
	uint64_t took = now_ns() - since;
	if (took > *longest)
		*longest = took;
}

static unsigned long long longer_ms(const uint64_t ns[2])
{
	return (ns[0] > ns[1] ? ns[0] : ns[1]) / 1000000;
}

static void pause_some(unsigned thread)
{
	uint64_t end = now_ns() + PACE_MS * UINT64_C(1000000);
	sleep_ms(PACE_MS); /* pause: between two barriers, and of traffic */
	note_longest(&late_ns[thread], end);
}

/* ---- barriers ---- */

/* All ranks pass the same number of barriers, for about the given time. */
static void *pass_barriers(void *arg)
{
	uint64_t end = now_ns() + seconds * UINT64_C(1000000000);
	(void)arg;
	for (uint64_t i = 0; i < seconds * (1000u / PACE_MS / 2); i++) {
		if (now_ns() < end)
			pause_some(1);
		uint64_t from = now_ns();
		mp_barrier();
		note_longest(&stall_ns[1], from);
		barriers = i + 1; /* main reads it after the end */
	}
	return NULL;
}

/* ---- messages ---- */

static void begin_message(unsigned from, uint64_t seq)
{
	struct pair *l = &pair[from];
	mp_check(seq == l->started, "from %u: message %llu begins, expected %llu", from,
		(unsigned long long)seq, (unsigned long long)l->started);
	l->started++;
}

static void end_message(unsigned from, uint64_t seq, ptl_size_t length)
{
	struct pair *l = &pair[from];
	mp_check(seq - l->ends < WINDOW && seq < l->started &&
			 !(l->came >> (seq - l->ends) & 1),
		"from %u: message %llu ends twice, or too early", from,
		(unsigned long long)seq);
	mp_check(length == length_of(from, mp.rank, seq) &&
			 mp_same(slot(from, seq), from, mp.rank, seq, length),
		"from %u: message %llu is not what was sent", from,
		(unsigned long long)seq);
	for (l->came |= 1u << (seq - l->ends); l->came & 1; l->came >>= 1)
		l->ends++;
	mp_put(answer, 0, 0, PTL_NO_ACK_REQ, from, MP_MOST + mp.rank, 0, l->ends);
}

static void end_waits(struct pair *l, uint64_t answered)
{
	for (; l->answered < answered; l->answered++)
		note_longest(&stall_ns[0], l->since[l->answered % WINDOW]);
}

static void take(const ptl_event_t *ev)
{
	unsigned from = (unsigned)ev->match_bits % MP_MOST;
	bool start = ev->type == PTL_EVENT_PUT_START;
	mp_check(ev->ni_fail_type == PTL_NI_OK, "%s of rank %u failed",
		PtlEventKindStr(ev->type), from);
	events++;
	if (ev->match_bits >= MP_MOST && start)
		return;
	if (ev->match_bits < MP_MOST && ev->hdr_data == LAST)
		pair[from].has_last |= !start;
	else if (ev->match_bits >= MP_MOST)
		end_waits(&pair[from], ev->hdr_data);
	else if (start)
		begin_message(from, ev->hdr_data);
	else
		end_message(from, ev->hdr_data, ev->mlength);
}

static void send_to(unsigned to)
{
	struct pair *l = &pair[to];
	while (l->sent - l->answered < WINDOW) {
		uint64_t seq = l->sent++;
		l->since[seq % WINDOW] = now_ns();
		mp_put(data, mp_cut(mp.rank, to, seq), length_of(mp.rank, to, seq),
			PTL_NO_ACK_REQ, to, mp.rank,
			(mp.rank * WINDOW + seq % WINDOW) * (ptl_size_t)SLOT, seq);
	}
}

static void take_all(void)
{
	ptl_event_t ev;
	mp_check(mp_next_soon(eq, &ev), "no event comes after %llu events",
		(unsigned long long)events);
	do
		take(&ev);
	while (mp_poll(eq, &ev));
}

/* Say that no more messages come, behind the last one; return true when all is done. */
static bool finish(void)
{
	bool done = true;
	for (unsigned i = 0; i < mp.size; i++) {
		struct pair *l = &pair[i];
		if (i == mp.rank)
			continue;
		if (l->sent == l->answered && !l->said_last)
			mp_put(answer, 0, 0, PTL_NO_ACK_REQ, i, mp.rank, 0, LAST);
		l->said_last |= l->sent == l->answered;
		done &= l->said_last && l->has_last;
	}
	return done;
}

static void go_on(const char *path)
{
	uint64_t end = now_ns() + seconds * UINT64_C(1000000000);
	char enough[500];
	snprintf(enough, sizeof enough, "%s.enough", path);
	while (now_ns() < end || access(enough, F_OK)) {
		for (unsigned i = 1; i < mp.size; i++)
			send_to((mp.rank + i) % mp.size);
		take_all();
		if (seconds <= PACED_S)
			pause_some(0);
	}
	while (!finish())
		take_all();
}

static void tell_begun(const char *path)
{
	char whole[500];
	snprintf(whole, sizeof whole, "%s.begun", path);
	FILE *f = mp.rank ? NULL : fopen(whole, "w");
	if (f) {
		fprintf(f, "1\n");
		fclose(f);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;
	mp_check(argc == 3, "usage: steady SECONDS FILE");
	seconds = (unsigned)atoi(argv[1]);
	mp_start();
	eq = mp_queue(ANSWERS);
	buffer = calloc(mp.size * WINDOW, SLOT);
	mp_check(buffer, "no memory");
	for (unsigned i = 0; i < mp.size; i++) {
		mp_attach(i, buffer, (ptl_size_t)mp.size * WINDOW * SLOT,
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | MP_STARTS, eq);
		mp_attach(MP_MOST + i, NULL, 0,
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | MP_STARTS, eq);
	}
	data = mp_bind(mp_pattern, MP_PATTERN, PTL_EQ_NONE, 0);
	answer = mp_bind(mp_pattern, 0, PTL_EQ_NONE, 0);
	mp_barrier();
	tell_begun(argv[2]);
	mp_check(pthread_create(&thread, NULL, pass_barriers, NULL) == 0, "no thread");
	go_on(argv[2]);
	pthread_join(thread, NULL);
	printf("rank %u: %llu events, %llu barriers, longest stall %llu ms (sleep "
	       "%llu)\n",
		mp.rank, (unsigned long long)events, (unsigned long long)barriers,
		longer_ms(stall_ns), longer_ms(late_ns));
	mp_end();
	return 0;
}
