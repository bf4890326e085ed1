/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wire for tests, which loses, corrupts, delays, doubles and reorders frames, and
 * recovers from all these faults by go-back-n (frame.h, faults.h).
 *
 *	  firmware				      firmware of the peer
 *	  rings, mine, slots, windows			rings, theirs, image
 *	    | capture					  ^ apply
 *	  frames not acknowledged  (go-back-n)		  | in order, once, intact
 *	    | put, with faults				  | take
 *	  full lane of the pair in shared memory -------->
 *
 * Here only the medium is shared memory between peers (with the machine's doorbells,
 * life and death).  Rings and entries are private memory.  For each peer the wire keeps
 * copies of this node's entry and transfer slots as last sent, compares, and sends the
 * changes; then the new bytes of windows; then the published messages, responses first.
 * All frames of a pair have one order, which gives guarantees B and C of wire.h.
 *
 * The two rings of a pair, the producer's and its image at the consumer, have the same
 * size and go through the same positions, pads included.  So the consumer's credits,
 * which travel in its entry, are right for the producer's ring, and a frame always finds
 * room: resources are reserved end to end, and only faults of the medium make a node send
 * a frame again.
 *
 * A long transfer goes through a window, whose bytes travel in frames: they have the
 * same checksums and faults as all other frames.
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
#include "nic/wire/crc.h"
#include "nic/wire/faults.h"
#include "nic/wire/shm.h"
#include "nic/obj/table.h"
#include "nic/proto/format.h"
#include "nic/proto/peer.h"
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

/* cells of a private ring, a quarter of which is the data of one frame */
#define P3_WIRED_CELLS 128u
#define P3_KIND_FRAME  1u
/* shortest and longest time between two looks for room on the medium */
#define P3_ROOM_NS   100000u
#define P3_ROOM_MOST 10000000u

_Static_assert(P3_WIRED_CELLS / 4 == P3_FRAME_CELLS, "each message fits one frame");
_Static_assert(P3_BASE_CELLS <= P3_WIRED_CELLS, "also in the shortest rings");

/* The producer's ring and the consumer's, in private memory. */
struct half {
	struct p3_cell out[P3_WIRED_CELLS], in[P3_WIRED_CELLS];
	struct p3_ring_rx tap;  /* end of out from which this wire takes */
	p3_a64 tapped;          /* credit of tap, which no producer reads */
	struct p3_ring_tx feed; /* end of in into which this wire puts */
};

struct link {
	struct half req, rsp;
	struct p3_peer_entry mine, shown; /* the entry now, and as the peer
					   * knows it */
	struct p3_xfer *slots;            /* nxfers slots as the peer knows them */
	bool *known;                      /* slots that the peer knows as in use */
	uint64_t *produced;               /* bytes of each slot's window that were sent */
	char *image;
	struct p3_gbn gbn;
	struct p3_frame queue[P3_FRAME_WINDOW];
	struct p3_injector faults;
	struct p3_peer *peer;
	/* the medium */
	struct p3_ring_tx out;
	struct p3_ring_rx in;
	struct p3_peer_entry *here;
	const struct p3_peer_entry *there;
	bool up;
	bool listening; /* the peer's ring is for this node's present life */
	bool heard;     /* the peer has set this node's credits */
	uint64_t now;   /* time of the last turn of this link */
	uint64_t stuck; /* time since which work has found no room on the medium, or 0 */
	uint32_t goal;  /* settled when all frames before this one are acknowledged */
	bool has_goal;
	bool all_captured;
	uint8_t lives; /* number of the peer's lives */
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
	return n->wire_state;
}

/* ---- the medium ---- */

