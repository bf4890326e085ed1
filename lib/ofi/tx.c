/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tx.c - sending messages
 *
 * A message of few bytes to a process that has joined is copied, and over when the call
 * returns.  Another short one goes at once, and SEND_END is its end.  The bytes of a
 * long one, or of one that is to be delivered before it completes, are exposed on an
 * index: for a receive that is posted the target fetches them, and the ACK is the end; a
 * receive that comes late gets them, and GET_END is.  One of the two comes, never both.
 */
#include "prov.h"

#include <stdlib.h>
#include <string.h>

/* ---- ends ---- */

/* Free the request, of which nothing is under way. */
static inline void tx_free(struct ofi_req *req)
{
	if (OFI_UNLIKELY(req->tx.copy != NULL))
		free(req->tx.copy);
	ofi_req_free(req);
}

static inline void tx_done(struct ofi_req *req)
{
	struct fi_cq_err_entry e = {.err = req->err, .prov_errno = req->prov_errno};
	req->ep->under_way--;
	ofi_complete(req, req->ep->tx_cq, &e, FI_ADDR_NOTAVAIL);
	tx_free(req);
}

static inline void tx_fail(struct ofi_req *req, const ptl_event_t *event)
{
	if (OFI_LIKELY(event->ni_fail_type == PTL_NI_OK))
		return;
	req->err = FI_ECONNABORTED;
	req->prov_errno = (int)event->ni_fail_type;
}

/* SEND_END of a short message. */
static OFI_FAST void tx_short_event(struct ofi_sink *sink, const ptl_event_t *event)
{
	struct ofi_req *req = container_of(sink, struct ofi_req, sink);
	if (OFI_UNLIKELY(event->type != PTL_EVENT_SEND_END))
		return;
	req->ep->tx->sends++;
	tx_fail(req, event);
	if (OFI_LIKELY(!req->err))
		ofi_av_meet(req->ep->av, req->tx.addr, req->peer);
	tx_done(req);
}

/* An event of an exposed message: of its put, of its bytes, or of the search for its
 * receiver. */
static void tx_long_event(struct ofi_sink *sink, const ptl_event_t *event)
{
	struct ofi_req *req = container_of(sink, struct ofi_req, sink);
	tx_fail(req, event);
	switch (event->type) {
	case PTL_EVENT_SEND_END:
		req->sent = true;
		break;
	case PTL_EVENT_ACK:
		req->ended = true;
		break;
	case PTL_EVENT_GET_END:
		req->ended = true;
		req->me = PTL_INVALID_HANDLE;
		if (OFI_UNLIKELY(event->match_bits & OFI_REFUSED)) {
			req->err = FI_ECONNABORTED;
			req->prov_errno = PTL_NI_FAIL;
		}
		break;
	default:;
	}
	if (req->err)
		req->sent = req->ended = true;
	if (!req->sent || !req->ended)
		return;
	/* If the bytes are just being fetched, GET_END comes. */
	if (req->me != PTL_INVALID_HANDLE && PtlMEUnlink(req->me) != PTL_OK)
		return;
	tx_done(req);
}

/* The endpoint is closed: nobody can fetch the bytes any more. */
void ofi_tx_withdraw(struct ofi_req *req)
{
	if (!req->sent || req->ended || PtlMEUnlink(req->me) != PTL_OK)
		return;
	FAULT_POINT("ofi.withdrawn");
	req->err = FI_ECANCELED; /* so a late ACK finds another descriptor */
	req->ep->under_way--;
	tx_free(req);
}

/* ---- begins ---- */

/* Expose the bytes to the peer, under the serial number. */
static int tx_expose(struct ofi_req *req, const struct iovec *iov, size_t count)
{
	ptl_md_t md = {
		.start = count ? iov->iov_base : NULL,
		.length = count ? iov->iov_len : 0,
		.threshold = 1,
		.options = PTL_MD_OP_GET | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE,
		.user_ptr = &req->sink,
		.eq_handle = req->ep->tx->eq,
	};
	ofi_describe(&md, iov, count);
	return PtlMEMDAttach(ofi_node.ni, OFI_PT_EXPOSED, req->peer, req->serial,
		OFI_REFUSED, PTL_UNLINK, PTL_INS_BEFORE, md, PTL_UNLINK, &req->me, NULL);
}

