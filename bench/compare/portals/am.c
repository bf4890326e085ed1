/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages: a put names the function that its target shall run.
 *
 * As in examples/active.c, messages lie one behind the other in blocks whose descriptors
 * manage their offsets; a full block is unlinked, the next one takes over, and the full
 * one goes to the end of the list.  Requests, replies and SEND_ENDs have a queue each,
 * and a poll looks into all three once, as the progress call of such a layer does.
 */
#include "peer_portals.h"

#include <stdlib.h>
#include <string.h>

enum { REQUESTS, REPLIES, SENT, QUEUES }; /* also portals, behind PORTAL_AM */
enum { ECHO, DONE };                      /* functions */
enum { BLOCKS = 2, BLOCK_MESSAGES = 256, SLOTS = 16 };

struct block {
	unsigned portal;
	char *start;
	ptl_handle_me_t me;
};

static struct layer {
	struct node *n;
	ptl_handle_eq_t eq[QUEUES];
	ptl_handle_md_t out;
	char *tx;
	struct block block[(REPLIES + 1) * BLOCKS];
	uint64_t bytes, round;
	uint64_t sent, gone; /* messages sent, and those whose slot is free again */
	uint64_t done;       /* replies */
} am;

static bool poll(void);

static void send(unsigned portal, ptl_hdr_data_t function, const void *bytes)
{
	while (am.sent - am.gone >= SLOTS)
		poll();
	uint64_t at = am.sent++ % SLOTS * am.bytes;
	memcpy(am.tx + at, bytes, am.bytes);
	node_put(am.n, am.out, at, am.bytes, PORTAL_AM + portal, 0, function);
}

static void on_echo(const char *bytes)
{
	peer_check(bytes, am.bytes, am.round++);
	send(REPLIES, DONE, bytes);
}

static void on_done(const char *bytes)
{
	peer_check(bytes, am.bytes, am.done++);
}

static void (*const functions[])(const char *bytes) = {
	[ECHO] = on_echo, [DONE] = on_done};

static void add_block(struct block *b)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.start = b->start,
		.length = BLOCK_MESSAGES * am.bytes,
		.threshold = PTL_MD_THRESH_INF,
		.max_size = am.bytes,
		.options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE,
		.user_ptr = b,
		.eq_handle = am.eq[b->portal]};
	bench_check(PtlMEAttach(am.n->b.ni, PORTAL_AM + b->portal, anyone, BENCH_BITS, 0,
			    PTL_UNLINK, PTL_INS_AFTER, &b->me),
		"PtlMEAttach");
	bench_check(PtlMDAttach(b->me, md, PTL_UNLINK, NULL), "PtlMDAttach");
}

/* Run the function of a message, free the slot of a sent one, or renew a full block. */
static void handle(const ptl_event_t *ev)
{
	if (ev->ni_fail_type != PTL_NI_OK)
		peer_die("%s with ni_fail_type %u; expected PTL_NI_OK; is the peer gone?",
			PtlEventKindStr(ev->type), ev->ni_fail_type);
	if (ev->type == PTL_EVENT_PUT_END && ev->mlength == am.bytes)
		functions[ev->hdr_data]((char *)ev->md.start + ev->offset);
	else if (ev->type == PTL_EVENT_SEND_END)
		am.gone++;
	else if (ev->type == PTL_EVENT_UNLINK)
		add_block(ev->md.user_ptr);
	else
		peer_die("%s of %llu bytes; expected PUT_END of %llu",
			PtlEventKindStr(ev->type), (unsigned long long)ev->mlength,
			(unsigned long long)am.bytes);
}

static bool poll(void)
{
	ptl_event_t ev;
	int which, rc = PtlEQPoll(am.eq, QUEUES, 0, &ev, &which);
	if (rc == PTL_EQ_EMPTY)
		return false;
	if (rc != PTL_OK)
		bench_check(rc, "PtlEQPoll");
	handle(&ev);
	return true;
}

/* ---- rounds ---- */

static void rounds(uint64_t count)
{
	char message[PEER_BYTES];
	for (uint64_t end = am.round + count; am.n->b.rank == 0 && am.round < end;) {
		peer_stamp(message, am.bytes, am.round++);
		send(REQUESTS, ECHO, message);
		while (am.done < am.round)
			poll();
	}
	if (am.n->b.rank == 0)
		return;
	for (uint64_t end = am.round + count; am.round < end;)
		poll();
}

static double timed(const struct peer_plan *p)
{
	double ns[PEER_BATCHES];
	rounds(p->warm);
	for (uint64_t b = 0; b < p->batches; b++) {
		double t = peer_now_ns();
		rounds(p->each);
		ns[b] = (peer_now_ns() - t) / (double)p->each;
	}
	while (am.gone < am.sent)
		poll();
	return peer_median(ns, p->batches);
}

static void open_layer(struct node *n, uint64_t bytes)
{
	am = (struct layer){.n = n, .bytes = bytes, .tx = bench_allocate(SLOTS * bytes)};
	for (unsigned q = 0; q < QUEUES; q++)
		am.eq[q] = bench_queue(&n->b, 4 * SLOTS);
	am.out = bench_bind(&n->b, am.tx, SLOTS * bytes, am.eq[SENT]);
	for (unsigned i = 0; i < sizeof am.block / sizeof am.block[0]; i++) {
		am.block[i] = (struct block){.portal = i / BLOCKS,
			.start = bench_allocate(BLOCK_MESSAGES * bytes)};
		add_block(&am.block[i]);
	}
	bench_barrier();
}

/* Close it when no message is under way. */
static void close_layer(void)
{
	bench_barrier();
	while (poll()) /* a last UNLINK renews a block */
		;
	for (unsigned i = 0; i < sizeof am.block / sizeof am.block[0]; i++) {
		bench_check(PtlMEUnlink(am.block[i].me), "PtlMEUnlink");
		free(am.block[i].start);
	}
	bench_check(PtlMDUnlink(am.out), "PtlMDUnlink");
	for (unsigned q = 0; q < QUEUES; q++)
		bench_check(PtlEQFree(am.eq[q]), "PtlEQFree");
	free(am.tx);
}

double am_run(struct node *n, uint64_t bytes, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, false, bytes);
	if (bytes < PEER_WORD || bytes > PEER_BYTES)
		peer_die("am=%llu: expected %d to %d bytes", (unsigned long long)bytes,
			PEER_WORD, PEER_BYTES);
	open_layer(n, bytes);
	double ns = timed(&p);
	close_layer();
	return ns;
}
