/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.c - reading and writing the regions of peers
 *
 * A part of an operation is a piece of memory here and a piece of a region there; each is
 * a put with ACK, or a get.  Parts are requests; the first of them stands for the whole
 * operation, and completes it when the last part is over.
 */
#include "prov.h"

#include <stdlib.h>
#include <string.h>

enum { RMA_PARTS = 2 * OFI_IOVS };

/* ---- ends ---- */

/* A part is over. */
static void rma_end(struct ofi_req *part, int err, ptl_ni_fail_t fail)
{
	struct ofi_req *whole = part->rma.whole;
	if (err && !whole->rma.err) {
		whole->rma.err = err;
		whole->prov_errno = (int)fail;
	}
	part->err = err;
	part->rma.over = true;
	part->ep->under_way--;
	if (part != whole)
		ofi_req_free(part);
	if (--whole->rma.parts)
		return;
	struct fi_cq_err_entry e = {
		.err = whole->rma.err,
		.prov_errno = whole->prov_errno,
	};
	ofi_complete(whole, whole->ep->tx_cq, &e, FI_ADDR_NOTAVAIL);
	free(whole->rma.copy);
	ofi_req_free(whole);
}

void ofi_rma_event(struct ofi_sink *sink, const ptl_event_t *event)
{
	struct ofi_req *part = container_of(sink, struct ofi_req, sink);
	int err = event->ni_fail_type != PTL_NI_OK ? FI_ECONNABORTED : 0;
	if (OFI_UNLIKELY(part->rma.over))
		return; /* it waits for other parts */
	bool sent = event->type == PTL_EVENT_SEND_END;
	part->sent |= sent;
	part->ended |= !sent;
	if (!sent && !err && event->mlength != part->rma.len)
		err = FI_EACCES; /* the region's index refuses */
	if (err || (part->sent && part->ended))
		rma_end(part, err, event->ni_fail_type);
}

/* ---- beginnings ---- */

/* Make a part of an operation, or return NULL: there is no room now. */
static struct ofi_req *rma_part(struct ofi_ep *ep, char *from, size_t len,
	const struct fi_rma_iov *there, size_t there_at)
{
	struct ofi_req *part = ofi_rma_new(ep, ofi_rma_event);
	if (!part)
		return NULL;
	part->rma.here = len ? from : NULL;
	part->rma.len = len;
	part->rma.there = there->addr + there_at;
	part->rma.key = there->key;
	return part;
}

/* Make all parts.  Return their number; 0: there is no room now. */
static int rma_split(struct ofi_ep *ep, const struct fi_msg_rma *m, size_t length,
	struct ofi_req *part[RMA_PARTS])
{
	size_t i = 0, k = 0, here_at = 0, there_at = 0, done = 0;
	int n = 0;
	do {
		while (i + 1 < m->iov_count && here_at == m->msg_iov[i].iov_len) {
			here_at = 0;
			i++;
		}
		while (k + 1 < m->rma_iov_count && there_at == m->rma_iov[k].len) {
			there_at = 0;
			k++;
		}
		size_t here = m->iov_count ? m->msg_iov[i].iov_len - here_at : 0;
		size_t there = m->rma_iov[k].len - there_at;
		size_t len = here < there ? here : there;
		char *from = len ? (char *)m->msg_iov[i].iov_base + here_at : NULL;
		part[n] = rma_part(ep, from, len, &m->rma_iov[k], there_at);
		if (!part[n]) {
			while (n)
				ofi_req_free(part[--n]);
			return 0;
		}
		n++;
		here_at += len;
		there_at += len;
		done += len;
	} while (done < length);
	return n;
}

