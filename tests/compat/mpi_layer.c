/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages as MPI libraries had them, over Portals. */
#include "mpi_layer.h"

#include <p3nal_utcp.h>
#include <p3rt/p3rt.h>

#include <string.h>

#ifndef PTL_MD_EVENT_AUTO_UNLINK_ENABLE
#define PTL_MD_EVENT_AUTO_UNLINK_ENABLE 0
#endif

#define SEND_PORTAL 30
#define READ_PORTAL 31

/* match bits: protocol 4, context 12, source 16, tag 32 */
#define PTL_SHORT_MSG          (1ull << 60)
#define PTL_LONG_MSG           (2ull << 60)
#define PTL_READY_MSG          (4ull << 60)
#define PTL_PROTOCOL_IGNR      (15ull << 60)
#define PTL_SOURCE_IGNR        (0xffffull << 32)
#define PTL_TAG_IGNR           (0xffffffffull)
#define PTL_GET_TAG(bits)      ((int)((bits)&PTL_TAG_IGNR))
#define PTL_GET_SOURCE(bits)   ((int)((bits) >> 32 & 0xffff))
#define PTL_IS_SHORT_MSG(bits) (((bits)&PTL_SHORT_MSG) != 0)
#define PTL_SET_SEND_BITS(context, source, tag)                                          \
	((uint64_t)(context) << 48 | (uint64_t)(source) << 32 | (uint32_t)(tag))

/* hdr_data: serial 20, exposed 1, length 43; 0: nothing to fetch */
#define LENGTH_BITS 43
#define EXPOSED     (1ull << LENGTH_BITS)

enum { BLOCKS = 4, BLOCK = 32 * MPI_SHORT, COPIES = 64, COPY = 1024, EVENTS = 16384 };

enum what { SEND, RECEIVE, ANSWER };

struct mpi_request {
	enum what what;
	bool ended;
	struct mpi_status status;
	char *bytes;
	size_t length;
	ptl_handle_me_t me; /* receive: its entry; send: the exposed one */
	ptl_handle_md_t md;
	ptl_match_bits_t want, ignore;
	ptl_process_id_t from;
	/* send */
	bool sent, exposed, acked;
};

/* A message without a receive at its arrival, in the order of START. */
struct unexpected {
	struct unexpected *next;
	ptl_match_bits_t bits;
	ptl_hdr_data_t header;
	ptl_process_id_t from;
	ptl_seq_t link;
	bool arrived;
	size_t length; /* of the message; of a short one all bytes are here */
	const char *at;
	char *bytes;
	struct block *block;
};

struct block {
	ptl_handle_me_t me;
	char bytes[BLOCK];
	unsigned arriving;
	bool closed;
};

static struct {
	enum mpi_long long_form;
	enum mpi_post post_form;
	ptl_handle_eq_t eq, unexpected_eq;
	ptl_handle_me_t mark, rest;
	ptl_handle_md_t copies;
	char copy[COPIES][COPY];
	unsigned char copy_used[COPIES];
	unsigned next_copy;
	uint64_t serial;
	struct block block[BLOCKS];
	struct unexpected *first, **last;
	struct mpi_count count;
} mpi;

static const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};

static void progress(bool wait);

/* ---- unexpected messages ---- */

/* Open a block before the rest, which takes messages that no block takes. */
static void open_block(struct block *block)
{
	ptl_md_t md = job_md(block->bytes, BLOCK, PTL_MD_THRESH_INF,
		PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_ACK_DISABLE |
			PTL_MD_EVENT_AUTO_UNLINK_ENABLE,
		mpi.unexpected_eq);
	md.max_size = MPI_SHORT;
	md.user_ptr = block;
	block->closed = false;
	block->arriving = 0;
	DO(PtlMEInsert(mpi.rest, anybody, PTL_SHORT_MSG, ~PTL_PROTOCOL_IGNR, PTL_UNLINK,
		PTL_INS_BEFORE, &block->me));
	DO(PtlMDAttach(block->me, md, PTL_UNLINK, NULL));
	mpi.count.blocks++;
}

static void open_rest(void)
{
	ptl_md_t md = job_md(NULL, 0, PTL_MD_THRESH_INF, PTL_MD_OP_PUT | PTL_MD_TRUNCATE,
		mpi.unexpected_eq);
	md.user_ptr = NULL;
	DO(PtlMEAttach(job.ni, SEND_PORTAL, anybody, PTL_LONG_MSG, ~PTL_PROTOCOL_IGNR,
		PTL_RETAIN, PTL_INS_AFTER, &mpi.rest));
	DO(PtlMDAttach(mpi.rest, md, PTL_RETAIN, NULL));
}

