/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams, and the endpoint over them.
 *
 *	NONE --give--> UP --the connection breaks--> NONE, and news of that
 *
 * The lease holder calls all functions but those of nic/streams.h, open, close and name.
 * A connection that was given belongs to the stream, not to the NIC: it stays when the
 * NIC stops, unless a record of the NIC has begun on it, which breaks it.
 *
 * Bytes go over a connection as records.h says.  The reader has left its connection when
 * cut returns, so no later byte reaches its memory.
 *
 * System calls.  Connections on which frames came lately are hot: poll reads them
 * directly, and they are not in the set of epoll, since its reports would cost a third of
 * a message's time, and being in it without a report 0.1 us.  The others are watched,
 * each for one report.  Before threads sleep (arm) all are.
 */
#include "nic/far/endpoint.h"
#include "nic/far/records.h"
#include "shm/atomics.h"
#include "shm/fault.h"
#include "shm/park.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOT              8u   /* connections that are read directly */
#define COLD             256u /* looks in vain at all of them */
#define STREAM_LOOK_EACH 4u   /* polls in vain for a look at the set */
#define STREAM_LOOK_LATE 16u  /* other polls for one */
#define STREAM_LOOK_IDLE 64u  /* polls for one if all connections are hot */
#define STREAM_EVENTS    32
#define WAKE             UINT32_MAX /* the eventfd of the lease holder, in the set */
#define TICK_NS          UINT64_C(1000000000) /* between two looks for starvation */

enum order { GIVE = 1, POST = 2 };

struct peer {
	p3_a32 order;               /* of the domain's thread */
	struct p3_connection given; /* the last one (STREAM.1) */
	/* The lease holder uses all others, but the places of packets (control.c). */
	bool up;
	bool mute;   /* sending has failed: what has come is read before the end */
	bool lost;   /* a connection has broken, and no frame was refused since */
	bool hot;    /* it is in the array hot */
	bool unsent; /* it is in the list unsent */
	struct peer *next_unsent;
	uint32_t misses; /* looks in vain */
	uint64_t until;  /* bytes of the connection that a look takes */
	struct p3_records records;
};

struct p3_endpoint {
	uint32_t nnodes;
	p3_a32 ordered;      /* a peer has an order, or there is a new look */
	p3_a32 look;         /* the last look that was ordered */
	p3_a32 looked;       /* the last look that is over (STREAM.6) */
	uint32_t looks;      /* the look that has begun */
	int set, wake, news; /* descriptors */
	p3_fd_id set_file, wake_file, news_file;
	struct peer *unsent; /* a list of those with bytes to send */
	struct peer *hot[HOT];
	uint32_t nhot, turn;
	uint32_t found;    /* events of the last poll */
	bool due;          /* a look at the set is */
	uint32_t up;       /* peers with a connection */
	uint32_t told;     /* tail of the inbox when the domain's thread was last woken */
	uint64_t tick_at;  /* time of the next look for starvation */
	uint64_t starved;  /* bytes that had come when there was no buffer */
	struct peer *peer; /* by node */
	struct p3_record_pool pool;
};

static int stream_post(struct p3_endpoint *e, struct p3_far_buffer *b)
{
	p3_records_post(&e->pool, b);
	return 0;
}

/* Let the next push look at a peer, if it has something to send. */
static void stream_add_unsent(struct p3_endpoint *e, struct peer *p)
{
	if (p->unsent || p->mute || !p3_records_wait(&p->records))
		return;
	p->unsent = true;
	p->next_unsent = e->unsent;
	e->unsent = p;
}

/* ---- the set ---- */

static int stream_watch(
	struct p3_endpoint *e, int op, const struct peer *p, uint32_t more)
{
	struct epoll_event ev = {
		.events = EPOLLIN | EPOLLONESHOT | more, .data.u64 = p->records.node};
	return epoll_ctl(e->set, op, p->given.fd, &ev) ? -errno : 0;
}

static void stream_unheat(struct p3_endpoint *e, struct peer *p)
{
	for (uint32_t i = 0; p->hot && i < e->nhot; i++)
		if (e->hot[i] == p) {
			e->hot[i] = e->hot[--e->nhot];
			p->hot = false;
		}
}

/* ---- connections ---- */

/* Leave a connection, and report that.  The other end learns of it also if a forked child
 * has the socket, too. */
