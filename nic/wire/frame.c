/* SPDX-License-Identifier: BSD-3-Clause */
/* Go-back-n on frames. */
#include "nic/wire/frame.h"
#include "nic/wire/crc.h"

#include <stddef.h>
#include <string.h>

_Static_assert(offsetof(struct p3_frame, data) == 64, "a header is one cell");

void p3_gbn_init(
	struct p3_gbn *g, struct p3_frame *queue, uint32_t key_out, uint32_t key_in)
{
	*g = (struct p3_gbn){.queue = queue,
		.base = P3_FRAME_START,
		.sent = P3_FRAME_START,
		.next = P3_FRAME_START,
		.expected = P3_FRAME_START,
		.key_out = key_out,
		.key_in = key_in,
		.wait_ns = P3_RESEND_NS};
}

/* Compute the sum of all words except the medium's, with the sum itself taken as 0. */
static uint32_t sum_of(const struct p3_frame *f, uint32_t key)
{
	const unsigned char *bytes = (const unsigned char *)f;
	const size_t from = offsetof(struct p3_frame, seq);
	const size_t at = offsetof(struct p3_frame, crc), behind = at + sizeof f->crc;
	const uint32_t zero = 0;
	uint32_t crc = p3_crc32c(key, bytes + from, at - from);
	crc = p3_crc32c(crc, &zero, sizeof zero);
	return p3_crc32c(crc, bytes + behind, p3_frame_len(f) - behind);
}

/* ---- out ---- */

static struct p3_frame *frame_at(const struct p3_gbn *g, uint32_t seq)
{
	return &g->queue[seq % P3_FRAME_WINDOW];
}

struct p3_frame *p3_gbn_begin(struct p3_gbn *g)
{
	return g->next - g->base < P3_FRAME_WINDOW ? frame_at(g, g->next) : NULL;
}

void p3_gbn_commit(struct p3_gbn *g, uint64_t now)
{
	struct p3_frame *f = frame_at(g, g->next);
	memset(f->pad, 0, sizeof f->pad);
	f->seq = g->next++;
	if (f->seq == g->base)
		g->since = now;
}

/* Put a frame; every frame acknowledges the frames received so far. */
static bool put_one(struct p3_gbn *g, struct p3_frame *f, p3_frame_put *put, void *arg)
{
	f->ack = g->expected;
	f->again = g->owes_again;
	f->crc = sum_of(f, g->key_out);
	if (!put(arg, f, p3_frame_len(f)))
		return false;
	g->owes_ack = g->owes_again = false;
	return true;
}

static void go_back(struct p3_gbn *g, uint64_t now)
{
	g->resent += g->sent - g->base;
	g->sent = g->base;
	g->since = now;
}

static void look_at_clock(struct p3_gbn *g, uint64_t now)
{
	if (g->sent == g->base || now - g->since < g->wait_ns)
		return;
	go_back(g, now);
	g->wait_ns = 2 * g->wait_ns < P3_RESEND_MOST ? 2 * g->wait_ns : P3_RESEND_MOST;
}

void p3_gbn_send(struct p3_gbn *g, uint64_t now, p3_frame_put *put, void *arg)
{
	look_at_clock(g, now);
	while (g->sent != g->next && put_one(g, frame_at(g, g->sent), put, arg))
		g->sent++;
	if (!g->owes_ack)
		return;
	struct p3_frame ack;
	memset(&ack, 0, offsetof(struct p3_frame, data));
	ack.kind = P3_FRAME_ACK;
	(void)put_one(g, &ack, put, arg);
}

uint64_t p3_gbn_due(const struct p3_gbn *g)
{
	if (g->sent != g->next || g->owes_ack)
		return 0;
	return g->sent != g->base ? g->since + g->wait_ns : UINT64_MAX;
}

/* ---- in ---- */

static void take_ack(struct p3_gbn *g, const struct p3_frame *f, uint64_t now)
{
	uint32_t acked = f->ack - g->base;
	if (acked > g->next - g->base)
		return; /* an acknowledgment that was delayed */
	g->base = f->ack;
	if ((int32_t)(g->sent - g->base) < 0)
		g->sent = g->base;
	if (acked) {
		g->since = now;
		g->wait_ns = P3_RESEND_NS;
	}
	if (f->again && g->sent != g->base)
		go_back(g, now);
}

static bool is_intact(const struct p3_gbn *g, const struct p3_frame *f, uint32_t len)
{
	return len >= 64 && f->cells <= P3_FRAME_CELLS && len == p3_frame_len(f) &&
	       f->crc == sum_of(f, g->key_in);
}

/* Note a frame that came before a missing one.  Request the missing frame only once: the
 * frames behind it that are under way come too early, too. */
static void miss(struct p3_gbn *g)
{
	g->gaps++;
	g->owes_again = g->owes_ack = !g->asked || g->owes_again;
	g->asked = true;
}

bool p3_gbn_take(struct p3_gbn *g, const struct p3_frame *f, uint32_t len, uint64_t now)
{
	if (!is_intact(g, f, len)) {
		g->bad_sums++;
		return false;
	}
	take_ack(g, f, now);
	if (f->kind == P3_FRAME_ACK)
		return false;
	int32_t ahead = (int32_t)(f->seq - g->expected);
	if (ahead > 0) {
		miss(g);
		return false;
	}
	g->owes_ack = true;
	if (ahead < 0) {
		g->doubles++;
		return false;
	}
	g->expected++;
	g->asked = g->owes_again = false;
	return true;
}