/* Let Portals do a part; a code of it. */
static int rma_go(struct ofi_req *part, const struct ofi_peer *peer, bool reads,
	bool has_data, uint64_t data)
{
	ptl_pt_index_t index = (ptl_pt_index_t)(OFI_PT_RMA + 2 * peer->domain);
	ptl_size_t from = part->rma.here ? ofi_offset(part->rma.here) : 0;
	if (reads)
		return PtlGetRegion(part->op->md, from, part->rma.len, peer->id, index,
			ofi_node.ac, part->rma.key, part->rma.there);
	return PtlPutRegion(part->op->md, from, part->rma.len, PTL_ACK_REQ, peer->id,
		index + has_data, ofi_node.ac, part->rma.key, part->rma.there,
		data << OFI_DATA_SHIFT | part->ep->number << 8 | peer->endpoint);
}

/* Begin an operation with the domain entered. */
static ssize_t rma_begin(struct ofi_ep *ep, const struct fi_msg_rma *m, uint64_t flags,
	bool silent, size_t length)
{
	struct ofi_req *part[RMA_PARTS];
	bool reads = flags & FI_READ, has_data = flags & FI_REMOTE_CQ_DATA;
	const struct ofi_peer *peer = ofi_av_peer(ep->av, m->addr);
	if (OFI_UNLIKELY(!peer))
		return -FI_EINVAL;
	int n = rma_split(ep, m, length, part);
	if (OFI_UNLIKELY(!n))
		return -FI_EAGAIN;
	struct ofi_req *whole = part[0];
	whole->context = m->context;
	whole->flags = FI_RMA | (reads ? FI_READ : FI_WRITE);
	whole->cntr = reads ? OFI_CNTR_READ : OFI_CNTR_WRITE;
	whole->silent = ofi_tx_is_silent(ep, flags, silent);
	whole->rma.parts = n;
	if (flags & FI_INJECT && length) {
		whole->rma.copy = malloc(length);
		if (!whole->rma.copy) {
			while (n)
				ofi_req_free(part[--n]);
			return -FI_ENOMEM;
		}
	}
	ep->under_way += n;
	char *copy = whole->rma.copy;
	for (int i = 0, rc; i < n; i++) {
		part[i]->rma.whole = whole;
		if (copy) {
			memcpy(copy, part[i]->rma.here, part[i]->rma.len);
			part[i]->rma.here = copy;
			copy += part[i]->rma.len;
		}
		/* The data come once, with the last part. */
		rc = rma_go(part[i], peer, reads, has_data && i == n - 1, m->data);
		FAULT_POINT("ofi.rma_sent");
		if (OFI_LIKELY(rc == PTL_OK))
			continue;
		if (i > 0) {
			rma_end(part[i], FI_EIO, PTL_NI_FAIL);
			continue;
		}
		ep->under_way -= n;
		free(whole->rma.copy);
		while (n)
			ofi_req_free(part[--n]);
		return ofi_error(rc);
	}
	return 0;
}

/* flags are FI_READ or FI_WRITE, and those of the call; silent: fi_inject_write and its
 * kin. */
static ssize_t rma_call(
	struct fid_ep *fid, const struct fi_msg_rma *m, uint64_t flags, bool silent)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	uint64_t kind = flags & FI_READ ? FI_READ : FI_WRITE;
	const uint64_t known = kind | OFI_TX_FLAGS | FI_MORE |
			       (kind == FI_WRITE ? FI_REMOTE_CQ_DATA : 0);
	if (OFI_UNLIKELY(!ep->enabled || !ep->tx))
		return -FI_EOPBADSTATE;
	if (OFI_UNLIKELY(!(ep->caps & kind)))
		return -FI_EOPNOTSUPP;
	if (OFI_UNLIKELY(!m->rma_iov || !m->rma_iov_count || m->rma_iov_count > OFI_IOVS))
		return -FI_EINVAL;
	if (OFI_UNLIKELY(flags & ~known))
		return -FI_EBADFLAGS;
	size_t length;
	ssize_t rc = ofi_iov_length(m->msg_iov, m->iov_count, &length);
	if (OFI_UNLIKELY(rc))
		return rc;
	size_t left = length;
	for (size_t i = 0; i < m->rma_iov_count; i++) {
		if (OFI_UNLIKELY(m->rma_iov[i].len > left))
			return -FI_EINVAL;
		left -= m->rma_iov[i].len;
	}
	if (OFI_UNLIKELY(left || (flags & FI_INJECT && length > OFI_INJECT)))
		return -FI_EINVAL;
	OFI_ENTER(ep->domain);
	return ofi_tx_leave(ep, rma_begin(ep, m, flags, silent, length));
}

