/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rx.c - receiving: posted receives, those that wait, and what late messages do to them
 *
 * A receive that no late message matches is posted in the firmware.  If the firmware
 * refuses, since another late message is just arriving, or if its queue has no credits,
 * the receive waits in a FIFO, and later receives of the list behind it.  No message that
 * has arrived matches a receive that waits: each new receive looks for its message first,
 * and each new message for its receive.
 */
#include "prov.h"

#include <string.h>

enum {
	RX_MULTI_TAKES = 1024, /* messages that a buffer for many takes at most */
	RX_TRIES = 16          /* to post a receive while messages arrive */
};

static void rx_event(struct ofi_sink *sink, const ptl_event_t *event);

/* ---- completion ---- */

/* A message, as the completion of its receive tells it. */
struct rx_message {
	uint64_t bits, hdr;
	ptl_process_id_t from;
	size_t len;
	size_t placed;
	void *buf;
	ptl_ni_fail_t fail;
	uint64_t flags;
};

/* Describe it in an entry; return its source. */
static inline fi_addr_t rx_entry(
	struct ofi_ep *ep, const struct rx_message *m, struct fi_cq_err_entry *e)
{
	*e = (struct fi_cq_err_entry){
		.flags = m->flags,
		.len = m->placed,
		.buf = m->buf,
		.tag = m->bits & OFI_TAG_MASK,
	};
	if (m->bits & OFI_HAS_DATA) {
		e->flags |= FI_REMOTE_CQ_DATA;
		e->data = m->hdr >> OFI_DATA_SHIFT;
	}
	if (OFI_UNLIKELY(m->fail != PTL_NI_OK)) {
		e->err = FI_ECONNABORTED;
		e->prov_errno = (int)m->fail;
	} else if (OFI_UNLIKELY(m->placed < m->len)) {
		e->err = FI_ETRUNC;
		e->olen = m->len - m->placed;
	}
	if (!(ep->caps & FI_SOURCE))
		return FI_ADDR_NOTAVAIL;
	return ofi_av_find(ep->av, m->from,
		(unsigned)((m->bits & OFI_SOURCE_MASK) >> OFI_SOURCE_SHIFT));
}

static inline void rx_complete(struct ofi_req *req, const struct rx_message *m)
{
	struct fi_cq_err_entry e;
	fi_addr_t source = rx_entry(req->ep, m, &e);
	ofi_complete(req, req->ep->rx_cq, &e, source);
}

static void rx_credits(struct ofi_req *req, int count)
{
	req->rx.credits -= count;
	req->ep->rx->posted += count;
}

/* Forget a receive, which is in no list and which no event names any more.  A buffer for
 * many messages goes with the last piece that is on its way into it. */
static void rx_end(struct ofi_req *req)
{
	req->rx.over = true;
	rx_credits(req, req->rx.credits);
	if (!req->rx.pieces)
		ofi_req_free(req);
}

/* Complete a receive without a message, and forget it. */
static void rx_fail(struct ofi_req *req, int err)
{
	struct fi_cq_err_entry e = {.err = err, .buf = req->rx.iov[0].iov_base};
	ofi_complete(req, req->ep->rx_cq, &e, FI_ADDR_NOTAVAIL);
	rx_end(req);
}

/* ---- posting ---- */

/* Post the receive; a code of Portals.  PTL_MD_NO_UPDATE: a late message arrives. */
static inline int rx_post(struct ofi_list *list, struct ofi_req *req)
{
	struct ofi_queue *queue = req->ep->rx;
	ptl_md_t md = {
		.start = req->rx.iov[0].iov_base,
		.length = req->rx.iov[0].iov_len,
		.threshold = 1,
		.options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE | PTL_MD_TRUNCATE,
		.user_ptr = &req->sink,
		.eq_handle = queue->eq,
	};
	if (OFI_UNLIKELY(!queue->posted))
		return PTL_NO_SPACE;
	ofi_describe(&md, req->rx.iov, req->rx.count);
	if (OFI_UNLIKELY(req->rx.multi)) {
		md.threshold =
			queue->posted < RX_MULTI_TAKES ? queue->posted : RX_MULTI_TAKES;
		md.options ^= PTL_MD_TRUNCATE | PTL_MD_MAX_SIZE;
		md.max_size = req->ep->min_multi_recv;
	}
	int rc = PtlMEMDPost(ofi_node.ni, list->mark, req->peer, req->rx.bits,
		req->rx.ignore, PTL_UNLINK, PTL_INS_BEFORE, md, PTL_UNLINK, &req->me,
		NULL, list->late.eq);
	if (OFI_LIKELY(rc == PTL_OK)) {
		FAULT_POINT("ofi.posted");
		rx_credits(req, -md.threshold);
		TAILQ_INSERT_TAIL(&list->posted, req, link);
	}
	return rc;
}

