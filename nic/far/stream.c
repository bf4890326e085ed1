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
 * Bytes go over a connection as records.h says.  The reader has closed its socket when
 * cut returns, so no later byte reaches its memory.  The lease holder calls all functions
 * but open, close and name, so no word here is shared.
 *
 * System calls.  Connections on which bytes came lately are hot: poll reads them
 * directly, and the set of epoll does not watch them, since its reports would cost a
 * third of a message's time.  The others are watched, each for one report.  Before
 * threads sleep (arm) all are.
 */
#include "nic/far/stream.h"

#include "nic/far/calls.h"
#include "nic/far/records.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOT       8u   /* connections that are read directly */
#define COLD      256u /* looks in vain at all of them */
#define LOOK_EACH 4u   /* polls in vain for a look at the set */
#define LOOK_LATE 16u  /* other polls for one */
#define LOOK_IDLE 64u  /* polls for one if all connections are hot */
#define EVENTS    32
#define YOUNG_NS  UINT64_C(1000000000) /* age of a call that may meet another one */
#define CHECK_NS  UINT64_C(1000000)    /* between two looks at the time of calls, */
#define TICK_NS   UINT64_C(1000000000) /* and at that of connections */

enum state { NONE, CALLING, UP, REFUSED };

struct peer {
	uint32_t node;
	enum state state;
	bool ours;           /* this node has made the connection */
	bool hot;            /* it is in the array hot */
	bool unsent;         /* it is in the list unsent */
	uint64_t up_ns;      /* time of the connection's beginning */
	uint64_t failing_ns; /* since then no call has had success; 0: none has failed */
	struct peer *next_unsent;
	uint32_t misses; /* looks in vain */
	struct p3_socket socket;
	struct p3_records records;
	struct p3_far_keys keys;
	union p3_call_address address;
	struct p3_call call;
};

struct p3_endpoint {
	uint32_t node, nnodes;
	struct peer **peer;  /* by node; NULL: never known */
	struct peer *unsent; /* a list of those with bytes to send */
	struct peer *hot[HOT];
	uint32_t nhot, turn;
	uint32_t calling, up; /* peers in these states */
	p3_fd_id set_file;
	uint64_t check_at, tick_at; /* times of the next looks */
	uint64_t starved;           /* frames that had come when there was no buffer */
	bool said_silent, said_unreachable;
	bool (*knows)(void *arg, uint32_t node, uint64_t *to_out);
	void *knows_arg;
	struct p3_calls calls;
	struct p3_record_pool pool;
};

static int post(struct p3_endpoint *e, struct p3_far_buffer *b)
{
	p3_records_post(&e->pool, b);
	return 0;
}

/* Let the next push look at a peer, if it has something to send. */
static void add_unsent(struct p3_endpoint *e, struct peer *p)
{
	if (p->unsent || !p3_records_wait(&p->records))
		return;
	p->unsent = true;
	p->next_unsent = e->unsent;
	e->unsent = p;
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
		p3_records_end(&e->pool, &p->records);
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
	p3_records_begin(&p->records, p->node, s.fd);
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

/* ---- frames ---- */

static void push(struct p3_endpoint *e)
{
	struct peer *p = e->unsent, *next;
	e->unsent = NULL;
	for (; p; p = next) {
		next = p->next_unsent;
		p->unsent = false;
		if (p->state != UP)
			continue;
		if (p3_records_send(&e->pool, &p->records))
			drop(e, p, REFUSED);
		else
			add_unsent(e, p);
	}
}

static int send_frame(
	struct p3_endpoint *e, uint64_t to, struct p3_far_buffer *b, uint32_t len)
{
	struct peer *p = e->peer[to];
	if (p->state == UP) {
		p3_records_put(&p->records, b, len);
		add_unsent(e, p);
		return 0;
	}
	if (p->state == CALLING)
		return -EAGAIN;
	if (p->state == NONE)
		return call(e, p);
	p->state = NONE;
	return -EIO;
}

/* After a look: there may be questions to answer, or the connection is broken. */
static void take_up(struct p3_endpoint *e, struct peer *p, int rc)
{
	if (rc && rc != -EAGAIN)
		drop(e, p, REFUSED);
	else
		add_unsent(e, p);
}

static void receive(struct p3_endpoint *e, struct peer *p, struct p3_record_batch *b)
{
	int rc = p3_records_receive(&e->pool, &p->records, b);
	p->misses = rc == -EAGAIN ? p->misses + e->nhot : 0;
	take_up(e, p, rc);
	if (p->state == UP && p->misses >= COLD)
		cool(e, p);
}

/* Take what the last poll had no room for. */
static void receive_rest(struct p3_endpoint *e, struct p3_record_batch *b)
{
	struct peer *p = e->peer[e->pool.from->node];
	take_up(e, p, p3_records_go_on(&e->pool, b));
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
	bool starved = !e->pool.posted && e->starved == e->pool.came;
	e->starved = e->pool.came;
	for (uint32_t i = 0; starved && i < e->nnodes; i++)
		if (e->peer[i] && e->peer[i]->records.filling)
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

static void on_event(struct p3_endpoint *e, uint64_t tag, struct p3_record_batch *b)
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
static void look(struct p3_endpoint *e, struct p3_record_batch *b)
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
	struct p3_record_batch b = {out, 0, most};
	p3_records_report(&e->pool, &b);
	if (e->pool.from)
		receive_rest(e, &b);
	if (e->unsent)
		push(e);
	for (uint32_t i = e->nhot; i-- > 0 && b.n < most;)
		receive(e, e->hot[i], &b);
	if (looks_now(e, b.n))
		look(e, &b);
	p3_records_report(&e->pool, &b);
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
	if (e->pool.done || e->pool.from)
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
	p3_records_offer(&e->pool, bytes, len, out);
	return 0;
}

/* A slice that has begun cannot be ended otherwise. */
static void stop_slices(struct p3_endpoint *e, const struct p3_far_region *r)
{
	for (uint32_t i = 0; r->uses && i < e->nnodes; i++)
		if (e->peer[i] && e->peer[i]->records.region == r)
			drop(e, e->peer[i], REFUSED);
}

static void recall(struct p3_endpoint *e, struct p3_far_region *r)
{
	stop_slices(e, r);
	p3_records_recall(&e->pool, r);
}

/* Begin a read.  Make no call for it: the peer has sent the key in a frame, so there is a
 * connection, or it has broken and the next frame makes one. */
static int begin_read(struct p3_endpoint *e, uint64_t to, struct p3_far_read *r)
{
	struct peer *p = e->peer[to];
	if (p->state != UP || !p3_records_ask(&p->records, r))
		return -EAGAIN;
	add_unsent(e, p);
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
	e->peer = calloc(e->nnodes, sizeof(struct peer *));
	if (set < 0 || !e->peer)
		return e->peer ? -errno : -ENOMEM;
	if (syscall(SYS_getrandom, &e->pool.secret, sizeof e->pool.secret, 0) < 0)
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
	memset(e, 0, offsetof(struct p3_endpoint, pool));
	p3_records_open(&e->pool);
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
