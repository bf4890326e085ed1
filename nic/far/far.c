/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire between hosts.  It carries the memory that a pair of nodes shares in frames
 * (carry.h) over an endpoint (endpoint.h), with a link for each peer (link.h).
 *
 * Nothing of a peer's memory is mapped: its rings, words and image lie in the link.  The
 * link is made when the peer is first introduced, and stays until the NIC stops, so no
 * pointer into it ever dangles.
 *
 * While the node's threads sleep, an epoll set shows when the wire needs a pass: it has
 * the endpoint's descriptor, and a timerfd for frames that are due later.
 *
 * Memory ordering:
 *	FAR.1	publish: the thread that maps a peer stores the new link -> the lease
 *		holder finds it, perhaps for a frame that comes before the peer is
 *		attached
 */
#include "nic/far/link.h"
#include "nic/far/reads.h"
#include "nic/proto/proto.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "nic/wire/wire.h"
#include "shm/fd.h"
#include "shm/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>

#define FAR_EVENTS 16u /* events that a look at the endpoint takes */
#define LOOKS      16u /* looks that a pass takes at most */
/* Without work, and after this number of looks that found nothing, one pass in RARELY
 * looks. */
#define STILL  64u
#define RARELY 16u
/* Passes that take messages which have come, before one looks for more of them. */
#define FAR_BEHIND 4u
/* Over a provider: time between two looks at the streams, which carry packets only. */
#define FRAMELESS_NS 200000u
/* While threads sleep: time between two looks at an endpoint whose descriptor does not
 * show all of its news. */
#define BLIND_NS 2000000u
/* Messages to a peer within BURST_NS of each other are a burst: they go out when a pass
 * begins, or when they have BURST cells.  The first one goes at once, unless the last
 * burst had BURST_LEAST messages.  If that pass comes later than FAR_LATE_NS, the program
 * does not call the library after its bursts, and for NO_DEFER_NS, doubled each time up
 * to NO_DEFER_MOST, and halved by each pass in time, every message goes at once. */
#define BURST         64u
#define BURST_LEAST   8u
#define BURST_NS      3000u
#define FAR_LATE_NS   300000u
#define NO_DEFER_NS   1000000u
#define NO_DEFER_MOST 100000000u

struct wire {
	struct p3_far far;
	/* The streams, if the frames go over a provider of libfabric; else NULL: the
	 * endpoint is the streams. */
	struct p3_endpoint *streams;
	uint64_t streams_at;                 /* time of the next look at them */
	_Atomic(struct p3_far_link *) *link; /* (any) an array of nnodes; NULL: not
					      * introduced yet */
	struct p3_far_link **active;         /* links that have work, or soon will */
	uint32_t nactive;
	uint32_t behind;      /* passes since the last look for which messages waited */
	uint32_t empty;       /* looks at the endpoint since the last one with events */
	uint64_t no_defer_ns; /* the last such time */
	uint64_t no_defer_until; /* flush defers no message before this time */
	bool busy;         /* poll or flush runs: flush and drain inside it do nothing */
	uint32_t settling; /* the call of p3_nic_settle whose goals are set */
	int ep, timer;     /* descriptors: of the set, and in it */
	uint64_t timer_at; /* time that the timer shows, or UINT64_MAX for none */
};

static struct wire *far_wire_of(const struct p3_nic *n)
{
	return n->wire_state;
}

static struct p3_far_link *far_link_of(const struct wire *w, uint32_t node)
{
	return p3_acquire(&w->link[node]); /* FAR.1 */
}

static bool far_is_open(const struct p3_far_link *l)
{
	return l->up && !l->carry.peer->bad;
}

/* Return the link of a node whose frames count, or NULL. */
static struct p3_far_link *far_open_link(const struct wire *w, uint32_t node)
{
	struct p3_far_link *l = far_link_of(w, node);
	return l && far_is_open(l) ? l : NULL;
}

/* ---- active links ---- */

/* Let passes look at a link, and at its peer's lane. */
static void far_activate(struct p3_nic *n, struct p3_far_link *l)
{
	struct wire *w = far_wire_of(n);
	if (!l->active)
		w->active[w->nactive++] = l;
	l->active = true;
	p3_peer_heat(n, l->carry.peer);
}