/* A message has come into a posted receive. */
static OFI_FAST void rx_event(struct ofi_sink *sink, const ptl_event_t *event)
{
	struct ofi_req *req = container_of(sink, struct ofi_req, sink);
	struct rx_message m = {
		.bits = event->match_bits,
		.hdr = event->hdr_data,
		.from = event->initiator,
		.len = event->rlength,
		.placed = event->mlength,
		.buf = req->rx.iov[0].iov_base,
		.fail = event->ni_fail_type,
	};
	if (OFI_UNLIKELY(event->type != PTL_EVENT_PUT_END))
		return;
	rx_credits(req, 1);
	if (OFI_UNLIKELY(req->rx.multi)) {
		m.buf = (char *)m.buf + event->offset;
		if (!event->unlinked) {
			rx_complete(req, &m);
			return;
		}
		rx_credits(req, req->rx.credits);
		req->rx.over = true;
		m.flags = req->rx.pieces ? 0 : FI_MULTI_RECV;
	}
	TAILQ_REMOVE(&req->rx.list->posted, req, link);
	rx_complete(req, &m);
	if (OFI_LIKELY(!req->rx.pieces))
		ofi_req_free(req);
}

/* ---- late messages ---- */

static size_t rx_scatter(
	const struct iovec *iov, size_t count, const char *bytes, size_t len)
{
	size_t done = 0;
	for (size_t i = 0; i < count && done < len; i++) {
		size_t n = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;
		memcpy(iov[i].iov_base, bytes + done, n);
		done += n;
	}
	return done;
}

/* A piece is over.  Return true if its buffer for many messages goes with it. */
static bool rx_leave_whole(struct ofi_req *req)
{
	struct ofi_req *whole = req->rx.whole;
	if (!whole || --whole->rx.pieces || !whole->rx.over)
		return false;
	ofi_req_free(whole);
	return true;
}

/* A late message is in its buffer, or has gone. */
static void rx_late_done(struct ofi_req *req, size_t placed, ptl_ni_fail_t fail)
{
	struct ofi_late *late = req->rx.late;
	struct rx_message m = {
		.bits = late->bits,
		.hdr = late->hdr,
		.from = late->from,
		.len = late->len,
		.placed = placed,
		.buf = req->rx.iov[0].iov_base,
		.fail = fail,
		.flags = rx_leave_whole(req) ? FI_MULTI_RECV : 0,
	};
	if (!req->rx.discards)
		rx_complete(req, &m);
	ofi_late_free(req->rx.list, late);
	ofi_req_free(req);
}

/* The bytes of an exposed message are here. */
static void rx_fetch_event(struct ofi_sink *sink, const ptl_event_t *event)
{
	struct ofi_req *req = container_of(sink, struct ofi_req, sink);
	if (event->ni_fail_type == PTL_NI_OK && event->type != PTL_EVENT_REPLY_END)
		return;
	FAULT_POINT("ofi.fetched");
	req->ep->under_way--;
	/* The sender may have withdrawn it, or have less than its header says. */
	ptl_ni_fail_t fail =
		event->mlength < req->rx.len ? PTL_NI_FAIL : event->ni_fail_type;
	req->err = fail != PTL_NI_OK ? FI_ECONNABORTED : 0;
	rx_late_done(req, req->err ? 0 : event->mlength, fail);
}

/* Take an op for len bytes of a receive.  Exposed messages of the program itself, which
 * may wait for this receive, may have all of its ops. */