static void unexpected_start(const ptl_event_t *event)
{
	struct unexpected *u = calloc(1, sizeof *u);
	u->bits = event->match_bits;
	u->header = event->hdr_data;
	u->from = event->initiator;
	u->link = event->link;
	u->length = event->hdr_data << 21 >> 21;
	u->block = event->md.user_ptr;
	if (event->md.start) /* Take the bytes out at once, so that the block can be
			      * used again. */
		u->at = (char *)event->md.start + event->offset;
	if (u->block)
		u->block->arriving++;
	*mpi.last = u;
	mpi.last = &u->next;
	mpi.count.unexpected++;
}

/* Wait for an unexpected message whose event is there, or comes. */
static void unexpected_end(const ptl_event_t *event)
{
	struct unexpected *u = mpi.first;
	while (u && (u->link != event->link || u->arrived))
		u = u->next;
	CHECK(u && event->ni_fail_type == PTL_NI_OK);
	u->arrived = true;
	if (!u->block)
		return;
	CHECK(event->mlength == event->rlength && u->length == event->mlength);
	u->bytes = memcpy(malloc(u->length + 1), u->at, u->length);
	u->block->arriving--;
}

static void unexpected_event(const ptl_event_t *event)
{
	struct block *block = event->md.user_ptr;
	if (event->type == PTL_EVENT_PUT_START)
		unexpected_start(event);
	else if (event->type == PTL_EVENT_PUT_END)
		unexpected_end(event);
	else if (event->type == PTL_EVENT_UNLINK)
		block->closed = true;
	if (block && block->closed && block->arriving == 0)
		open_block(block);
}

static void drain_unexpected(void)
{
	ptl_event_t event;
	int rc;
	while ((rc = PtlEQGet(mpi.unexpected_eq, &event)) == PTL_OK)
		unexpected_event(&event);
	CHECK(rc == PTL_EQ_EMPTY);
}

/* An event is there, or comes. */
static void await_unexpected(void)
{
	ptl_event_t event;
	DO(PtlEQWait(mpi.unexpected_eq, &event));
	unexpected_event(&event);
	drain_unexpected();
}

static struct unexpected **find_unexpected(ptl_match_bits_t want, ptl_match_bits_t ignore)
{
	struct unexpected **at = &mpi.first;
	while (*at && (((*at)->bits ^ want) & ~ignore) != 0)
		at = &(*at)->next;
	return at;
}

/* Expose the bytes for one get, by the process that has the header. */

static ptl_match_bits_t key(uint64_t serial)
{
	return serial & 0xfffff;
}

/* Put from a copy, which is free when SEND_END names its offset.  Return false if none
 * is free. */
static void expose(struct mpi_request *r, uint64_t serial)
{
	ptl_md_t md = job_md(r->bytes, r->length, 1,
		PTL_MD_OP_GET | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE |
			PTL_MD_EVENT_AUTO_UNLINK_ENABLE,
		mpi.eq);
	md.user_ptr = r;
	r->exposed = true;
	DO(PtlMEAttach(job.ni, READ_PORTAL, r->from, key(serial), 0, PTL_UNLINK,
		PTL_INS_AFTER, &r->me));
	DO(PtlMDAttach(r->me, md, PTL_UNLINK, NULL));
}

static void put(struct mpi_request *r, size_t length, ptl_ack_req_t ack,
	ptl_match_bits_t bits, ptl_hdr_data_t header)
{
	int threshold = ack == PTL_ACK_REQ ? 2 : 1;
	ptl_md_t md =
		job_md(r->bytes, length, threshold, PTL_MD_EVENT_START_DISABLE, mpi.eq);
	md.user_ptr = r;
	r->acked = ack != PTL_ACK_REQ;
	DO(PtlMDBind(job.ni, md, PTL_UNLINK, &r->md));
	DO(PtlPut(r->md, ack, r->from, SEND_PORTAL, 0, bits, 0, header));
}

