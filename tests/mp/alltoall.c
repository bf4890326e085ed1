/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alltoall small|mixed COUNT [figures] - every rank puts COUNT messages to every other.
 *
 * small: 64 bytes each.  mixed: 0 bytes to 20 KiB, now and then 1 MiB, every fourth with
 * acknowledgement.  The receiver checks order, offset, length and every byte; both sides
 * count.  With figures, each rank prints the time of its start, its memory and the number
 * of its descriptors.
 */
#include "../support/descriptors.h"
#include "../support/memory.h"
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20 };

static bool mixed;
static uint64_t count;

/* Return the length of a message; all ranks compute the same. */
static ptl_size_t length_of(unsigned from, unsigned to, uint64_t seq)
{
	if (!mixed)
		return 64;
	uint64_t dice = mp_mix(seq * 7919 + from * 131 + to);
	if (seq % 64 == 40 && (from + 1) % mp.size == to)
		return MIB;
	switch (dice % 8) {
	case 0:
		return (dice >> 8) % 20481;
	case 1:
	case 2:
		return (dice >> 8) % 2049;
	default:
		return (dice >> 8) % 65;
	}
}

static bool wants_ack(uint64_t seq)
{
	return mixed && seq % 4 == 1;
}

/* ---- receiving ---- */

static struct source {
	char *buffer;
	ptl_size_t *offset; /* offset[n] of message n; offset[count] is the end */
	bool *ended;
	uint64_t started;
} source[MP_MOST];
static uint64_t received;

static void open_source(unsigned from, ptl_handle_eq_t eq)
{
	struct source *s = &source[from];
	s->offset = calloc(count + 1, sizeof *s->offset);
	s->ended = calloc(count, sizeof *s->ended);
	mp_check(s->offset && s->ended, "no memory");
	for (uint64_t seq = 0; seq < count; seq++)
		s->offset[seq + 1] = s->offset[seq] + length_of(from, mp.rank, seq);
	s->buffer = malloc(s->offset[count] + 1);
	mp_check(s->buffer, "no memory");
	mp_attach(from, s->buffer, s->offset[count], PTL_MD_OP_PUT | MP_STARTS, eq);
}

/* Check the content that is equal in both events of a put. */
static void check_event(const ptl_event_t *ev, unsigned from, uint64_t seq)
{
	ptl_size_t length = length_of(from, mp.rank, seq);
	mp_check(ev->ni_fail_type == PTL_NI_OK, "from %u: message %llu failed", from,
		(unsigned long long)seq);
	mp_check(ev->initiator.nid == mp.id[from].nid, "from %u: says %u", from,
		ev->initiator.nid);
	mp_check(ev->rlength == length && ev->mlength == length &&
			 ev->offset == source[from].offset[seq],
		"from %u: message %llu has another length or place", from,
		(unsigned long long)seq);
}

/* START events come in the order of sending, END events in any order of the data. */
static void take(const ptl_event_t *ev)
{
	unsigned from = (unsigned)ev->match_bits;
	mp_check(from < mp.size && ev->hdr_data < count, "from %u", from);
	struct source *s = &source[from];
	uint64_t seq = ev->hdr_data;
	check_event(ev, from, seq);
	if (ev->type == PTL_EVENT_PUT_START) {
		mp_check(seq == s->started, "from %u: message %llu, expected %llu", from,
			(unsigned long long)seq, (unsigned long long)s->started);
		s->started++;
		return;
	}
	mp_check(ev->type == PTL_EVENT_PUT_END, "%s", PtlEventKindStr(ev->type));
	mp_check(seq < s->started && !s->ended[seq], "from %u: message %llu ends twice",
		from, (unsigned long long)seq);
	mp_check(mp_same(s->buffer + s->offset[seq], from, mp.rank, seq, ev->mlength),
		"from %u: message %llu of %llu bytes is not what was sent", from,
		(unsigned long long)seq, (unsigned long long)ev->mlength);
	s->ended[seq] = true;
	received++;
}

