/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages over Portals. */
#include "am_layer.h"

#include <portals/portals3.h>

#include <catamount/cnos_mpi_os.h>

#include <signal.h>
#include <string.h>

#ifndef PTL_MD_EVENT_AUTO_UNLINK_ENABLE
#define PTL_MD_EVENT_AUTO_UNLINK_ENABLE 0
#endif

enum { REQUEST_PORTAL = 20, LONG_PORTAL, REPLY_PORTAL };
enum { REQUEST = 1, LONG, REPLY }; /* kinds */
enum { BUFFERS = 3, CHUNKS = 64, NO_HANDLER = 255, EVENTS = 4096, MOST = 1 << 20 };

/* Match bits: kind 4, handler 8, chunk 16, credits 8, rank 16. */
#define KIND_BITS 15ull
#define BITS(kind, handler, chunk, credits, rank)                                        \
	((uint64_t)(kind) | (uint64_t)(handler) << 4 | (uint64_t)(chunk) << 12 |         \
		(uint64_t)(credits) << 28 | (uint64_t)(rank) << 36)
#define KIND_OF(bits)    ((int)((bits)&KIND_BITS))
#define HANDLER_OF(bits) ((int)((bits) >> 4 & 255))
#define CHUNK_OF(bits)   ((unsigned)((bits) >> 12 & 0xffff))
#define CREDITS_OF(bits) ((int)((bits) >> 28 & 255))
#define RANK_OF(bits)    ((int)((bits) >> 36 & 0xffff))

/* A buffer may still have unread messages when UNLINK says that it is full; the
 * remaining threshold tells how many it has taken. */
struct buffer {
	char *bytes;
	bool full;
	int taken, handled;
};

struct chunk {
	bool used, sent, answered;
};

static struct {
	const am_handler *handlers;
	ptl_handle_eq_t eqs[2]; /* for requests, and for returns */
	struct buffer buffer[BUFFERS];
	ptl_size_t buffer_size;
	char *segment;
	char chunk_bytes[CHUNKS][AM_MEDIUM];
	struct chunk chunk[CHUNKS];
	ptl_handle_md_t chunks, replies;
	char *reply_bytes;
	bool *reply_used;
	unsigned nreplies, next_reply;
	int *credit, *owed; /* by rank: credit to send with; credit to give back */
	unsigned outstanding;
	volatile sig_atomic_t busy, in_signal;
	struct am_count count;
} am;

/* Between these a signal handler leaves the layer alone. */
static void enter(void)
{
	am.busy = 1;
	__asm__ volatile("" ::: "memory");
}

static void leave(void)
{
	__asm__ volatile("" ::: "memory");
	am.busy = 0;
}

static const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};

/* ---- request buffers ---- */

/* Open a buffer.  Return false if a signal handler that interrupted a call must wait. */
static bool open_buffer(struct buffer *b)
{
	ptl_handle_me_t me;
	ptl_md_t md = job_md(b->bytes, am.buffer_size, MOST,
		PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE |
			PTL_MD_EVENT_AUTO_UNLINK_ENABLE,
		am.eqs[0]);
	md.max_size = AM_MEDIUM;
	md.user_ptr = b;
	int rc = PtlMEMDAttach(job.ni, REQUEST_PORTAL, anybody, REQUEST, ~KIND_BITS,
		PTL_UNLINK, PTL_INS_AFTER, md, PTL_UNLINK, &me, NULL);
	CHECK(rc == PTL_OK || (rc == PTL_NO_SPACE && am.in_signal));
	return rc == PTL_OK;
}

static void reopen(struct buffer *b)
{
	if (!b->full || b->handled != b->taken)
		return;
	b->full = false;
	b->handled = 0;
	if (open_buffer(b)) {
		am.count.rotations++;
		return;
	}
	b->full = true;
	b->handled = b->taken;
	am.count.refused++;
}

/* ---- replies ---- */

/* Take a reply slot; one is free: SEND_ENDs are read in turn with requests. */
static unsigned take_reply_slot(void)
{
	unsigned slot, tried = 0;
	do {
		CHECK(tried++ < am.nreplies);
		slot = am.next_reply++ % am.nreplies;
	} while (am.reply_used[slot]);
	am.reply_used[slot] = true;
	return slot;
}

/* Return the credit to give back; less than half of the other rank's credit is kept
 * back. */
static int give_back(int rank)
{
	int credits = am.owed[rank];
	if (credits < AM_CREDITS / 2 && am.count.handled % 3 == 0)
		return 0;
	am.owed[rank] = 0;
	return credits;
}