/* Process the ACK of a long put: if the bytes fit, they will not be fetched. */
static bool put_copy(struct mpi_request *r, ptl_match_bits_t bits)
{
	unsigned n = mpi.next_copy % COPIES;
	if (r->length > COPY || mpi.copy_used[n])
		return false;
	mpi.next_copy++;
	mpi.copy_used[n] = 1;
	if (r->length > 0)
		memcpy(mpi.copy[n], r->bytes, r->length);
	DO(PtlPutRegion(mpi.copies, (ptl_size_t)n * COPY, r->length, PTL_NOACK_REQ,
		r->from, SEND_PORTAL, 0, bits, 0, r->length));
	r->sent = r->acked = r->ended = true;
	return true;
}

static void send_short(struct mpi_request *r, ptl_match_bits_t bits, enum mpi_send how)
{
	uint64_t serial = ++mpi.serial;
	ptl_hdr_data_t header = r->length;
	if (how == MPI_READY) {
		put(r, r->length, PTL_ACK_REQ, bits | PTL_READY_MSG, header);
		return;
	}
	if (how == MPI_STANDARD) {
		if (!put_copy(r, bits | PTL_SHORT_MSG))
			put(r, r->length, PTL_NOACK_REQ, bits | PTL_SHORT_MSG, header);
		return;
	}
	expose(r, serial);
	put(r, r->length, PTL_ACK_REQ, bits | PTL_SHORT_MSG,
		serial << (LENGTH_BITS + 1) | EXPOSED | header);
}

static void send_long(struct mpi_request *r, ptl_match_bits_t bits)
{
	uint64_t serial = ++mpi.serial;
	ptl_hdr_data_t header = serial << (LENGTH_BITS + 1) | EXPOSED | r->length;
	bool whole = mpi.long_form == MPI_EAGER_LONG;
	expose(r, serial);
	put(r, whole ? r->length : 0, whole ? PTL_ACK_REQ : PTL_NOACK_REQ,
		bits | PTL_LONG_MSG, header);
}

struct mpi_request *mpi_isend(
	const void *bytes, size_t length, int to, int tag, int context, enum mpi_send how)
{
	struct mpi_request *r = calloc(1, sizeof *r);
	ptl_match_bits_t bits = PTL_SET_SEND_BITS(context, job.rank, tag);
	r->what = SEND;
	r->bytes = (char *)bytes;
	r->length = length;
	r->from = job.ids[to];
	if (length <= MPI_SHORT || how == MPI_READY)
		send_short(r, bits, how);
	else
		send_long(r, bits);
	return r;
}

/* Process a fetch: a block does not acknowledge, so a short one's ACK never comes. */
static void send_acked(struct mpi_request *r, const ptl_event_t *event)
{
	CHECK(event->rlength == r->length && event->mlength <= event->rlength);
	r->acked = true;
	if (r->exposed &&
		(event->mlength > 0 || r->length == 0 || r->length <= MPI_SHORT)) {
		DO(PtlMEUnlink(r->me));
		r->exposed = false;
	}
}

/* A block does not acknowledge: the ACK that a short one waits for never comes. */
static void send_fetched(struct mpi_request *r)
{
	r->exposed = false;
	if (r->length > MPI_SHORT)
		return;
	CHECK(!r->acked);
	DO(PtlMDUnlink(r->md));
	r->acked = true;
}

static void send_event(struct mpi_request *r, const ptl_event_t *event)
{
	CHECK(event->ni_fail_type == PTL_NI_OK);
	if (event->type == PTL_EVENT_SEND_END)
		r->sent = true;
	else if (event->type == PTL_EVENT_ACK)
		send_acked(r, event);
	else if (event->type == PTL_EVENT_GET_END)
		send_fetched(r);
	r->ended = r->sent && r->acked && !r->exposed;
}

/* Fetch.  Threshold 2: on some networks a get has a SEND_END as well. */

static void set_status(struct mpi_request *r, ptl_match_bits_t bits, size_t sent)
{
	r->status.source = PTL_GET_SOURCE(bits);
	r->status.tag = PTL_GET_TAG(bits);
	r->status.length = sent < r->length ? sent : r->length;
	r->status.truncated = sent > r->length;
}

/* Try to post.  Return false if an unexpected message has come meanwhile, or is
 * coming. */
static void fetch(struct mpi_request *r, ptl_hdr_data_t header, size_t length,
	ptl_process_id_t from)
{
	ptl_md_t md = job_md(
		length ? r->bytes : NULL, length, 2, PTL_MD_EVENT_START_DISABLE, mpi.eq);
	md.user_ptr = r;
	r->what = ANSWER;
	DO(PtlMDBind(job.ni, md, PTL_RETAIN, &r->md));
	DO(PtlGet(r->md, from, READ_PORTAL, 0, key(header >> (LENGTH_BITS + 1)), 0));
	mpi.count.fetched++;
}