static void far_deactivate(struct wire *w, uint32_t i)
{
	w->active[i]->active = false;
	w->active[i] = w->active[--w->nactive];
}

/* ---- in ---- */

static void far_take(
	struct p3_nic *n, const struct p3_frame *f, uint32_t len, uint64_t now)
{
	struct p3_far_link *l = NULL;
	if (len >= offsetof(struct p3_frame, data) && f->medium < n->conf.nnodes)
		l = far_open_link(far_wire_of(n), (uint32_t)f->medium);
	if (!l) {
		p3_count(&n->count[P3_C_FAR_STRANGERS], 1);
		return;
	}
	l->carry.now = now;
	n->worked = true;
	far_activate(n, l);
	l->carry.peer->deep = P3_DEEPEST; /* no other CPU writes to its lane */
	if (!p3_far_link_take(n, l, f, len))
		p3_peer_ignore(n, l->carry.peer, "a frame that cannot be");
}

/* Give a buffer to the endpoint for the next frame. */
static void far_post(struct wire *w, struct p3_far_buffer *b)
{
	if (w->far.ops->post(w->far.ep, b) == 0)
		return;
	b->next = w->far.idle;
	w->far.idle = b;
}

static void far_post_idle(struct wire *w)
{
	struct p3_far_buffer *b = w->far.idle;
	w->far.idle = NULL;
	while (b) {
		struct p3_far_buffer *next = b->next;
		far_post(w, b);
		b = next;
	}
}

static void far_take_back(
	struct p3_nic *n, struct p3_far_buffer *b, bool failed, uint64_t now)
{
	struct p3_far_link *l = far_link_of(far_wire_of(n), b->node);
	l->carry.now = now;
	if (failed)
		p3_count(&n->count[P3_C_FAR_FAILED], 1);
	p3_far_link_sent(l, b, failed);
	if (far_is_open(l))
		far_activate(n, l);
}

static void far_on_event(struct p3_nic *n, const struct p3_far_event *ev, uint64_t now)
{
	struct p3_far_buffer *b = p3_item(ev->op, struct p3_far_buffer, op);
	if (ev->op->kind == P3_FAR_READ) {
		p3_far_reads_done(n, p3_item(ev->op, struct p3_far_read, op), ev->failed);
		return;
	}
	if (ev->op->kind == P3_FAR_SEND) {
		far_take_back(n, b, ev->failed, now);
		return;
	}
	if (!ev->failed)
		far_take(n, &b->frame, ev->len, now);
	far_post(far_wire_of(n), b);
}

/* Let the streams receive and send packets. */
static void far_serve_streams(struct wire *w, uint64_t now)
{
	struct p3_far_event none; /* nothing is posted, so no frame comes */
	if (!w->streams || now < w->streams_at)
		return;
	w->streams_at = now == UINT64_MAX ? 0 : now + FRAMELESS_NS;
	(void)p3_endpoint_stream.poll(w->streams, &none, 1);
}

static void far_take_all(struct p3_nic *n, uint64_t now)
{
	struct wire *w = far_wire_of(n);
	struct p3_far_event ev[FAR_EVENTS];
	uint32_t got = FAR_EVENTS;
	p3_far_reads_recall(n, &w->far); /* before the endpoint serves reads */
	if (w->far.idle)
		far_post_idle(w);
	for (uint32_t i = 0; i < LOOKS && got == FAR_EVENTS; i++) {
		got = w->far.ops->poll(w->far.ep, ev, FAR_EVENTS);
		for (uint32_t k = 0; k < got; k++)
			far_on_event(n, &ev[k], now);
	}
	w->empty = n->worked ? 0 : w->empty + 1;
	if (got == FAR_EVENTS)
		n->worked = true; /* more may wait for the next pass */
}

/* ---- settling ---- */

/* Begin to settle: let links send everything, and wait for its acknowledgement. */
static void far_set_goals(struct p3_nic *n)
{
	struct wire *w = far_wire_of(n);
	w->settling = p3_get(&n->settle);
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		struct p3_far_link *l = far_open_link(w, i);
		if (!l)
			continue;
		l->carry.has_goal = l->carry.all_captured = false;
		l->carry.hurries = true;
		far_activate(n, l);
	}
}

