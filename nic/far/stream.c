/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints over TCP sockets.
 *
 * Connections.  A pair of nodes has one at a time.  A node calls a peer for its first
 * frame to it, and calls.c authenticates both ends before a byte is read here:
 *
 *	NONE --send--> CALLING --authenticated--> UP --the connection breaks--> REFUSED
 *	  any of them --the peer's call is authenticated--> UP
 *	  CALLING --refused, or no answer--> REFUSED --send, which fails--> NONE
 *
 * If both call at once, the call of the lower node serves: while that is young, the lower
 * node answers no call of the other one; and if both calls were answered already, the
 * lower node closes the other's call, and the higher node its own.  In every other case
 * the later connection replaces the earlier one, which must be broken.
 *
 * Bytes.  A connection carries records, each behind a head of 8 bytes:
 *
 *	FRAME	a frame; its word medium is the head
 *	ASK	key, offset and length of a read
 *	BYTES	at most SLICE bytes of the first read that was asked and is not over
 *	FAILED	that read fails
 *
 * A head that cannot be closes the connection.  Each frame has a MAC of its own (link.h);
 * the other records are as authentic as the connection.
 *
 * Order and ownership.  The lease holder calls all functions but open, close and name, so
 * no word here is shared.  A buffer to send lies in the list of its connection until the
 * kernel has all its bytes (SENT), or the connection breaks (FAILED).  The kernel may
 * lose what it has when a connection breaks; link.c sends it again.  A posted buffer is
 * taken when a frame's head has come, and goes back to the list if the connection breaks.
 * While none is posted, frames wait in the kernel.
 *
 * Reads of one node are served in their order, and each slice behind the one before: the
 * kernel copies a slice's bytes while this node sends them, so what one sendmsg() takes
 * later is of a later moment (FAR.2).  Frames go before the next slice.  The owner looks
 * the key up for each slice.  If a region is recalled of which a slice is half sent, its
 * connection is closed, since the rest cannot be sent any more.  The reader has closed
 * its socket when cut returns, so no later byte reaches its memory.
 *
 * System calls.  Connections on which bytes came lately are hot: poll reads them
 * directly, and the set of epoll does not watch them, since its reports would cost a
 * third of a message's time.  The others are watched, each for one report.  Before
 * threads sleep (arm) all are.
 */
#include "nic/far/stream.h"

#include "nic/far/calls.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define STAGE     65536u             /* bytes that a look takes of a connection */
#define SLICE     65536u             /* bytes of a read that a frame waits for */
#define DIRECT    2048u              /* rest of a record that is read into its place */
#define BEHIND    4096u              /* bytes that are read behind such a rest */
#define READS     16u                /* of a connection, in each direction */
#define TURN      (4 * SLICE + 4096) /* bytes that a connection sends in a row */
#define PIECES    16                 /* of one sendmsg() */
#define HOT       8u                 /* connections that are read directly */
#define COLD      256u               /* looks in vain at all of them */
#define LOOK_EACH 4u                 /* polls in vain for a look at the set */
#define LOOK_LATE 16u                /* other polls for one */
#define LOOK_IDLE 64u                /* polls for one if all connections are hot */
#define EVENTS    32
#define BUCKETS   256u                 /* of regions */
#define YOUNG_NS  UINT64_C(1000000000) /* age of a call that may meet another one */
#define CHECK_NS  UINT64_C(1000000)    /* between two looks at the time of calls, */
#define TICK_NS   UINT64_C(1000000000) /* and at that of connections */

enum record { FRAME = 1, ASK, BYTES, FAILED };
enum state { NONE, CALLING, UP, REFUSED };

struct ask {
	uint64_t key, from, len;
};

/* What waits to be sent, in the space of a buffer or of a read. */
struct item {
	struct item *next;
	const void *bytes;
	uint32_t len; /* 0: all were sent */
	bool failed;
};

struct question {
	struct item item;
	struct question *later; /* the next one that awaits bytes */
	uint64_t head;
	struct ask ask;
};

_Static_assert(sizeof(struct question) <= sizeof(((struct p3_far_read *)0)->space) &&
		       offsetof(struct p3_far_read, space) == 0,
	"a question fits into its read");
_Static_assert(sizeof(struct item) <= sizeof(((struct p3_far_buffer *)0)->space) &&
		       offsetof(struct p3_far_buffer, space) == 0,
	"an item fits into its buffer");
_Static_assert(
	offsetof(struct p3_far_buffer, is_read) == offsetof(struct p3_far_read, is_read),
	"an item shows what it is");

