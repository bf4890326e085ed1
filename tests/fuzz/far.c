/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers on other hosts: frames for a node's far wire (nic/far/), over the endpoint of
 * tests/far/loop.c.
 *
 * A bad peer knows the keys of its pair.  It carries its writes (wire.c) in right frames,
 * and sends others, with right or wrong sums, whose effect each is checked: a frame with
 * a wrong sum changes nothing but a counter.  The good peer sends requests now and then,
 * and gets an answer to each.
 */
#include "far/loop.h"
#include "fuzz/rig.h"
#include "nic/far/link.h"
#include "nic/far/reads.h"
#include "nic/proto/format.h"
#include "nic/wire/crc.h"
#include "nic/wire/wire.h"

#include <errno.h>
#include <string.h>

#define TRIES      64u /* passes in which the node must take a frame */
#define SECOND_NS  1000000000u
#define OFFERS     8u
#define OLD_MOST   4096u /* bytes of a frame that is kept for later */
#define READ_MOST  2048u /* the loop serves such a read as a whole */
#define LENGTH_OUT (P3_FAR_CELLS * P3_CELL)

/* The state of a peer: its pair with the node, and its end of the medium. */
struct side {
	struct p3_endpoint *ep;
	struct p3_far_link *link; /* the node's end, which stays until the NIC stops */
	uint32_t expected;        /* next number from the node */
	bool lacks;               /* a frame of the node is missing */
	bool posted;
	struct p3_far_buffer in;
	struct p3_far_region table, offer[OFFERS];
	uint32_t noffers;
	struct p3_far_read read; /* of the node's memory */
	bool reads;
	unsigned char bytes[READ_MOST];
	uint32_t asked, answered; /* requests of the good peer */
};

static const uint32_t hosts[RIG_FEW] = {0, 1, 2, 3};
static const unsigned char offered[P3_HUGE / 2];
static struct side sides[RIG_FAKES];
static struct p3_far_buffer out; /* the frame that is made now */
static struct p3_far_buffer old; /* an earlier one */
static uint32_t old_len;
static uint64_t old_key; /* of the node's memory */

const struct p3_far_conf far_conf = {.host = hosts, .ops = &loop_ops};

static struct side *side_of(const struct fake *f)
{
	return &sides[f - rig.fake];
}

static struct fake *good(void)
{
	return &rig.fake[FAR_BAD];
}

static struct p3_far *far_of(void)
{
	return rig.nic->wire_state; /* its first member */
}

static bool is_open(const struct side *s)
{
	return s->link && s->link->up && !s->link->carry.peer->bad;
}

/* ---- checks ---- */

static uint64_t counter(enum p3_counter c)
{
	return p3_nic_counter(rig.nic, c);
}

static void expect(const char *what, uint64_t is, uint64_t want)
{
	if (is != want)
		rig_fail(what, is, want);
}

static void check_link(const struct p3_far_link *l)
{
	const struct p3_gbn *g = &l->carry.gbn;
	uint32_t queued = g->next - g->base;
	expect("the queue is too long", queued > P3_FRAME_WINDOW, 0);
	expect("frames were sent that do not exist", g->sent - g->base > queued, 0);
	expect("frames held", l->held, queued);
	expect("too many frames are under way", l->flight > P3_FAR_FLIGHT, 0);
	expect("room for more than all frames", g->room > P3_FRAME_WINDOW, 0);
}

/* Check the sums over all links. */
static void check_sums(void)
{
	const struct p3_far *far = far_of();
	uint32_t held = 0, flight = 0, promised = 0, up = 0;
	for (uint32_t i = 0; i < RIG_FAKES; i++) {
		const struct p3_far_link *l = sides[i].link;
		if (!l)
			continue;
		check_link(l);
		held += l->held;
		flight += l->flight;
		promised += l->room;
		up += l->up;
	}
	expect("frames held by all links", far->held, held);
	expect("frames with the endpoint", far->lent, flight);
	expect("frames promised", far->promised, promised);
	expect("links", far->links, up);
}

/* ---- the fakes' end of the medium ---- */

/* Read the next message of a run: set w to its last cell, and w0 to its first word.
 * Return its bytes, or 0: it is not whole, or has no cells. */
