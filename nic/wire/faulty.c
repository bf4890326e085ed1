/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wire for tests, which loses, corrupts, delays, doubles and reorders frames, and
 * recovers from all these faults by go-back-n (frame.h, faults.h).
 *
 *	  firmware				      firmware of the peer
 *	    | capture (carry.h)				  ^ apply
 *	  frames not acknowledged  (go-back-n)		  | in order, once, intact
 *	    | put, with faults				  | take
 *	  full lane of the pair in shared memory -------->
 *
 * Here only the medium is shared memory between peers (with the machine's doorbells,
 * life and death).  Rings and entries are private memory.
 *
 * A node's lane to itself is on the wire, too; a long transfer to itself is a copy in its
 * own memory.
 *
 * Frames that must be sent once more, or that are held back, are due at a later time.
 * While the node's threads sleep, a timerfd shows that time (arm of wire.h).
 *
 * Memory ordering: LANE.1 and LANE.2 on the medium; PEER.1 and PEER.2 as for any lane,
 * the latter also for the offset of the medium's ring.
 */
#include "nic/wire/carry.h"
#include "nic/wire/crc.h"
#include "nic/wire/faults.h"
#include "nic/wire/shm.h"
#include "nic/obj/table.h"
#include "nic/proto/format.h"
#include "nic/proto/proto.h"
#include "nic/run/looks.h"
#include "nic/run/ringer.h"
#include "nic/run/wake.h"
#include "nic/wire/frame.h"
#include "nic/wire/wire.h"
#include "shm/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>

#define P3_KIND_FRAME 1u
/* shortest and longest time between two looks for room on the medium */
#define P3_ROOM_NS   100000u
#define P3_ROOM_MOST 10000000u

struct link {
	struct p3_carry carry;
	struct p3_frame queue[P3_FRAME_WINDOW];
	struct p3_injector faults;
	/* the medium */
	struct p3_ring_tx out;
	struct p3_ring_rx in;
	struct p3_peer_entry *here;
	const struct p3_peer_entry *there;
	bool up;
	bool listening; /* the peer's ring is for this node's present life */
	bool heard;     /* the peer has set this node's credits */
	uint64_t stuck; /* time since which work has found no room on the medium, or 0 */
	uint8_t lives;  /* number of the peer's lives */
};

struct wire {
	struct p3_faults faults;
	struct link *link; /* an array of nnodes */
	bool busy;         /* poll or flush runs: flush and drain inside it do nothing */
	uint32_t settling; /* the call of p3_nic_settle whose goals are set */
	int timer;         /* timerfd, or -errno */
	p3_fd_id timer_file;
	uint64_t timer_at; /* time that the timer shows, or UINT64_MAX for none */
};

static struct wire *wire_of(const struct p3_nic *n)
{
	return n->wire_state[P3_WIRE_FAULTY];
}

/* ---- the medium ---- */

static bool listens(struct p3_nic *n, struct link *l)
{
	if (l->listening)
		return true;
	if (p3_acquire(&l->there->tx_for) != n->conf.incarnation) /* PEER.2 */
		return false;
	uint64_t off = p3_get(&l->there->full_req);
	if (!p3_peer_holds_ring(n, l->carry.peer, off, n->layout.req_cells)) {
		p3_peer_ignore(
			n, l->carry.peer, "no frames (has it the same PTL3_WIRE?)");
		return false;
	}
	p3_ring_rx_init(&l->in, (struct p3_cell *)(l->carry.peer->base + off),
		n->layout.req_cells, &l->here->req_credit[1], 0);
	l->listening = true;
	return true;
}

static bool has_room(struct p3_nic *n, struct link *l, uint32_t cells)
{
	if (p3_ring_fits(&l->out, cells + p3_ring_pad(&l->out, cells)))
		return true;
	if (!l->heard)
		l->heard =
			p3_acquire(&l->there->rx_for) == n->conf.incarnation; /* PEER.1 */
	return l->heard && p3_ring_room(&l->out, cells);
}

static bool put_on_medium(void *arg, const struct p3_frame *f, uint32_t len)
{
	struct link *l = arg;
	struct p3_nic *n = l->carry.peer->nic;
	uint32_t cells = len / P3_CELL;
	if (!has_room(n, l, cells))
		return false;
	struct p3_cell *c = p3_ring_begin(&l->out, cells);
	memcpy((char *)c + 8, (const char *)f + 8, len - 8);
	p3_ring_publish(&l->out, p3_word0(P3_KIND_FRAME, 0, cells), cells);
	p3_looks_add(n, l->carry.peer);
	return true;
}

