/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * credits.c - flow control of requests
 *
 * A node owns credits; one stands for 256 bytes of its request buffers and an event of
 * AM_EQ.  It lends them to its peers, and a request takes some of those that its sender
 * holds until the reply brings them back.  A sender that stalls asks for more in its next
 * header; the lender gives from its bank with the reply, and takes credits back (REVOKE,
 * RETURN) from peers that do not need them when its bank is low.
 *
 * Invariants: the loans and the bank add up to the total; the credits of requests that
 * have no reply are at most the loan, so their bytes fit the buffers; a peer keeps
 * MIN_CREDITS at least; at most one REVOKE or RETURN of a pair is under way, so SYS_EQ
 * holds two events a peer.
 *
 * The sender's counters are under the peer's lock, those of the lender and the bank under
 * bank_lock: Loan and Bank change together.
 */
#include "internal.h"

enum { REVOKE = 1, RETURN = 2, KIND_SHIFT = 4 };

#define EPOCH ((uint64_t)1 << 32) /* in a SYS message: the sender's epoch has ended */

static gasneti_lock_t bank_lock = GASNETI_UNLOCKED;
static uint32_t bank_received, bank_walk;

void gasneti_credits_attach(void)
{
	uint32_t share = gasneti.set.credits;
	gasneti.bank = gasneti.set.banked;
	if (!gasneti.set.dynamic && gasneti.nodes > 1) {
		share += gasneti.bank / (gasneti.nodes - 1);
		gasneti.bank %= gasneti.nodes - 1;
	}
	for (uint32_t i = 0; i < gasneti.nodes; i++)
		if (i != gasneti.me)
			gasneti.peers[i].loan = gasneti.peers[i].send = share;
}

static GASNETI_RARE bool credits_stalled(
	struct gasneti_peer *peer, uint32_t n, uint32_t *want)
{
	uint32_t lack = n - (peer->send - peer->in_use);
	if (!*want) {
		peer->send_stalls++;
		gasneti_count(&gasneti.stats.credit_stalls, 1);
	}
	*want = lack < GASNETI_EXTRA ? lack : GASNETI_EXTRA;
	return !gasneti.set.flow_control;
}

/*
 * Take n credits of a peer.  Return false if there are too few, and store the number that
 * the next header is to ask for in *want, which is 0 at first.  With want NULL this is an
 * attempt, which does not count as a stall: the caller has replies to read.
 */
bool gasneti_credits_take(struct gasneti_peer *peer, uint32_t n, uint32_t *want)
{
	bool enough = true;
	gasneti_lock(&peer->lock);
	if (gasneti_unlikely((int32_t)(peer->send - peer->in_use) < (int32_t)n))
		enough =
			want ? credits_stalled(peer, n, want) : !gasneti.set.flow_control;
	if (enough) {
		peer->in_use += n;
		if (peer->in_use > peer->send_max)
			peer->send_max = peer->in_use;
	}
	gasneti_unlock(&peer->lock);
	return enough;
}

/* Return true once for each epoch of this node that the peer has to hear of. */
static bool epoch_take(struct gasneti_peer *peer)
{
	if (gasneti_likely(!gasneti_get(&peer->epoch_ended)))
		return false;
	gasneti_set(&peer->epoch_ended, false);
	return true;
}

/* Make the credit byte of a header: epoch, extra, n - 1. */
uint32_t gasneti_credits_byte(struct gasneti_peer *peer, uint32_t n, uint32_t extra)
{
	uint32_t byte = (n - 1) | extra << 4;
	return epoch_take(peer) ? byte | 0x80 : byte;
}

/* The peer's epoch has ended: forget part of this node's needs. */
static GASNETI_RARE void epoch_decay(struct gasneti_peer *peer)
{
	gasneti_lock(&peer->lock);
	peer->send_stalls >>= 2;
	peer->send_max >>= 2;
	peer->send_revoked >>= 2;
	gasneti_unlock(&peer->lock);
}

static GASNETI_RARE void epoch_end(void)
{
	bank_received = 0;
	for (uint32_t i = 0; i < gasneti.nodes; i++) {
		struct gasneti_peer *peer = &gasneti.peers[i];
		peer->loan_requested >>= 2;
		peer->loan_given >>= 2;
		peer->zero_reply = false;
		gasneti_set(&peer->epoch_ended, true);
	}
}

static GASNETI_RARE uint32_t bank_lend(struct gasneti_peer *peer, uint32_t want)
{
	peer->loan_requested++;
	if (want > gasneti.bank || peer->loan_given + want > gasneti.set.lend_limit ||
		peer->loan + want > gasneti.set.max_credits || !gasneti.set.dynamic)
		return 0;
	gasneti_set(&gasneti.bank, gasneti.bank - want);
	peer->loan += want;
	peer->loan_given += want;
	gasneti_count(&gasneti.stats.lent, want);
	return want;
}

/* Read a request's credit byte; return that of the reply. */
GASNETI_HOT uint32_t gasneti_credits_lend(struct gasneti_peer *peer, uint32_t byte)
{
	uint32_t want = byte >> 4 & GASNETI_EXTRA, lent = 0;
	if (gasneti_unlikely(byte & 0x80))
		epoch_decay(peer);
	gasneti_lock(&bank_lock);
	if (gasneti_unlikely(want))
		lent = bank_lend(peer, want);
	if (gasneti_unlikely(++bank_received >= gasneti.set.epoch) && gasneti.set.dynamic)
		epoch_end();
	gasneti_unlock(&bank_lock);
	return gasneti_credits_byte(peer, (byte & 15) + 1, lent);
}

