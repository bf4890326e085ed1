/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mix.c - the calls of message passing layers, in one program
 *
 * A loop over ranks with ACKs, receives that are posted with PtlMEMDPost in front of
 * buffers for unexpected messages, and a word of rank 0 into which each rank swaps its
 * own (PtlGetPut): the words that come out and the one that stays are those that went
 * in.  A barrier of empty puts ends it.
 */
#include "ref.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	RECEIVE = 20,
	SWAP = 21,
	BARRIER = 22,
	ROUNDS = 6,
	BYTES = 900,
	BUFFERS = 2,
	BUFFER = 16384,
	STORED = 512
};

struct message {
	unsigned int from;
	ptl_match_bits_t bits;
	uint8_t bytes[BYTES];
};

static const ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
static ptl_handle_eq_t unexpected_eq, receive_eq, send_eq, swap_eq, barrier_eq;
static ptl_handle_me_t mark;
static uint8_t buffers[BUFFERS][BUFFER];
static struct message stored[STORED]; /* came before their receive was posted */
static unsigned int n_stored;
static uint64_t word;

/* A buffer for many messages; it goes when a further one might not fit. */
static void attach_buffer(void *start)
{
	ptl_md_t md = mp_region(start, BUFFER,
		PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE,
		unexpected_eq);
	ptl_handle_me_t me;

	md.max_size = BYTES;
	md.user_ptr = start;
	mp_ok(PtlMEMDAttach(mp.ni, RECEIVE, any, 0, ~(ptl_match_bits_t)0, PTL_UNLINK,
		PTL_INS_AFTER, md, PTL_UNLINK, &me, NULL));
}

static void store(const ptl_event_t *event)
{
	struct message *m = &stored[n_stored++];

	CHECK(n_stored < STORED);
	CHECK(event->mlength == BYTES);
	m->from = ref_rank(event->initiator);
	m->bits = event->match_bits;
	memcpy(m->bytes, (char *)event->md.start + event->offset, BYTES);
}

/* Read the queue of the unexpected messages; return false if it was empty. */
static bool drain_unexpected(void)
{
	ptl_event_t event;
	int rc = PtlEQGet(unexpected_eq, &event);

	if (rc == PTL_EQ_EMPTY)
		return false;
	mp_ok(rc);
	ref_good(&event);
	if (event.type == PTL_EVENT_UNLINK)
		attach_buffer(event.md.user_ptr);
	else
		store(&event);
	return true;
}

static bool take_stored(unsigned int from, ptl_match_bits_t bits)
{
	for (unsigned int i = 0; i < n_stored; i++)
		if (stored[i].from == from && stored[i].bits == bits) {
			mp_compare(stored[i].bytes, BYTES, from, "data");
			stored[i] = stored[--n_stored];
			return true;
		}
	return false;
}

/* Post a receive unless the message has come; return true if it has. */
static bool post(unsigned int from, ptl_match_bits_t bits, uint8_t *in)
{
	ptl_md_t md = mp_region(in, BYTES, PTL_MD_OP_PUT | PTL_MD_TRUNCATE, receive_eq);
	ptl_handle_me_t me;
	ptl_handle_md_t handle;
	int rc;

	md.threshold = 1;
	for (;;) {
		while (drain_unexpected())
			;
		if (take_stored(from, bits))
			return true;
		rc = PtlMEMDPost(mp.ni, mark, mp.id[from], bits, 0, PTL_UNLINK,
			PTL_INS_BEFORE, md, PTL_UNLINK, &me, &handle, unexpected_eq);
		if (rc != PTL_MD_NO_UPDATE) {
			mp_ok(rc);
			return false;
		}
	}
}

static void step(ptl_handle_md_t out, unsigned int round, unsigned int s)
{
	static uint8_t in[BYTES];
	unsigned int from = (mp.rank + mp.size - s) % mp.size;
	ptl_match_bits_t bits = (ptl_match_bits_t)round << 32 | s;
	bool came;

	memset(in, 0, BYTES);
	came = post(from, bits, in);
	mp_ok(PtlPut(out, PTL_ACK_REQ, mp.id[(mp.rank + s) % mp.size], RECEIVE, 0, bits,
		0, round));
	if (!came) {
		CHECK(ref_wait(receive_eq).type == PTL_EVENT_PUT_START);
		CHECK(ref_wait(receive_eq).type == PTL_EVENT_PUT_END);
		CHECK(ref_wait(receive_eq).type == PTL_EVENT_UNLINK);
		mp_compare(in, BYTES, from, "data");
	}
	CHECK(ref_wait(send_eq).type == PTL_EVENT_SEND_START);
	CHECK(ref_wait(send_eq).type == PTL_EVENT_SEND_END);
	CHECK(ref_wait(send_eq).type == PTL_EVENT_ACK);
}