/* Put a frame with faults, if the medium has room for it.  A frame without room is put
 * again later, and faults must not strike it twice. */
static bool put_with_faults(void *arg, const struct p3_frame *f, uint32_t len)
{
	struct link *l = arg;
	return has_room(l->carry.peer->nic, l, len / P3_CELL) &&
	       p3_faults_put(&l->faults, f, len, l->carry.now, put_on_medium, l);
}

/* Copy the next frame.  Return its length, or 0 if there is none. */
static uint32_t get_from_medium(struct p3_nic *n, struct link *l, struct p3_frame *f)
{
	uint64_t w0;
	const struct p3_cell *c;
	while ((c = p3_ring_peek(&l->in, &w0))) {
		uint32_t cells = p3_word0_ncells(w0), kind = p3_word0_kind(w0);
		bool frame = kind == P3_KIND_FRAME && cells <= 1 + P3_FRAME_CELLS;
		if (!p3_ring_sane(&l->in, kind, cells) || (!frame && kind)) {
			p3_peer_ignore(n, l->carry.peer, "a frame of impossible size");
			return 0;
		}
		if (frame)
			memcpy(f, c, (size_t)cells * P3_CELL);
		p3_ring_take_now(&l->in, cells);
		if (frame)
			return cells * P3_CELL;
	}
	return 0;
}

/* ---- both directions ---- */

static void take(struct p3_nic *n, struct link *l)
{
	struct p3_frame f;
	uint32_t len;
	while (!l->carry.peer->bad && listens(n, l) &&
		(len = get_from_medium(n, l, &f))) {
		n->worked = true;
		if (p3_gbn_take(&l->carry.gbn, &f, len, l->carry.now) &&
			!p3_carry_apply(n, &l->carry, &f))
			p3_peer_ignore(n, l->carry.peer, "a frame that cannot be");
	}
}

/* ---- counters, settling ---- */

static void count(struct p3_nic *n, struct link *l)
{
	p3_carry_count(n, &l->carry);
	for (int i = 0; i < P3_FAULT_KINDS; i++) {
		p3_count(&n->wire_count[P3_W_FAULTS + i], l->faults.injected[i]);
		l->faults.injected[i] = 0;
	}
}

static bool is_open(const struct link *l)
{
	return l->up && !l->carry.peer->bad;
}

/* Set goals for the last call of p3_nic_settle, and keep them until all are met. */
static void settle(struct p3_nic *n)
{
	struct wire *w = wire_of(n);
	bool all = true;
	if (w->settling == p3_get(&n->settled[P3_WIRE_FAULTY])) {
		w->settling = p3_get(&n->settle);
		for (uint32_t i = 0; i < n->conf.nnodes; i++)
			w->link[i].carry.has_goal = false;
	}
	for (uint32_t i = 0; i < n->conf.nnodes; i++)
		all &= !is_open(&w->link[i]) || p3_carry_has_settled(&w->link[i].carry);
	if (all)
		p3_set(&n->settled[P3_WIRE_FAULTY], w->settling);
}

/* ---- all links ---- */

/* Return the time of the first work without a frame from the peer: a frame to send once
 * more, or one held back.  This time is in the past if the work has found no room on the
 * medium. */
static uint64_t first_work(const struct link *l)
{
	uint64_t frames = p3_gbn_due(&l->carry.gbn), held = p3_faults_due(&l->faults);
	return frames < held ? frames : held;
}

static void send(struct p3_nic *n, struct link *l)
{
	bool idle = !p3_gbn_waits(&l->carry.gbn);
	p3_carry_capture(n, &l->carry);
	p3_gbn_send(&l->carry.gbn, l->carry.now, put_with_faults, l);
	p3_faults_release(&l->faults, l->carry.now, put_on_medium, l);
	if (first_work(l) > l->carry.now)
		l->stuck = 0;
	else if (!l->stuck)
		l->stuck = l->carry.now;
	if (idle && p3_gbn_waits(&l->carry.gbn) && !p3_ringer_serves(n))
		p3_wake_self(n); /* no doorbell rings for a lost frame */
	count(n, l);
}