/* Read a reply's credit byte: the request's credits are free again. */
void gasneti_credits_back(struct gasneti_peer *peer, uint32_t byte)
{
	gasneti_lock(&peer->lock);
	peer->in_use -= (byte & 15) + 1;
	peer->send += byte >> 4 & GASNETI_EXTRA;
	gasneti_unlock(&peer->lock);
	if (gasneti_unlikely(byte & 0x80))
		epoch_decay(peer);
}

/* ---- revocation ---- */

/* Send a SYS message, or leave it on the peer's list of one entry a kind. */
static void sys_send(uint32_t node, uint32_t kind, uint64_t hdr)
{
	if (gasneti_note(node, GASNETI_MD_SYS | (uint64_t)kind << KIND_SHIFT, hdr))
		return;
	gasneti.peers[node].sys_unsent |= (uint8_t)kind;
	gasneti.peers[node].sys_hdr[kind - 1] = hdr;
	gasneti_add(&gasneti.unsent, 1);
}

void gasneti_sys_resend(void)
{
	for (uint32_t i = 0; i < gasneti.nodes; i++) {
		struct gasneti_peer *peer = &gasneti.peers[i];
		gasneti_lock(&peer->lock);
		for (uint32_t kind = REVOKE; kind <= RETURN; kind++)
			if (peer->sys_unsent & kind) {
				peer->sys_unsent &= (uint8_t)~kind;
				gasneti_add(&gasneti.unsent, UINT32_MAX);
				sys_send(i, kind, peer->sys_hdr[kind - 1]);
			}
		gasneti_unlock(&peer->lock);
	}
}

static bool credits_may_revoke(uint32_t node)
{
	const struct gasneti_peer *peer = &gasneti.peers[node];
	return node != gasneti.me && peer->loan > GASNETI_MIN_CREDITS &&
	       !peer->revoke_out && !peer->zero_reply && !peer->loan_requested;
}

static GASNETI_RARE void bank_scavenge(void)
{
	uint32_t asked = 0;
	for (uint32_t i = 0; i < gasneti.nodes && asked < gasneti.set.scavenge; i++) {
		bank_walk = (bank_walk + 1) % gasneti.nodes;
		if (!credits_may_revoke(bank_walk))
			continue;
		struct gasneti_peer *peer = &gasneti.peers[bank_walk];
		peer->revoke_out = true;
		asked++;
		gasneti_count(&gasneti.stats.revoked, 1);
		gasneti_lock(&peer->lock);
		sys_send(bank_walk, REVOKE, epoch_take(peer) ? EPOCH : 0);
		gasneti_unlock(&peer->lock);
	}
}

/* Take credits back from peers that do not need them, if the bank is low. */
void gasneti_credits_scavenge(void)
{
	if (gasneti_likely(gasneti_get(&gasneti.bank) >= GASNETI_EXTRA) ||
		!gasneti.set.dynamic)
		return;
	gasneti_lock(&bank_lock);
	bank_scavenge();
	gasneti_unlock(&bank_lock);
}

/* Return the credits that this node can spare: a number from 0 to the revoke limit. */
static uint32_t credits_to_give(const struct gasneti_peer *peer)
{
	uint32_t keep = peer->send_max > peer->in_use ? peer->send_max : peer->in_use;
	keep = keep > GASNETI_MIN_CREDITS ? keep : GASNETI_MIN_CREDITS;
	if (peer->send_stalls || peer->send_revoked >= gasneti.set.revoke_limit ||
		peer->send <= keep)
		return 0;
	uint32_t spare = peer->send - keep;
	uint32_t limit = gasneti.set.revoke_limit - peer->send_revoked;
	return spare < limit ? spare : limit;
}

/* The lender asks for credits. */
static void sys_revoked(uint32_t node)
{
	struct gasneti_peer *peer = &gasneti.peers[node];
	gasneti_lock(&peer->lock);
	uint32_t give = credits_to_give(peer);
	peer->send -= give;
	peer->send_revoked += give;
	gasneti_count(&gasneti.stats.returned, give);
	sys_send(node, RETURN, give | (epoch_take(peer) ? EPOCH : 0));
	gasneti_unlock(&peer->lock);
}

static void sys_returned(uint32_t node, uint32_t give)
{
	struct gasneti_peer *peer = &gasneti.peers[node];
	gasneti_lock(&bank_lock);
	peer->revoke_out = false;
	if (give > peer->loan)
		gasneti_fatal(
			"node %u returned %u of %u credits", node, give, peer->loan);
	peer->loan -= give;
	gasneti_set(&gasneti.bank, gasneti.bank + give);
	if (!give)
		peer->zero_reply = true;
	gasneti_unlock(&bank_lock);
}

/* A holder that is idle hears of the end of epochs by REVOKE alone, so its needs of the
 * past decay before it says what it can spare. */
void gasneti_sys_event(const ptl_event_t *ev)
{
	uint32_t node = gasneti_node_of(ev->initiator);
	if (ev->type != PTL_EVENT_PUT_END || node >= gasneti.nodes)
		return;
	if (ev->hdr_data & EPOCH)
		epoch_decay(&gasneti.peers[node]);
	if ((ev->match_bits >> KIND_SHIFT & 15) == REVOKE)
		sys_revoked(node);
	else
		sys_returned(node, (uint32_t)ev->hdr_data);
}