/* The place of a message: its target, index, bits and header data. */
struct tx_place {
	ptl_process_id_t peer;
	ptl_pt_index_t index;
	uint64_t bits, hdr;
};

static OFI_SLOW int tx_long(struct ofi_req *req, const struct tx_place *place,
	const struct iovec *iov, size_t count, size_t len)
{
	struct ofi_queue *queue = req->ep->tx;
	bool one = count <= 1;
	if (!ofi_op_borrow(queue, req, iov, count, OFI_OF_PROGRAM))
		return -FI_EAGAIN;
	req->sink.event = tx_long_event;
	req->peer = place->peer;
	int rc = tx_expose(req, iov, count);
	if (rc != PTL_OK)
		return ofi_error(rc);
	FAULT_POINT("ofi.exposed");
	rc = PtlPutRegion(req->op->md, one && len ? ofi_offset(iov->iov_base) : 0, len,
		PTL_ACK_REQ, place->peer, place->index, ofi_node.ac,
		place->bits | OFI_EXPOSED, 0, place->hdr);
	if (rc != PTL_OK) {
		PtlMEUnlink(req->me);
		return ofi_error(rc);
	}
	FAULT_POINT("ofi.long_sent");
	ofi_watch(req);
	return 0;
}

static inline int tx_short(struct ofi_req *req, const struct tx_place *place,
	const struct iovec *iov, size_t count, size_t len)
{
	struct ofi_queue *queue = req->ep->tx;
	ptl_handle_md_t md = queue->md;
	if (OFI_UNLIKELY(!queue->sends))
		return -FI_EAGAIN;
	if (OFI_UNLIKELY(count > 1)) {
		if (!ofi_op_borrow(queue, req, iov, count, OFI_OF_PROGRAM))
			return -FI_EAGAIN;
		md = req->op->md;
	}
	req->sink.event = tx_short_event;
	req->peer = place->peer;
	int rc = PtlPutRegion(md, count == 1 && len ? ofi_offset(iov->iov_base) : 0, len,
		PTL_NO_ACK_REQ, place->peer, place->index, ofi_node.ac, place->bits, 0,
		place->hdr);
	if (OFI_UNLIKELY(rc != PTL_OK))
		return ofi_error(rc);
	FAULT_POINT("ofi.sent");
	queue->sends--;
	return 0;
}