/* ---- calls ---- */

/* A call with a vector of this length here, and one piece there.  flags have FI_READ
 * or FI_WRITE; those of the endpoint are added, but an inject takes none of them. */
static ssize_t rma_plain(struct fid_ep *fid, const struct iovec *iov, size_t count,
	size_t len, fi_addr_t addr, uint64_t there, uint64_t key, uint64_t data,
	uint64_t flags, void *context)
{
	const struct fi_rma_iov rma_iov = {there, len, key};
	bool silent = flags & FI_INJECT;
	if (!silent)
		flags |= ofi_tx_flags(fid) & ~(flags & FI_READ ? FI_INJECT : 0);
	return rma_call(fid,
		&(struct fi_msg_rma){iov, NULL, count, addr, &rma_iov, 1, context, data},
		flags, silent);
}

static ssize_t rma_one(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr,
	uint64_t there, uint64_t key, uint64_t data, uint64_t flags, void *context)
{
	const struct iovec iov = {(void *)(uintptr_t)buf, len};
	return rma_plain(fid, &iov, 1, len, addr, there, key, data, flags, context);
}

static ssize_t rma_vector(struct fid_ep *fid, const struct iovec *iov, size_t count,
	fi_addr_t addr, uint64_t there, uint64_t key, uint64_t flags, void *context)
{
	size_t len;
	int rc = ofi_iov_length(iov, count, &len);
	if (rc)
		return rc;
	return rma_plain(fid, iov, count, len, addr, there, key, 0, flags, context);
}

/* Define the calls of one kind, with a buffer of this type and with a vector. */
#define RMA_CALLS(name, type, kind)                                                      \
	static ssize_t name(struct fid_ep *fid, type *buf, size_t len, void *desc,       \
		fi_addr_t addr, uint64_t there, uint64_t key, void *context)             \
	{                                                                                \
		(void)desc;                                                              \
		return rma_one(fid, buf, len, addr, there, key, 0, kind, context);       \
	}                                                                                \
	static ssize_t name##v(struct fid_ep *fid, const struct iovec *iov, void **desc, \
		size_t count, fi_addr_t addr, uint64_t there, uint64_t key,              \
		void *context)                                                           \
	{                                                                                \
		(void)desc;                                                              \
		return rma_vector(fid, iov, count, addr, there, key, kind, context);     \
	}

RMA_CALLS(rma_read, void, FI_READ)
RMA_CALLS(rma_write, const void, FI_WRITE)

static ssize_t rma_readmsg(
	struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	if (flags & FI_INJECT)
		return -FI_EBADFLAGS;
	return msg ? rma_call(fid, msg, FI_READ | flags, false) : -FI_EINVAL;
}

static ssize_t rma_writemsg(
	struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return msg ? rma_call(fid, msg, FI_WRITE | flags, false) : -FI_EINVAL;
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr,
	uint64_t there, uint64_t key)
{
	return rma_one(fid, buf, len, addr, there, key, 0, FI_WRITE | FI_INJECT, NULL);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
	uint64_t data, fi_addr_t addr, uint64_t there, uint64_t key, void *context)
{
	(void)desc;
	return rma_one(fid, buf, len, addr, there, key, data,
		FI_WRITE | FI_REMOTE_CQ_DATA, context);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len,
	uint64_t data, fi_addr_t addr, uint64_t there, uint64_t key)
{
	return rma_one(fid, buf, len, addr, there, key, data,
		FI_WRITE | FI_INJECT | FI_REMOTE_CQ_DATA, NULL);
}

struct fi_ops_rma ofi_rma_ops = {sizeof ofi_rma_ops, rma_read, rma_readv, rma_readmsg,
	rma_write, rma_writev, rma_writemsg, rma_inject, rma_writedata, rma_injectdata};
