/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * edge - the former bytes at the borders of the part that a pull has written
 *
 * Only the lease holder calls these functions.  Their state is the two edges (struct
 * p3_edge) of each pull, and n->pulled, the bounds of all bytes that pulls write.
 * edge.c says what exchanges need them for.
 */
#ifndef P3_NIC_XFER_EDGE_H
#define P3_NIC_XFER_EDGE_H

#include "nic/state.h"

/* Return true if an exchange of these bytes has a place neither before nor behind the
 * transfer. */
bool p3_xfer_has_no_side(const struct p3_pull *pull, struct p3_range s);
/* Put back the former bytes at the edges of all pulls, before an exchange of the bytes
 * of a region. */
P3_RARE void p3_xfer_lend_edges(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len);
/* Take back the edges that were lent for an exchange, in the reverse order. */
P3_RARE void p3_xfer_return_edges(struct p3_nic *n);
/* Call this while there are pulls, after an operation other than a pull or an exchange
 * has written these bytes: pulls forget the former bytes there (struct p3_edge). */
P3_RARE void p3_xfer_wrote(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len);
/* Add the bytes that a new pull writes to n->pulled.  The pull must not be in n->pulls
 * yet, or it would be found to share bytes with itself. */
void p3_xfer_note_bytes(struct p3_nic *n, struct p3_pull *pull);
/* Store in the edge the present bytes of a range. */
void p3_xfer_remember(
	const struct p3_pull *pull, struct p3_edge *e, struct p3_range range);

/* Before the pull writes from the front up to byte to, remember the bytes that lie there.
 * The slice that reaches the pull's end needs no such record: the pull ends with that
 * slice, so no exchange comes between. */
static inline void p3_xfer_write_front(struct p3_pull *pull, uint64_t to)
{
	struct p3_edge *e = &pull->front;
	if (to <= e->at)
		return;
	bool whole = to - e->at >= P3_EDGE;
	if (to < pull->end && (whole || e->known == e->at)) {
		p3_xfer_remember(
			pull, e, (struct p3_range){whole ? to - P3_EDGE : e->at, to});
		e->known = to;
	}
	e->at = to;
}

/* Correct the front after a slice that has written only up to byte to.  was is the value
 * of the front before p3_xfer_write_front(). */
static inline void p3_xfer_wrote_less(struct p3_pull *pull, uint64_t was, uint64_t to)
{
	pull->front.at = to > was ? to : was;
}

/* Do as p3_xfer_write_front() before the pull writes at the back, from byte from on. */
static inline void p3_xfer_write_back(struct p3_pull *pull, uint64_t from)
{
	struct p3_edge *e = &pull->back;
	if (from >= e->at)
		return;
	bool whole = e->at - from >= P3_EDGE;
	if (from > pull->done && (whole || e->known == e->at)) {
		p3_xfer_remember(
			pull, e, (struct p3_range){from, whole ? from + P3_EDGE : e->at});
		e->known = from;
	}
	e->at = from;
}

#endif