/* Serve the last call of p3_nic_settle: set goals, and report when all links have met
 * theirs. */
static void far_settle(struct p3_nic *n)
{
	struct wire *w = far_wire_of(n);
	uint32_t late = n->conf.nnodes;
	if (w->settling == p3_get(&n->settled))
		far_set_goals(n);
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		struct p3_far_link *l = far_open_link(w, i);
		if (l && !p3_carry_has_settled(&l->carry))
			late = i;
	}
	p3_set(&n->unsettled, late);
	if (late == n->conf.nnodes)
		p3_set(&n->settled, w->settling);
}

/* ---- all links ---- */

static void far_send(struct p3_nic *n, struct p3_far_link *l, uint64_t now)
{
	bool idle = !p3_gbn_waits(&l->carry.gbn);
	if (!far_is_open(l))
		return;
	l->carry.now = now;
	p3_far_link_send(n, l);
	if (idle && p3_gbn_waits(&l->carry.gbn) && !p3_wire_thread_serves(n))
		p3_wake_self(n); /* no doorbell rings for a lost frame */
}

/* Learn from the longest time that a message of a burst has waited for this pass. */
static void far_note_wait(struct wire *w, uint64_t waited, uint64_t now)
{
	if (waited <= FAR_LATE_NS) {
		w->no_defer_ns /= 2;
		return;
	}
	w->no_defer_ns = w->no_defer_ns ? 2 * w->no_defer_ns : NO_DEFER_NS;
	if (w->no_defer_ns > NO_DEFER_MOST)
		w->no_defer_ns = NO_DEFER_MOST;
	w->no_defer_until = now + w->no_defer_ns;
}

/* Send on all active links.  Deactivate those without further work. */
static void far_send_all(struct p3_nic *n, uint64_t now, bool hurry)
{
	struct wire *w = far_wire_of(n);
	uint64_t since = 0; /* time since which the first message of a burst waits */
	for (uint32_t i = w->nactive; i-- > 0;) {
		struct p3_far_link *l = w->active[i];
		if (l->waits && (!since || l->waits < since))
			since = l->waits;
		if (hurry) {
			l->carry.hurries = true;
			p3_gbn_hurry(&l->carry.gbn);
		}
		far_send(n, l, now);
		if (far_is_open(l) && !p3_carry_is_quiet(&l->carry))
			continue;
		far_deactivate(w, i);
		p3_mirror_peer(l->carry.peer, now); /* passes do so for hot peers only */
		if (!l->carry.peer->kept)
			p3_peer_rest(n, l->carry.peer);
	}
	if (since)
		far_note_wait(w, now - since, now);
}

/* Let the endpoint send the frames of this pass or call. */
static void far_push(const struct wire *w)
{
	if (w->far.ops->push)
		w->far.ops->push(w->far.ep);
}

/* Return true if this pass has messages to take that came before. */
static bool far_is_behind(struct wire *w)
{
	bool any = false;
	for (uint32_t i = 0; !any && i < w->nactive; i++)
		any = p3_ring_any(&w->active[i]->carry.peer->req_in);
	w->behind = any && w->behind < FAR_BEHIND ? w->behind + 1 : 0;
	return w->behind != 0;
}

/* Return true if this pass shall look at the endpoint. */
static bool far_looks_now(struct wire *w)
{
	if (far_is_behind(w))
		return false;
	return w->nactive || p3_far_reads_are_under_way(&w->far) || w->empty < STILL ||
	       ++w->empty % RARELY == 0;
}

static void far_poll(struct p3_nic *n)
{
	struct wire *w = far_wire_of(n);
	uint64_t now = p3_now_ns();
	w->busy = true;
	far_serve_streams(w, now);
	if (far_looks_now(w))
		far_take_all(n, now);
	p3_far_reads_look(&w->far, now);
	far_send_all(n, now, false);
	far_push(w);
	if (p3_get(&n->settle) != p3_get(&n->settled))
		far_settle(n);
	w->busy = false;
}

