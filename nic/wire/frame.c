/* SPDX-License-Identifier: BSD-3-Clause */
/* Go-back-n on frames. */
#include "nic/wire/frame.h"
#include "nic/wire/crc.h"

#include <stddef.h>
#include <string.h>

_Static_assert(offsetof(struct p3_frame, data) == 64, "a header is one cell");

void p3_gbn_init(struct p3_gbn *g, const struct p3_gbn_medium *medium, void *arg,
	uint32_t key_out, uint32_t key_in)
{
	*g = (struct p3_gbn){.base = P3_FRAME_START,
		.sent = P3_FRAME_START,
		.next = P3_FRAME_START,
		.expected = P3_FRAME_START,
		.told = P3_FRAME_START,
		.key_out = key_out,
		.key_in = key_in,
		.fill = P3_FRAME_CELLS,
		.medium = medium,
		.arg = arg};
}

/* Return the time to wait for an acknowledgement before any measure is taken. */
static uint64_t gbn_first_wait(const struct p3_gbn *g)
{
	uint64_t wait = P3_FRAME_TIMES * g->usual_ns;
	if (wait < g->soon_ns)
		wait = g->soon_ns;
	return g->soon_ns && wait < g->least_ns ? wait : g->least_ns;
}

void p3_gbn_set_pace(
	struct p3_gbn *g, uint64_t soon_ns, uint64_t least_ns, uint64_t most_ns)
{
	g->soon_ns = soon_ns;
	g->least_ns = least_ns;
	g->most_ns = most_ns;
	g->wait_ns = gbn_first_wait(g);
}

void p3_gbn_set_room(struct p3_gbn *g, uint32_t room)
{
	g->room = room;
	g->may = g->promised = P3_FRAME_START + room;
}

/* ---- sums: of all bytes behind the sum itself ---- */

enum { SUM_FROM = offsetof(struct p3_frame, seq) };

static uint32_t gbn_sum_of(const struct p3_gbn *g, const struct p3_frame *f, uint32_t key)
{
	const unsigned char *bytes = (const unsigned char *)f + SUM_FROM;
	return g->intact ? key : p3_crc32c(key, bytes, p3_frame_len(f) - SUM_FROM);
}

/* ---- out ---- */

static struct p3_frame *gbn_frame_at(const struct p3_gbn *g, uint32_t seq)
{
	return g->queue[seq % P3_FRAME_WINDOW];
}

void p3_gbn_commit(struct p3_gbn *g, struct p3_frame *f, uint64_t now)
{
	memset(f->pad, 0, sizeof f->pad);
	g->queue[g->next % P3_FRAME_WINDOW] = f;
	f->seq = g->next++;
	if (f->seq == g->base)
		g->since = now;
}

/* Drop the frames before this one. */
static void gbn_drop_before(struct p3_gbn *g, uint32_t seq)
{
	for (; g->base != seq; g->base++)
		g->medium->drop(g->arg, gbn_frame_at(g, g->base));
}

void p3_gbn_end(struct p3_gbn *g)
{
	gbn_drop_before(g, g->next);
	g->sent = g->base;
}

/* Put a frame; every frame acknowledges the frames received so far. */
static bool gbn_put_one(struct p3_gbn *g, struct p3_frame *f)
{
	f->ack = g->expected;
	f->again = g->owes_again;
	f->room = g->room;
	f->sum = gbn_sum_of(g, f, g->key_out);
	if (!g->medium->put(g->arg, f, p3_frame_len(f)))
		return false;
	g->told = g->expected;
	if ((int32_t)(g->expected + g->room - g->promised) > 0)
		g->promised = g->expected + g->room;
	g->owes_ack = g->owes_now = g->owes_again = false;
	return true;
}

void p3_gbn_go_back(struct p3_gbn *g, uint64_t now)
{
	g->resent += g->sent - g->base;
	g->sent = g->base;
	g->since = now;
	g->times = false; /* an acknowledgement may be of either copy */
}

static void gbn_look_at_clock(struct p3_gbn *g, uint64_t now)
{
	if (g->sent == g->base || now - g->since < g->wait_ns)
		return;
	g->owes_probe = true;
	g->since = now;
	g->wait_ns = 2 * g->wait_ns < g->most_ns ? 2 * g->wait_ns : g->most_ns;
}

/* Put a frame without data. */
static bool gbn_put_bare(struct p3_gbn *g, enum p3_frame_kind kind)
{
	struct p3_frame f;
	memset(&f, 0, offsetof(struct p3_frame, data));
	f.kind = (uint8_t)kind;
	f.seq = kind == P3_FRAME_PROBE ? g->sent : 0;
	return gbn_put_one(g, &f);
}