static void stream_lose(struct p3_endpoint *e, struct peer *p, int why)
{
	if (!p->up)
		return;
	p->up = false;
	p->lost = true;
	e->up--;
	stream_unheat(e, p);
	if (p3_fd_is(p->given.fd, p->given.file)) {
		(void)epoll_ctl(e->set, EPOLL_CTL_DEL, p->given.fd, NULL);
		(void)shutdown(p->given.fd, SHUT_RDWR);
	}
	p3_records_end(&e->pool, &p->records);
	FAULT_POINT("remote.left_untold");
	p3_inbox_put(&e->pool.inbox, p->records.node, why, NULL);
}

/* The program may have closed the descriptor. */
static void stream_watch_again(struct p3_endpoint *e, struct peer *p, uint32_t more)
{
	int rc = stream_watch(e, EPOLL_CTL_MOD, p, more);
	if (rc)
		stream_lose(e, p, rc);
}

/* Let the set watch a connection again.  Return false if the user has no more watches:
 * then it stays hot, and sleepers look at it at times (arm). */
static bool stream_cool(struct p3_endpoint *e, struct peer *p)
{
	int rc = p3_fd_is(p->given.fd, p->given.file)
			 ? stream_watch(e, EPOLL_CTL_ADD, p, 0)
			 : -EBADF;
	if (rc == -ENOSPC || rc == -ENOMEM)
		return false;
	stream_unheat(e, p);
	if (rc)
		stream_lose(e, p, rc);
	return true;
}

static void stream_heat(struct p3_endpoint *e, struct peer *p)
{
	p->misses = 0;
	if (p->hot || (e->nhot == HOT && !stream_cool(e, e->hot[e->turn % HOT])))
		return;
	e->hot[e->nhot++] = p;
	p->hot = true;
	(void)epoll_ctl(e->set, EPOLL_CTL_DEL, p->given.fd, NULL);
}

static void stream_take_up(struct p3_endpoint *e, struct peer *p)
{
	p->up = true;
	p->mute = false;
	p->until = 0;
	e->up++;
	p3_records_begin(&p->records, &p->given);
	FAULT_POINT("remote.taken_up");
	int rc = stream_watch(e, EPOLL_CTL_ADD, p, 0);
	if ((rc == -ENOSPC || rc == -ENOMEM) && e->nhot < HOT)
		stream_heat(e, p); /* until the set can watch it (stream_cool) */
	else if (rc)
		stream_lose(e, p, rc);
}

/* ---- news ---- */

static bool stream_is_looking(const struct p3_endpoint *e)
{
	return e->looks != p3_get(&e->looked);
}

/* Begin a look: at the bytes that the sockets have now. */
static void stream_begin_look(struct p3_endpoint *e)
{
	e->looks = p3_get(&e->look);
	FAULT_POINT("remote.look_begun");
	for (uint32_t i = 0; i < e->nnodes; i++) {
		struct peer *p = &e->peer[i];
		int bytes = 0;
		if (p->up && ioctl(p->given.fd, FIONREAD, &bytes) == 0)
			p->until = p->records.read + (uint32_t)bytes;
	}
}

/* Return true if the last look is over now. */
static bool stream_end_look(struct p3_endpoint *e)
{
	if (!stream_is_looking(e) || e->pool.from)
		return false;
	for (uint32_t i = 0; i < e->nnodes; i++)
		if (e->peer[i].up && e->peer[i].records.read < e->peer[i].until)
			return false;
	p3_release(&e->looked, e->looks); /* STREAM.6 */
	return true;
}

static void stream_tell_news(struct p3_endpoint *e)
{
	uint32_t tail = p3_get(&e->pool.inbox.tail);
	if (!stream_end_look(e) && tail == e->told)
		return;
	e->told = tail;
	if (p3_fd_is(e->news, e->news_file))
		p3_fd_signal(e->news);
}

/* Do what the domain's thread has ordered. */
static void stream_take_orders(struct p3_endpoint *e)
{
	(void)p3_exchange32(&e->ordered, 0);
	for (uint32_t i = 0; i < e->nnodes; i++) {
		struct peer *p = &e->peer[i];
		if (!p3_get(&p->order))
			continue;
		if (p3_exchange32(&p->order, 0) & GIVE) /* STREAM.1 */
			stream_take_up(e, p);
		if (p->up)
			stream_add_unsent(e, p);
	}
	if (e->looks != p3_get(&e->look))
		stream_begin_look(e);
}

/* ---- frames ---- */

static void stream_push(struct p3_endpoint *e)
{
	struct peer *p = e->unsent, *next;
	e->unsent = NULL;
	for (; p; p = next) {
		next = p->next_unsent;
		p->unsent = false;
		if (!p->up)
			continue;
		int rc = p3_records_send(&e->pool, &p->records);
		p->mute = rc == -EPIPE || rc == -ECONNRESET;
		if (rc && !p->mute)
			stream_lose(e, p, rc);
		else
			stream_add_unsent(e, p);
	}
}