/* Return true if the messages to this peer are a burst and wait for the next pass. */
static bool far_defers(const struct wire *w, struct p3_far_link *l, uint64_t now)
{
	const struct p3_carry *c = &l->carry;
	uint64_t cells = c->peer->req_out.pos - c->req.tap.pos;
	bool first = now - l->flushed > BURST_NS;
	if (first) {
		l->was_burst = l->in_row >= BURST_LEAST;
		l->in_row = 0;
	}
	l->in_row++;
	if ((first && !l->was_burst) || now < w->no_defer_until || cells >= BURST)
		return false;
	if (!l->waits)
		l->waits = now;
	return true;
}

/* Push what this call has sent, and note when that was over: the next messages are a
 * burst if they come soon after it. */
static void far_push_flushed(struct p3_nic *n)
{
	far_push(far_wire_of(n));
	uint64_t now = p3_now_ns();
	for (uint32_t i = 0; i < n->ntouched; i++)
		if (n->touched[i]->wire == &p3_wire_far)
			far_link_of(far_wire_of(n), n->touched[i]->index)->flushed = now;
}

/* Send only to the peers that this node has written to; credits wait for the next
 * pass. */
static void far_flush(struct p3_nic *n)
{
	struct wire *w = far_wire_of(n);
	bool sends = false;
	if (w->busy)
		return;
	p3_far_reads_recall(n, &w->far); /* a call may have ended transfers */
	if (!n->ntouched) {
		far_push(w); /* reads that a pass has begun */
		return;
	}
	uint64_t now = p3_now_ns();
	w->busy = true;
	for (uint32_t i = 0; i < n->ntouched; i++) {
		if (n->touched[i]->wire != &p3_wire_far)
			continue;
		struct p3_far_link *l = far_link_of(w, n->touched[i]->index);
		if (far_is_open(l))
			far_activate(n, l);
		if (!far_defers(w, l, now)) {
			far_send(n, l, now);
			sends = true;
		}
		l->flushed = now;
	}
	if (sends)
		far_push_flushed(n);
	w->busy = false;
}

/* ---- sleeping ---- */

static uint64_t far_next_pass(const struct p3_nic *n)
{
	const struct wire *w = far_wire_of(n);
	uint64_t first = p3_far_reads_turn(&w->far);
	for (uint32_t i = 0; i < w->nactive; i++) {
		uint64_t at = p3_far_link_turn(w->active[i]);
		if (at < first)
			first = at;
	}
	return first;
}

/* Return true if frames or packets may come, for which only passes look. */
static bool far_waits(const struct p3_nic *n)
{
	return n->conf.far->streams || far_wire_of(n)->far.links;
}

/* Return true if the timer's number still names its file, which the set watches.  A timer
 * of the program would look alike (fd.h). */
static bool far_owns_timer(const struct wire *w)
{
	struct epoll_event ev = {.events = EPOLLIN};
	return epoll_ctl(w->ep, EPOLL_CTL_MOD, w->timer, &ev) == 0;
}

/* Set the timer to a time, or to none for UINT64_MAX.  Return false if the program has
 * closed it. */
static bool far_set_timer(struct wire *w, uint64_t at)
{
	struct itimerspec t = {{0, 0}, {0, 0}};
	if (!far_owns_timer(w))
		return false;
	if (at != UINT64_MAX) {
		t.it_value.tv_sec = (time_t)(at / 1000000000u);
		t.it_value.tv_nsec = (long)(at % 1000000000u);
	}
	w->timer_at = at;
	return timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &t, NULL) == 0;
}

static int far_news(const struct p3_nic *n)
{
	return far_wire_of(n)->ep;
}

static int far_arm(struct p3_nic *n)
{
	struct wire *w = far_wire_of(n);
	if (w->ep < 0)
		return w->ep;
	w->busy = true;
	far_send_all(n, p3_now_ns(), true); /* nothing shall wait while threads sleep */
	far_push(w);
	w->busy = false;
	p3_far_reads_recall(n, &w->far);
	uint64_t at = far_next_pass(n);
	far_serve_streams(w, UINT64_MAX);
	int beside = w->streams ? p3_endpoint_stream.arm(w->streams) : 0;
	int rc = w->far.ops->arm(w->far.ep);
	uint64_t now = p3_now_ns();
	if ((rc == -ENOSPC || beside == -ENOSPC) && at > now + BLIND_NS)
		at = now + BLIND_NS;
	if (!rc || rc == -ENOSPC)
		rc = beside == -ENOSPC ? 0 : beside;
	if (rc)
		return rc;
	if (at <= now)
		return -EAGAIN;
	return at == w->timer_at || far_set_timer(w, at) ? 0 : -EBADF;
}