static bool listens(struct p3_nic *n, struct link *l)
{
	if (l->listening)
		return true;
	if (p3_acquire(&l->there->tx_for) != n->conf.incarnation) /* PEER.2 */
		return false;
	uint64_t off = p3_get(&l->there->full_req);
	if (!p3_peer_holds_ring(n, l->peer, off, n->layout.req_cells)) {
		p3_peer_ignore(n, l->peer, "no frames (has it the same PTL3_WIRE?)");
		return false;
	}
	p3_ring_rx_init(&l->in, (struct p3_cell *)(l->peer->base + off),
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
	struct p3_nic *n = l->peer->nic;
	uint32_t cells = len / P3_CELL;
	if (!has_room(n, l, cells))
		return false;
	struct p3_cell *c = p3_ring_begin(&l->out, cells);
	memcpy((char *)c + 8, (const char *)f + 8, len - 8);
	p3_ring_publish(&l->out, p3_word0(P3_KIND_FRAME, 0, cells), cells);
	p3_looks_add(n, l->peer);
	return true;
}

/* Put a frame with faults, if the medium has room for it.  A frame without room is put
 * again later, and faults must not strike it twice. */
static bool put_with_faults(void *arg, const struct p3_frame *f, uint32_t len)
{
	struct link *l = arg;
	return has_room(l->peer->nic, l, len / P3_CELL) &&
	       p3_faults_put(&l->faults, f, len, l->now, put_on_medium, l);
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
			p3_peer_ignore(n, l->peer, "a frame of impossible size");
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

/* ---- capture: this node's writes ---- */

static bool store(struct link *l, uint64_t at, const void *bytes, uint64_t len)
{
	struct p3_frame *f = p3_gbn_begin(&l->gbn);
	if (!f)
		return false;
	f->kind = P3_FRAME_STORE;
	f->at = at;
	f->len = len;
	f->cells = (uint16_t)((len + P3_CELL - 1) / P3_CELL);
	memset(f->data, 0, (size_t)f->cells * P3_CELL);
	memcpy(f->data, bytes, len);
	p3_gbn_commit(&l->gbn, l->now);
	return true;
}

static bool capture_entry(struct p3_nic *n, struct link *l)
{
	uint64_t at = p3_entry_off(&n->layout, l->peer->index);
	if (memcmp(&l->mine, &l->shown, sizeof l->mine) == 0)
		return true;
	memcpy(&l->shown, &l->mine, sizeof l->mine);
	if (store(l, at, &l->mine, sizeof l->mine))
		return true;
	l->shown.pad0 = 1; /* makes shown differ from mine, which is then sent again */
	return false;
}

/* Send the new bytes of a window, before the slot that counts them. */
static bool capture_window(
	struct p3_nic *n, struct link *l, uint32_t slot, const struct p3_xfer *now)
{
	const char *base = n->published.base;
	uint64_t window = p3_get(&now->window), end = p3_get(&now->produced);
	if (end > P3_WINDOW_LEN && l->produced[slot] < end - P3_WINDOW_LEN)
		l->produced[slot] = end - P3_WINDOW_LEN; /* the reader has the rest */
	while (l->produced[slot] < end) {
		uint64_t at = l->produced[slot] % P3_WINDOW_LEN, len = P3_WINDOW_LEN - at;
		if (len > end - l->produced[slot])
			len = end - l->produced[slot];
		if (len > sizeof l->queue->data)
			len = sizeof l->queue->data;
		if (!store(l, window + at, base + window + at, len))
			return false;
		l->produced[slot] += len;
	}
	return true;
}

/* Return true if a slot is for this peer.  The peer learns of no other slots. */
static bool is_for(const struct p3_xfer_slot *x, const struct link *l)
{
	return x->in_use && x->peer == l->peer;
}

static bool show_slot(
	struct p3_nic *n, struct link *l, uint32_t i, const struct p3_xfer *now)
{
	if (memcmp(now, &l->slots[i], sizeof *now) == 0)
		return true;
	if (!store(l, n->layout.xfers_off + i * sizeof *now, now, sizeof *now))
		return false;
	memcpy(&l->slots[i], now, sizeof *now);
	l->known[i] = is_for(&n->xfer[i], l);
	return true;
}

/* If a slot has another transfer, or changed bytes (XFER.6), first send the slot with no
 * bytes produced: the peer must learn of the change before the first new byte. */
static bool capture_offer(
	struct p3_nic *n, struct link *l, uint32_t i, const struct p3_xfer *now)
{
	const struct p3_xfer *shown = &l->slots[i];
	struct p3_xfer empty;
	if (p3_get(&now->id) == p3_get(&shown->id) &&
		p3_get(&now->again) == p3_get(&shown->again))
		return true;
	memcpy(&empty, now, sizeof empty);
	p3_set(&empty.produced, 0);
	l->produced[i] = 0;
	return show_slot(n, l, i, &empty);
}

static bool capture_slot(struct p3_nic *n, struct link *l, uint32_t i)
{
	static const struct p3_xfer nothing;
	const struct p3_xfer_slot *x = &n->xfer[i];
	struct p3_xfer now;
	bool ours = is_for(x, l);
	if (!ours && !l->known[i])
		return true;
	memcpy(&now, ours ? x->pub : &nothing, sizeof now);
	return capture_offer(n, l, i, &now) &&
	       (x->window == P3_NONE || capture_window(n, l, i, &now)) &&
	       show_slot(n, l, i, &now);
}

static bool capture_slots(struct p3_nic *n, struct link *l)
{
	for (uint32_t i = 0; i < n->layout.nxfers; i++)
		if (!capture_slot(n, l, i))
			return false;
	return true;
}

static bool capture_messages(struct link *l, struct half *h, enum p3_frame_kind kind)
{
	uint64_t w0;
	const struct p3_cell *c;
	while ((c = p3_ring_peek(&h->tap, &w0))) {
		uint32_t cells = p3_word0_ncells(w0);
		if (p3_word0_kind(w0) == P3_KIND_PAD) {
			p3_ring_take(&h->tap, cells);
			continue; /* the other end pads its ring itself */
		}
		struct p3_frame *f = p3_gbn_begin(&l->gbn);
		if (!f)
			return false;
		p3_ring_take(&h->tap, cells);
		f->kind = (uint8_t)kind;
		f->at = w0 >> 32 << 32;
		f->len = 0;
		f->cells = (uint16_t)cells;
		memcpy(f->data, c, (size_t)cells * P3_CELL);
		p3_gbn_commit(&l->gbn, l->now);
	}
	return true;
}

static bool capture(struct p3_nic *n, struct link *l)
{
	return capture_entry(n, l) && capture_slots(n, l) &&
	       capture_messages(l, &l->rsp, P3_FRAME_RESPONSE) &&
	       capture_messages(l, &l->req, P3_FRAME_REQUEST);
}

/* ---- apply: the peer's writes ---- */

static bool apply_store(struct p3_nic *n, struct link *l, const struct p3_frame *f)
{
	uint64_t size = n->layout.seg_len;
	if (f->len > (uint64_t)f->cells * P3_CELL || f->at > size ||
		f->len > size - f->at)
		return false;
	memcpy(l->image + f->at, f->data, f->len);
	return true;
}

static bool apply_message(struct half *h, const struct p3_frame *f)
{
	uint32_t cells = f->cells;
	if (!cells || cells > p3_ring_most(h->feed.n) || !p3_ring_room(&h->feed, cells))
		return false;
	struct p3_cell *c = p3_ring_begin(&h->feed, cells);
	memcpy((char *)c + 8, f->data + 8, cells * P3_CELL - 8);
	p3_ring_publish(&h->feed, f->at >> 32 << 32, cells);
	return true;
}

static bool apply(struct p3_nic *n, struct link *l, const struct p3_frame *f)
{
	switch (f->kind) {
	case P3_FRAME_STORE:
		return apply_store(n, l, f);
	case P3_FRAME_REQUEST:
		return apply_message(&l->req, f);
	case P3_FRAME_RESPONSE:
		return apply_message(&l->rsp, f);
	default:
		return false;
	}
}

static void take(struct p3_nic *n, struct link *l)
{
	struct p3_frame f;
	uint32_t len;
	while (!l->peer->bad && listens(n, l) && (len = get_from_medium(n, l, &f))) {
		n->worked = true;
		if (p3_gbn_take(&l->gbn, &f, len, l->now) && !apply(n, l, &f))
			p3_peer_ignore(n, l->peer, "a frame that cannot be");
	}
}

/* ---- counters, settling ---- */

/* Add to the node's counters, and restart the count here. */
static void tell(struct p3_nic *n, enum p3_wire_counter c, uint64_t *count)
{
	if (*count)
		p3_count(&n->wire_count[c], *count);
	*count = 0;
}

static void count(struct p3_nic *n, struct link *l)
{
	tell(n, P3_W_RESENT, &l->gbn.resent);
	tell(n, P3_W_BAD_SUMS, &l->gbn.bad_sums);
	tell(n, P3_W_DOUBLES, &l->gbn.doubles);
	tell(n, P3_W_GAPS, &l->gbn.gaps);
	for (int i = 0; i < P3_FAULT_KINDS; i++)
		tell(n, P3_W_FAULTS + (unsigned)i, &l->faults.injected[i]);
}

static bool is_open(const struct link *l)
{
	return l->up && !l->peer->bad;
}

static bool is_settled(struct link *l)
{
	if (!is_open(l))
		return true;
	if (!l->has_goal && l->all_captured) {
		l->goal = l->gbn.next;
		l->has_goal = true;
	}
	return l->has_goal && p3_gbn_is_past(&l->gbn, l->goal);
}

/* Set goals for the last call of p3_nic_settle, and keep them until all are met. */
static void settle(struct p3_nic *n)
{
	struct wire *w = wire_of(n);
	bool all = true;
	if (w->settling == p3_get(&n->settled)) {
		w->settling = p3_get(&n->settle);
		for (uint32_t i = 0; i < n->conf.nnodes; i++)
			w->link[i].has_goal = false;
	}
	for (uint32_t i = 0; i < n->conf.nnodes; i++)
		all &= is_settled(&w->link[i]);
	if (all)
		p3_set(&n->settled, w->settling);
}

/* ---- all links ---- */

/* Return the time of the first work without a frame from the peer: a frame to send once
 * more, or one held back.  This time is in the past if the work has found no room on the
 * medium. */
static uint64_t first_work(const struct link *l)
{
	uint64_t frames = p3_gbn_due(&l->gbn), held = p3_faults_due(&l->faults);
	return frames < held ? frames : held;
}

static void send(struct p3_nic *n, struct link *l)
{
	bool idle = !p3_gbn_waits(&l->gbn);
	l->all_captured = capture(n, l);
	p3_gbn_send(&l->gbn, l->now, put_with_faults, l);
	p3_faults_release(&l->faults, l->now, put_on_medium, l);
	if (first_work(l) > l->now)
		l->stuck = 0;
	else if (!l->stuck)
		l->stuck = l->now;
	if (idle && p3_gbn_waits(&l->gbn) && !p3_ringer_serves(n))
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
		l->now = now;
		take(n, l);
		send(n, l);
	}
	if (p3_get(&n->settle) != p3_get(&n->settled))
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
		l->now = now;
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
	uint64_t at = first_work(l), waited = l->stuck ? l->now - l->stuck : 0;
	if (at > l->now)
		return at;
	if (waited < P3_ROOM_NS)
		waited = P3_ROOM_NS;
	return l->now + (waited < P3_ROOM_MOST ? waited : P3_ROOM_MOST);
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

static void reset_half(struct half *h, uint32_t cells, p3_a64 *credit)
{
	memset(h->out, 0, sizeof h->out);
	memset(h->in, 0, sizeof h->in);
	p3_set(credit, p3_ring_start(cells));
	p3_ring_rx_init(&h->tap, h->out, cells, &h->tapped, 0);
	p3_ring_tx_init(&h->feed, h->in, cells, credit);
}

/* Forget the state of the other end. */
static void reset_words(struct p3_nic *n, struct link *l)
{
	memset(&l->mine, 0, sizeof l->mine);
	memset(&l->shown, 0, sizeof l->shown);
	memset(l->slots, 0, n->layout.nxfers * sizeof *l->slots);
	memset(l->known, 0, n->layout.nxfers * sizeof *l->known);
	memset(l->produced, 0, n->layout.nxfers * sizeof *l->produced);
	memset(l->image, 0, n->layout.ctl_len);
}

static uint32_t key(uint64_t from, uint64_t to)
{
	return p3_crc32c(p3_crc32c(0, &from, sizeof from), &to, sizeof to);
}

static void reset_protocol(struct p3_nic *n, struct link *l)
{
	uint64_t self = n->conf.incarnation, other = l->peer->incarnation;
	uint64_t life =
		p3_get(&n->life) << 8 | ++l->lives; /* each life has other faults */
	uint64_t stream = life << 32 | n->conf.node << 16 | l->peer->index;
	p3_gbn_init(&l->gbn, l->queue, key(self, other), key(other, self));
	p3_faults_init(&l->faults, &wire_of(n)->faults, stream);
	l->listening = l->heard = l->has_goal = l->all_captured = false;
}

/*
 * Set up the medium's ring, which stays where it was in an earlier life of the peer.
 * If the arena has no room for the ring, the link is not up; the peer is unmapped, and
 * attached later.
 */
static int reset_medium(struct p3_nic *n, struct link *l)
{
	uint32_t cells = n->layout.req_cells;
	struct p3_peer *p = l->peer;
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
	uint32_t cells = n->conf.base_lanes_only ? P3_BASE_CELLS : P3_WIRED_CELLS;
	uint64_t at = p3_entry_off(&n->layout, n->conf.node);
	l->peer = p;
	l->here = (struct p3_peer_entry *)((char *)n->published.base +
					   p3_entry_off(&n->layout, p->index));
	l->there = p->theirs;
	reset_words(n, l);
	reset_half(&l->req, cells, &l->mine.req_credit[0]);
	reset_half(&l->rsp, cells, &l->mine.rsp_credit[0]);
	p->mine = &l->mine;
	p->image = l->image;
	p->theirs = (const struct p3_peer_entry *)(l->image + at);
	p->cold = &n->never_cold; /* the peer is always polled */
	*lane_out = (struct p3_lane){
		l->req.out, l->rsp.out, l->req.in, l->rsp.in, cells, false};
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
	l->now = p3_now_ns();
	take(n, l);
	count(n, l);
}

/* ---- start and stop ---- */

static int make_link(struct p3_nic *n, struct link *l)
{
	l->image = calloc(1, n->layout.seg_len);
	l->slots = calloc(n->layout.nxfers, sizeof *l->slots);
	l->known = calloc(n->layout.nxfers, sizeof *l->known);
	l->produced = calloc(n->layout.nxfers, sizeof *l->produced);
	return l->image && l->slots && l->known && l->produced ? 0 : -ENOMEM;
}

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
	for (uint32_t i = 0; w && w->link && i < n->conf.nnodes; i++) {
		free(w->link[i].image);
		free(w->link[i].slots);
		free(w->link[i].known);
		free(w->link[i].produced);
	}
	free(w ? w->link : NULL);
	free(w);
	n->wire_state = NULL;
}

static int start(struct p3_nic *n)
{
	struct wire *w = n->wire_state = calloc(1, sizeof *w);
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
			rc = make_link(n, &w->link[i]);
	if (rc)
		stop(n);
	return rc;
}

const struct p3_wire p3_wire_faulty = {
	.id = 1,
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
	.arm = arm,
	.kick = p3_shm_kick,
	.passes = p3_shm_passes,
};