struct peer {
	uint32_t node;
	enum state state;
	bool ours;   /* this node has made the connection */
	bool hot;    /* it is in the array hot */
	bool unsent; /* it is in the list unsent */
	struct p3_socket socket;
	uint64_t up_ns;      /* time of the connection's beginning */
	uint64_t failing_ns; /* since then no call has had success; 0: none has failed */
	struct peer *next_unsent;
	uint32_t misses; /* looks in vain */
	/* Out: items, of whose first one some bytes were sent; and a slice of which some
	 * were. */
	uint32_t sent;
	struct item *first, **last;
	uint32_t nasks, ask; /* number of the peer's reads, and the first of them */
	uint32_t slice;      /* bytes of the slice with its head; 0: there is none */
	uint32_t slice_sent;
	uint64_t slice_head;
	struct p3_far_region *region; /* of the slice; NULL: its read fails */
	/* In: a head, of which got bytes have come, or a record, of which left bytes have
	 * not come. */
	uint32_t got, left;
	uint64_t head;
	char *to;
	struct p3_far_buffer *filling; /* of the frame that comes */
	struct ask asked;              /* the question that comes */
	uint32_t nreads;               /* this node's reads, a list: */
	struct question *reads, **last_read;
	uint64_t have; /* bytes of the first one that have come */
	struct ask asks[READS];
	struct p3_far_keys keys;
	union p3_call_address address;
	struct p3_call call;
};

struct p3_endpoint {
	uint32_t node, nnodes;
	struct peer **peer; /* by node; NULL: never known */
	struct item *done, **last_done;
	struct item *posted;
	struct peer *unsent; /* a list of those with bytes to send */
	struct peer *hot[HOT];
	uint32_t nhot, turn;
	uint32_t calling, up; /* peers in these states */
	struct peer *from;    /* the peer whose bytes stage has; NULL: it is empty */
	uint32_t at, end;     /* those bytes */
	p3_fd_id set_file;
	uint64_t check_at, tick_at; /* times of the next looks */
	uint64_t came, starved; /* frames; and their number when there was no buffer */
	bool said_silent, said_unreachable;
	bool (*knows)(void *arg, uint32_t node, uint64_t *to_out);
	void *knows_arg;
	struct p3_sipkey secret; /* of the keys of regions */
	uint64_t nkeys;
	struct p3_far_region *regions[BUCKETS];
	struct p3_calls calls;
	_Alignas(64) char stage[STAGE];
};

/* The events of one poll. */
struct batch {
	struct p3_far_event *out;
	uint32_t n, most;
};

static uint64_t head_of(enum record what, uint32_t len)
{
	return (uint64_t)what << 32 | len;
}

/* ---- lists ---- */

static void finish(struct p3_endpoint *e, struct item *it, bool failed)
{
	it->failed = failed;
	it->next = NULL;
	*e->last_done = it;
	e->last_done = &it->next;
}

static bool is_read(const struct item *it)
{
	return ((const struct p3_far_read *)(const void *)it)->is_read;
}

static void report(struct p3_endpoint *e, struct batch *b)
{
	while (e->done && b->n < b->most) {
		struct item *it = e->done;
		struct p3_far_event *ev = &b->out[b->n++];
		*ev = (struct p3_far_event){.what = P3_FAR_SENT};
		if (is_read(it)) {
			ev->what = it->failed ? P3_FAR_READ_FAILED : P3_FAR_READ;
			ev->read = (struct p3_far_read *)(void *)it;
		} else {
			ev->what = it->failed ? P3_FAR_FAILED : P3_FAR_SENT;
			ev->buffer = (struct p3_far_buffer *)(void *)it;
		}
		e->done = it->next;
		if (!e->done)
			e->last_done = &e->done;
	}
}

static int post(struct p3_endpoint *e, struct p3_far_buffer *b)
{
	struct item *it = (struct item *)(void *)b->space;
	it->next = e->posted;
	e->posted = it;
	return 0;
}

static void add_unsent(struct p3_endpoint *e, struct peer *p)
{
	if (p->unsent)
		return;
	p->unsent = true;
	p->next_unsent = e->unsent;
	e->unsent = p;
}

static void append(struct p3_endpoint *e, struct peer *p, struct item *it,
	const void *bytes, uint32_t len)
{
	*it = (struct item){.bytes = bytes, .len = len};
	*p->last = it;
	p->last = &it->next;
	add_unsent(e, p);
}

/* ---- the set ---- */

static int watch(struct p3_endpoint *e, const struct peer *p, uint32_t more)
{
	return p3_call_watch(&e->calls, EPOLL_CTL_MOD, p->socket.fd,
		EPOLLIN | EPOLLONESHOT | more, p3_call_tag(P3_CALL_PEER, p->node));
}

static void unheat(struct p3_endpoint *e, struct peer *p)
{
	for (uint32_t i = 0; p->hot && i < e->nhot; i++)
		if (e->hot[i] == p) {
			e->hot[i] = e->hot[--e->nhot];
			p->hot = false;
		}
}

static void cool(struct p3_endpoint *e, struct peer *p)
{
	unheat(e, p);
	(void)watch(e, p, 0);
}