static void reply(struct am_message *m, int handler, uint64_t argument, const void *bytes,
	size_t length)
{
	unsigned slot = take_reply_slot();
	ptl_match_bits_t bits =
		BITS(REPLY, handler, m->chunk, give_back(m->from), job.rank);
	CHECK(!m->answered && m->is_request);
	m->answered = true;
	if (length > 0)
		memcpy(am.reply_bytes + slot * AM_MEDIUM, bytes, length);
	DO(PtlPutRegion(am.replies, (ptl_size_t)slot * AM_MEDIUM, length, PTL_NOACK_REQ,
		job.ids[m->from], REPLY_PORTAL, 0, bits, (ptl_size_t)m->chunk * AM_MEDIUM,
		argument));
}

void am_reply(struct am_message *m, int handler, uint64_t argument, const void *bytes,
	size_t length)
{
	reply(m, handler, argument, bytes, length);
}

/* ---- events ---- */

static void run(struct am_message *m)
{
	if (m->handler != NO_HANDLER)
		am.handlers[m->handler](m);
	am.count.handled++;
	if (am.in_signal)
		am.count.from_signals++;
}

static struct am_message message_of(const ptl_event_t *event)
{
	ptl_match_bits_t bits = event->match_bits;
	struct am_message m = {.from = RANK_OF(bits),
		.handler = HANDLER_OF(bits),
		.argument = event->hdr_data,
		.bytes = (char *)event->md.start + event->offset,
		.length = event->mlength,
		.chunk = CHUNK_OF(bits),
		.is_request = KIND_OF(bits) != REPLY};
	CHECK(event->ni_fail_type == PTL_NI_OK && event->mlength == event->rlength);
	CHECK(event->initiator.nid == job.ids[m.from].nid);
	CHECK(event->initiator.pid == job.ids[m.from].pid);
	return m;
}

static void request_arrived(const ptl_event_t *event)
{
	struct am_message m = message_of(event);
	am.owed[m.from]++;
	run(&m);
	if (!m.answered)
		reply(&m, NO_HANDLER, 0, NULL, 0);
}

static void request_event(const ptl_event_t *event)
{
	struct buffer *b = event->md.user_ptr;
	if (event->type == PTL_EVENT_UNLINK) {
		b->full = true;
		b->taken = MOST - event->md.threshold;
		return;
	}
	CHECK(event->type == PTL_EVENT_PUT_END);
	request_arrived(event);
	if (KIND_OF(event->match_bits) == REQUEST)
		b->handled++;
}

static void chunk_done(unsigned n)
{
	struct chunk *c = &am.chunk[n];
	if (!c->sent || !c->answered)
		return;
	c->used = false;
	am.outstanding--;
}

static void reply_arrived(const ptl_event_t *event)
{
	struct am_message m = message_of(event);
	CHECK(event->offset == (ptl_size_t)m.chunk * AM_MEDIUM && am.chunk[m.chunk].used);
	am.credit[m.from] += CREDITS_OF(event->match_bits);
	CHECK(am.credit[m.from] <= AM_CREDITS);
	run(&m);
	am.chunk[m.chunk].answered = true;
	chunk_done(m.chunk);
}

/* Process a SEND event: the local offset names its chunk, or its reply; else user_ptr. */
static void sent(const ptl_event_t *event)
{
	CHECK(event->ni_fail_type == PTL_NI_OK);
	unsigned n = (unsigned)(event->offset / AM_MEDIUM);
	if (event->md_handle == am.replies) {
		am.reply_used[n] = false;
		return;
	}
	if (event->md_handle != am.chunks)
		n = *(unsigned *)event->md.user_ptr;
	am.chunk[n].sent = true;
	chunk_done(n);
}

static void return_event(const ptl_event_t *event)
{
	if (event->type == PTL_EVENT_SEND_END)
		sent(event);
	else if (event->type == PTL_EVENT_PUT_END)
		reply_arrived(event);
	else
		CHECK(event->type == PTL_EVENT_UNLINK);
}

static bool handle_one(ptl_time_t patience)
{
	ptl_event_t event;
	int which;
	int rc = PtlEQPoll(am.eqs, 2, patience, &event, &which);
	CHECK(rc == PTL_OK || rc == PTL_EQ_EMPTY);
	if (rc == PTL_EQ_EMPTY)
		return false;
	enter();
	if (which == 0)
		request_event(&event);
	else
		return_event(&event);
	for (int i = 0; i < BUFFERS; i++)
		reopen(&am.buffer[i]);
	leave();
	return true;
}

bool am_poll(void)
{
	if (am.busy) {
		am.count.inside++;
		return false;
	}
	while (handle_one(0))
		;
	return true;
}

/* Wait; a request buffer that is put back late could be the reason why nothing comes. */
static void wait_a_little(void)
{
	enter();
	for (int i = 0; i < BUFFERS; i++)
		reopen(&am.buffer[i]);
	leave();
	if (handle_one(1))
		am_poll();
}