static bool rx_borrow(struct ofi_req *req, size_t len)
{
	static const enum ofi_ops uses[] = {OFI_OF_PROGRAM, OFI_OF_FETCH};
	for (int i = 0; i < 2; i++)
		if (ofi_op_borrow(req->ep->rx, req, req->rx.iov, len ? req->rx.count : 0,
			    uses[i]))
			return true;
	return false;
}

/* Ask for the bytes of an exposed message.  Return false if no op is free. */
static bool rx_fetch(struct ofi_req *req)
{
	struct ofi_late *late = req->rx.late;
	size_t room = 0;
	for (size_t i = 0; i < req->rx.count; i++)
		room += req->rx.iov[i].iov_len;
	size_t len = late->len < room ? late->len : room;
	bool one = req->rx.count == 1;
	if (!rx_borrow(req, len))
		return false;
	req->sink.event = rx_fetch_event;
	req->rx.len = len;
	ptl_size_t offset = len && one ? ofi_offset(req->rx.iov[0].iov_base) : 0;
	int rc = PtlGetRegion(req->op->md, offset, len, late->from, OFI_PT_EXPOSED,
		ofi_node.ac, (uint32_t)late->hdr, 0);
	FAULT_POINT("ofi.fetching");
	req->ep->under_way += rc == PTL_OK;
	if (rc == PTL_NO_SPACE) {
		ofi_op_return(req);
		return false;
	}
	if (rc != PTL_OK)
		rx_late_done(req, 0, PTL_NI_FAIL);
	return true;
}

/* The receive has taken the message, which is ready. */
static void rx_deliver(struct ofi_req *req)
{
	struct ofi_late *late = req->rx.late;
	if (!(late->bits & OFI_EXPOSED) || late->fail != PTL_NI_OK) {
		size_t placed = late->fail != PTL_NI_OK
					? 0
					: rx_scatter(req->rx.iov, req->rx.count,
						  late->bytes, late->len);
		rx_late_done(req, placed, late->fail);
	} else if (!rx_fetch(req)) {
		TAILQ_INSERT_TAIL(&req->rx.list->stalled, req, link);
		req->ep->domain->waiting++;
	}
}

/* The receive takes the message, which has left its list. */
static void rx_take(struct ofi_req *req, struct ofi_late *late)
{
	req->rx.late = late;
	late->taker = req;
	if (late->ready)
		rx_deliver(req);
}

static inline bool rx_matches(const struct ofi_req *req, const struct ofi_late *late)
{
	if ((late->bits ^ req->rx.bits) & ~req->rx.ignore)
		return false;
	if (req->peer.nid != PTL_NID_ANY && !ofi_is_same(req->peer, late->from))
		return false;
	return !req->rx.multi || late->len <= req->rx.iov[0].iov_len;
}

/* A buffer for many messages takes one of them, and shrinks.  The completion of its last
 * piece gives it back.  Return false if there is no memory. */
static bool rx_take_piece(struct ofi_req *whole, struct ofi_late *late)
{
	struct iovec *rest = &whole->rx.iov[0];
	struct ofi_req *req = ofi_req_new(whole->ep);
	if (!req)
		return false;
	req->context = whole->context;
	req->flags = whole->flags;
	req->cntr = whole->cntr;
	req->silent = whole->silent;
	req->rx.list = whole->rx.list;
	req->rx.iov[0] = (struct iovec){rest->iov_base, late->len};
	req->rx.count = 1;
	req->rx.whole = whole;
	rest->iov_base = (char *)rest->iov_base + late->len;
	rest->iov_len -= late->len;
	whole->rx.pieces++;
	whole->rx.over = rest->iov_len < whole->ep->min_multi_recv;
	rx_take(req, late);
	return true;
}

/* Find the first message that the receive matches. */
static struct ofi_late *rx_find(struct ofi_list *list, const struct ofi_req *req)
{
	struct ofi_late *late;
	TAILQ_FOREACH(late, &list->arrived, next)
	if (rx_matches(req, late))
		return late;
	return NULL;
}