/* ---- sending ---- */

static uint64_t sent, acks_wanted, sends_ended, acks;

static void account(const ptl_event_t *ev)
{
	mp_check(ev->ni_fail_type == PTL_NI_OK, "%s failed", PtlEventKindStr(ev->type));
	if (ev->type == PTL_EVENT_SEND_END)
		sends_ended++;
	else if (ev->type == PTL_EVENT_ACK)
		acks++;
	else
		mp_fail(__FILE__, __LINE__, "%s", PtlEventKindStr(ev->type));
	mp_check(ev->mlength == ev->rlength, "%s: shortened", PtlEventKindStr(ev->type));
}

static void drain(ptl_handle_eq_t in, ptl_handle_eq_t out)
{
	ptl_event_t ev;
	while (mp_poll(in, &ev))
		take(&ev);
	while (mixed && mp_poll(out, &ev))
		account(&ev);
}

static void send_round(ptl_handle_md_t md, uint64_t seq)
{
	for (unsigned i = 1; i < mp.size; i++) {
		unsigned to = (mp.rank + i) % mp.size;
		bool ack = wants_ack(seq);
		mp_put(md, mp_cut(mp.rank, to, seq), length_of(mp.rank, to, seq),
			ack ? PTL_ACK_REQ : PTL_NO_ACK_REQ, to, mp.rank, 0, seq);
		sent++;
		acks_wanted += ack;
	}
}

/* ---- figures ---- */

/* Print the figures of this process.  Shared pages count in equal parts, and the pattern,
 * which is the program's, does not count. */
static void print_figures(uint64_t start_ns)
{
	unsigned long kib = memory_kib("Pss");
	mp_check(kib, "no Pss in /proc/self/smaps_rollup");
	kib -= MP_PATTERN / 1024;
	printf("rank %u: start %llu ms, memory %lu KiB, descriptors %u\n", mp.rank,
		(unsigned long long)(start_ns / 1000000), kib,
		descriptors_of("self") - 3); /* ".", "..", and the folder itself */
}

int main(int argc, char **argv)
{
	uint64_t begun = now_ns();
	mp_start();
	uint64_t start_ns = now_ns() - begun;
	bool figures = argc == 4 && strcmp(argv[3], "figures") == 0;
	mp_check(argc == 3 || figures, "usage: alltoall small|mixed COUNT [figures]");
	mixed = strcmp(argv[1], "mixed") == 0;
	count = strtoull(argv[2], NULL, 0);
	uint64_t expected = (mp.size - 1) * count;
	ptl_handle_eq_t in = mp_queue(2 * expected),
			out = mp_queue(mixed ? 2 * expected : 0);
	ptl_handle_md_t md = mp_bind(mp_pattern, MP_PATTERN, out, 0);
	for (unsigned from = 0; from < mp.size; from++)
		if (from != mp.rank)
			open_source(from, in);
	mp_barrier();

	uint64_t start = now_ns();
	for (uint64_t seq = 0; seq < count; seq++) {
		send_round(md, seq);
		drain(in, out);
	}
	while (received < expected) {
		ptl_event_t ev = mp_next(in);
		take(&ev);
	}
	while (mixed && (sends_ended < sent || acks < acks_wanted)) {
		ptl_event_t ev = mp_next(out);
		account(&ev);
	}
	mp_barrier();
	double s = (double)(now_ns() - start) / 1e9;
	ptl_event_t ev;
	mp_check(!mp_poll(in, &ev), "one message too many");
	if (mp.rank == 0)
		printf("%u nodes, %llu messages in %.3f s: %.3f M/s\n", mp.size,
			(unsigned long long)(expected * mp.size), s,
			(double)(expected * mp.size) / s / 1e6);
	if (figures)
		print_figures(start_ns);
	mp_end();
	return 0;
}