/* ---- births and deaths ---- */

static int far_map(struct p3_nic *n, struct p3_peer_info *info)
{
	struct wire *w = far_wire_of(n);
	struct p3_far_link *l = far_link_of(w, info->node);
	if (info->far_len > P3_FAR_NAME)
		return -EPROTO;
	if (!l) {
		l = p3_far_link_new(n, &w->far);
		if (!l)
			return -ENOMEM;
		l->carry.offer = w->far.reads ? p3_far_offer : NULL;
		p3_release(&w->link[info->node], l); /* FAR.1 */
	}
	info->base = l->carry.image;
	info->page = info->doorbell_at = NULL;
	info->view = (struct p3_heap_view){0};
	return 0;
}

/* Links stay. */
static void far_unmap(struct p3_peer_info *info)
{
	(void)info;
}

static void far_attach(struct p3_nic *n, struct p3_peer *p,
	const struct p3_peer_info *info, struct p3_lane *lane_out)
{
	struct wire *w = far_wire_of(n);
	struct p3_far_link *l = far_link_of(w, p->index);
	p->base = info->base;
	p->page = NULL;
	p->seg_len = n->layout.seg_len;
	p->proof = 0;
	p->owner = p->nwindows = 0;
	p->proven = false;
	p->doorbell = NULL;
	p->asleep = &n->never_asleep;
	p->heap = info->view;
	p->cma_off = true;
	memcpy(l->name, info->far_name, sizeof l->name);
	l->name_len = info->far_len;
	p3_far_link_up(n, l, p, lane_out);
	p3_far_reads_up(l);
	if (!l->active)
		w->active[w->nactive++] = l;
	l->active = true;
}

void p3_far_detach(struct p3_nic *n, struct p3_peer *p)
{
	if (p->wire != &p3_wire_far)
		return;
	struct wire *w = far_wire_of(n);
	struct p3_far_link *l = far_link_of(w, p->index);
	for (uint32_t i = w->nactive; i-- > 0;)
		if (w->active[i] == l)
			far_deactivate(w, i);
	p3_far_link_down(l);
}

/* This runs in passes, as poll does, and keeps errno. */
void p3_far_drain(struct p3_nic *n, struct p3_peer *p)
{
	int saved = errno;
	if (p->wire == &p3_wire_far && far_link_of(far_wire_of(n), p->index)->up &&
		!far_wire_of(n)->busy)
		far_take_all(n, p3_now_ns());
	errno = saved;
}

/* The peer's frames show that it makes passes. */
static uint64_t far_passes(const struct p3_nic *n, const struct p3_peer *p)
{
	return far_link_of(far_wire_of(n), p->index)->came;
}

/* ---- for tools ---- */

static void far_show(struct p3_nic *n)
{
	const struct p3_far *far = &far_wire_of(n)->far;
	p3_set(&n->count[P3_G_FAR_LINKS], far->links);
	p3_set(&n->count[P3_G_FAR_HELD], far->held);
	p3_set(&n->count[P3_G_FAR_PROMISED], far->promised);
}

/* ---- start and stop ---- */