static void poll(struct p3_nic *n)
{
	struct wire *w = wire_of(n);
	uint64_t now = p3_now_ns();
	w->busy = true;
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		struct link *l = &w->link[i];
		if (!is_open(l))
			continue;
		l->carry.now = now;
		take(n, l);
		send(n, l);
	}
	if (p3_get(&n->settle) != p3_get(&n->settled[P3_WIRE_FAULTY]))
		settle(n);
	w->busy = false;
}

/* Send only to the peers that this node has written to (touched): a look at all links
 * would make each short call hold the lease for long.  Credits wait for the next pass. */
static void flush(struct p3_nic *n)
{
	struct wire *w = wire_of(n);
	if (w->busy || !n->ntouched)
		return;
	uint64_t now = p3_now_ns();
	w->busy = true;
	for (uint32_t i = 0; i < n->ntouched; i++) {
		struct link *l = &w->link[n->touched[i]->index];
		l->carry.now = now;
		if (is_open(l))
			send(n, l);
	}
	w->busy = false;
}

/* ---- sleeping ---- */

/* Return the time of the link's next turn.  No doorbell rings when the peer makes room
 * on the medium, so look again after as long a time as the work has already waited. */
static uint64_t next_turn(const struct link *l)
{
	uint64_t at = first_work(l), waited = l->stuck ? l->carry.now - l->stuck : 0;
	if (at > l->carry.now)
		return at;
	if (waited < P3_ROOM_NS)
		waited = P3_ROOM_NS;
	return l->carry.now + (waited < P3_ROOM_MOST ? waited : P3_ROOM_MOST);
}

/* Return the time at which the wire needs a pass, or UINT64_MAX if it needs none before a
 * doorbell rings. */
static uint64_t next_pass(const struct p3_nic *n)
{
	const struct wire *w = wire_of(n);
	uint64_t first = UINT64_MAX;
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		const struct link *l = &w->link[i];
		uint64_t at = is_open(l) ? next_turn(l) : UINT64_MAX;
		if (at < first)
			first = at;
	}
	return first;
}

static bool waits(const struct p3_nic *n)
{
	return next_pass(n) != UINT64_MAX;
}

/* Set the timer to a time, or to none for UINT64_MAX.  An expiry at an earlier time no
 * longer makes it readable.  Return false if the program has closed the timer. */
static bool set_timer(struct p3_nic *n, struct wire *w, uint64_t at)
{
	struct itimerspec t = {{0, 0}, {0, 0}};
	if (n->ringer && !p3_ringer_owns(n))
		return false;
	if (at != UINT64_MAX) {
		t.it_value.tv_sec = (time_t)(at / 1000000000u);
		t.it_value.tv_nsec = (long)(at % 1000000000u);
	}
	w->timer_at = at;
	return timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &t, NULL) == 0;
}

static int news(const struct p3_nic *n)
{
	return wire_of(n)->timer;
}

static int arm(struct p3_nic *n)
{
	struct wire *w = wire_of(n);
	uint64_t at = next_pass(n);
	if (at <= p3_now_ns())
		return -EAGAIN;
	if (at != w->timer_at && !set_timer(n, w, at))
		return -EBADF;
	return w->timer;
}

/* ---- birth and death ---- */

/* Return the memory of the frame that has the next number. */
static struct p3_frame *next_frame(struct p3_carry *c)
{
	struct link *l = (struct link *)(void *)c; /* its first member */
	return &l->queue[c->gbn.next % P3_FRAME_WINDOW];
}

static uint32_t key(uint64_t from, uint64_t to)
{
	return p3_crc32c(p3_crc32c(0, &from, sizeof from), &to, sizeof to);
}

static void reset_protocol(struct p3_nic *n, struct link *l)
{
	uint64_t self = n->conf.incarnation, other = l->carry.peer->incarnation;
	uint64_t life =
		p3_get(&n->life) << 8 | ++l->lives; /* each life has other faults */
	uint64_t stream = life << 32 | n->conf.node << 16 | l->carry.peer->index;
	l->carry.take = next_frame;
	p3_gbn_init(&l->carry.gbn, key(self, other), key(other, self));
	p3_faults_init(&l->faults, &wire_of(n)->faults, stream);
	l->listening = l->heard = false;
}