/* Note that the next frame was put.  The time of one frame is taken at a time. */
static void gbn_note_put(struct p3_gbn *g, uint64_t now)
{
	if (g->sent == g->base)
		g->since = now;
	if (!g->times && g->soon_ns) {
		g->times = true;
		g->timed = g->sent;
		g->timed_at = now;
	}
	g->sent++;
}

/* Return true if there is a frame to put, and the other end has room for it. */
static bool gbn_has_frame(const struct p3_gbn *g)
{
	return g->sent != g->next && (int32_t)(g->may - g->sent) > 0;
}

/* Return the time at which an acknowledgement goes out without a frame. */
static uint64_t gbn_ack_at(const struct p3_gbn *g)
{
	if (!g->owes_ack)
		return UINT64_MAX;
	if (g->owes_now || 2 * (g->expected - g->told) >= g->promised - g->told)
		return 0;
	return g->ack_since + g->ack_ns;
}

void p3_gbn_send(struct p3_gbn *g, uint64_t now)
{
	gbn_look_at_clock(g, now);
	while (gbn_has_frame(g) && !g->medium->keeps(g->arg, gbn_frame_at(g, g->sent)) &&
		gbn_put_one(g, gbn_frame_at(g, g->sent)))
		gbn_note_put(g, now);
	if (g->owes_probe)
		g->owes_probe = !gbn_put_bare(g, P3_FRAME_PROBE);
	if (gbn_ack_at(g) <= now)
		(void)gbn_put_bare(g, P3_FRAME_ACK);
}

uint64_t p3_gbn_due(const struct p3_gbn *g)
{
	uint64_t ack = gbn_ack_at(g);
	if (gbn_has_frame(g) || g->owes_probe)
		return 0;
	if (g->sent == g->base || g->since + g->wait_ns > ack)
		return ack;
	return g->since + g->wait_ns;
}

/* ---- in ---- */

/* Count the time of the frame whose time is taken, if it is acknowledged. */
static void gbn_note_time(struct p3_gbn *g, uint64_t now)
{
	if (!g->times || !p3_gbn_is_past(g, g->timed + 1))
		return;
	g->times = false;
	g->usual_ns -= g->usual_ns / 8;
	g->usual_ns += (now - g->timed_at) / 8;
}

static void gbn_take_ack(struct p3_gbn *g, const struct p3_frame *f, uint64_t now)
{
	uint32_t acked = f->ack - g->base;
	if (acked > g->next - g->base)
		return; /* an acknowledgment that was delayed */
	gbn_drop_before(g, f->ack);
	if (f->room <= P3_FRAME_WINDOW && (int32_t)(f->ack + f->room - g->may) > 0)
		g->may = f->ack + f->room;
	if ((int32_t)(g->sent - g->base) < 0)
		g->sent = g->base;
	if (acked) {
		g->since = now;
		gbn_note_time(g, now);
		g->wait_ns = gbn_first_wait(g);
	}
	if (f->again && g->sent != g->base)
		p3_gbn_go_back(g, now);
}

static bool gbn_is_intact(const struct p3_gbn *g, const struct p3_frame *f, uint32_t len)
{
	return len >= 64 && len == p3_frame_len(f) &&
	       f->sum == gbn_sum_of(g, f, g->key_in);
}

static void gbn_owe(struct p3_gbn *g, uint64_t now, bool at_once)
{
	if (!g->owes_ack)
		g->ack_since = now;
	g->owes_ack = true;
	g->owes_now |= at_once;
}

/* Note a frame that came before a missing one.  Request the missing frame only once: the
 * frames behind it that are under way come too early, too. */
static void gbn_miss(struct p3_gbn *g, uint64_t now)
{
	g->gaps++;
	g->owes_again |= !g->asked;
	g->asked = true;
	if (g->owes_again)
		gbn_owe(g, now, true);
}

/* Answer a probe.  Frames that were put before it and have not come are lost. */
static void gbn_answer(struct p3_gbn *g, uint64_t now, bool missing)
{
	gbn_owe(g, now, true);
	g->owes_again |= missing;
	g->gaps += missing;
}

bool p3_gbn_take(struct p3_gbn *g, const struct p3_frame *f, uint32_t len, uint64_t now)
{
	if (!gbn_is_intact(g, f, len)) {
		g->bad_sums++;
		return false;
	}
	gbn_take_ack(g, f, now);
	if (f->kind == P3_FRAME_ACK)
		return false;
	int32_t ahead = (int32_t)(f->seq - g->expected);
	if (f->kind == P3_FRAME_PROBE) {
		gbn_answer(g, now, ahead > 0);
		return false;
	}
	if (ahead > 0) {
		gbn_miss(g, now);
		return false;
	}
	gbn_owe(g, now, ahead < 0);
	if (ahead < 0) {
		g->doubles++;
		return false;
	}
	g->expected++;
	g->asked = g->owes_again = false;
	return true;
}
