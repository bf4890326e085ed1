/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of authenticated connections. */
#include "nic/far/records.h"
#include "shm/fault.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE          65536u /* bytes of a read that a frame waits for */
#define DIRECT         2048u  /* rest of a record that is read into its place */
#define RECORDS_BEHIND 4096u  /* bytes that are read behind such a rest */
#define TURN           (4 * SLICE + 4096) /* bytes that a connection sends in a row */
#define PIECES         16                 /* of one sendmsg() */
#define ROW            4u                 /* reads of a connection in a row */

_Static_assert(
	sizeof(struct p3_record_question) <= sizeof(((struct p3_far_op *)0)->space) &&
		offsetof(struct p3_far_op, space) == 0,
	"an item, or a question, fits into its operation");
_Static_assert(offsetof(struct p3_frame, tag) == offsetof(struct p3_record_head, tag) &&
		       offsetof(struct p3_frame, medium) ==
			       offsetof(struct p3_record_head, is) &&
		       offsetof(struct p3_frame, sum) == sizeof(struct p3_record_head),
	"a frame begins with its head");

/* ---- lists ---- */

static void record_finish(
	struct p3_record_pool *pool, struct p3_record_item *it, bool failed)
{
	it->failed = failed;
	it->next = NULL;
	*pool->last_done = it;
	pool->last_done = &it->next;
}

void p3_records_report(struct p3_record_pool *pool)
{
	while (pool->done && pool->n < pool->most) {
		struct p3_record_item *it = pool->done;
		pool->out[pool->n++] =
			(struct p3_far_event){.op = (void *)it, .failed = it->failed};
		pool->done = it->next;
		if (!pool->done)
			pool->last_done = &pool->done;
	}
}

void p3_records_post(struct p3_record_pool *pool, struct p3_far_buffer *b)
{
	b->next = pool->posted;
	pool->posted = b;
}

/* Add what is to be sent. */
static void record_append(struct p3_records *c, struct p3_record_item *it)
{
	*c->last = it;
	c->last = &it->next;
}

/* ---- beginning and end ---- */

static void record_end_slice(struct p3_records *c)
{
	if (c->region)
		c->region->uses--;
	c->region = NULL;
	c->slice = c->slice_sent = 0;
}

/* Give back all that a connection holds. */
static void record_fail_all(struct p3_record_pool *pool, struct p3_records *c)
{
	struct p3_record_item *next;
	for (struct p3_record_item *it = c->first; it; it = next) {
		next = it->next;
		if (it->kind == P3_ITEM_FRAME)
			record_finish(pool, it, true);
	}
	struct p3_record_question *later;
	for (struct p3_record_question *q = c->reads; q; q = later) {
		later = q->later;
		record_finish(pool, &q->item, true);
	}
	if (c->filling)
		p3_records_post(pool, c->filling);
}

void p3_records_begin(struct p3_records *c, const struct p3_connection *with)
{
	const size_t from = offsetof(struct p3_records, fd);
	memset((char *)c + from, 0, sizeof *c - from);
	c->fd = -1;
	c->last = &c->first;
	c->last_read = &c->reads;
	p3_control_begin(&c->control, with != NULL);
	if (!with)
		return;
	c->fd = with->fd;
	p3_mac_begin(&c->mac_out, &with->key[0]);
	p3_mac_begin(&c->mac_in, &with->key[1]);
}

void p3_records_end(struct p3_record_pool *pool, struct p3_records *c)
{
	record_fail_all(pool, c);
	record_end_slice(c);
	if (pool->from == c)
		pool->from = NULL;
	p3_records_begin(c, NULL);
}

void p3_records_open(struct p3_record_pool *pool)
{
	memset(pool, 0, offsetof(struct p3_record_pool, stage));
	pool->last_done = &pool->done;
}

bool p3_records_leave(struct p3_records *c)
{
	struct p3_record_item *packet = &c->control.item;
	if ((c->sent && c->first != packet) || c->slice || c->nasks || c->nreads ||
		c->filling)
		return false;
	c->first = NULL;
	c->last = &c->first;
	packet->next = NULL;
	if (packet->len)
		record_append(c, packet);
	return true;
}