static void receive_event(struct mpi_request *r, const ptl_event_t *event)
{
	size_t sent = event->hdr_data << 21 >> 21;
	if (event->type != PTL_EVENT_PUT_END)
		return;
	CHECK(event->ni_fail_type == PTL_NI_OK);
	set_status(r, event->match_bits, sent);
	mpi.count.posted++;
	if (PTL_IS_SHORT_MSG(event->match_bits) || event->mlength > 0 ||
		!(event->hdr_data & EXPOSED)) {
		CHECK(event->mlength == r->status.length);
		r->ended = true;
		return;
	}
	fetch(r, event->hdr_data, r->status.length, event->initiator);
}

static void answer_event(struct mpi_request *r, const ptl_event_t *event)
{
	if (event->type != PTL_EVENT_REPLY_END)
		return;
	CHECK(event->ni_fail_type == PTL_NI_OK && event->mlength == event->rlength);
	DO(PtlMDUnlink(event->md_handle));
	r->ended = true;
}

static void receive_unexpected(struct mpi_request *r, struct unexpected **at)
{
	struct unexpected *u = *at;
	while (!u->arrived)
		await_unexpected();
	*at = u->next;
	if (mpi.last == &u->next)
		mpi.last = at;
	set_status(r, u->bits, u->length);
	r->status.unexpected = true;
	if (u->bytes && r->status.length > 0)
		memcpy(r->bytes, u->bytes, r->status.length);
	if (u->header & EXPOSED)
		fetch(r, u->header, u->bytes ? 0 : r->status.length, u->from);
	else
		r->ended = true;
	free(u->bytes);
	free(u);
}

static ptl_md_t receive_md(struct mpi_request *r, int threshold)
{
	ptl_md_t md = job_md(r->bytes, r->length, threshold,
		PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE, mpi.eq);
	md.user_ptr = r;
	return md;
}

/* True: posted.  False: something unexpected has come meanwhile, or is coming. */
static bool try_post(struct mpi_request *r)
{
	int rc = PtlMEMDPost(job.ni, mpi.mark, r->from, r->want, r->ignore, PTL_UNLINK,
		PTL_INS_BEFORE, receive_md(r, 1), PTL_UNLINK, &r->me, &r->md,
		mpi.unexpected_eq);
	CHECK(rc == PTL_OK || rc == PTL_MD_NO_UPDATE);
	return rc == PTL_OK;
}

static void prepare(struct mpi_request *r)
{
	if (mpi.post_form == MPI_BY_POST)
		return;
	DO(PtlMEInsert(mpi.mark, r->from, r->want, r->ignore, PTL_UNLINK, PTL_INS_BEFORE,
		&r->me));
	DO(PtlMDAttach(r->me, receive_md(r, 0), PTL_UNLINK, &r->md));
}

static bool try_update(struct mpi_request *r)
{
	ptl_md_t md = receive_md(r, 1);
	int rc = PtlMDUpdate(r->md, NULL, &md, mpi.unexpected_eq);
	CHECK(rc == PTL_OK || rc == PTL_MD_NO_UPDATE);
	return rc == PTL_OK;
}

void (*mpi_between)(void);

static bool try_to_post(struct mpi_request *r)
{
	if (mpi_between)
		mpi_between();
	return mpi.post_form == MPI_BY_POST ? try_post(r) : try_update(r);
}

static void post(struct mpi_request *r)
{
	struct unexpected **at;
	drain_unexpected();
	prepare(r);
	while (!*(at = find_unexpected(r->want, r->ignore))) {
		if (try_to_post(r))
			return;
		mpi.count.again++;
		await_unexpected();
	}
	if (mpi.post_form == MPI_BY_UPDATE)
		DO(PtlMDUnlink(r->md));
	receive_unexpected(r, at);
}

static void wish(struct mpi_request *r, int source, int tag, int context)
{
	r->want = PTL_SET_SEND_BITS(
		context, source == MPI_ANY ? 0 : source, tag == MPI_ANY ? 0 : tag);
	r->ignore = PTL_PROTOCOL_IGNR | (source == MPI_ANY ? PTL_SOURCE_IGNR : 0) |
		    (tag == MPI_ANY ? PTL_TAG_IGNR : 0);
	r->from = source == MPI_ANY ? anybody : job.ids[source];
}