static void loop(void)
{
	static uint8_t out[BYTES];
	ptl_handle_md_t handle;

	mp_fill(out, BYTES, mp.rank);
	mp_ok(PtlMDBind(mp.ni, mp_region(out, BYTES, 0, send_eq), PTL_RETAIN, &handle));
	for (unsigned int round = 1; round <= ROUNDS; round++)
		for (unsigned int s = 1; s < mp.size; s++)
			step(handle, round, s);
	mp_ok(PtlMDUnlink(handle));
}

static uint64_t swap(uint64_t mine)
{
	ptl_handle_eq_t eq = mp_queue(8);
	uint64_t old = ~UINT64_C(0);
	ptl_handle_md_t get, put;
	ptl_event_t event;

	mp_ok(PtlMDBind(mp.ni, mp_region(&old, sizeof old, 0, eq), PTL_RETAIN, &get));
	mp_ok(PtlMDBind(mp.ni, mp_region(&mine, sizeof mine, 0, eq), PTL_RETAIN, &put));
	mp_ok(PtlGetPut(get, put, mp.id[0], SWAP, 0, 0, 0, 0));
	do
		event = ref_wait(eq);
	while (event.type != PTL_EVENT_REPLY_END);
	mp_ok(PtlMDUnlink(get));
	mp_ok(PtlMDUnlink(put));
	mp_ok(PtlEQFree(eq));
	return old;
}

/* Tell rank 0 what came out; it sums up the squares of the words. */
static void count_words(uint64_t old)
{
	uint64_t sum = 0, want = 0;
	ptl_handle_md_t handle;

	if (mp.rank) {
		mp_ok(PtlMDBind(
			mp.ni, mp_region(NULL, 0, 0, send_eq), PTL_RETAIN, &handle));
		mp_ok(PtlPut(handle, PTL_ACK_REQ, mp.id[0], SWAP, 0, 1, 0, old));
		while (ref_wait(send_eq).type != PTL_EVENT_ACK)
			;
		mp_ok(PtlMDUnlink(handle));
		return;
	}
	for (unsigned int left = mp.size - 1; left;) {
		ptl_event_t event = ref_wait(swap_eq);

		if (event.type != PTL_EVENT_PUT_END)
			continue;
		sum += event.hdr_data * event.hdr_data;
		left--;
	}
	for (unsigned int r = 0; r < mp.size; r++)
		want += (uint64_t)(r + 1) * (r + 1);
	CHECK(sum + old * old + word * word == want);
}

/* Log-step barrier; the bits tell the steps apart. */
static void barrier(void)
{
	ptl_handle_md_t handle;
	unsigned int step = 0;
	bool came[32] = {false};

	mp_ok(PtlMDBind(mp.ni, mp_region(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN, &handle));
	for (unsigned int hop = 1; hop < mp.size; hop *= 2, step++) {
		mp_ok(PtlPut(handle, PTL_NO_ACK_REQ, mp.id[(mp.rank + hop) % mp.size],
			BARRIER, 0, step, 0, 0));
		while (!came[step])
			came[ref_wait(barrier_eq).match_bits] = true;
	}
	mp_ok(PtlMDUnlink(handle));
}

static void attach(void)
{
	ptl_md_t md = mp_region(&word, sizeof word,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE);
	ptl_handle_me_t me;

	mp_ok(PtlMEAttach(mp.ni, RECEIVE, any, 0, 0, PTL_RETAIN, PTL_INS_BEFORE, &mark));
	for (int i = 0; i < BUFFERS; i++)
		attach_buffer(buffers[i]);
	ref_attach(SWAP, any, 0, md, PTL_RETAIN);
	ref_attach(SWAP, any, 1, mp_region(NULL, 0, PTL_MD_OP_PUT, swap_eq), PTL_RETAIN);
	mp_ok(PtlMEAttach(mp.ni, BARRIER, any, 0, ~(ptl_match_bits_t)0, PTL_RETAIN,
		PTL_INS_AFTER, &me));
	mp_ok(PtlMDAttach(me,
		mp_region(
			NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, barrier_eq),
		PTL_RETAIN, NULL));
}

int main(void)
{
	ref_start();
	unexpected_eq = mp_queue(2048);
	receive_eq = mp_queue(16);
	send_eq = mp_queue(64);
	swap_eq = mp_queue(64);
	barrier_eq = mp_queue(64);
	attach();
	loop();
	count_words(swap(mp.rank + 1));
	barrier();
	ref_end();
}