/* Give the receive what has arrived for it.  Return true if it takes no more. */
static bool rx_take_arrived(struct ofi_list *list, struct ofi_req *req)
{
	struct ofi_late *late;
	while ((late = rx_find(list, req))) {
		TAILQ_REMOVE(&list->arrived, late, next);
		if (!req->rx.multi) {
			rx_take(req, late);
			return true;
		}
		size_t left = req->rx.iov[0].iov_len - late->len;
		bool over = left < req->ep->min_multi_recv;
		if (!rx_take_piece(req, late)) {
			TAILQ_INSERT_HEAD(&list->arrived, late, next);
			return false;
		}
		if (over)
			return true; /* req may be gone */
	}
	return false;
}

static void rx_wait_no_more(struct ofi_reqs *reqs, struct ofi_req *req)
{
	TAILQ_REMOVE(reqs, req, link);
	req->ep->domain->waiting--;
}

/* A message begins to arrive: the first receive that waits for it takes it. */
static void rx_offer(struct ofi_list *list, struct ofi_late *late)
{
	struct ofi_req *req;
	TAILQ_FOREACH(req, &list->waiting, link)
	if (rx_matches(req, late))
		break;
	if (!req)
		return;
	bool last = !req->rx.multi ||
		    req->rx.iov[0].iov_len - late->len < req->ep->min_multi_recv;
	if (last)
		rx_wait_no_more(&list->waiting, req);
	TAILQ_REMOVE(&list->arrived, late, next);
	if (!req->rx.multi) {
		rx_take(req, late);
	} else if (!rx_take_piece(req, late)) {
		TAILQ_INSERT_TAIL(&list->arrived, late, next);
		if (!last)
			rx_wait_no_more(&list->waiting, req);
		rx_fail(req, FI_ENOMEM);
	}
}

/* ---- the list ---- */

/* Post what waits, as far as the firmware accepts it. */
static void list_flush(struct ofi_list *list)
{
	struct ofi_req *req;
	for (int n = 0; n < RX_TRIES && (req = TAILQ_FIRST(&list->waiting));) {
		TAILQ_REMOVE(&list->waiting, req, link);
		int rc = rx_post(list, req);
		if (rc == PTL_OK) {
			req->ep->domain->waiting--;
			continue;
		}
		if (rc != PTL_MD_NO_UPDATE && ofi_error(rc) != -FI_EAGAIN) {
			req->ep->domain->waiting--;
			rx_fail(req, -ofi_error(rc)); /* it will never be accepted */
			continue;
		}
		TAILQ_INSERT_HEAD(&list->waiting, req, link);
		if (rc != PTL_MD_NO_UPDATE || !ofi_late_drain(list))
			return;
		n++;
	}
}

static void list_settle(struct ofi_list *list)
{
	struct ofi_req *req;
	ofi_late_drain(list);
	while ((req = TAILQ_FIRST(&list->stalled))) {
		TAILQ_REMOVE(&list->stalled, req, link);
		if (!rx_fetch(req)) {
			TAILQ_INSERT_HEAD(&list->stalled, req, link);
			break;
		}
		list->ep->domain->waiting--;
	}
	if (!TAILQ_EMPTY(&list->waiting))
		list_flush(list);
}

/* Receive what has arrived, or post the receive, or let it wait. */
static OFI_SLOW void rx_receive_slowly(struct ofi_list *list, struct ofi_req *req)
{
	list_settle(list);
	for (int n = 0; n < RX_TRIES; n++) {
		if (rx_take_arrived(list, req))
			return;
		if (!TAILQ_EMPTY(&list->waiting))
			break;
		int rc = rx_post(list, req);
		if (rc == PTL_OK)
			return;
		if (rc != PTL_MD_NO_UPDATE)
			break;
		ofi_late_drain(list);
	}
	TAILQ_INSERT_TAIL(&list->waiting, req, link);
	req->ep->domain->waiting++;
}

int ofi_list_open(struct ofi_list *list, struct ofi_ep *ep, int kind)
{
	list->ep = ep;
	list->index = (ptl_pt_index_t)(OFI_PT_MESSAGES + 2 * (int)ep->number + kind);
	list->offer = rx_offer;
	list->ready = rx_deliver;
	list->settle = list_settle;
	TAILQ_INIT(&list->posted);
	TAILQ_INIT(&list->waiting);
	TAILQ_INIT(&list->stalled);
	TAILQ_INIT(&list->canceled);
	int rc = ofi_late_open(list);
	if (rc)
		list->ep = NULL;
	return rc;
}