/* Without a connection the frame has to wait.  Of one that broke the link must know: the
 * kernel may have lost what it had. */
static int stream_send_frame(
	struct p3_endpoint *e, uint64_t to, struct p3_far_buffer *b, uint32_t len)
{
	struct peer *p = &e->peer[to];
	if (p->lost) {
		p->lost = false;
		return -EIO;
	}
	if (!p->up)
		return -EAGAIN;
	p3_records_put(&p->records, b, len);
	stream_add_unsent(e, p);
	return 0;
}

/* After a look that has found something: there may be questions to answer, or the
 * connection is broken. */
static void stream_look_after(struct p3_endpoint *e, struct peer *p, int rc)
{
	if (rc)
		stream_lose(e, p, rc);
	else
		stream_add_unsent(e, p);
}

static void stream_receive(struct p3_endpoint *e, struct peer *p)
{
	int rc = p3_records_receive(&e->pool, &p->records);
	p->misses = rc == -EAGAIN ? p->misses + e->nhot : 0;
	if (rc != -EAGAIN)
		stream_look_after(e, p, rc);
	if (p->up && p->hot && p->misses >= COLD && !stream_cool(e, p))
		p->misses = 0;
}

/* Read a connection that the set has reported.  It becomes hot with a frame. */
static void stream_receive_cold(struct p3_endpoint *e, struct peer *p)
{
	uint64_t came = e->pool.came;
	stream_receive(e, p);
	if (p->up && e->pool.came != came)
		stream_heat(e, p);
	if (p->up && !p->hot)
		stream_watch_again(e, p, 0);
}

/* Take what the last poll had no room for. */
static void stream_receive_rest(struct p3_endpoint *e)
{
	struct peer *p = &e->peer[e->pool.from->node];
	stream_look_after(e, p, p3_records_go_on(&e->pool));
}

/* If frames of which a part has come hold all buffers, and nothing more comes, break
 * their connections: the links send these frames again. */
static void stream_tick(struct p3_endpoint *e, uint64_t now)
{
	bool starved = !e->pool.posted && e->starved == e->pool.bytes;
	e->tick_at = now + TICK_NS;
	e->starved = e->pool.bytes;
	for (uint32_t i = 0; starved && i < e->nnodes; i++)
		if (e->peer[i].records.filling)
			stream_lose(e, &e->peer[i], -ECONNABORTED);
}

/* Look at the set. */
static void stream_look(struct p3_endpoint *e)
{
	struct epoll_event ev[STREAM_EVENTS];
	uint64_t now = p3_now_ns();
	e->due = false;
	long n = syscall(SYS_epoll_pwait, e->set, ev, STREAM_EVENTS, 0, NULL, 0);
	for (long i = 0; i < n; i++) /* the set may be the program's (fd.h) */
		if (ev[i].data.u64 < e->nnodes && e->peer[ev[i].data.u64].up)
			stream_receive_cold(e, &e->peer[ev[i].data.u64]);
	if (now >= e->tick_at)
		stream_tick(e, now);
}

/* Return true if this poll shall look at the set. */
static bool stream_looks_now(struct p3_endpoint *e)
{
	bool all_hot = e->up == e->nhot;
	uint32_t each = all_hot    ? STREAM_LOOK_IDLE
			: e->found ? STREAM_LOOK_LATE
				   : STREAM_LOOK_EACH;
	return !e->nhot || stream_is_looking(e) || (++e->turn & (each - 1)) == 0;
}

/* Read the hot connections.  One that fills the batch comes last the next time, so that
 * it does not keep the others from their turn. */
static void stream_receive_hot(struct p3_endpoint *e)
{
	uint32_t i = e->nhot;
	while (i > 0 && e->pool.n < e->pool.most)
		stream_receive(e, e->hot[--i]);
	if (e->pool.n < e->pool.most || i >= e->nhot)
		return;
	struct peer *p = e->hot[i];
	e->hot[i] = e->hot[0];
	e->hot[0] = p;
}

static uint32_t stream_poll(
	struct p3_endpoint *e, struct p3_far_event *out, uint32_t most)
{
	e->pool.out = out;
	e->pool.n = 0;
	e->pool.most = most;
	if (p3_get(&e->ordered))
		stream_take_orders(e);
	p3_records_report(&e->pool);
	if (e->pool.from)
		stream_receive_rest(e);
	if (e->unsent)
		stream_push(e);
	e->due |= stream_looks_now(e);
	if (e->due && e->pool.n < most)
		stream_look(e); /* before hot connections, which may fill each batch */
	stream_receive_hot(e);
	p3_records_report(&e->pool);
	stream_tell_news(e);
	e->found = e->pool.n;
	return e->pool.n;
}