void p3_records_close(struct p3_record_pool *pool)
{
	pool->done = NULL;
	pool->last_done = &pool->done;
	pool->posted = NULL;
	pool->frames = false;
}

/* ---- out ---- */

static struct p3_far_region *record_find(
	const struct p3_record_pool *pool, const struct p3_record_ask *a)
{
	struct p3_far_region *r = pool->regions[a->key % P3_RECORD_BUCKETS];
	while (r && r->key != a->key)
		r = r->next;
	return r && a->len && a->from <= r->len && a->len <= r->len - a->from ? r : NULL;
}

/* Return the bytes of an ask's next slice, and its head as the record of this number; 0
 * if the read fails. */
static uint32_t record_slice_of(const struct p3_record_pool *pool,
	const struct p3_record_ask *a, const struct p3_mac *mac, uint64_t number,
	struct p3_far_region **region_out, struct p3_record_head *head_out)
{
	uint32_t len = a->len < SLICE ? (uint32_t)a->len : SLICE;
	*region_out = record_find(pool, a);
	head_out->is = *region_out ? p3_record_word(P3_RECORD_BYTES, len)
				   : p3_record_word(P3_RECORD_FAILED, 0);
	head_out->tag = p3_mac_seal(mac, number, &head_out->is, sizeof head_out->is);
	return *region_out ? len : 0;
}

/* Take a slice off its ask.  Return true if that is over. */
static bool record_advance(struct p3_record_ask *a, uint32_t len)
{
	a->from += len;
	a->len = len ? a->len - len : 0;
	return !a->len;
}

static int record_add_piece(struct iovec *io, int n, const void *bytes, size_t len)
{
	io[n] = (struct iovec){(char *)(uintptr_t)bytes, len};
	return n + 1;
}

/* Add the rest of the slice that has begun. */
static int record_add_rest(const struct p3_records *c, struct iovec *io, int n)
{
	uint32_t head = sizeof c->slice_head, sent = c->slice_sent;
	uint32_t from = sent < head ? 0 : sent - head;
	if (sent < head)
		n = record_add_piece(
			io, n, (const char *)&c->slice_head + sent, head - sent);
	if (c->region)
		n = record_add_piece(io, n,
			c->region->bytes + c->asks[c->ask].from + from,
			c->slice - head - from);
	return n;
}

static void record_seal(
	const struct p3_mac *mac, struct p3_record_item *it, uint64_t number)
{
	if (it->sealed == number + 1)
		return;
	it->head->tag = p3_mac_seal(
		mac, number, &it->head->is, it->len - sizeof(struct p3_mac_tag));
	it->sealed = number + 1;
}

/* Add items, up to the one with which a slice's bytes are reached.  Return true if these
 * are all.  *number is that of the next record. */
static bool record_add_items(
	struct p3_records *c, struct iovec *io, int *n, uint64_t *number)
{
	uint32_t sent = c->sent, bytes = 0;
	struct p3_record_item *it = c->first;
	for (; it && *n < PIECES / 2 && bytes < SLICE; it = it->next) {
		if (!sent)
			record_seal(&c->mac_out, it, (*number)++);
		*n = record_add_piece(
			io, *n, (const char *)it->head + sent, it->len - sent);
		bytes += it->len;
		sent = 0;
	}
	return !it;
}

/* Add the next slices. */
static int record_add_slices(const struct p3_record_pool *pool,
	const struct p3_records *c, struct iovec *io, int n,
	struct p3_record_head head[PIECES], uint64_t number)
{
	struct p3_far_region *region;
	uint32_t bytes = 0, k = 0;
	struct p3_record_ask a = c->asks[c->ask];
	while (k < c->nasks && bytes < TURN && n < PIECES - 1) {
		uint32_t len = record_slice_of(
			pool, &a, &c->mac_out, number++, &region, &head[n]);
		n = record_add_piece(io, n, &head[n], sizeof *head);
		if (len)
			n = record_add_piece(io, n, region->bytes + a.from, len);
		bytes += len;
		if (record_advance(&a, len))
			a = c->asks[(c->ask + ++k) % P3_RECORD_READS];
	}
	return n;
}