static void heat(struct p3_endpoint *e, struct peer *p)
{
	p->misses = 0;
	if (p->hot)
		return;
	if (e->nhot == HOT)
		cool(e, e->hot[e->turn % HOT]);
	e->hot[e->nhot++] = p;
	p->hot = true;
}

/* ---- connections ---- */

static void end_slice(struct peer *p)
{
	if (p->region)
		p->region->uses--;
	p->region = NULL;
	p->slice = p->slice_sent = 0;
}

/* Give back all that a connection holds. */
static void fail_all(struct p3_endpoint *e, struct peer *p)
{
	struct item *next;
	for (struct item *it = p->first; it; it = next) {
		next = it->next;
		if (!is_read(it))
			finish(e, it, true);
	}
	struct question *later;
	for (struct question *q = p->reads; q; q = later) {
		later = q->later;
		finish(e, &q->item, true);
	}
	if (p->filling)
		(void)post(e, p->filling);
}

/* Begin with an empty connection. */
static void clear(struct peer *p)
{
	end_slice(p);
	p->first = NULL;
	p->last = &p->first;
	p->reads = NULL;
	p->last_read = &p->reads;
	p->filling = NULL;
	p->have = 0;
	p->nreads = p->nasks = p->ask = p->sent = p->got = p->left = 0;
}

/* End a connection or a call. */
static void drop(struct p3_endpoint *e, struct peer *p, enum state state)
{
	if (p->state == CALLING) {
		p3_call_end(&e->calls, &p->call);
		e->calling--;
	} else if (p->state == UP) {
		e->up--;
		unheat(e, p);
		p3_call_hang_up(&e->calls, p->socket);
		fail_all(e, p);
		clear(p);
		if (e->from == p)
			e->from = NULL;
	}
	p->state = state;
}

static void say_unreachable(struct p3_endpoint *e, const struct peer *p, int why)
{
	char at[P3_CALL_TEXT];
	uint64_t ns = p3_now_ns() - p->failing_ns;
	uint64_t limit = e->calls.timeout_s * UINT64_C(500000000);
	if (e->said_unreachable || !limit || ns < limit)
		return;
	e->said_unreachable = true;
	p3_call_print(&p->address, at);
	p3_warn("rank %u answers no call at %s for %u s: %s; messages for it wait (see "
		"whether it is stopped, and whether the firewall lets all TCP ports "
		"through)",
		p->node, at, (uint32_t)(ns / 1000000000), strerror(-why));
}

static void fail_call(struct p3_endpoint *e, struct peer *p, int why)
{
	if (!p->failing_ns)
		p->failing_ns = p3_now_ns();
	say_unreachable(e, p, why);
	drop(e, p, REFUSED);
}

/* Use an authenticated socket for the pair, unless this node's own call serves. */
static void adopt(struct p3_endpoint *e, struct peer *p, struct p3_socket s, bool ours)
{
	uint64_t now = p3_now_ns();
	if (!ours && p->state == UP && p->ours && e->node < p->node &&
		now - p->up_ns < YOUNG_NS) {
		p3_call_hang_up(&e->calls, s);
		return;
	}
	if (ours)
		e->calling--;
	else
		drop(e, p, NONE);
	e->up++;
	p->socket = s;
	p->state = UP;
	p->ours = ours;
	p->up_ns = now;
	p->failing_ns = 0;
	(void)watch(e, p, 0);
	heat(e, p);
}

static int call(struct p3_endpoint *e, struct peer *p)
{
	int rc = p3_call_begin(&e->calls, &p->call, p->node, &p->address);
	if (rc) {
		fail_call(e, p, rc);
		p->state = NONE;
		return -EIO;
	}
	p->state = CALLING;
	e->calling++;
	return -EAGAIN;
}

static void go_on_calling(struct p3_endpoint *e, struct peer *p)
{
	int rc = p3_call_go_on(&p->call, &p->keys);
	if (!rc)
		adopt(e, p, p3_call_take(&p->call), true);
	else if (rc != -EAGAIN)
		fail_call(e, p, rc);
}

/* Let a call of a higher node wait while this node's own call may serve. */
static const struct p3_far_keys *keys_of(void *arg, uint32_t node, bool answer)
{
	struct p3_endpoint *e = arg;
	uint64_t to;
	if (!e->knows || !e->knows(e->knows_arg, node, &to))
		return NULL;
	struct peer *p = e->peer[to];
	if (answer && p->state == CALLING && e->node < node &&
		!p3_call_is_over(&p->call, p3_now_ns(), YOUNG_NS))
		return NULL;
	return &p->keys;
}

/* ---- out ---- */

static struct p3_far_region *find(const struct p3_endpoint *e, const struct ask *a)
{
	struct p3_far_region *r = e->regions[a->key % BUCKETS];
	while (r && r->key != a->key)
		r = r->next;
	return r && a->len && a->from <= r->len && a->len <= r->len - a->from ? r : NULL;
}