static int stream_news(const struct p3_endpoint *e)
{
	return e->set;
}

static int stream_arm(struct p3_endpoint *e)
{
	if (p3_get(&e->ordered))
		stream_take_orders(e);
	stream_push(e);
	while (e->nhot && stream_cool(e, e->hot[0]))
		;
	for (struct peer *p = e->unsent; p; p = p->next_unsent)
		if (p->up && !p->hot) /* the set has no hot ones */
			stream_watch_again(e, p, EPOLLOUT);
	stream_tell_news(e);
	if (e->pool.done || e->pool.from || stream_is_looking(e))
		return -EAGAIN;
	return e->nhot ? -ENOSPC : 0;
}

/* ---- names: a peer's connection is known by its index ---- */

static uint32_t stream_name(const struct p3_endpoint *e, unsigned char out[P3_FAR_NAME])
{
	(void)e;
	(void)out;
	return 0;
}

static int stream_resolve(struct p3_endpoint *e, uint32_t node, const unsigned char *text,
	uint32_t len, uint64_t *to_out)
{
	(void)text;
	if (node >= e->nnodes || len)
		return -EPROTO;
	e->peer[node].lost = false; /* that was of an earlier life */
	*to_out = node;
	return 0;
}

/* ---- remote reads ---- */

static enum p3_far_reads_kind stream_reads(const struct p3_endpoint *e)
{
	(void)e;
	return P3_FAR_READS_IN_ORDER;
}

static int stream_offer(
	struct p3_endpoint *e, const void *bytes, uint64_t len, struct p3_far_region *out)
{
	p3_records_offer(&e->pool, bytes, len, out);
	return 0;
}

/* A slice that has begun cannot be ended otherwise. */
static void stream_stop_slices(struct p3_endpoint *e, const struct p3_far_region *r)
{
	for (uint32_t i = 0; r->uses && i < e->nnodes; i++)
		if (e->peer[i].records.region == r)
			stream_lose(e, &e->peer[i], -ECONNABORTED);
}

static void stream_recall(struct p3_endpoint *e, struct p3_far_region *r)
{
	stream_stop_slices(e, r);
	p3_records_recall(&e->pool, r);
}

/* Begin a read.  The peer has sent the key in a frame, so there is a connection, or it
 * has broken and there will be another one. */
static int stream_begin_read(struct p3_endpoint *e, uint64_t to, struct p3_far_read *r)
{
	struct peer *p = &e->peer[to];
	if (!p->up || !p3_records_ask(&p->records, r))
		return -EAGAIN;
	stream_add_unsent(e, p);
	return 0;
}

static void stream_cut(struct p3_endpoint *e, uint64_t to)
{
	struct peer *p = &e->peer[to];
	if (p->records.nreads || p->records.nasks)
		stream_lose(e, p, -ECONNABORTED);
}

/* ---- a NIC starts and stops ---- */

static int stream_open_end(const struct p3_far_conf *conf, uint32_t node, uint32_t nnodes,
	struct p3_endpoint **ep_out)
{
	(void)node;
	(void)nnodes;
	*ep_out = conf->streams;
	conf->streams->pool.frames = true;
	return 0;
}

/* First send the packets that the domain's thread has posted: it does not wait until a
 * rank without an interface has confirmed a LEAVE. */
static void stream_close_end(struct p3_endpoint *e)
{
	stream_take_orders(e);
	stream_push(e);
	for (uint32_t i = 0; i < e->nnodes; i++)
		if (e->peer[i].up && !p3_records_leave(&e->peer[i].records))
			stream_lose(e, &e->peer[i], -ECONNABORTED);
	p3_records_close(&e->pool);
	FAULT_POINT("remote.nic_left");
	stream_tell_news(e);
}

const struct p3_endpoint_ops p3_endpoint_stream = {.authenticates = true,
	.open = stream_open_end,
	.close = stream_close_end,
	.name = stream_name,
	.resolve = stream_resolve,
	.send = stream_send_frame,
	.push = stream_push,
	.post = stream_post,
	.poll = stream_poll,
	.news = stream_news,
	.arm = stream_arm,
	.reads = stream_reads,
	.offer = stream_offer,
	.recall = stream_recall,
	.read = stream_begin_read,
	.cut = stream_cut};

/* ---- for the domain's thread ---- */

static void stream_wake(struct p3_endpoint *e)
{
	p3_release(&e->ordered, 1);
	if (p3_fd_is(e->wake, e->wake_file))
		p3_fd_signal(e->wake);
}