/* Take n bytes off the items; return the rest. */
static uint32_t record_take_off_items(
	struct p3_record_pool *pool, struct p3_records *c, uint32_t n)
{
	while (n && c->first) {
		struct p3_record_item *it = c->first;
		uint32_t left = it->len - c->sent;
		c->mac_out.number += !c->sent;
		if (n < left) {
			c->sent += n;
			return 0;
		}
		n -= left;
		c->sent = 0;
		c->first = it->next;
		if (!c->first)
			c->last = &c->first;
		it->len = 0;
		if (it->kind == P3_ITEM_FRAME)
			record_finish(pool, it, false);
	}
	return n;
}

/* Take n bytes off the slice that has begun; return the rest. */
static uint32_t record_take_off_slice(struct p3_records *c, uint32_t n)
{
	uint32_t left = c->slice - c->slice_sent, head = sizeof c->slice_head;
	if (n < left) {
		c->slice_sent += n;
		return 0;
	}
	if (record_advance(&c->asks[c->ask], c->slice - head)) {
		c->ask = (c->ask + 1) % P3_RECORD_READS;
		c->nasks--;
	}
	record_end_slice(c);
	return n - left;
}

/* Begin the next slice: a part of it was sent. */
static void record_begin_slice(const struct p3_record_pool *pool, struct p3_records *c)
{
	uint32_t len = record_slice_of(pool, &c->asks[c->ask], &c->mac_out,
		c->mac_out.number++, &c->region, &c->slice_head);
	c->slice = (uint32_t)sizeof c->slice_head + len;
	if (c->region)
		c->region->uses++;
}

/* One piece, such as a frame, costs less without a vector. */
static long record_send_pieces(int fd, struct iovec *io, int n)
{
	const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
	struct msghdr msg = {.msg_iov = io, .msg_iovlen = (size_t)n};
	return n == 1 ? syscall(SYS_sendto, fd, io->iov_base, io->iov_len, flags, NULL, 0)
		      : syscall(SYS_sendmsg, fd, &msg, flags);
}

/* Write the next packet before all items that have not begun. */
static void record_put_packet(struct p3_records *c)
{
	struct p3_record_item *it = &c->control.item;
	struct p3_record_item **at = c->sent ? &c->first->next : &c->first;
	p3_control_write(&c->control);
	it->next = *at;
	*at = it;
	if (!it->next)
		c->last = &it->next;
}

/* Add what goes next: the slice that has begun, or items and then slices. */
static int record_add_next(const struct p3_record_pool *pool, struct p3_records *c,
	struct iovec *io, struct p3_record_head head[PIECES])
{
	int n = 0;
	uint64_t number = c->mac_out.number;
	if (c->slice)
		return record_add_rest(c, io, 0);
	if (p3_control_is_due(&c->control))
		record_put_packet(c);
	bool all = record_add_items(c, io, &n, &number);
	return all && c->nasks ? record_add_slices(pool, c, io, n, head, number) : n;
}

/* The program has unmapped bytes that it has offered: let the next read fail, which asks
 * for them, or comes before one that does. */
static long record_refuse_read(struct p3_records *c)
{
	c->asks[c->ask].key = 0;
	return -EINTR; /* as if the call had sent nothing */
}

/* The peer may have a part of a record or of a slice, or what it has not confirmed. */
static void record_note_sent(const struct p3_records *c)
{
	if (c->slice)
		FAULT_POINT("remote.slice_half_sent");
	if (c->sent)
		FAULT_POINT("remote.record_half_sent");
	if (!c->slice && !c->sent)
		FAULT_POINT("remote.records_sent");
	(void)c;
}