/*
 * Set up the medium's ring, which stays where it was in an earlier life of the peer.
 * If the arena has no room for the ring, the link is not up; the peer is unmapped, and
 * attached later.
 */
static int reset_medium(struct p3_nic *n, struct link *l)
{
	uint32_t cells = n->layout.req_cells;
	struct p3_peer *p = l->carry.peer;
	if (!p->full_off &&
		!p3_peer_reserve_cells(n, (uint64_t)cells * P3_CELL, &p->full_off))
		return -ENOMEM;
	char *at = (char *)n->published.base + p->full_off;
	p3_ring_tx_init(&l->out, (struct p3_cell *)at, cells, &l->there->req_credit[1]);
	p3_set(&l->here->req_credit[1], p3_ring_start(cells));
	p3_set(&l->here->full_req, p->full_off);
	p3_release(&l->here->rx_for, p->incarnation); /* PEER.1 */
	p3_release(&l->here->tx_for, p->incarnation); /* PEER.2 */
	l->up = true;
	return 0;
}

static int attach(struct p3_nic *n, struct p3_peer *p, const struct p3_peer_info *info,
	struct p3_lane *lane_out)
{
	p3_shm_attach(n, p, info, lane_out);
	struct link *l = &wire_of(n)->link[p->index];
	l->here = (struct p3_peer_entry *)((char *)n->published.base +
					   p3_entry_off(&n->layout, p->index));
	l->there = p->theirs;
	p3_carry_reset(n, &l->carry, p, lane_out);
	reset_protocol(n, l);
	return reset_medium(n, l);
}

static void detach(struct p3_nic *n, struct p3_peer *p)
{
	wire_of(n)->link[p->index].up = false;
}

static void drain(struct p3_nic *n, struct p3_peer *p)
{
	struct link *l = &wire_of(n)->link[p->index];
	if (!l->up || wire_of(n)->busy)
		return;
	l->carry.now = p3_now_ns();
	take(n, l);
	count(n, l);
}

/* ---- start and stop ---- */

static void open_timer(struct wire *w)
{
	int flags = TFD_CLOEXEC | TFD_NONBLOCK;
	w->timer = p3_fd_high(timerfd_create(CLOCK_MONOTONIC, flags));
	if (w->timer < 0)
		w->timer = -errno; /* the wire works without a timer */
	w->timer_file = p3_fd_file(w->timer);
	w->timer_at = UINT64_MAX;
}

static void close_timer(struct p3_nic *n, struct wire *w)
{
	if (n->ringer ? p3_ringer_owns(n) : p3_fd_is(w->timer, w->timer_file))
		p3_fd_close(w->timer);
}

static void stop(struct p3_nic *n)
{
	struct wire *w = wire_of(n);
	if (w)
		close_timer(n, w);
	for (uint32_t i = 0; w && w->link && i < n->conf.nnodes; i++)
		p3_carry_drop(n, &w->link[i].carry);
	free(w ? w->link : NULL);
	free(w);
	n->wire_state[P3_WIRE_FAULTY] = NULL;
}

static int start(struct p3_nic *n)
{
	struct wire *w = calloc(1, sizeof *w);
	n->wire_state[P3_WIRE_FAULTY] = w;
	uint64_t len = p3_round_up(n->conf.nnodes * sizeof *w->link, P3_LINE);
	int rc = w ? 0 : -ENOMEM;
	if (!rc) {
		w->faults = *n->conf.faults;
		open_timer(w);
	}
	if (!rc && !(w->link = aligned_alloc(P3_LINE, len)))
		rc = -ENOMEM;
	if (!rc)
		memset(w->link, 0, len);
	for (uint32_t i = 0; !rc && i < n->conf.nnodes; i++)
		if (n->peer[i].wire == &p3_wire_faulty)
			rc = p3_carry_make(n, &w->link[i].carry);
	if (rc)
		stop(n);
	return rc;
}

const struct p3_wire p3_wire_faulty = {
	.id = P3_WIRE_FAULTY,
	.start = start,
	.stop = stop,
	.map = p3_shm_map,
	.unmap = p3_shm_unmap,
	.attach = attach,
	.detach = detach,
	.drain = drain,
	.poll = poll,
	.flush = flush,
	.waits = waits,
	.news = news,
	.arm = arm,
	.kick = p3_shm_kick,
	.passes = p3_shm_passes,
};