/* Return the bytes of an ask's next slice, and its head: 0 if the read fails. */
static uint32_t slice_of(const struct p3_endpoint *e, const struct ask *a,
	struct p3_far_region **region_out, uint64_t *head_out)
{
	uint32_t len = a->len < SLICE ? (uint32_t)a->len : SLICE;
	*region_out = find(e, a);
	*head_out = *region_out ? head_of(BYTES, len) : head_of(FAILED, 0);
	return *region_out ? len : 0;
}

/* Take a slice off its ask.  Return true if that is over. */
static bool advance(struct ask *a, uint32_t len)
{
	a->from += len;
	a->len = len ? a->len - len : 0;
	return !a->len;
}

static int add_piece(struct iovec *io, int n, const void *bytes, size_t len)
{
	io[n] = (struct iovec){(char *)(uintptr_t)bytes, len};
	return n + 1;
}

/* Add the rest of the slice that has begun. */
static int add_rest(const struct peer *p, struct iovec *io, int n)
{
	uint32_t head = sizeof p->slice_head, sent = p->slice_sent;
	uint32_t from = sent < head ? 0 : sent - head;
	if (sent < head)
		n = add_piece(io, n, (const char *)&p->slice_head + sent, head - sent);
	if (p->region)
		n = add_piece(io, n, p->region->bytes + p->asks[p->ask].from + from,
			p->slice - head - from);
	return n;
}

static int add_items(const struct peer *p, struct iovec *io, int n)
{
	uint32_t sent = p->sent;
	for (const struct item *it = p->first; it && n < PIECES / 2; it = it->next) {
		n = add_piece(io, n, (const char *)it->bytes + sent, it->len - sent);
		sent = 0;
	}
	return n;
}

/* Add the next slices. */
static int add_slices(const struct p3_endpoint *e, const struct peer *p, struct iovec *io,
	int n, uint64_t head[PIECES])
{
	struct p3_far_region *region;
	uint32_t bytes = 0, k = 0;
	struct ask a = p->asks[p->ask];
	while (k < p->nasks && bytes < TURN && n < PIECES - 1) {
		uint32_t len = slice_of(e, &a, &region, &head[n]);
		n = add_piece(io, n, &head[n], sizeof *head);
		if (len)
			n = add_piece(io, n, region->bytes + a.from, len);
		bytes += len;
		if (advance(&a, len))
			a = p->asks[(p->ask + ++k) % READS];
	}
	return n;
}

/* Take n bytes off the items; return the rest. */
static uint32_t take_off_items(struct p3_endpoint *e, struct peer *p, uint32_t n)
{
	while (n && p->first) {
		struct item *it = p->first;
		uint32_t left = it->len - p->sent;
		if (n < left) {
			p->sent += n;
			return 0;
		}
		n -= left;
		p->sent = 0;
		p->first = it->next;
		if (!p->first)
			p->last = &p->first;
		it->len = 0;
		if (!is_read(it))
			finish(e, it, false);
	}
	return n;
}

/* Take n bytes off the slice that has begun; return the rest. */
static uint32_t take_off_slice(struct peer *p, uint32_t n)
{
	uint32_t left = p->slice - p->slice_sent, head = sizeof p->slice_head;
	if (n < left) {
		p->slice_sent += n;
		return 0;
	}
	if (advance(&p->asks[p->ask], p->slice - head)) {
		p->ask = (p->ask + 1) % READS;
		p->nasks--;
	}
	end_slice(p);
	return n - left;
}

/* Begin the next slice: a part of it was sent. */
static void begin_slice(const struct p3_endpoint *e, struct peer *p)
{
	uint32_t len = slice_of(e, &p->asks[p->ask], &p->region, &p->slice_head);
	p->slice = (uint32_t)sizeof p->slice_head + len;
	if (p->region)
		p->region->uses++;
}

/* One piece, such as a frame, costs less without a vector. */
static long send_pieces(int fd, struct iovec *io, int n)
{
	const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
	struct msghdr msg = {.msg_iov = io, .msg_iovlen = (size_t)n};
	return n == 1 ? syscall(SYS_sendto, fd, io->iov_base, io->iov_len, flags, NULL, 0)
		      : syscall(SYS_sendmsg, fd, &msg, flags);
}

/* Send once: a slice that has begun, or items and slices.  Return the number of bytes, or
 * -errno. */