/* Send once.  Return the number of bytes, or -errno. */
static long record_send_some(
	struct p3_record_pool *pool, struct p3_records *c, bool *all_out)
{
	struct iovec io[PIECES];
	struct p3_record_head head[PIECES];
	size_t bytes = 0;
	int n = record_add_next(pool, c, io, head);
	for (int i = 0; i < n; i++)
		bytes += io[i].iov_len;
	long sent = record_send_pieces(c->fd, io, n);
	if (sent < 0 && errno == EFAULT && c->nasks && !c->slice)
		return record_refuse_read(c);
	if (sent < 0)
		return -errno;
	*all_out = (size_t)sent == bytes;
	uint32_t rest = (uint32_t)sent;
	if (!c->slice)
		rest = record_take_off_items(pool, c, rest);
	while (rest) {
		if (!c->slice)
			record_begin_slice(pool, c);
		rest = record_take_off_slice(c, rest);
	}
	record_note_sent(c);
	return sent;
}

int p3_records_send(struct p3_record_pool *pool, struct p3_records *c)
{
	bool all = true;
	uint32_t turn = 0;
	while (all && turn < TURN && p3_records_wait(c)) {
		long n = record_send_some(pool, c, &all);
		if (n == -EINTR || n == -EAGAIN)
			return 0;
		if (n < 0)
			return (int)n;
		turn += (uint32_t)n;
	}
	return 0;
}

void p3_records_put(struct p3_records *c, struct p3_far_buffer *b, uint32_t len)
{
	struct p3_record_item *it = (void *)&b->op;
	*it = (struct p3_record_item){
		.head = (struct p3_record_head *)(void *)&b->frame, .len = len};
	it->head->is = p3_record_word(P3_RECORD_FRAME, len);
	record_append(c, it);
}

bool p3_records_ask(struct p3_records *c, struct p3_far_read *r)
{
	struct p3_record_question *q = (void *)&r->op;
	if (c->nreads == P3_RECORD_READS)
		return false;
	*q = (struct p3_record_question){.item = {.head = &q->asked.head,
						 .len = sizeof q->asked,
						 .kind = P3_ITEM_ASK},
		.asked = {.head.is = p3_record_word(P3_RECORD_ASK, sizeof q->asked.ask),
			.ask = {r->key, r->from, r->len}}};
	record_append(c, &q->item);
	*c->last_read = q;
	c->last_read = &q->later;
	c->nreads++;
	return true;
}

/* ---- in ---- */

static struct p3_far_read *record_first_read(const struct p3_records *c)
{
	return (struct p3_far_read *)(void *)c->reads;
}

static void record_end_read(
	struct p3_record_pool *pool, struct p3_records *c, bool failed)
{
	struct p3_record_question *q = c->reads;
	c->reads = q->later;
	if (!c->reads)
		c->last_read = &c->reads;
	c->nreads--;
	c->have = 0;
	record_finish(pool, &q->item, failed);
}

/* Take the head of a record to its place.  len bytes come behind it, and its tag is for
 * all of them. */
static int record_aim(struct p3_records *c, struct p3_record_head *place, uint32_t len)
{
	*place = c->head;
	c->place = place;
	c->to = (char *)(place + 1);
	c->left = c->behind = len;
	return 0;
}

/* Aim at the place of a record.  Return 0, -EAGAIN: there is no buffer, or -EPROTO. */
static int record_begin_frame(
	struct p3_record_pool *pool, struct p3_records *c, uint32_t len)
{
	if (!pool->frames || len < offsetof(struct p3_frame, data) || len > P3_FAR_BYTES)
		return -EPROTO;
	c->filling = pool->posted;
	if (!c->filling)
		return -EAGAIN;
	pool->posted = c->filling->next;
	return record_aim(c, (void *)&c->filling->frame, len - (uint32_t)sizeof c->head);
}

/* Return true if the first read was asked. */
static bool record_awaits(const struct p3_records *c)
{
	return c->reads && !c->reads->item.len;
}

