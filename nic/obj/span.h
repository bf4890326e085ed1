/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * span - operations on a descriptor, from START to END
 *
 * Only the lease holder calls these functions.  The state of an operation is struct
 * p3_span, which lies in a pending, a pull or a slot of the transfer table.
 */
#ifndef P3_NIC_OBJ_SPAN_H
#define P3_NIC_OBJ_SPAN_H

#include "nic/state.h"

/* Begin an operation on md at offset.  The caller fills in span->rec, and counts the
 * operation in md's threshold (p3_match_threshold). */
void p3_span_begin(struct p3_span *span, struct p3_md *md, uint64_t offset);
void p3_span_start(struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind);
/* Post the operation's END, and unlink the descriptor if that is due. */
void p3_span_end(
	struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind, uint32_t fail);
/* Drop an operation without END: its interface closes, and its memory must not be
 * touched. */
void p3_span_forget(struct p3_span *span);

#endif
