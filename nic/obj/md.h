/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * md - memory descriptors: creation, update, removal
 *
 * Only the lease holder calls these functions.  A descriptor lies in the table P3_T_MD.
 * The descriptor holds one reference to its copy of an iovec, and so does each operation
 * under way.
 */
#ifndef P3_NIC_OBJ_MD_H
#define P3_NIC_OBJ_MD_H

#include "nic/state.h"

int p3_md_bind(struct p3_nic *n, struct p3_cmd *c);
int p3_md_update(struct p3_nic *n, struct p3_cmd *c);

/* The meaning of a descriptor's contents, if they are legal. */
struct p3_md_meaning {
	struct p3_region region;
	struct p3_sink sink;
};

/* Return PTL_OK and the meaning of c->md if its contents are legal and there is room for
 * one more descriptor. */
int p3_md_prepare(struct p3_nic *n, const struct p3_cmd *c, struct p3_md_meaning *out);
/*
 * Return PTL_OK if the condition of a conditional command holds: no event is in the
 * test queue or owed to it.  No message is matched while the command runs, since the
 * thread that runs it also matches.  So the events of each message matched before are
 * in the queue or owed to it, and all other messages are matched after the command.
 */
int p3_md_at_rest(struct p3_nic *n, const struct p3_cmd *c);
/* Make a descriptor.  The caller has called p3_md_prepare(). */
struct p3_md *p3_md_create(
	struct p3_nic *n, struct p3_cmd *c, const struct p3_md_meaning *meaning);
/* Make a descriptor if p3_md_prepare() allows it. */
int p3_md_new(struct p3_nic *n, struct p3_cmd *c, struct p3_md **md_out);
/*
 * Make a descriptor of the match entry with the index me, or P3_NONE, in the most
 * frequent case.  Return NULL, having done nothing, in all others: the contents are
 * illegal or an iovec, or there is no room.
 */
struct p3_md *p3_md_make_plain(
	struct p3_nic *n, uint32_t ni, const ptl_md_t *what, bool unlink, uint32_t me);
/* Free a descriptor of the interface ni that no match entry names any more. */
void p3_md_remove(struct p3_nic *n, struct p3_ni *ni, struct p3_md *md);
/* Drop a reference to a copy of iovec elements; the last one frees the copy.  NULL is
 * allowed. */
void p3_md_drop_iov(struct p3_iov *iov);
/* Count (owe) or no longer count (cancel) md's UNLINK event, which waits until all
 * operations on md have ended, among the events that the firmware owes to md's queue. */
void p3_md_owe_unlink(struct p3_md *md);
void p3_md_cancel_unlink(struct p3_md *md);

/* Return true if the automatic unlinking posts no UNLINK: an interface of Cray's kind
 * posts it only for descriptors that request it. */
static inline bool p3_md_unlinks_silently(const struct p3_md *md)
{
	const uint32_t both = P3_MD_CRAY | PTL_MD_EVENT_AUTO_UNLINK_ENABLE;
	return (md->sink.options & both) == P3_MD_CRAY;
}

#endif