static int record_begin_bytes(struct p3_records *c, uint32_t len)
{
	struct p3_far_read *r = record_first_read(c);
	if (!record_awaits(c) || !len || len > SLICE || len > r->len - c->have)
		return -EPROTO;
	c->to = (char *)r->to + c->have;
	c->left = len;
	return 0;
}

/* Without room for the packet it waits in the kernel. */
static int record_begin_control(
	const struct p3_record_pool *pool, struct p3_records *c, uint32_t len)
{
	if (len != sizeof c->control.in.packet)
		return -EPROTO;
	if (!p3_inbox_has_room(&pool->inbox))
		return -EAGAIN;
	return record_aim(c, &c->control.in.head, len);
}

/* Return true if a record has the tag of the connection's next one.  len bytes of it
 * follow the head. */
static bool record_is_authentic(
	struct p3_records *c, const struct p3_record_head *head, uint32_t len)
{
	return p3_mac_check(&c->mac_in, &head->tag, &head->is, sizeof head->is + len);
}

static int record_begin_record(struct p3_record_pool *pool, struct p3_records *c)
{
	uint32_t len = (uint32_t)c->head.is;
	c->place = NULL;
	switch (c->head.is >> 32) {
	case P3_RECORD_FRAME:
		return record_begin_frame(pool, c, len);
	case P3_RECORD_BYTES:
		return record_is_authentic(c, &c->head, 0) ? record_begin_bytes(c, len)
							   : -EPROTO;
	case P3_RECORD_ASK:
		return len == sizeof c->asked.ask && c->nasks < P3_RECORD_READS
			       ? record_aim(c, &c->asked.head, len)
			       : -EPROTO;
	case P3_RECORD_FAILED:
		return !len && record_awaits(c) && record_is_authentic(c, &c->head, 0)
			       ? 0
			       : -EPROTO;
	case P3_RECORD_CONTROL:
		return record_begin_control(pool, c, len);
	default:
		return -EPROTO;
	}
}

/* Give a packet to the domain's thread. */
static int record_end_control(struct p3_record_pool *pool, struct p3_records *c)
{
	int rc = p3_control_take(&c->control);
	if (rc == 1)
		p3_inbox_put(&pool->inbox, c->node, 0, &c->control.in.packet);
	FAULT_POINT("remote.packet_taken");
	return rc < 0 ? rc : 0;
}

/* A record is whole.  Return 0 or -EPROTO. */
static int record_end_record(struct p3_record_pool *pool, struct p3_records *c)
{
	uint32_t len = (uint32_t)c->head.is;
	c->got = 0;
	if (c->place && !record_is_authentic(c, c->place, c->behind))
		return -EPROTO;
	switch (c->head.is >> 32) {
	case P3_RECORD_FRAME:
		c->filling->frame.medium = c->node;
		pool->out[pool->n++] =
			(struct p3_far_event){.op = &c->filling->op, .len = len};
		c->filling = NULL;
		pool->came++;
		FAULT_POINT("remote.frame_taken");
		break;
	case P3_RECORD_BYTES:
		c->have += len;
		FAULT_POINT("remote.slice_taken");
		if (c->have == record_first_read(c)->len)
			record_end_read(pool, c, false);
		break;
	case P3_RECORD_ASK:
		c->asks[(c->ask + c->nasks++) % P3_RECORD_READS] = c->asked.ask;
		FAULT_POINT("remote.ask_taken");
		break;
	case P3_RECORD_CONTROL:
		return record_end_control(pool, c);
	default:
		record_end_read(pool, c, true);
	}
	return 0;
}

/* The next n bytes of a record are in their place.  Return 0 or -EPROTO. */
static int record_place(struct p3_record_pool *pool, struct p3_records *c, uint32_t n)
{
	c->to = n ? c->to + n : c->to;
	c->left -= n;
	return c->left ? 0 : record_end_record(pool, c);
}