static long send_some(struct p3_endpoint *e, struct peer *p, bool *all_out)
{
	struct iovec io[PIECES];
	uint64_t head[PIECES];
	size_t bytes = 0;
	int n = p->slice ? add_rest(p, io, 0) : add_items(p, io, 0);
	if (!p->slice && p->nasks)
		n = add_slices(e, p, io, n, head);
	for (int i = 0; i < n; i++)
		bytes += io[i].iov_len;
	long sent = send_pieces(p->socket.fd, io, n);
	if (sent < 0)
		return -errno;
	*all_out = (size_t)sent == bytes;
	uint32_t rest = (uint32_t)sent;
	if (!p->slice)
		rest = take_off_items(e, p, rest);
	while (rest) {
		if (!p->slice)
			begin_slice(e, p);
		rest = take_off_slice(p, rest);
	}
	return sent;
}

/* Send what the connection has.  Return true if there is more for later. */
static bool send_all(struct p3_endpoint *e, struct peer *p)
{
	bool all = true;
	uint32_t turn = 0;
	while (all && turn < TURN && (p->first || p->nasks)) {
		long n = send_some(e, p, &all);
		if (n == -EINTR || n == -EAGAIN)
			return true;
		if (n < 0) {
			drop(e, p, REFUSED);
			return false;
		}
		turn += (uint32_t)n;
	}
	return p->first || p->nasks;
}

static void push(struct p3_endpoint *e)
{
	struct peer *p = e->unsent, *next;
	e->unsent = NULL;
	for (; p; p = next) {
		next = p->next_unsent;
		p->unsent = false;
		if (p->state == UP && send_all(e, p))
			add_unsent(e, p);
	}
}

static int send_frame(
	struct p3_endpoint *e, uint64_t to, struct p3_far_buffer *b, uint32_t len)
{
	struct peer *p = e->peer[to];
	if (p->state == UP) {
		b->frame.medium = head_of(FRAME, len);
		append(e, p, (struct item *)(void *)b->space, &b->frame, len);
		return 0;
	}
	if (p->state == CALLING)
		return -EAGAIN;
	if (p->state == NONE)
		return call(e, p);
	p->state = NONE;
	return -EIO;
}

/* ---- in ---- */

static struct p3_far_read *first_read(const struct peer *p)
{
	return (struct p3_far_read *)(void *)p->reads;
}

static void end_read(struct p3_endpoint *e, struct peer *p, bool failed)
{
	struct question *q = p->reads;
	p->reads = q->later;
	if (!p->reads)
		p->last_read = &p->reads;
	p->nreads--;
	p->have = 0;
	finish(e, &q->item, failed);
}

/* Aim at the place of a record.  Return 0, -EAGAIN: there is no buffer, or -EPROTO. */
static int begin_frame(struct p3_endpoint *e, struct peer *p, uint32_t len)
{
	struct item *it = e->posted;
	if (len < offsetof(struct p3_frame, data) || len > P3_FAR_BYTES)
		return -EPROTO;
	if (!it)
		return -EAGAIN;
	e->posted = it->next;
	p->filling = (struct p3_far_buffer *)(void *)it;
	p->filling->frame.medium = p->node;
	p->to = (char *)&p->filling->frame + sizeof p->head;
	p->left = len - (uint32_t)sizeof p->head;
	return 0;
}

/* Return true if the first read was asked. */
static bool awaits(const struct peer *p)
{
	return p->reads && !p->reads->item.len;
}

static int begin_bytes(struct peer *p, uint32_t len)
{
	struct p3_far_read *r = first_read(p);
	if (!awaits(p) || !len || len > SLICE || len > r->len - p->have)
		return -EPROTO;
	p->to = (char *)r->to + p->have;
	p->left = len;
	return 0;
}

static int begin_record(struct p3_endpoint *e, struct peer *p)
{
	uint32_t len = (uint32_t)p->head;
	switch (p->head >> 32) {
	case FRAME:
		return begin_frame(e, p, len);
	case BYTES:
		return begin_bytes(p, len);
	case ASK:
		p->to = (char *)&p->asked;
		p->left = sizeof p->asked;
		return len == sizeof p->asked && p->nasks < READS ? 0 : -EPROTO;
	case FAILED:
		return !len && awaits(p) ? 0 : -EPROTO;
	default:
		return -EPROTO;
	}
}

/* A record is whole. */
static void end_record(struct p3_endpoint *e, struct peer *p, struct batch *b)
{
	uint32_t len = (uint32_t)p->head;
	p->got = 0;
	switch (p->head >> 32) {
	case FRAME:
		b->out[b->n++] = (struct p3_far_event){
			.what = P3_FAR_RECEIVED, .buffer = p->filling, .len = len};
		p->filling = NULL;
		e->came++;
		break;
	case BYTES:
		p->have += len;
		if (p->have == first_read(p)->len)
			end_read(e, p, false);
		break;
	case ASK:
		p->asks[(p->ask + p->nasks++) % READS] = p->asked;
		add_unsent(e, p);
		break;
	default:
		end_read(e, p, true);
	}
}

/* The next n bytes of a record are in their place. */
static void place(struct p3_endpoint *e, struct peer *p, struct batch *b, uint32_t n)
{
	p->to = n ? p->to + n : p->to;
	p->left -= n;
	if (!p->left)
		end_record(e, p, b);
}