static uint64_t read_message(
	const unsigned char *bytes, uint64_t left, uint64_t w[8], uint64_t *w0_out)
{
	uint64_t at = 0, len;
	uint32_t cells = 1;
	for (uint32_t i = 0; i < cells; i++, at += len) {
		len = p3_cell_unpack(bytes + at, left - at, w);
		if (!i)
			*w0_out = w[0];
		cells = p3_word0_ncells(*w0_out);
		if (!len || !cells)
			return 0;
	}
	return at;
}

static void count_answers(struct side *s, const unsigned char *bytes, uint32_t len)
{
	uint64_t w[8] = {0}, w0 = 0, n;
	for (uint64_t at = 0; at < len; at += n) {
		n = read_message(bytes + at, len - at, w, &w0);
		if (!n)
			rig_fail("a message that is not whole", at, len);
		s->answered += p3_word0_kind(w0) != (uint32_t)P3_RSP_SWITCH;
	}
}

static void read_parts(struct side *s, const struct p3_frame *f)
{
	const unsigned char *bytes = p3_frame_data(f);
	struct p3_part p;
	for (uint64_t at = 0; at < f->len; at += (p.len + 7u) & ~7u) {
		memcpy(&p, bytes + at, sizeof p);
		at += sizeof p;
		if (p.what == P3_PART_RESPONSES)
			count_answers(s, bytes + at, p.len);
	}
}

static uint32_t sum_of(const struct p3_frame *f, uint32_t key)
{
	const size_t from = offsetof(struct p3_frame, seq);
	return p3_crc32c(key, (const char *)f + from, p3_frame_len(f) - from);
}

/* Take a frame of the node, if it is the next one of this life. */
static void take(struct side *s)
{
	const struct p3_frame *f = &s->in.frame;
	if (!s->link || f->sum != sum_of(f, s->link->carry.gbn.key_out) ||
		f->kind == P3_FRAME_ACK)
		return;
	s->lacks = (int32_t)(f->seq - s->expected) > 0;
	if (f->kind != P3_FRAME_PARTS || f->seq != s->expected)
		return;
	s->expected++;
	read_parts(s, f);
}

static void poll_side(struct side *s)
{
	struct p3_far_event ev;
	if (!s->posted)
		(void)loop_ops.post(s->ep, &s->in);
	s->posted = true;
	while (loop_ops.poll(s->ep, &ev, 1)) {
		s->reads &= ev.op->kind != P3_FAR_READ;
		if (ev.op->kind != P3_FAR_RECEIVE)
			continue;
		take(s);
		(void)loop_ops.post(s->ep, &s->in);
	}
}

static void poll_sides(void)
{
	for (uint32_t i = 0; i < RIG_FAKES; i++)
		poll_side(&sides[i]);
}

/* ---- the effect of a frame ---- */

enum effect { STRANGER, DAMAGED, BARE, DOUBLE, GAP, NEXT, EFFECTS };

struct before {
	struct side *side; /* the link that the frame names */
	uint64_t strangers, damaged, doubles, gaps, in;
	uint32_t base, expected;
	unsigned char *image; /* a copy, while the frame shall change nothing */
};

static struct side *named(uint64_t node)
{
	for (uint32_t i = 0; i < RIG_FAKES; i++)
		if (rig.fake[i].index == node)
			return &sides[i];
	return NULL;
}

static bool is_intact(const struct p3_gbn *g, const struct p3_frame *f, uint32_t len)
{
	return len == p3_frame_len(f) && f->sum == sum_of(f, g->key_in);
}

static enum effect effect_of(const struct p3_frame *f, uint32_t len)
{
	struct side *s = len < P3_CELL ? NULL : named(f->medium);
	if (!s || !is_open(s))
		return STRANGER;
	const struct p3_gbn *g = &s->link->carry.gbn;
	int32_t ahead = (int32_t)(f->seq - g->expected);
	if (!is_intact(g, f, len))
		return DAMAGED;
	if (f->kind == P3_FRAME_ACK)
		return BARE;
	if (f->kind == P3_FRAME_PROBE)
		return ahead > 0 ? GAP : BARE;
	return ahead < 0 ? DOUBLE : ahead > 0 ? GAP : NEXT;
}

/* Return true if each message ends in its run, and has cells. */
static bool has_whole_messages(const unsigned char *bytes, uint64_t len)
{
	uint64_t w[8] = {0}, w0 = 0, n = 1;
	for (uint64_t at = 0; n && at < len; at += n)
		n = read_message(bytes + at, len - at, w, &w0);
	return n != 0;
}