void am_signal_begins(void)
{
	am.in_signal++;
}

void am_signal_ends(void)
{
	am.in_signal--;
}

/* ---- requests ---- */

static int try_chunk(int to)
{
	int found = -1;
	enter();
	for (int i = 0; i < CHUNKS && found < 0 && am.credit[to] > 0; i++)
		if (!am.chunk[i].used)
			found = i;
	if (found >= 0) {
		am.chunk[found] = (struct chunk){.used = true};
		am.credit[to]--;
		am.outstanding++;
	}
	leave();
	return found;
}

static unsigned take_chunk(int to)
{
	int n;
	while ((n = try_chunk(to)) < 0)
		wait_a_little();
	return (unsigned)n;
}

void am_request(int to, int handler, uint64_t argument, const void *bytes, size_t length)
{
	unsigned n = take_chunk(to);
	if (length > 0)
		memcpy(am.chunk_bytes[n], bytes, length);
	DO(PtlPutRegion(am.chunks, (ptl_size_t)n * AM_MEDIUM, length, PTL_NOACK_REQ,
		job.ids[to], REQUEST_PORTAL, 0, BITS(REQUEST, handler, n, 0, job.rank), 0,
		argument));
}

void am_request_long(int to, int handler, uint64_t argument, const void *bytes,
	size_t length, size_t offset)
{
	ptl_handle_md_t source;
	unsigned n = take_chunk(to);
	volatile bool *gone = &am.chunk[n].sent;
	ptl_md_t md =
		job_md((void *)bytes, length, 1, PTL_MD_EVENT_START_DISABLE, am.eqs[1]);
	unsigned of = n;
	md.user_ptr = &of;
	DO(PtlMDBind(job.ni, md, PTL_UNLINK, &source));
	DO(PtlPut(source, PTL_NOACK_REQ, job.ids[to], LONG_PORTAL, 0,
		BITS(LONG, handler, n, 0, job.rank), offset, argument));
	while (!*gone)
		wait_a_little();
}

void am_quiet(void)
{
	while (*(volatile unsigned *)&am.outstanding > 0)
		wait_a_little();
	for (int i = 0; i < job.size; i++)
		CHECK(am.credit[i] > AM_CREDITS / 2);
}

struct am_count am_counts(void)
{
	return am.count;
}

/* ---- begin ---- */

static ptl_handle_md_t attach(ptl_pt_index_t portal, int kind, ptl_md_t md)
{
	ptl_handle_me_t me;
	ptl_handle_md_t handle;
	DO(PtlMEAttach(job.ni, portal, anybody, (ptl_match_bits_t)kind, ~KIND_BITS,
		PTL_RETAIN, PTL_INS_AFTER, &me));
	DO(PtlMDAttach(me, md, PTL_RETAIN, &handle));
	return handle;
}

static void begin_sending(void)
{
	unsigned options =
		PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE;
	am.nreplies = 8 * AM_CREDITS * (unsigned)job.size;
	am.reply_bytes = malloc((size_t)am.nreplies * AM_MEDIUM);
	am.reply_used = calloc(am.nreplies, sizeof *am.reply_used);
	am.credit = calloc((size_t)job.size, sizeof *am.credit);
	am.owed = calloc((size_t)job.size, sizeof *am.owed);
	for (int i = 0; i < job.size; i++)
		am.credit[i] = AM_CREDITS;
	am.chunks = attach(REPLY_PORTAL, REPLY,
		job_md(am.chunk_bytes, sizeof am.chunk_bytes, PTL_MD_THRESH_INF, options,
			am.eqs[1]));
	DO(PtlMDBind(job.ni,
		job_md(am.reply_bytes, (ptl_size_t)am.nreplies * AM_MEDIUM,
			PTL_MD_THRESH_INF, options, am.eqs[1]),
		PTL_RETAIN, &am.replies));
}

void am_begin(void *segment, size_t length, const am_handler handlers[AM_HANDLERS])
{
	am.handlers = handlers;
	am.segment = segment;
	for (int i = 0; i < 2; i++)
		DO(PtlEQAlloc(job.ni, EVENTS, PTL_EQ_HANDLER_NONE, &am.eqs[i]));
	begin_sending();
	attach(LONG_PORTAL, LONG,
		job_md(segment, length, PTL_MD_THRESH_INF,
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
			am.eqs[0]));
	am.buffer_size = (ptl_size_t)(job.size * AM_CREDITS + 1) * AM_MEDIUM;
	for (int i = 0; i < BUFFERS; i++) {
		am.buffer[i].bytes = malloc(am.buffer_size);
		CHECK(open_buffer(&am.buffer[i]));
	}
}