bool ofi_list_withdraw(struct ofi_list *list)
{
	struct ofi_reqs *wait[] = {&list->waiting, &list->stalled};
	struct ofi_req *req, *next;
	for (int i = 0; i < 2; i++) {
		while ((req = TAILQ_FIRST(wait[i]))) {
			rx_wait_no_more(wait[i], req);
			if (req->rx.late) /* its sender is told as the list closes */
				TAILQ_INSERT_TAIL(&list->arrived, req->rx.late, next);
			(void)rx_leave_whole(req);
			rx_end(req);
		}
	}
	for (req = TAILQ_FIRST(&list->posted); req; req = next) {
		next = TAILQ_NEXT(req, link);
		if (!req->rx.credits || PtlMEUnlink(req->me) != PTL_OK)
			continue; /* a message is in it */
		TAILQ_REMOVE(&list->posted, req, link);
		TAILQ_INSERT_TAIL(&list->canceled, req, link);
	}
	return TAILQ_EMPTY(&list->posted) && TAILQ_EMPTY(&list->arriving);
}

void ofi_list_close(struct ofi_list *list)
{
	struct ofi_req *req;
	while ((req = TAILQ_FIRST(&list->canceled))) {
		TAILQ_REMOVE(&list->canceled, req, link);
		rx_end(req);
	}
	ofi_late_close(list);
	list->ep = NULL;
}

/* ---- the request of a call ---- */

/* Describe the messages that the call wants. */
static inline int rx_want(struct ofi_req *req, const struct fi_msg_tagged *m)
{
	struct ofi_ep *ep = req->ep;
	req->peer = ofi_anyone;
	req->rx.bits = m->tag & OFI_TAG_MASK;
	req->rx.ignore = (m->ignore & OFI_TAG_MASK) | OFI_EXPOSED | OFI_HAS_DATA;
	if (m->addr == FI_ADDR_UNSPEC || !(ep->caps & FI_DIRECTED_RECV)) {
		req->rx.ignore |= OFI_SOURCE_MASK;
		return 0;
	}
	const struct ofi_peer *peer = ofi_av_peer(ep->av, m->addr);
	if (OFI_UNLIKELY(!peer))
		return -FI_EINVAL;
	req->peer = peer->id;
	req->rx.bits |= (uint64_t)peer->endpoint << OFI_SOURCE_SHIFT;
	return 0;
}

/* Make the request of a call, for a list of the endpoint, which is entered. */
static inline struct ofi_req *rx_request(
	struct ofi_list *list, const struct fi_msg_tagged *m, uint64_t flags, int *rc)
{
	struct ofi_ep *ep = list->ep;
	struct ofi_req *req = ofi_req_new(ep);
	if (OFI_UNLIKELY(!req)) {
		*rc = -FI_ENOMEM;
		return NULL;
	}
	*rc = rx_want(req, m);
	if (OFI_UNLIKELY(*rc)) {
		ofi_req_free(req);
		return NULL;
	}
	req->sink.event = rx_event;
	req->context = m->context;
	req->flags = FI_RECV | (list == &ep->lists[OFI_MSG] ? FI_MSG : FI_TAGGED);
	req->cntr = OFI_CNTR_RECV;
	req->silent = ep->rx_selective && !(flags & FI_COMPLETION);
	req->rx.list = list;
	req->rx.count = m->iov_count;
	for (size_t i = 0; i < m->iov_count; i++)
		req->rx.iov[i] = m->msg_iov[i];
	if (OFI_UNLIKELY(!m->iov_count)) {
		req->rx.iov[0] = (struct iovec){0};
		req->rx.count = 1;
	}
	req->rx.late = NULL;
	req->rx.discards = req->rx.multi = req->rx.over = false;
	req->rx.credits = req->rx.pieces = 0;
	req->rx.whole = NULL;
	return req;
}

/* ---- peek, claim, discard ---- */

/* Throw a message away; the sender of an exposed one learns of it. */
static void rx_discard(struct ofi_req *req, struct ofi_late *late)
{
	req->rx.count = 0;
	req->rx.discards = true;
	rx_take(req, late);
}