/* Return true if a part in front of this many bytes may be right. */
static bool fits(const struct p3_part *p, const unsigned char *bytes, uint64_t left)
{
	const uint64_t size = rig.nic->layout.seg_len;
	if (((uint64_t)p->len + 7) / 8 * 8 > left)
		return false;
	if (p->what == P3_PART_STORE)
		return p->at <= size && p->len <= size - p->at;
	return (p->what == P3_PART_REQUESTS || p->what == P3_PART_RESPONSES) &&
	       has_whole_messages(bytes, p->len);
}

static bool all_fit(const struct p3_frame *f)
{
	struct p3_part p;
	if (f->kind != P3_FRAME_PARTS || f->len > (uint64_t)f->cells * P3_CELL)
		return false;
	for (uint64_t at = 0; at < f->len; at += ((uint64_t)p.len + 7) / 8 * 8) {
		if (f->len - at < sizeof p)
			return false;
		memcpy(&p, p3_frame_data(f) + at, sizeof p);
		at += sizeof p;
		if (!fits(&p, p3_frame_data(f) + at, f->len - at))
			return false;
	}
	return true;
}

RIG_UNSEEN static struct before look(const struct p3_frame *f, enum effect what)
{
	static unsigned char image[1 << 20];
	struct before b = {.side = what == STRANGER ? NULL : named(f->medium),
		.strangers = counter(P3_C_FAR_STRANGERS),
		.damaged = counter(P3_C_FAR_BAD_SUMS),
		.doubles = counter(P3_C_FAR_DOUBLES),
		.gaps = counter(P3_C_FAR_GAPS),
		.in = counter(P3_C_FAR_IN)};
	if (b.side) {
		b.base = b.side->link->carry.gbn.base;
		b.expected = b.side->link->carry.gbn.expected;
	}
	if (b.side && what != NEXT && rig.nic->layout.ctl_len <= sizeof image) {
		b.image = image;
		memcpy(image, b.side->link->carry.image, rig.nic->layout.ctl_len);
	}
	return b;
}

RIG_UNSEEN static void check_effect(const struct before *b, enum effect what)
{
	/* A message of an earlier frame may end the peer before this one is taken. */
	bool ended = b->side && !is_open(b->side);
	if (ended && counter(P3_C_FAR_STRANGERS) != b->strangers)
		what = STRANGER;
	expect("strangers", counter(P3_C_FAR_STRANGERS) - b->strangers, what == STRANGER);
	expect("frames with a right sum", counter(P3_C_FAR_IN) - b->in, what > DAMAGED);
	if (what == NEXT && !all_fit(&out.frame))
		expect("a peer that sends what cannot be", is_open(b->side), 0);
	if (!b->side || !is_open(b->side))
		return; /* counted at the end of its pass, if at all */
	const struct p3_gbn *g = &b->side->link->carry.gbn;
	expect("damaged frames", counter(P3_C_FAR_BAD_SUMS) - b->damaged,
		what == DAMAGED);
	expect("doubles", counter(P3_C_FAR_DOUBLES) - b->doubles, what == DOUBLE);
	expect("gaps", counter(P3_C_FAR_GAPS) - b->gaps, what == GAP);
	expect("frames taken", g->expected - b->expected, what == NEXT);
	expect("an acknowledgement without a right sum",
		what == DAMAGED && g->base != b->base, 0);
	if (b->image && memcmp(b->image, b->side->link->carry.image,
				rig.nic->layout.ctl_len) != 0)
		rig_fail("a frame that was refused has changed words", what, NEXT);
}

/* Let the node take all frames that wait for it. */
static void settle(void)
{
	for (uint32_t i = 0; i < TRIES && loop_frames_for(RIG_NODE); i++)
		rig_passes(1);
	expect("frames that the node does not take", loop_frames_for(RIG_NODE), 0);
	check_sums();
}

/* Give the frame to the medium.  The first ones to a node are refused. */
static void put(struct side *s, uint32_t len)
{
	int rc = -EAGAIN;
	for (uint32_t i = 0; rc == -EAGAIN && i < TRIES; i++) {
		rc = loop_ops.send(s->ep, RIG_NODE, &out, len);
		poll_side(s);
	}
	expect("the medium refuses a frame", (uint64_t)rc, 0);
}