struct mpi_request *mpi_irecv(
	void *bytes, size_t length, int source, int tag, int context)
{
	struct mpi_request *r = calloc(1, sizeof *r);
	r->what = RECEIVE;
	r->bytes = bytes;
	r->length = length;
	wish(r, source, tag, context);
	post(r);
	return r;
}

bool mpi_cancel(struct mpi_request *r)
{
	if (r->ended || r->what != RECEIVE)
		return false;
	int rc = mpi.post_form == MPI_BY_POST ? PtlMEUnlink(r->me) : PtlMDUnlink(r->md);
	if (rc != PTL_OK) {
		CHECK(rc == PTL_ME_INVALID || rc == PTL_MD_INVALID ||
			rc == PTL_ME_IN_USE || rc == PTL_MD_IN_USE);
		return false;
	}
	free(r);
	return true;
}

bool mpi_probe(int source, int tag, int context, struct mpi_status *status)
{
	struct mpi_request r = {.length = SIZE_MAX};
	wish(&r, source, tag, context);
	progress(false);
	struct unexpected *u = *find_unexpected(r.want, r.ignore);
	if (!u)
		return false;
	set_status(&r, u->bits, u->length);
	*status = r.status;
	return true;
}

/* the request may be gone */

static void request_event(const ptl_event_t *event)
{
	struct mpi_request *r = event->md.user_ptr;
	if (event->type == PTL_EVENT_UNLINK)
		return; /* the request may be gone */
	if (event->md_handle == mpi.copies) {
		CHECK(event->offset % COPY == 0);
		mpi.copy_used[event->offset / COPY] = 0;
	} else if (r->what == SEND)
		send_event(r, event);
	else if (r->what == RECEIVE)
		receive_event(r, event);
	else
		answer_event(r, event);
}

static void progress(bool wait)
{
	ptl_handle_eq_t eqs[] = {mpi.eq, mpi.unexpected_eq};
	ptl_event_t event;
	int which, rc;
	ptl_time_t patience = wait ? 1000 : 0;
	while ((rc = PtlEQPoll(eqs, 2, patience, &event, &which)) == PTL_OK) {
		if (which == 0)
			request_event(&event);
		else
			unexpected_event(&event);
		patience = 0;
	}
	CHECK(rc == PTL_EQ_EMPTY);
}

bool mpi_test(struct mpi_request *r, struct mpi_status *status)
{
	if (!r->ended)
		progress(false);
	if (!r->ended)
		return false;
	if (status)
		*status = r->status;
	free(r);
	return true;
}

void mpi_wait(struct mpi_request *r, struct mpi_status *status)
{
	while (!r->ended)
		progress(true);
	mpi_test(r, status);
}

struct mpi_count mpi_counts(void)
{
	return mpi.count;
}

void mpi_begin(enum mpi_long long_form, enum mpi_post post_form)
{
	ptl_md_t md;
	memset(&mpi, 0, sizeof mpi);
	mpi.long_form = long_form;
	mpi.post_form = post_form;
	mpi.last = &mpi.first;
	DO(PtlEQAlloc(job.ni, EVENTS, PTL_EQ_HANDLER_NONE, &mpi.eq));
	DO(PtlEQAlloc(job.ni, EVENTS, PTL_EQ_HANDLER_NONE, &mpi.unexpected_eq));
	DO(PtlMEAttach(job.ni, SEND_PORTAL, anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER,
		&mpi.mark));
	open_rest();
	for (int i = 0; i < BLOCKS; i++)
		open_block(&mpi.block[i]);
	md = job_md(mpi.copy, sizeof mpi.copy, PTL_MD_THRESH_INF,
		PTL_MD_EVENT_START_DISABLE, mpi.eq);
	DO(PtlMDBind(job.ni, md, PTL_RETAIN, &mpi.copies));
}

void mpi_end(void)
{
	progress(false);
	CHECK(mpi.first == NULL);
	for (int i = 0; i < BLOCKS; i++)
		DO(PtlMEUnlink(mpi.block[i].me));
	DO(PtlMEUnlink(mpi.rest));
	DO(PtlMEUnlink(mpi.mark));
	DO(PtlMDUnlink(mpi.copies));
	DO(PtlEQFree(mpi.eq));
	DO(PtlEQFree(mpi.unexpected_eq));
}
