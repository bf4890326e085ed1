/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send - the parts of a put that its general and its straight path share
 *
 * Only the lease holder calls these functions; they have no state.
 */
#ifndef P3_NIC_PROTO_SEND_H
#define P3_NIC_PROTO_SEND_H

#include "nic/obj/obj.h"

/* Write the content of the SEND events of a descriptor of this interface.  The caller has
 * counted the operation on the descriptor (p3_match_threshold()). */
static P3_HOT void p3_send_describe_from(struct p3_nic *n, const struct p3_ni *ni,
	const struct p3_move *m, const struct p3_md *md, uint64_t offset, uint64_t length,
	uint32_t link, uint32_t kind, struct p3_event_words *rec)
{
	ptl_process_id_t self = {n->conf.nid, ni->pid};
	p3_record_set_request(rec, m->bits, length, length, offset, m->hdr);
	p3_record_set_md(rec, md, link);
	p3_record_set_initiator(rec, kind, self, n->conf.uid, n->conf.jid, m->pt_index);
}

static inline void p3_send_describe(struct p3_nic *n, const struct p3_move *m,
	const struct p3_md *md, uint64_t offset, uint64_t length, uint32_t link,
	uint32_t kind, struct p3_event_words *rec)
{
	p3_send_describe_from(
		n, p3_ni_of(n, &md->o), m, md, offset, length, link, kind, rec);
}

/* Count a request of an interface. */
static inline void p3_send_count(struct p3_ni *ni, uint64_t length)
{
	ni->sent++;
	ni->sent_bytes += length;
}

#endif