static int far_watch(const struct wire *w, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};
	return fd < 0 || epoll_ctl(w->ep, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* Make the set of descriptors.  Without it the wire works by short sleeps.  Do not arm
 * it yet: an event that the endpoint has now, such as a connection of any program, would
 * look like a failure. */
static void far_open_set(struct wire *w)
{
	w->timer_at = UINT64_MAX;
	w->timer =
		p3_fd_high(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	int news = w->far.ops->news(w->far.ep);
	w->ep = p3_fd_high(epoll_create1(EPOLL_CLOEXEC));
	if (w->ep < 0 || news < 0 || far_watch(w, w->timer) || far_watch(w, news) ||
		(w->streams && far_watch(w, p3_endpoint_stream.news(w->streams)))) {
		int why = news < 0 ? news : -errno;
		if (w->timer >= 0)
			p3_fd_close(w->timer);
		if (w->ep >= 0)
			p3_fd_close(w->ep);
		w->ep = why;
	}
}

static void far_close_set(struct p3_nic *n, struct wire *w)
{
	if (w->ep < 0)
		return;
	if (far_owns_timer(w))
		p3_fd_close(w->timer);
	if (!n->wire_thread || p3_wire_thread_owns(n))
		p3_fd_close(w->ep);
}

static int far_make_buffers(struct p3_far *far, uint32_t nnodes)
{
	far->fresh = P3_FAR_POSTED;
	far->nbuffers = P3_FAR_POSTED + P3_FAR_BUFFERS + (P3_FAR_OWN + 1) * nnodes;
	far->buffers = p3_far_reserve(far->nbuffers * sizeof *far->buffers);
	if (!far->buffers)
		return -ENOMEM;
	for (uint32_t i = 0; i < P3_FAR_POSTED; i++) {
		far->buffers[i].op.kind = P3_FAR_RECEIVE;
		far->buffers[i].next = far->idle;
		far->idle = &far->buffers[i];
	}
	return 0;
}

static void far_stop(struct p3_nic *n)
{
	struct wire *w = far_wire_of(n);
	if (w->far.ep) {
		far_close_set(n, w);
		p3_far_reads_end(&w->far);
		w->far.ops->close(w->far.ep);
		if (w->streams)
			p3_endpoint_stream.close(w->streams);
		p3_far_reads_close(&w->far);
	}
	for (uint32_t i = 0; w->link && i < n->conf.nnodes; i++)
		if (far_link_of(w, i))
			p3_far_link_free(n, far_link_of(w, i));
	if (w->far.buffers)
		munmap(w->far.buffers, w->far.nbuffers * sizeof *w->far.buffers);
	free(w->link);
	free(w->active);
	free(w);
	n->wire_state = NULL;
}

/* Return the most cells of data in a frame of this node. */
static uint32_t far_most_cells(const struct p3_far *far)
{
	uint32_t bytes = far->ops->most ? far->ops->most(far->ep) : P3_FAR_BYTES;
	uint32_t cells = bytes / P3_CELL - 1; /* the header is a cell */
	return cells > P3_FRAME_CELLS ? cells : P3_FRAME_CELLS;
}

static int far_make(struct p3_nic *n, struct wire *w)
{
	const struct p3_far_conf *conf = n->conf.far;
	w->far.ops = conf->ops;
	w->streams = conf->ops == &p3_endpoint_stream ? NULL : conf->streams;
	w->link = calloc(n->conf.nnodes, sizeof *w->link);
	w->active = calloc(n->conf.nnodes, sizeof *w->active);
	if (!w->link || !w->active || far_make_buffers(&w->far, n->conf.nnodes))
		return -ENOMEM;
	int rc = conf->ops->open(conf, n->conf.node, n->conf.nnodes, &w->far.ep);
	w->far.fill = rc ? 0 : far_most_cells(&w->far);
	if (!rc)
		p3_far_reads_open(n, &w->far);
	return rc;
}

static int far_start(struct p3_nic *n)
{
	struct wire *w = calloc(1, sizeof *w);
	if (!w)
		return -ENOMEM;
	n->wire_state = w;
	int rc = far_make(n, w);
	if (rc) {
		far_stop(n);
		return rc;
	}
	far_post_idle(w);
	far_open_set(w);
	return 0;
}

uint32_t p3_nic_far_name(struct p3_nic *n, unsigned char out[P3_FAR_NAME])
{
	struct wire *w = far_wire_of(n);
	return w ? w->far.ops->name(w->far.ep, out) : 0;
}

const struct p3_wire p3_wire_far = {.map = far_map,
	.unmap = far_unmap,
	.attach = far_attach,
	.passes = far_passes,
	.start = far_start,
	.stop = far_stop,
	.flush = far_flush,
	.poll = far_poll,
	.waits = far_waits,
	.news = far_news,
	.arm = far_arm,
	.show = far_show};