static void tx_gather(char *to, const struct iovec *iov, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/* Send few bytes, which may change when the call returns: the message is over then.  If
 * the target is known to be dead, a message that is not injected fails. */
static inline int tx_inject_now(struct ofi_ep *ep, uint64_t kind,
	const struct tx_place *place, const struct fi_msg_tagged *m, uint64_t flags,
	bool silent, size_t len)
{
	char gathered[OFI_INJECT];
	const void *bytes = m->iov_count ? m->msg_iov->iov_base : NULL;
	if (OFI_UNLIKELY(m->iov_count > 1)) {
		tx_gather(gathered, m->msg_iov, m->iov_count);
		bytes = gathered;
	}
	int rc = PtlXInject(ofi_node.ni, bytes, len, place->peer, place->index,
		ofi_node.ac, place->bits, 0, place->hdr);
	if (OFI_UNLIKELY(rc != PTL_OK) && (rc != PTL_FAIL || !(flags & FI_INJECT)))
		return ofi_error(rc);
	FAULT_POINT("ofi.injected");
	ofi_cntr_count(ep->cntrs[OFI_CNTR_SEND], 0);
	if (ep->tx_cq && !ofi_tx_is_silent(ep, flags, silent))
		ofi_cq_add(ep->tx_cq,
			&(struct fi_cq_err_entry){
				.op_context = m->context, .flags = FI_SEND | kind},
			FI_ADDR_NOTAVAIL);
	return 0;
}

/* Send with a new request. */
static inline int tx_send(struct ofi_req *req, const struct tx_place *place,
	const struct iovec *iov, size_t count, uint64_t flags, size_t len)
{
	if (OFI_LIKELY(!(flags & FI_DELIVERY_COMPLETE))) {
		if (OFI_LIKELY(len <= ofi_settings.eager))
			return tx_short(req, place, iov, count, len);
	} else if (flags & FI_INJECT && len) {
		req->tx.copy = malloc(len);
		if (!req->tx.copy)
			return -FI_ENOMEM;
		tx_gather(req->tx.copy, iov, count);
		return tx_long(req, place, &(struct iovec){req->tx.copy, len}, 1, len);
	}
	return tx_long(req, place, iov, count, len);
}

/* No credits are left, perhaps since nobody reads the queue.  Read it. */
OFI_RARE void ofi_tx_full(struct ofi_ep *ep)
{
	while (ofi_queue_step(ep->tx))
		;
	ofi_progress(ep->domain, true);
}

/* Return true if the message is to be over when the call returns, or may be: then the
 * program must read its completions now and then.  The first message to a peer may not,
 * since it stays here until that has joined, and a program that has its completion may
 * end. */
static inline bool tx_is_copied(
	const struct ofi_ep *ep, const struct ofi_peer *peer, uint64_t flags, size_t len)
{
	if (OFI_UNLIKELY(flags & FI_DELIVERY_COMPLETE))
		return false;
	return flags & FI_INJECT ||
	       (len <= OFI_INJECT && peer->met &&
		       (!ep->tx_cq || ep->tx_cq->ring_used < OFI_SENDS));
}

/* Send to a peer with the domain entered. */
static inline int tx_enter(struct ofi_ep *ep, int kind, const struct fi_msg_tagged *m,
	uint64_t flags, bool silent, size_t len)
{
	const struct ofi_peer *peer = ofi_av_peer(ep->av, m->addr);
	if (OFI_UNLIKELY(!peer))
		return -FI_EINVAL;
	struct tx_place place = {
		.peer = peer->id,
		.index = (ptl_pt_index_t)(OFI_PT_MESSAGES + 2 * peer->endpoint + kind),
		.bits = m->tag | ep->source,
	};
	if (flags & FI_REMOTE_CQ_DATA) {
		place.bits |= OFI_HAS_DATA;
		place.hdr = m->data << OFI_DATA_SHIFT;
	}
	if (OFI_LIKELY(tx_is_copied(ep, peer, flags, len))) {
		int rc =
			tx_inject_now(ep, ofi_kinds[kind], &place, m, flags, silent, len);
		if (OFI_LIKELY(!rc || flags & FI_INJECT))
			return rc;
	}
	struct ofi_req *req = ofi_req_new(ep);
	if (OFI_UNLIKELY(!req))
		return -FI_EAGAIN;
	req->context = m->context;
	req->flags = FI_SEND | ofi_kinds[kind];
	req->cntr = OFI_CNTR_SEND;
	req->silent = ofi_tx_is_silent(ep, flags, silent);
	req->tx.copy = NULL;
	req->tx.addr = m->addr;
	place.hdr |= req->serial;
	int rc = tx_send(req, &place, m->msg_iov, m->iov_count, flags, len);
	if (OFI_LIKELY(!rc))
		ep->under_way++;
	else
		tx_free(req);
	return rc;
}

/* Send a message; silent: fi_inject and its kin. */
static inline ssize_t tx_begin(struct fid_ep *fid, int kind,
	const struct fi_msg_tagged *m, uint64_t flags, bool silent)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	size_t len;
	if (OFI_UNLIKELY(!ep->enabled))
		return -FI_EOPBADSTATE;
	if (OFI_UNLIKELY(!(ep->caps & ofi_kinds[kind]) || !(ep->caps & FI_SEND)))
		return -FI_EOPNOTSUPP;
	int rc = ofi_iov_length(m->msg_iov, m->iov_count, &len);
	if (OFI_UNLIKELY(rc))
		return rc;
	if (OFI_UNLIKELY(
		    (flags & FI_INJECT && len > OFI_INJECT) || m->tag & ~OFI_TAG_MASK))
		return -FI_EINVAL;
	OFI_ENTER(ep->domain);
	return ofi_tx_leave(ep, tx_enter(ep, kind, m, flags, silent, len));
}

/* ---- calls ---- */

/* Send a vector.  flags are added to those of the endpoint, but an inject has none of
 * these. */
static inline ssize_t tx_vector(struct fid_ep *ep, int kind, const struct iovec *iov,
	size_t count, uint64_t data, fi_addr_t addr, uint64_t tag, void *context,
	uint64_t flags)
{
	bool silent = flags & FI_INJECT;
	if (!silent)
		flags |= ofi_tx_flags(ep);
	return tx_begin(ep, kind,
		&(struct fi_msg_tagged){.msg_iov = iov,
			.iov_count = count,
			.addr = addr,
			.tag = tag,
			.context = context,
			.data = data},
		flags, silent);
}