/* Take the next part of a record from the stage.  Return 0, -EAGAIN or -EPROTO. */
static int record_take_part(struct p3_record_pool *pool, struct p3_records *c)
{
	uint32_t there = pool->end - pool->at, size = sizeof c->head;
	int rc = 0;
	if (!c->left && c->got < size) {
		uint32_t n = size - c->got < there ? size - c->got : there;
		memcpy((char *)&c->head + c->got, pool->stage + pool->at, n);
		pool->at += n;
		c->got += n;
		there -= n;
	}
	if (!c->left && c->got == size)
		rc = record_begin_record(pool, c);
	if (rc || c->got < size)
		return rc;
	uint32_t n = c->left < there ? c->left : there;
	if (n)
		memcpy(c->to, pool->stage + pool->at, n);
	pool->at += n;
	return record_place(pool, c, n);
}

int p3_records_go_on(struct p3_record_pool *pool)
{
	struct p3_records *c = pool->from;
	int rc = 0;
	while (!rc && pool->at < pool->end && pool->n < pool->most)
		rc = record_take_part(pool, c);
	if (rc != -EPROTO && pool->at == pool->end)
		pool->from = NULL;
	return rc == -EPROTO ? rc : 0;
}

/* Read once.  Return 1 if there may be more, 0, -EAGAIN: nothing has come, or another
 * -errno. */
static int record_receive_some(struct p3_record_pool *pool, struct p3_records *c)
{
	/* Bytes of a read that come after a head go to their place, not to the stage. */
	uint32_t room = c->reads ? RECORDS_BEHIND : P3_RECORD_STAGE;
	uint32_t direct = c->left >= DIRECT || pool->from ? c->left : 0;
	struct iovec io[2] = {{c->to, direct}, {pool->stage, pool->from ? 0 : room}};
	uint32_t want = direct + (uint32_t)io[1].iov_len;
	if (!want)
		return 0; /* the bytes of another peer are taken first */
	struct msghdr msg = {.msg_iov = io, .msg_iovlen = 2};
	long n = direct ? syscall(SYS_recvmsg, c->fd, &msg, MSG_DONTWAIT)
			: syscall(SYS_recvfrom, c->fd, pool->stage, room, MSG_DONTWAIT,
				  NULL, NULL);
	if (n <= 0)
		return n == 0 ? -EPIPE : errno == EINTR ? -EAGAIN : -errno;
	pool->bytes += (uint64_t)n;
	c->read += (uint64_t)n;
	uint32_t k = (uint32_t)n < direct ? (uint32_t)n : direct;
	if (c->left > k)
		FAULT_POINT("remote.record_half_taken");
	int rc = k ? record_place(pool, c, k) : 0;
	if (!rc && (uint32_t)n > k) {
		pool->from = c;
		pool->at = 0;
		pool->end = (uint32_t)n - k;
		rc = p3_records_go_on(pool);
	}
	return rc ? rc : (uint32_t)n == want;
}

int p3_records_receive(struct p3_record_pool *pool, struct p3_records *c)
{
	int rc = 1;
	bool came = false;
	for (uint32_t i = 0; rc == 1 && i < ROW && pool->n < pool->most; i++) {
		rc = record_receive_some(pool, c);
		came |= rc >= 0;
	}
	return rc < 0 && rc != -EAGAIN ? rc : came ? 0 : -EAGAIN;
}

/* ---- regions ---- */

void p3_records_offer(struct p3_record_pool *pool, const void *bytes, uint64_t len,
	struct p3_far_region *out)
{
	uint64_t key;
	do
		key = p3_mac_seal(&pool->keys, pool->keys.number++, NULL, 0).word[0];
	while (!key);
	struct p3_far_region **at = &pool->regions[key % P3_RECORD_BUCKETS];
	*out = (struct p3_far_region){
		.key = key, .bytes = bytes, .len = len, .next = *at};
	*at = out;
}

void p3_records_recall(struct p3_record_pool *pool, struct p3_far_region *r)
{
	struct p3_far_region **at = &pool->regions[r->key % P3_RECORD_BUCKETS];
	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
}