/* Move bytes of the stage to their place. */
static void copy(struct p3_endpoint *e, void *to, uint32_t n)
{
	memcpy(to, e->stage + e->at, n);
	e->at += n;
}

/* Take the next part of a record from the stage.  Return 0, -EAGAIN or -EPROTO. */
static int take_part(struct p3_endpoint *e, struct peer *p, struct batch *b)
{
	uint32_t there = e->end - e->at, size = sizeof p->head;
	int rc = 0;
	if (!p->left && p->got < size) {
		uint32_t n = size - p->got < there ? size - p->got : there;
		copy(e, (char *)&p->head + p->got, n);
		p->got += n;
		there -= n;
	}
	if (!p->left && p->got == size)
		rc = begin_record(e, p);
	if (rc || p->got < size)
		return rc;
	uint32_t n = p->left < there ? p->left : there;
	if (n)
		copy(e, p->to, n);
	place(e, p, b, n);
	return 0;
}

/* Take the records of the stage, while there is room for events and buffers. */
static void take_stage(struct p3_endpoint *e, struct batch *b)
{
	struct peer *p = e->from;
	int rc = 0;
	while (!rc && e->at < e->end && b->n < b->most)
		rc = take_part(e, p, b);
	if (rc == -EPROTO)
		drop(e, p, REFUSED);
	else if (e->at == e->end)
		e->from = NULL;
}

/* Read once.  Return true if there may be more. */
static bool receive_some(struct p3_endpoint *e, struct peer *p, struct batch *b)
{
	/* Bytes of a read that come after a head go to their place, not to the stage. */
	uint32_t room = p->reads ? BEHIND : STAGE;
	uint32_t direct = p->left >= DIRECT || e->from ? p->left : 0;
	struct iovec io[2] = {{p->to, direct}, {e->stage, e->from ? 0 : room}};
	uint32_t want = direct + (uint32_t)io[1].iov_len;
	if (!want)
		return false; /* the bytes of another peer are taken first */
	long n = direct ? syscall(SYS_readv, p->socket.fd, io, 2)
			: syscall(SYS_recvfrom, p->socket.fd, e->stage, room,
				  MSG_DONTWAIT, NULL, NULL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		p->misses += e->nhot;
		return false;
	}
	if (n <= 0) {
		drop(e, p, REFUSED);
		return false;
	}
	p->misses = 0;
	uint32_t k = (uint32_t)n < direct ? (uint32_t)n : direct;
	if (k)
		place(e, p, b, k);
	if ((uint32_t)n > k) {
		e->from = p;
		e->at = 0;
		e->end = (uint32_t)n - k;
		take_stage(e, b);
	}
	return (uint32_t)n == want;
}

static void receive(struct p3_endpoint *e, struct peer *p, struct batch *b)
{
	bool more = true;
	for (uint32_t i = 0; more && i < 4 && p->state == UP && b->n < b->most; i++)
		more = receive_some(e, p, b);
	if (p->state == UP && p->misses >= COLD)
		cool(e, p);
}

/* ---- time ---- */

static void say_silent(struct p3_endpoint *e, const struct peer *p, uint32_t ms)
{
	char at[P3_CALL_TEXT];
	if (e->said_silent)
		return;
	e->said_silent = true;
	p3_call_print(&p->address, at);
	p3_warn("the connection of rank %u with rank %u (%s) brings no answer for %u s; "
		"this rank makes another one (see whether the network is down, or a "
		"firewall between the hosts forgets connections)",
		e->node, p->node, at, ms / 1000);
}

/* Close a connection whose other host does not acknowledge bytes.  That of a stopped
 * process does. */