static void deliver(struct side *s, uint32_t len)
{
	settle();
	enum effect what = effect_of(&out.frame, len);
	struct before b = look(&out.frame, what);
	put(s, len);
	settle();
	check_effect(&b, what);
}

/* ---- right frames ---- */

static void begin(struct p3_frame *f, const struct side *s)
{
	const struct p3_gbn *g = &s->link->carry.gbn;
	memset(f, 0, offsetof(struct p3_frame, data));
	f->medium = s->link->carry.peer->index;
	f->seq = g->expected;
	f->ack = s->expected;
	f->room = P3_FRAME_WINDOW;
	f->again = s->lacks;
	f->kind = P3_FRAME_PARTS;
}

static void sign(struct p3_frame *f, const struct side *s)
{
	f->sum = sum_of(f, s->link->carry.gbn.key_in);
}

/* Fill the cells up, and send. */
static void finish(struct p3_frame *f, struct side *s)
{
	f->cells = (uint16_t)((f->len + P3_CELL - 1) / P3_CELL);
	memset(p3_frame_data(f) + f->len, 0, (size_t)f->cells * P3_CELL - f->len);
	sign(f, s);
	if (p3_frame_len(f) <= OLD_MOST) {
		old_len = p3_frame_len(f);
		memcpy(&old.frame, f, old_len);
	}
	deliver(s, p3_frame_len(f));
}

/* Add a part.  Return the place of its bytes, or NULL: the frame is full. */
static unsigned char *add(
	struct p3_frame *f, enum p3_part_what what, uint64_t at, uint32_t len)
{
	struct p3_part p = {.at = at, .len = len, .what = what};
	if (f->len + sizeof p + len > LENGTH_OUT)
		return NULL;
	unsigned char *to = p3_frame_data(f) + f->len;
	memcpy(to, &p, sizeof p);
	f->len += (uint32_t)sizeof p + len;
	return to + sizeof p;
}

/* Carry the pages that were written, as far as there is room. */
RIG_UNSEEN static void add_pages(struct p3_frame *f, struct fake *fake)
{
	for (uint64_t page = 0; page < fake->seg.len / P3_PAGE; page++) {
		if (!fake->unsent[page])
			continue;
		unsigned char *to = add(f, P3_PART_STORE, page * P3_PAGE, P3_PAGE);
		if (!to)
			return;
		memcpy(to, (char *)fake->seg.base + page * P3_PAGE, P3_PAGE);
		fake->unsent[page] = false;
	}
}

void far_message(
	struct fake *fake, bool request, uint64_t *w, uint64_t word0, uint32_t ncells)
{
	struct side *s = side_of(fake);
	struct p3_frame *f = &out.frame;
	uint32_t len = ncells * P3_PACKED_CELL;
	settle();
	if (!is_open(s))
		return;
	begin(f, s);
	add_pages(f, fake);
	unsigned char *to =
		add(f, request ? P3_PART_REQUESTS : P3_PART_RESPONSES, 0, len);
	w[0] = word0;
	for (uint32_t i = 0; to && i < ncells; i++, to += P3_PACKED_CELL) {
		*to = 0xff; /* all words, whatever the cell before has */
		memcpy(to + 1, w + 8 * i, P3_CELL);
	}
	f->len = (f->len + 7) / 8 * 8;
	finish(f, s);
}

static void flush(struct fake *fake)
{
	struct side *s = side_of(fake);
	if (!is_open(s))
		return;
	begin(&out.frame, s);
	add_pages(&out.frame, fake);
	if (out.frame.len || fake == good())
		finish(&out.frame, s);
}

void far_flush(void)
{
	poll_sides();
	settle();
	for (uint32_t i = 0; i < FAR_BAD; i++)
		flush(&rig.fake[i]);
}

/* ---- wrong frames ---- */

/* Return a number near one of those of the pair. */
static uint32_t near(struct input *in, const struct p3_gbn *g)
{
	uint8_t how = in_u8(in);
	const uint32_t of[] = {g->base, g->sent, g->next, g->may, g->expected, g->told,
		g->promised, g->expected + 0x80000000u, g->base + 0x80000000u, 0,
		UINT32_MAX, P3_FRAME_START};
	if (how >= 0xf0)
		return (uint32_t)in_bytes(in, 4);
	return of[how % 12] + (how >> 4) % 5 - 2;
}