static inline ssize_t tx_plain(struct fid_ep *ep, int kind, const void *buf, size_t len,
	uint64_t data, fi_addr_t addr, uint64_t tag, void *context, uint64_t flags)
{
	return tx_vector(ep, kind, &(struct iovec){(void *)(uintptr_t)buf, len}, 1, data,
		addr, tag, context, flags);
}

static inline ssize_t tx_message(
	struct fid_ep *ep, int kind, const struct fi_msg_tagged *m, uint64_t flags)
{
	if (flags & ~(OFI_TX_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE))
		return -FI_EBADFLAGS;
	return tx_begin(ep, kind, m, flags, false);
}

/* Define the calls of one kind that have no message: those with a tag have it behind the
 * address. */
#define TX_CALLS(name, kind, tag, ...)                                                   \
	static OFI_FAST ssize_t name##_send(struct fid_ep *ep, const void *buf,          \
		size_t len, void *desc, __VA_ARGS__, void *context)                      \
	{                                                                                \
		(void)desc;                                                              \
		return tx_plain(ep, kind, buf, len, 0, addr, tag, context, 0);           \
	}                                                                                \
	static ssize_t name##_sendv(struct fid_ep *ep, const struct iovec *iov,          \
		void **desc, size_t count, __VA_ARGS__, void *context)                   \
	{                                                                                \
		(void)desc;                                                              \
		return tx_vector(ep, kind, iov, count, 0, addr, tag, context, 0);        \
	}                                                                                \
	static OFI_FAST ssize_t name##_inject(                                           \
		struct fid_ep *ep, const void *buf, size_t len, __VA_ARGS__)             \
	{                                                                                \
		return tx_plain(ep, kind, buf, len, 0, addr, tag, NULL, FI_INJECT);      \
	}                                                                                \
	static OFI_FAST ssize_t name##_senddata(struct fid_ep *ep, const void *buf,      \
		size_t len, void *desc, uint64_t data, __VA_ARGS__, void *context)       \
	{                                                                                \
		(void)desc;                                                              \
		return tx_plain(ep, kind, buf, len, data, addr, tag, context,            \
			FI_REMOTE_CQ_DATA);                                              \
	}                                                                                \
	static OFI_FAST ssize_t name##_injectdata(struct fid_ep *ep, const void *buf,    \
		size_t len, uint64_t data, __VA_ARGS__)                                  \
	{                                                                                \
		return tx_plain(ep, kind, buf, len, data, addr, tag, NULL,               \
			FI_INJECT | FI_REMOTE_CQ_DATA);                                  \
	}

TX_CALLS(tx_msg, OFI_MSG, 0, fi_addr_t addr)
TX_CALLS(tx_tagged, OFI_TAGGED, tag, fi_addr_t addr, uint64_t tag)

static ssize_t tx_msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	if (!msg)
		return -FI_EINVAL;
	struct fi_msg_tagged m = ofi_untagged(msg);
	return tx_message(ep, OFI_MSG, &m, flags);
}

static ssize_t tx_tagged_sendmsg(
	struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	return msg ? tx_message(ep, OFI_TAGGED, msg, flags) : -FI_EINVAL;
}

struct fi_ops_msg ofi_msg_ops = {
	.size = sizeof ofi_msg_ops,
	.recv = ofi_recv,
	.recvv = ofi_recvv,
	.recvmsg = ofi_recvmsg,
	.send = tx_msg_send,
	.sendv = tx_msg_sendv,
	.sendmsg = tx_msg_sendmsg,
	.inject = tx_msg_inject,
	.senddata = tx_msg_senddata,
	.injectdata = tx_msg_injectdata,
};
struct fi_ops_tagged ofi_tagged_ops = {
	.size = sizeof ofi_tagged_ops,
	.recv = ofi_trecv,
	.recvv = ofi_trecvv,
	.recvmsg = ofi_trecvmsg,
	.send = tx_tagged_send,
	.sendv = tx_tagged_sendv,
	.sendmsg = tx_tagged_sendmsg,
	.inject = tx_tagged_inject,
	.senddata = tx_tagged_senddata,
	.injectdata = tx_tagged_injectdata,
};