/* Tell of a message that has arrived, and keep it for a claim or throw it away if the
 * call says so. */
static int rx_peek(struct ofi_list *list, struct ofi_req *req, uint64_t flags)
{
	struct ofi_ep *ep = list->ep;
	list_settle(list);
	struct ofi_late *late = rx_find(list, req);
	struct rx_message m = {0};
	struct fi_cq_err_entry e = {.err = FI_ENOMSG, .tag = req->rx.bits & OFI_TAG_MASK};
	fi_addr_t source = FI_ADDR_NOTAVAIL;
	if (late) {
		m = (struct rx_message){.bits = late->bits,
			.hdr = late->hdr,
			.from = late->from,
			.len = late->len,
			.placed = late->len};
		source = rx_entry(ep, &m, &e);
	}
	e.op_context = req->context;
	e.flags |= req->flags;
	if (ep->rx_cq)
		ofi_cq_add(ep->rx_cq, &e, source);
	if (late && flags & (FI_CLAIM | FI_DISCARD))
		TAILQ_REMOVE(&list->arrived, late, next);
	if (late && flags & FI_DISCARD) {
		rx_discard(req, late);
		return 0;
	}
	if (late && flags & FI_CLAIM) {
		late->context = req->context;
		TAILQ_INSERT_TAIL(&list->claimed, late, next);
	}
	ofi_req_free(req);
	return 0;
}

/* Receive a claimed message, or throw it away.  Return 0 or -FI_EINVAL. */
static int rx_claim(struct ofi_list *list, struct ofi_req *req, uint64_t flags)
{
	struct ofi_late *late;
	TAILQ_FOREACH(late, &list->claimed, next)
	if (late->context == req->context)
		break;
	if (!late) {
		ofi_req_free(req);
		return -FI_EINVAL;
	}
	TAILQ_REMOVE(&list->claimed, late, next);
	if (flags & FI_DISCARD) {
		struct fi_cq_err_entry e = {.tag = late->bits & OFI_TAG_MASK};
		ofi_complete(req, list->ep->rx_cq, &e, FI_ADDR_NOTAVAIL);
		rx_discard(req, late);
	} else {
		rx_take(req, late);
	}
	return 0;
}

/* ---- calls ---- */

#define RX_FLAGS (OFI_RX_FLAGS | FI_MORE)
#define RX_LOOKS (FI_PEEK | FI_CLAIM | FI_DISCARD)

/* Receive; looks: the flags have one of RX_LOOKS. */
static inline ssize_t rx_begin(struct fid_ep *fid, int kind,
	const struct fi_msg_tagged *m, uint64_t flags, bool looks)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	struct ofi_list *list = &ep->lists[kind];
	size_t length;
	if (OFI_UNLIKELY(!list->ep))
		return ep->enabled ? -FI_EOPNOTSUPP : -FI_EOPBADSTATE;
	if (OFI_UNLIKELY(m->tag & ~m->ignore & ~OFI_TAG_MASK))
		return -FI_EINVAL;
	int rc = ofi_iov_length(m->msg_iov, m->iov_count, &length);
	if (OFI_UNLIKELY(rc))
		return rc;
	if (OFI_UNLIKELY(flags & FI_MULTI_RECV) &&
		(kind != OFI_MSG || m->iov_count != 1 || !(ep->caps & FI_MULTI_RECV)))
		return -FI_EINVAL;
	OFI_ENTER(ep->domain);
	struct ofi_req *req = rx_request(list, m, flags, &rc);
	if (OFI_LIKELY(req != NULL) && looks) {
		rc = (flags & FI_PEEK ? rx_peek : rx_claim)(list, req, flags);
	} else if (OFI_LIKELY(req != NULL)) {
		req->rx.multi = flags & FI_MULTI_RECV;
		if (!TAILQ_EMPTY(&list->arrived) || !TAILQ_EMPTY(&list->waiting) ||
			rx_post(list, req) != PTL_OK)
			rx_receive_slowly(list, req);
	}
	ofi_leave(ep->domain);
	return rc;
}