/* Change the header of a frame that the peer then signs. */
static void change_header(struct input *in, struct p3_frame *f, const struct p3_gbn *g)
{
	switch (in_below(in, 9)) {
	case 0:
	case 1:
		f->seq = near(in, g);
		break;
	case 2:
	case 3:
		f->ack = near(in, g);
		break;
	case 4:
		f->room = in_bit(in) ? (uint32_t)in_bytes(in, 4) : in_below(in, 34);
		break;
	case 5:
		f->kind = in_u8(in) % 5;
		break;
	case 6:
		f->again = in_u8(in);
		break;
	case 7:
		f->len = in_bit(in) ? (uint32_t)in_bytes(in, 4)
				    : f->cells * 64u + in_below(in, 9);
		break;
	default:
		f->cells = (uint16_t)in_bytes(in, 2);
	}
}

static uint64_t place(struct input *in, const struct fake *fake)
{
	const struct p3_layout *l = &rig.nic->layout;
	uint8_t how = in_u8(in);
	const uint64_t of[] = {0, l->seg_len, l->ctl_len, l->xfers_off,
		p3_entry_off(l, RIG_NODE), p3_entry_off(l, fake->index), UINT64_MAX};
	return how & 0x80 ? rig_number(in, fake) : of[how % 7] + (how >> 3) % 5 * 8u - 16;
}

/* Fill a part with numbers, or as a run of packed cells, of which a byte names the words
 * that differ from the cell before. */
static void fill_part(struct input *in, const struct fake *fake, unsigned char *to,
	uint32_t len, bool is_run)
{
	for (uint32_t i = 0; i < len;) {
		uint32_t differ = is_run ? in_u8(in) : 0xff;
		bool begins = is_run && differ & 1;
		if (is_run)
			to[i++] = (unsigned char)differ;
		for (; differ && i < len; differ &= differ - 1, i += 8) {
			uint64_t w = begins ? p3_word0(in_u8(in) % 16, in_u8(in),
						      1 + in_below(in, 4))
					    : rig_number(in, fake);
			memcpy(to + i, &w, len - i < 8 ? len - i : 8);
			begins = false;
		}
	}
}

/* Make parts of arbitrary places, kinds and lengths. */
static void add_parts(struct input *in, struct p3_frame *f, const struct fake *fake)
{
	f->len = 0;
	for (uint32_t n = 1 + in_below(in, 3); n; n--) {
		uint8_t what = in_u8(in);
		uint32_t len = in_below(in, 4) * P3_CELL + (what >> 6 ? 0 : what & 15);
		struct p3_part *p = (void *)(p3_frame_data(f) + f->len);
		unsigned char *to = add(f, (what & 3) + (what >= 0xfc),
			place(in, fake) & (what & 4 ? ~0ull : ~7ull), len);
		fill_part(in, fake, to, len, (what & 3) > P3_PART_STORE);
		if (what >> 4 == 9)
			p->len = in_bit(in) ? len + 8 * in_below(in, 4)
					    : (uint32_t)rig_number(in, fake);
		f->len = (f->len + 7) & ~7u;
	}
	f->cells = (uint16_t)((f->len + P3_CELL - 1) / P3_CELL);
	memset(p3_frame_data(f) + f->len, 0, (size_t)f->cells * P3_CELL - f->len);
}

/* Return the bytes of a frame on the medium that may claim any length. */
static uint32_t cut_len(const struct p3_frame *f)
{
	uint32_t len = p3_frame_len(f);
	return len < P3_FAR_BYTES ? len : P3_FAR_BYTES;
}

/* A frame that is cut off, changed on its way, of another node, or of no node. */
static uint32_t spoil(struct input *in, struct p3_frame *f)
{
	uint32_t len = cut_len(f);
	uint8_t how = in_u8(in);
	switch (how % 8) {
	case 0:
		return in_bit(in) ? in_below(in, 64) : (uint32_t)in_bytes(in, 2) % len;
	case 1:
		f->sum ^= 1u << in_below(in, 32);
		break;
	case 2:
		f->sum = (uint32_t)in_bytes(in, 4);
		break;
	case 3:
		f->medium = rig.fake[in_below(in, RIG_FAKES)].index;
		break;
	case 4:
		f->medium = rig_number(in, &rig.fake[0]);
		break;
	case 5:
		((unsigned char *)f)[16 + in_bytes(in, 2) % (len - 16)] ^= 1u << how / 32;
		break;
	default:
		break;
	}
	return len;
}

