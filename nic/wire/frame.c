/* SPDX-License-Identifier: BSD-3-Clause */
/* Go-back-n on frames. */
#include "nic/wire/frame.h"
#include "nic/wire/crc.h"

#include <stddef.h>
#include <string.h>

_Static_assert(offsetof(struct p3_frame, data) == 64, "a header is one cell");
_Static_assert((offsetof(struct p3_frame, sum) - offsetof(struct p3_frame, seq)) % 8 == 0,
	"the MAC takes whole words");

void p3_gbn_init(
	struct p3_gbn *g, struct p3_frame *queue, uint32_t key_out, uint32_t key_in)
{
	*g = (struct p3_gbn){.queue = queue,
		.base = P3_FRAME_START,
		.sent = P3_FRAME_START,
		.next = P3_FRAME_START,
		.expected = P3_FRAME_START,
		.key_out = key_out,
		.key_in = key_in};
	p3_gbn_set_pace(g, P3_RESEND_NS, P3_RESEND_MOST);
	p3_gbn_set_room(g, P3_FRAME_WINDOW);
}

void p3_gbn_use_macs(
	struct p3_gbn *g, const struct p3_sipkey *out, const struct p3_sipkey *in)
{
	g->macs = true;
	g->mac_out = *out;
	g->mac_in = *in;
}

void p3_gbn_set_pace(struct p3_gbn *g, uint64_t least_ns, uint64_t most_ns)
{
	g->wait_ns = g->least_ns = least_ns;
	g->most_ns = most_ns;
}

void p3_gbn_set_room(struct p3_gbn *g, uint32_t room)
{
	g->room = room;
	g->may = g->promised = P3_FRAME_START + room;
}

/* ---- sums: of all words except the medium's and the sum itself ---- */

enum {
	SUM_FROM = offsetof(struct p3_frame, seq),
	SUM_AT = offsetof(struct p3_frame, sum)
};
#define SUM_BEHIND (SUM_AT + 8u)

static uint64_t crc_of(const struct p3_frame *f, uint32_t key)
{
	const unsigned char *bytes = (const unsigned char *)f;
	uint32_t crc = p3_crc32c(key, bytes + SUM_FROM, SUM_AT - SUM_FROM);
	return p3_crc32c(crc, bytes + SUM_BEHIND, p3_frame_len(f) - SUM_BEHIND);
}

static uint64_t mac_of(const struct p3_frame *f, const struct p3_sipkey *key)
{
	const unsigned char *bytes = (const unsigned char *)f;
	struct p3_sip s;
	p3_sip_begin(&s, key);
	p3_sip_words(&s, bytes + SUM_FROM, SUM_AT - SUM_FROM);
	return p3_sip_end(&s, bytes + SUM_BEHIND, p3_frame_len(f) - SUM_BEHIND);
}

static uint64_t sum_out(const struct p3_gbn *g, const struct p3_frame *f)
{
	return g->macs ? mac_of(f, &g->mac_out) : crc_of(f, g->key_out);
}

static uint64_t sum_in(const struct p3_gbn *g, const struct p3_frame *f)
{
	return g->macs ? mac_of(f, &g->mac_in) : crc_of(f, g->key_in);
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
	f->room = g->room;
	f->sum = sum_out(g, f);
	if (!put(arg, f, p3_frame_len(f)))
		return false;
	if ((int32_t)(g->expected + g->room - g->promised) > 0)
		g->promised = g->expected + g->room;
	g->owes_ack = g->owes_again = false;
	return true;
}

void p3_gbn_go_back(struct p3_gbn *g, uint64_t now)
{
	g->resent += g->sent - g->base;
	g->sent = g->base;
	g->since = now;
}

static void look_at_clock(struct p3_gbn *g, uint64_t now)
{
	if (g->sent == g->base || now - g->since < g->wait_ns)
		return;
	if (g->probes) {
		g->owes_probe = true;
		g->since = now;
	} else {
		p3_gbn_go_back(g, now);
	}
	g->wait_ns = 2 * g->wait_ns < g->most_ns ? 2 * g->wait_ns : g->most_ns;
}

/* Put a frame without data. */
static bool put_bare(
	struct p3_gbn *g, enum p3_frame_kind kind, p3_frame_put *put, void *arg)
{
	struct p3_frame f;
	memset(&f, 0, offsetof(struct p3_frame, data));
	f.kind = (uint8_t)kind;
	f.seq = kind == P3_FRAME_PROBE ? g->sent : 0;
	return put_one(g, &f, put, arg);
}

/* Return true if there is a frame to put, and the other end has room for it. */
static bool has_frame(const struct p3_gbn *g)
{
	return g->sent != g->next && (int32_t)(g->may - g->sent) > 0;
}

void p3_gbn_send(struct p3_gbn *g, uint64_t now, p3_frame_put *put, void *arg)
{
	look_at_clock(g, now);
	while (has_frame(g) && put_one(g, frame_at(g, g->sent), put, arg))
		g->sent++;
	if (g->owes_probe && put_bare(g, P3_FRAME_PROBE, put, arg)) {
		g->owes_probe = false;
		g->probed++;
	}
	if (g->owes_ack)
		(void)put_bare(g, P3_FRAME_ACK, put, arg);
}

uint64_t p3_gbn_due(const struct p3_gbn *g)
{
	if (has_frame(g) || g->owes_ack || g->owes_probe)
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
	if (f->room <= P3_FRAME_WINDOW && (int32_t)(f->ack + f->room - g->may) > 0)
		g->may = f->ack + f->room;
	if ((int32_t)(g->sent - g->base) < 0)
		g->sent = g->base;
	if (acked) {
		g->since = now;
		g->wait_ns = g->least_ns;
	}
	if (f->again && g->sent != g->base)
		p3_gbn_go_back(g, now);
}

static bool is_intact(const struct p3_gbn *g, const struct p3_frame *f, uint32_t len)
{
	return len >= 64 && f->cells <= P3_FRAME_CELLS && len == p3_frame_len(f) &&
	       f->sum == sum_in(g, f);
}

/* Note a frame that came before a missing one.  Request the missing frame only once: the
 * frames behind it that are under way come too early, too. */
static void miss(struct p3_gbn *g)
{
	g->gaps++;
	g->owes_again = g->owes_ack = !g->asked || g->owes_again;
	g->asked = true;
}

/* Answer a probe.  Frames that were put before it and have not come are lost. */
static void answer(struct p3_gbn *g, bool missing)
{
	g->owes_ack = true;
	g->owes_again |= missing;
	g->gaps += missing;
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
	if (f->kind == P3_FRAME_PROBE) {
		answer(g, ahead > 0);
		return false;
	}
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