/* Receive with the flags of the endpoint. */
static inline ssize_t rx_plain(struct fid_ep *ep, int kind, const struct iovec *iov,
	size_t count, fi_addr_t addr, uint64_t tag, uint64_t ignore, void *context)
{
	uint64_t flags = container_of(ep, struct ofi_ep, fid)->rx_flags;
	if (kind == OFI_TAGGED)
		flags &= ~FI_MULTI_RECV;
	return rx_begin(ep, kind,
		&(struct fi_msg_tagged){.msg_iov = iov,
			.iov_count = count,
			.addr = addr,
			.tag = tag,
			.ignore = ignore,
			.context = context},
		flags, false);
}

/* Define the calls of one kind that have no message: those with a tag have it, and the
 * bits of it to ignore, behind the address. */
#define RX_CALLS(name, kind, tag, ignore, ...)                                           \
	OFI_FAST ssize_t name(struct fid_ep *ep, void *buf, size_t len, void *desc,      \
		__VA_ARGS__, void *context)                                              \
	{                                                                                \
		(void)desc;                                                              \
		return rx_plain(ep, kind, &(struct iovec){buf, len}, 1, addr, tag,       \
			ignore, context);                                                \
	}                                                                                \
	ssize_t name##v(struct fid_ep *ep, const struct iovec *iov, void **desc,         \
		size_t count, __VA_ARGS__, void *context)                                \
	{                                                                                \
		(void)desc;                                                              \
		return rx_plain(ep, kind, iov, count, addr, tag, ignore, context);       \
	}

RX_CALLS(ofi_recv, OFI_MSG, 0, 0, fi_addr_t addr)
RX_CALLS(
	ofi_trecv, OFI_TAGGED, tag, ignore, fi_addr_t addr, uint64_t tag, uint64_t ignore)

ssize_t ofi_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	if (!msg)
		return -FI_EINVAL;
	if (flags & ~RX_FLAGS)
		return -FI_EBADFLAGS;
	struct fi_msg_tagged m = ofi_untagged(msg);
	return rx_begin(ep, OFI_MSG, &m, flags, false);
}

ssize_t ofi_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	const uint64_t looks = flags & RX_LOOKS;
	if (!msg)
		return -FI_EINVAL;
	if (flags & ~((RX_FLAGS & ~FI_MULTI_RECV) | RX_LOOKS) || looks == FI_DISCARD ||
		looks == RX_LOOKS)
		return -FI_EBADFLAGS;
	struct fi_msg_tagged m = *msg;
	if (flags & FI_PEEK)
		m.iov_count = 0; /* no buffer is used */
	return rx_begin(ep, OFI_TAGGED, &m, flags, looks != 0);
}

/* ---- cancel ---- */

static struct ofi_req *rx_find_context(struct ofi_reqs *reqs, void *context)
{
	struct ofi_req *req;
	TAILQ_FOREACH(req, reqs, link)
	if (req->context == context)
		return req;
	return NULL;
}

/* Return 0 if the list has, or had, the receive, or -FI_ENOENT. */
static int rx_cancel(struct ofi_list *list, void *context)
{
	struct ofi_req *req = rx_find_context(&list->waiting, context);
	if (req) {
		rx_wait_no_more(&list->waiting, req);
		rx_fail(req, FI_ECANCELED);
		return 0;
	}
	req = rx_find_context(&list->posted, context);
	if (!req)
		return rx_find_context(&list->stalled, context) ? 0 : -FI_ENOENT;
	if (PtlMEUnlink(req->me) != PTL_OK)
		return 0; /* a message is in it */
	TAILQ_REMOVE(&list->posted, req, link);
	if (req->rx.multi) {
		/* Messages that are in the buffer complete first. */
		TAILQ_INSERT_TAIL(&list->canceled, req, link);
		if (!ofi_queue_fence(req->ep->rx))
			return 0; /* the endpoint's end frees it */
		TAILQ_REMOVE(&list->canceled, req, link);
	}
	rx_fail(req, FI_ECANCELED);
	return 0;
}

ssize_t ofi_cancel(fid_t fid, void *context)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	OFI_ENTER(ep->domain);
	int rc = -FI_ENOENT;
	for (int i = 0; i < OFI_LISTS && rc; i++)
		if (ep->lists[i].ep)
			rc = rx_cancel(&ep->lists[i], context);
	ofi_leave(ep->domain);
	return rc;
}