static void send_wrong(struct input *in, struct fake *fake)
{
	struct side *s = side_of(fake);
	struct p3_frame *f = &out.frame;
	uint8_t how = in_u8(in);
	if (!s->link)
		return;
	begin(f, s);
	if (how & 1)
		add_parts(in, f, fake);
	if (how & 2)
		change_header(in, f, &s->link->carry.gbn);
	if (p3_frame_len(f) <= P3_FAR_BYTES)
		sign(f, s);
	uint32_t len = how & 4 ? spoil(in, f) : cut_len(f);
	if (how & 8)
		deliver(s, len);
	deliver(s, len);
}

/* A frame of an earlier life, or of this one, comes again. */
static void send_old(struct side *s)
{
	memcpy(&out.frame, &old.frame, old_len);
	if (old_len)
		deliver(s, old_len);
}

/* Many frames come before the node looks. */
static void send_many(struct input *in, struct side *s)
{
	settle();
	if (!is_open(s))
		return;
	begin(&out.frame, s);
	for (uint32_t n = in_below(in, 100); n; n--) {
		out.frame.kind = n % 3 ? P3_FRAME_PROBE : P3_FRAME_ACK;
		out.frame.again = n % 2;
		sign(&out.frame, s);
		put(s, P3_CELL);
	}
	settle();
}

/* ---- remote reads ---- */

uint64_t far_key(struct fake *f, uint8_t how, uint64_t len)
{
	struct side *s = side_of(f);
	struct p3_far_region *r = &s->offer[s->noffers % OFFERS];
	if (!(how & 0x80))
		return how & 0x40 ? how : 0;
	if (s->noffers++ >= OFFERS)
		loop_ops.recall(s->ep, r);
	if (loop_ops.offer(
		    s->ep, offered, len < sizeof offered ? len : sizeof offered, r))
		rig_fail("no region is free", s->noffers, 0);
	return r->key;
}

/* Return a key of the node's: of its table, of a transfer, or one that it has
 * recalled. */
static uint64_t key_of_node(struct input *in, const struct p3_peer *p)
{
	const struct p3_far_reads *rs = far_of()->reads;
	uint8_t how = in_u8(in);
	for (uint32_t i = 0; how & 1 && i < rs->noffered; i++)
		if (rig.nic->xfer[rs->offered[i]].peer == p)
			return old_key = rs->offers[rs->offered[i]].region.key;
	return how & 2 ? old_key : how & 4 ? in_bytes(in, 8) : rs->table.key;
}

/* Read the node's memory.  The address sanitizer sees what must not be read. */
static void read_node(struct input *in, struct fake *f)
{
	struct side *s = side_of(f);
	if (s->reads || !s->link)
		return;
	s->read = (struct p3_far_read){.op.kind = P3_FAR_READ,
		.to = s->bytes,
		.len = in_bytes(in, 2) % READ_MOST,
		.from = rig_number(in, f),
		.key = key_of_node(in, s->link->carry.peer)};
	int rc = -EAGAIN;
	for (uint32_t i = 0; rc == -EAGAIN && i < TRIES; i++)
		rc = loop_ops.read(s->ep, RIG_NODE, &s->read);
	s->reads = rc == 0;
}

/* ---- the good peer ---- */

/* Give credit for all that has come. */
static void give_credit(struct fake *f)
{
	struct p3_peer_entry *e = fake_entry(f);
	const struct p3_peer *p = rig_peer(f);
	p3_set(&e->req_credit[p->req_full], p->req_out.pos);
	p3_set(&e->rsp_credit[p->rsp_full], p->rsp_out.pos);
}

static void ask_well(void)
{
	struct p3_cell cell;
	struct fake *f = good();
	struct side *s = side_of(f);
	struct p3_request r = {.kind = P3_REQ_PUT,
		.flags = P3_F_ACK,
		.ncells = 1,
		.pid = 100 + RIG_NODE,
		.room = 1,
		.pending = 0x40000 + s->asked,
		.length = 8};
	if (s->asked - s->answered >= P3_BASE_CELLS / 4)
		return;
	memset(&cell, 0, sizeof cell);
	give_credit(f);
	uint64_t word0 = p3_pack_eager(&cell, &r);
	s->asked++;
	far_message(f, true, (uint64_t *)(void *)&cell, word0, 1);
	expect("the good peer is ignored", is_open(s), 1);
}