static void stream_order(struct p3_endpoint *e, struct peer *p, enum order what)
{
	uint32_t old = p3_get(&p->order);
	while (!p3_cas32(&p->order, &old, old | what)) /* STREAM.1 */
		;
	stream_wake(e);
}

void p3_stream_give(struct p3_endpoint *e, uint32_t rank, const struct p3_connection *c)
{
	e->peer[rank].given = *c;
	stream_order(e, &e->peer[rank], GIVE);
}

int p3_stream_post(struct p3_endpoint *e, uint32_t rank, const struct p3_job_msg *msg,
	const unsigned char *text, uint32_t len)
{
	int rc = p3_control_post(&e->peer[rank].records.control, msg, text, len);
	if (!rc)
		stream_order(e, &e->peer[rank], POST);
	return rc;
}

bool p3_stream_owes(struct p3_endpoint *e, uint32_t rank)
{
	const struct p3_control *c = &e->peer[rank].records.control;
	return p3_get(&c->acked) != p3_get(&c->next);
}

bool p3_streams_next(struct p3_endpoint *e, struct p3_stream_news *out)
{
	struct p3_inbox *box = &e->pool.inbox;
	uint32_t head = p3_get(&box->head);
	if (head == p3_acquire(&box->tail)) /* STREAM.4 */
		return false;
	*out = box->ring[head & box->mask];
	p3_release(&box->head, head + 1); /* STREAM.5 */
	return true;
}

uint32_t p3_streams_look(struct p3_endpoint *e)
{
	uint32_t look = p3_get(&e->look) + 1;
	look += !look;
	p3_set(&e->look, look);
	stream_wake(e);
	return look;
}

bool p3_streams_have_looked(struct p3_endpoint *e, uint32_t look)
{
	return (int32_t)(p3_acquire(&e->looked) - look) >= 0; /* STREAM.6 */
}

bool p3_streams_own(const struct p3_endpoint *e)
{
	return p3_fd_is(e->set, e->set_file) && p3_fd_is(e->wake, e->wake_file) &&
	       p3_fd_is(e->news, e->news_file);
}

int p3_streams_fd(const struct p3_endpoint *e)
{
	return e->news;
}

static int stream_open_fds(struct p3_endpoint *e)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.u64 = WAKE};
	e->set = p3_fd_high(epoll_create1(EPOLL_CLOEXEC));
	e->wake = p3_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	e->news = p3_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (e->set < 0 || e->wake < 0 || e->news < 0)
		return -errno;
	e->set_file = p3_fd_file(e->set);
	e->wake_file = p3_fd_file(e->wake);
	e->news_file = p3_fd_file(e->news);
	return epoll_ctl(e->set, EPOLL_CTL_ADD, e->wake, &ev) ? -errno : 0;
}

static int stream_open_all(struct p3_endpoint *e)
{
	struct p3_mac_key secret;
	int rc = stream_open_fds(e);
	if (!rc && syscall(SYS_getrandom, &secret, sizeof secret, 0) < 0)
		rc = -errno;
	if (!rc)
		p3_mac_begin(&e->pool.keys, &secret);
	rc = rc ? rc : p3_inbox_open(&e->pool.inbox, e->nnodes);
	e->peer = rc ? NULL : calloc(e->nnodes, sizeof *e->peer);
	for (uint32_t i = 0; e->peer && i < e->nnodes; i++) {
		struct peer *p = &e->peer[i];
		p->records.node = i;
		p3_records_begin(&p->records, NULL);
	}
	return rc ? rc : e->peer ? 0 : -ENOMEM;
}

struct p3_endpoint *p3_streams_new(uint32_t size)
{
	struct p3_endpoint *e =
		aligned_alloc(64, (sizeof(struct p3_endpoint) + 63) / 64 * 64);
	if (!e)
		return NULL;
	memset(e, 0, offsetof(struct p3_endpoint, pool));
	p3_records_open(&e->pool);
	e->nnodes = size;
	e->set = e->wake = e->news = -1;
	int rc = stream_open_all(e);
	if (!rc)
		return e;
	p3_streams_free(e);
	errno = -rc;
	return NULL;
}

void p3_streams_forget(struct p3_endpoint *e)
{
	p3_fd_close_own(e->set, e->set_file);
	p3_fd_close_own(e->wake, e->wake_file);
	p3_fd_close_own(e->news, e->news_file);
}

void p3_streams_free(struct p3_endpoint *e)
{
	p3_streams_forget(e);
	free(e->pool.inbox.ring);
	free(e->peer);
	free(e);
}