static void check_silence(struct p3_endpoint *e, struct peer *p)
{
	struct tcp_info info = {.tcpi_unacked = 0};
	socklen_t len = sizeof info;
	if (getsockopt(p->socket.fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
		!info.tcpi_unacked ||
		info.tcpi_last_ack_recv < e->calls.timeout_s * UINT64_C(500))
		return;
	say_silent(e, p, info.tcpi_last_ack_recv);
	drop(e, p, REFUSED);
}

/* If frames of which a part has come hold all buffers, and no other frame has come, close
 * their connections: the links send these frames again. */
static void check_starved(struct p3_endpoint *e)
{
	bool starved = !e->posted && e->starved == e->came;
	e->starved = e->came;
	for (uint32_t i = 0; starved && i < e->nnodes; i++)
		if (e->peer[i] && e->peer[i]->filling)
			drop(e, e->peer[i], REFUSED);
}

static void tick(struct p3_endpoint *e, uint64_t now)
{
	e->tick_at = now + TICK_NS;
	check_starved(e);
	for (uint32_t i = 0; e->calls.timeout_s && i < e->nnodes; i++)
		if (e->peer[i] && e->peer[i]->state == UP)
			check_silence(e, e->peer[i]);
}

/* Look at the time of calls. */
static void check(struct p3_endpoint *e, uint64_t now)
{
	e->check_at = now + CHECK_NS;
	if (e->calls.used || e->calls.accept_due)
		p3_calls_check(&e->calls, now);
	for (uint32_t i = 0; e->calling && i < e->nnodes; i++) {
		struct peer *p = e->peer[i];
		if (p && p->state == CALLING &&
			p3_call_is_over(&p->call, now, P3_CALL_NS))
			fail_call(e, p, -ETIMEDOUT);
	}
}

/* ---- events ---- */

static void answer(struct p3_endpoint *e, struct p3_call *place)
{
	if (place->state != P3_CALL_NONE && p3_calls_answer(&e->calls, place))
		adopt(e, e->peer[place->from], p3_calls_take(&e->calls, place), false);
}

static void on_event(struct p3_endpoint *e, uint64_t tag, struct batch *b)
{
	uint32_t number = (uint32_t)tag;
	struct peer *p = NULL;
	switch (tag >> 32) {
	case P3_CALL_LISTENER:
		p3_calls_accept(&e->calls, p3_now_ns());
		break;
	case P3_CALL_PLACE:
		answer(e, &e->calls.place[number]);
		break;
	default:
		p = e->peer[number];
	}
	if (p && p->state == CALLING)
		go_on_calling(e, p);
	if (p && p->state == UP) {
		heat(e, p);
		receive(e, p, b);
	}
}

/* Look at the set, and at the time. */
static void look(struct p3_endpoint *e, struct batch *b)
{
	struct epoll_event ev[EVENTS];
	uint64_t now = p3_now_ns();
	long n = syscall(SYS_epoll_pwait, e->calls.set, ev, EVENTS, 0, NULL, 0);
	for (long i = 0; i < n; i++)
		on_event(e, ev[i].data.u64, b);
	if (now >= e->check_at)
		check(e, now);
	if (now >= e->tick_at)
		tick(e, now);
}

/* Return true if this poll, which has found n events so far, shall look at the set. */
static bool looks_now(struct p3_endpoint *e, uint32_t n)
{
	bool all_hot = e->up == e->nhot;
	uint32_t each = all_hot ? LOOK_IDLE : n ? LOOK_LATE : LOOK_EACH;
	return !e->nhot || (++e->turn & (each - 1)) == 0;
}

static uint32_t poll(struct p3_endpoint *e, struct p3_far_event *out, uint32_t most)
{
	struct batch b = {out, 0, most};
	report(e, &b);
	if (e->from)
		take_stage(e, &b);
	if (e->unsent)
		push(e);
	for (uint32_t i = e->nhot; i-- > 0 && b.n < most;)
		receive(e, e->hot[i], &b);
	if (looks_now(e, b.n))
		look(e, &b);
	report(e, &b);
	return b.n;
}

static int news(const struct p3_endpoint *e)
{
	return e->calls.set;
}

static int arm(struct p3_endpoint *e)
{
	push(e);
	check(e, p3_now_ns());
	if (e->done || e->from)
		return -EAGAIN;
	while (e->nhot)
		cool(e, e->hot[0]);
	for (struct peer *p = e->unsent; p; p = p->next_unsent)
		if (p->state == UP && watch(e, p, EPOLLOUT))
			return -EIO;
	return e->calls.set;
}

/* ---- names ---- */

static uint32_t name(const struct p3_endpoint *e, unsigned char out[P3_FAR_NAME])
{
	memcpy(out, &e->calls.own, e->calls.len);
	return e->calls.len;
}

static struct peer *new_peer(struct p3_endpoint *e, uint32_t node)
{
	struct peer *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->node = node;
	clear(p);
	e->peer[node] = p;
	return p;
}

static int resolve(struct p3_endpoint *e, uint32_t node, const unsigned char *text,
	uint32_t len, const struct p3_far_keys *keys, uint64_t *to_out)
{
	union p3_call_address at;
	memset(&at, 0, sizeof at);
	if (node >= e->nnodes || len != e->calls.len)
		return -EPROTO;
	memcpy(&at, text, len);
	if (at.any.sa_family != e->calls.own.any.sa_family)
		return -EPROTO;
	struct peer *p = e->peer[node] ? e->peer[node] : new_peer(e, node);
	if (!p)
		return -ENOMEM;
	drop(e, p, NONE); /* a connection of an earlier life */
	p->address = at;
	p->keys = *keys;
	p->failing_ns = 0;
	*to_out = node;
	return 0;
}

static void forget(struct p3_endpoint *e, uint64_t to)
{
	drop(e, e->peer[to], NONE);
}

static void trust(struct p3_endpoint *e,
	bool (*knows)(void *arg, uint32_t node, uint64_t *to_out), void *arg)
{
	e->knows = knows;
	e->knows_arg = arg;
}

/* ---- remote reads ---- */

static enum p3_far_reads_kind reads(const struct p3_endpoint *e)
{
	(void)e;
	return P3_FAR_READS_IN_ORDER;
}

static int offer(
	struct p3_endpoint *e, const void *bytes, uint64_t len, struct p3_far_region *out)
{
	uint64_t key;
	do
		key = p3_siphash(&e->secret, &e->nkeys, sizeof e->nkeys);
	while (e->nkeys++, !key);
	struct p3_far_region **at = &e->regions[key % BUCKETS];
	*out = (struct p3_far_region){
		.key = key, .bytes = bytes, .len = len, .next = *at};
	*at = out;
	return 0;
}

/* A slice that has begun cannot be ended otherwise. */
static void stop_slices(struct p3_endpoint *e, const struct p3_far_region *r)
{
	for (uint32_t i = 0; r->uses && i < e->nnodes; i++)
		if (e->peer[i] && e->peer[i]->region == r)
			drop(e, e->peer[i], REFUSED);
}

static void recall(struct p3_endpoint *e, struct p3_far_region *r)
{
	struct p3_far_region **at = &e->regions[r->key % BUCKETS];
	stop_slices(e, r);
	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
}

/* Begin a read.  Call nobody for it: the peer has sent the key in a frame, so there is a
 * connection, or it has broken and the next frame makes one. */
static int begin_read(struct p3_endpoint *e, uint64_t to, struct p3_far_read *r)
{
	struct peer *p = e->peer[to];
	struct question *q = (struct question *)(void *)r->space;
	if (p->state != UP || p->nreads == READS)
		return -EAGAIN;
	q->head = head_of(ASK, sizeof q->ask);
	q->ask = (struct ask){r->key, r->from, r->len};
	q->later = NULL;
	append(e, p, &q->item, &q->head, (uint32_t)(sizeof q->head + sizeof q->ask));
	*p->last_read = q;
	p->last_read = &q->later;
	p->nreads++;
	return 0;
}

static void cut(struct p3_endpoint *e, uint64_t to)
{
	drop(e, e->peer[to], NONE);
}

/* ---- opening and closing ---- */

static void close_end(struct p3_endpoint *e)
{
	for (uint32_t i = 0; e->peer && i < e->nnodes; i++)
		if (e->peer[i]) {
			drop(e, e->peer[i], NONE);
			free(e->peer[i]);
		}
	p3_calls_close(&e->calls);
	if (e->calls.set >= 0)
		p3_fd_close_own(e->calls.set, e->set_file);
	free(e->peer);
	free(e);
}

static int open_all(struct p3_endpoint *e, const struct p3_far_conf *conf)
{
	int set = p3_fd_high(epoll_create1(EPOLL_CLOEXEC));
	e->calls.set = set;
	e->set_file = p3_fd_file(set);
	e->last_done = &e->done;
	e->peer = calloc(e->nnodes, sizeof(struct peer *));
	if (set < 0 || !e->peer)
		return e->peer ? -errno : -ENOMEM;
	if (syscall(SYS_getrandom, &e->secret, sizeof e->secret, 0) < 0)
		return -errno;
	return p3_calls_open(&e->calls, conf, e->node, set, keys_of, e);
}

static int open_end(const struct p3_far_conf *conf, uint32_t node, uint32_t nnodes,
	uint32_t sends, uint32_t posts, struct p3_endpoint **ep_out)
{
	size_t size = (sizeof(struct p3_endpoint) + 63) / 64 * 64;
	struct p3_endpoint *e = aligned_alloc(64, size);
	(void)sends;
	(void)posts;
	if (!e)
		return -ENOMEM;
	memset(e, 0, offsetof(struct p3_endpoint, stage));
	e->node = node;
	e->nnodes = nnodes;
	e->calls.listener.fd = -1;
	int rc = open_all(e, conf);
	if (!rc) {
		*ep_out = e;
		return 0;
	}
	p3_error(
		"rank %u cannot listen for other hosts at %s: %s; expected an address of "
		"this host (PTL3_FABRIC_NET), and free descriptors (ulimit -n)",
		node, conf->address ? conf->address : "127.0.0.1", strerror(-rc));
	close_end(e);
	return rc;
}

const struct p3_endpoint_ops p3_endpoint_stream = {.open = open_end,
	.close = close_end,
	.name = name,
	.resolve = resolve,
	.forget = forget,
	.send = send_frame,
	.push = push,
	.post = post,
	.poll = poll,
	.trust = trust,
	.news = news,
	.arm = arm,
	.reads = reads,
	.offer = offer,
	.recall = recall,
	.read = begin_read,
	.cut = cut};

const struct p3_endpoint_ops *p3_nic_stream(void)
{
	return &p3_endpoint_stream;
}