/* Give the node time and credit, until it has answered. */
static void await_answers(void)
{
	struct side *s = side_of(good());
	for (uint32_t i = 0; i < TRIES && s->answered != s->asked; i++) {
		rig.now += SECOND_NS / 4;
		rig_passes(2);
		poll_sides();
		give_credit(good());
		flush(good());
	}
	expect("answers to the good peer", s->answered, s->asked);
}

/* ---- steps ---- */

static const uint32_t shifts[] = {0, 8, 15, 0x10, 0x7ffffff0u, 0x80000010u, 0x400};

/* Begin with other numbers, as after very many frames. */
static void shift(struct p3_gbn *g, uint32_t by)
{
	if (g->base != g->next || g->told != P3_FRAME_START ||
		g->expected != P3_FRAME_START)
		return;
	uint32_t *const of[] = {&g->base, &g->sent, &g->next, &g->may, &g->expected,
		&g->told, &g->promised};
	for (uint32_t i = 0; i < sizeof of / sizeof *of; i++)
		*of[i] += by;
}

void far_up(struct fake *f)
{
	struct side *s = side_of(f);
	struct p3_carry *c = (void *)rig_peer(f)->mine; /* its first member */
	uint64_t life = f->incarnation >> 20;
	s->link = (void *)((char *)c - offsetof(struct p3_far_link, carry));
	shift(&c->gbn, shifts[(f->index + life) % (sizeof shifts / sizeof *shifts)]);
	s->expected = c->gbn.base;
	s->asked = s->answered = 0;
	p3_set(&fake_entry(f)->slots_key, s->table.key);
	for (uint64_t page = 0; page < f->seg.len / P3_PAGE; page++)
		f->unsent[page] = f->dirty[page];
	if (f == good())
		flush(f);
}

void far_step(struct input *in)
{
	uint8_t what = in_u8(in);
	struct fake *f = rig_pick(in);
	poll_sides();
	if (what < 0x90)
		send_wrong(in, f);
	else if (what < 0xa0)
		send_old(side_of(f));
	else if (what < 0xb0)
		send_many(in, side_of(f));
	else if (what < 0xc8)
		read_node(in, f);
	else if (what < 0xe0)
		ask_well();
	else if (what < 0xe8)
		loop_ops.cut(side_of(f)->ep, RIG_NODE);
	else
		rig.now += (uint64_t)(1 + what % 8) * (SECOND_NS / 4);
}

static void open_side(struct side *s, struct fake *f, uint32_t index)
{
	const uint64_t len =
		p3_layout_of(RIG_FEW).nxfers * (uint64_t)sizeof(struct p3_xfer);
	s->in.op.kind = P3_FAR_RECEIVE;
	if (loop_ops.open(NULL, index, RIG_FEW, &s->ep) ||
		loop_ops.offer(s->ep,
			(char *)f->seg.base + p3_layout_of(RIG_FEW).xfers_off, len,
			&s->table))
		rig_fail("no endpoint for a peer", index, 0);
}

void far_open(void)
{
	static const uint32_t none[LOOP_FAULTS];
	loop_set(none, 1);
	memset(sides, 0, sizeof sides);
	old_len = 0;
	for (uint32_t i = 0; i < RIG_FAKES; i++)
		open_side(&sides[i], &rig.fake[i], rig.fake[i].index);
}

void far_end(void)
{
	poll_sides();
	settle();
	ask_well();
	await_answers();
}

void far_check_idle(void)
{
	const struct p3_far *far = far_of();
	for (uint32_t i = 0; i < TRIES && p3_far_reads_are_under_way(far); i++) {
		poll_sides();
		rig_passes(1);
	}
	expect("reads under way", p3_far_reads_are_under_way(far), 0);
	check_sums();
	expect("links of peers that have gone", far->links, 0);
	expect("frames for peers that have gone", far->held, 0);
}

void far_close(void)
{
	for (uint32_t i = 0; i < RIG_FAKES; i++)
		loop_ops.close(sides[i].ep);
}
