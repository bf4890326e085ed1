/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lid.c - joining the two halves of a Long message
 *
 * A Long is a put of the payload and a put of the header, which arrive in either order;
 * both carry the Lid, a number of the pair of nodes.  The half that comes first leaves a
 * record with the peer, the second one takes it out and runs the handler.  The record
 * passes from one thread to the other under the peer's lock (free_lock is inside of it),
 * so the handler sees the payload.  Records are bounded by the credits of the peers and
 * the chunks of this node.
 */
#include "internal.h"

static gasneti_lock_t free_lock = GASNETI_UNLOCKED;
static struct gasneti_lid *free_lids;

static struct gasneti_lid *lid_new(void)
{
	gasneti_lock(&free_lock);
	struct gasneti_lid *lid = free_lids;
	if (lid)
		free_lids = lid->next;
	if (++gasneti.stats.lids > gasneti.stats.lid_high)
		gasneti.stats.lid_high = gasneti.stats.lids;
	gasneti_unlock(&free_lock);
	if (!lid && !(lid = malloc(sizeof(*lid))))
		gasneti_fatal("no memory for the record of a Long message");
	return lid;
}

void gasneti_lid_free(struct gasneti_lid *lid)
{
	gasneti_lock(&free_lock);
	lid->next = free_lids;
	free_lids = lid;
	gasneti.stats.lids--;
	gasneti_unlock(&free_lock);
}

/* Add one half to the other. */
static void join(struct gasneti_lid *lid, bool header, const struct gasneti_lid *mine)
{
	if (header == lid->has_header)
		gasneti_fatal(
			"two %s of one Long message", header ? "headers" : "payloads");
	if (header) {
		lid->bits = mine->bits;
		lid->hdr = mine->hdr;
		memcpy(lid->args, mine->args, sizeof(lid->args));
	} else {
		lid->addr = mine->addr;
		lid->nbytes = mine->nbytes;
	}
}

static struct gasneti_lid *take_out(struct gasneti_peer *peer, uint64_t key)
{
	struct gasneti_lid **link = &peer->lids;
	while (*link && (*link)->key != key)
		link = &(*link)->next;
	struct gasneti_lid *lid = *link;
	if (lid)
		*link = lid->next;
	return lid;
}

/* Leave a record of one half with the peer, whose lock the caller holds. */
static void leave_half(struct gasneti_peer *peer, uint64_t key, bool header,
	const struct gasneti_lid *mine)
{
	struct gasneti_lid *lid = lid_new();
	*lid = *mine;
	lid->key = key;
	lid->has_header = header;
	lid->next = peer->lids;
	peer->lids = lid;
}

/*
 * Let one half of a Long meet the other.  mine holds the members of this half: the header
 * (bits, hdr, args), or the payload (addr, nbytes).  Return the complete message, which
 * the caller frees, or NULL if the other half has yet to come.
 */
struct gasneti_lid *gasneti_lid_meet(struct gasneti_peer *peer, uint64_t key, bool header,
	const struct gasneti_lid *mine)
{
	gasneti_lock(&peer->lock);
	struct gasneti_lid *lid = take_out(peer, key);
	if (!lid)
		leave_half(peer, key, header, mine);
	gasneti_unlock(&peer->lock);
	if (lid)
		join(lid, header, mine);
	return lid;
}
