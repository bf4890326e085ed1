/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomic.c - atomic operations on the regions of peers
 *
 * An operation is one request of Portals (PtlXAtomic).  If its operands are in pieces, or
 * may change when the call returns, they are copied into the request.  The former values
 * come there, too, if they go to pieces: so elements of vectors need no descriptors.
 * An operation that fetches has one event, its REPLY_END.
 */
#include "prov.h"

#include <string.h>

enum {
	ATOMIC_BYTES = sizeof(((struct ofi_req *)0)->rma.operands),
	ATOMIC_OPS = FI_MSWAP + 1,
	ATOMIC_TYPES = FI_DOUBLE + 1
};

_Static_assert(FI_MIN == (int)PTLX_MIN && FI_SUM == (int)PTLX_SUM &&
		       FI_ATOMIC_READ == (int)PTLX_READ && FI_CSWAP == (int)PTLX_CSWAP &&
		       FI_MSWAP == (int)PTLX_MSWAP && FI_INT8 == (int)PTLX_INT8 &&
		       FI_UINT64 == (int)PTLX_UINT64 && FI_DOUBLE == (int)PTLX_DOUBLE,
	"operations and types have the numbers of libfabric");

/* An operation as its call describes it.  Counts are of vectors. */
struct atomic_call {
	const struct fi_msg_atomic *msg; /* the operands, and one place */
	const struct fi_ioc *compare;
	size_t compare_count;
	struct fi_ioc *results;
	size_t result_count;
	uint64_t kind;  /* FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC or 0 */
	uint64_t flags; /* of the program */
	bool silent;    /* fi_inject_atomic */
};

/* Return the most bytes of an operation of this kind. */
static size_t atomic_bytes(uint64_t kind)
{
	return kind == FI_COMPARE_ATOMIC ? ATOMIC_BYTES / 2 : ATOMIC_BYTES;
}

/* Return the most elements of an operation, or 0: there is no such one. */
static size_t atomic_most(enum fi_datatype type, enum fi_op op, uint64_t kind)
{
	static const uint8_t size[ATOMIC_TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
	if ((unsigned)type >= ATOMIC_TYPES || (unsigned)op >= ATOMIC_OPS)
		return 0;
	bool real = type == FI_FLOAT || type == FI_DOUBLE;
	bool on_bits = op == FI_BOR || op == FI_BAND || op == FI_BXOR || op == FI_MSWAP;
	if ((real && on_bits) || (op >= FI_CSWAP) != (kind == FI_COMPARE_ATOMIC) ||
		(op == FI_ATOMIC_READ && kind != FI_FETCH_ATOMIC))
		return 0;
	return atomic_bytes(kind) / size[type];
}

int ofi_query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
	struct fi_atomic_attr *attr, uint64_t flags)
{
	(void)domain;
	if (!attr || (flags & FI_FETCH_ATOMIC && flags & FI_COMPARE_ATOMIC))
		return -FI_EINVAL;
	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EBADFLAGS; /* also FI_TAGGED: there are no tagged ones */
	attr->count = atomic_most(type, op, flags);
	if (!attr->count)
		return -FI_EOPNOTSUPP;
	attr->size = atomic_bytes(flags) / attr->count;
	return 0;
}

#define ATOMIC_VALID(name, kind)                                                         \
	static int name(                                                                 \
		struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)  \
	{                                                                                \
		(void)ep;                                                                \
		if (!count)                                                              \
			return -FI_EINVAL;                                               \
		*count = atomic_most(type, op, kind);                                    \
		return *count ? 0 : -FI_EOPNOTSUPP;                                      \
	}

ATOMIC_VALID(atomic_write_valid, 0)
ATOMIC_VALID(atomic_fetch_valid, FI_FETCH_ATOMIC)
ATOMIC_VALID(atomic_compare_valid, FI_COMPARE_ATOMIC)

/* ---- operations ---- */

/* Copy between a vector and one piece of memory. */
static void atomic_copy(
	char *bytes, const struct fi_ioc *ioc, size_t count, size_t size, bool out)
{
	for (size_t i = 0; i < count; i++) {
		size_t len = ioc[i].count * size;
		if (out && len)
			memcpy(ioc[i].addr, bytes, len);
		else if (len)
			memcpy(bytes, ioc[i].addr, len);
		bytes += len;
	}
}

/* Return the place of the operands, and of those to compare with behind them. */
static const char *atomic_operands(struct ofi_req *req, const struct atomic_call *call)
{
	size_t size = req->rma.size;
	const struct fi_msg_atomic *m = call->msg;
	if (m->iov_count == 1 && !call->compare_count && !(call->flags & FI_INJECT) &&
		m->op != FI_ATOMIC_READ)
		return m->msg_iov->addr;
	if (m->op != FI_ATOMIC_READ)
		atomic_copy(req->rma.operands, m->msg_iov, m->iov_count, size, false);
	atomic_copy(req->rma.operands + req->rma.len, call->compare, call->compare_count,
		size, false);
	return req->rma.operands;
}

/* Return the place for the former values.  They are scattered afterwards, unless
 * result_count is 0. */
static char *atomic_results(struct ofi_req *req, const struct atomic_call *call)
{
	req->rma.result_count = call->result_count;
	if (call->result_count == 1) {
		req->rma.result_count = 0;
		return call->results->addr;
	}
	if (call->result_count)
		memcpy(req->rma.results, call->results,
			call->result_count * sizeof *call->results);
	return req->rma.fetched;
}

static void atomic_event(struct ofi_sink *sink, const ptl_event_t *event)
{
	struct ofi_req *req = container_of(sink, struct ofi_req, sink);
	if (OFI_UNLIKELY(req->rma.result_count) && event->type == PTL_EVENT_REPLY_END &&
		event->ni_fail_type == PTL_NI_OK && event->mlength == req->rma.len)
		atomic_copy(req->rma.fetched, req->rma.results, req->rma.result_count,
			req->rma.size, true);
	ofi_rma_event(sink, event);
}

static ssize_t atomic_begin(struct ofi_ep *ep, const struct atomic_call *call,
	size_t size, const struct ofi_peer *peer)
{
	bool fetches = call->kind;
	const struct fi_msg_atomic *m = call->msg;
	struct ofi_req *req = ofi_rma_new(ep, atomic_event);
	if (!req)
		return -FI_EAGAIN;
	req->context = m->context;
	req->flags = FI_ATOMIC | (fetches ? FI_READ : FI_WRITE);
	req->cntr = fetches ? OFI_CNTR_READ : OFI_CNTR_WRITE;
	req->silent = ofi_tx_is_silent(ep, call->flags, call->silent);
	req->rma.whole = req;
	req->rma.parts = 1;
	req->rma.size = size;
	req->rma.len = m->rma_iov->count * size;
	const char *from = atomic_operands(req, call);
	char *to = atomic_results(req, call);
	ptl_handle_md_t md = req->op->md;
	req->sent = fetches && m->op != FI_ATOMIC_READ; /* it has no SEND_END */
	int rc = PtlXAtomic(fetches ? md : PTL_INVALID_HANDLE, ofi_offset(to),
		req->sent ? ofi_node.quiet : md, ofi_offset(from), req->rma.len,
		(ptlx_op_t)m->op, (ptlx_type_t)m->datatype, PTL_ACK_REQ, peer->id,
		(ptl_pt_index_t)(OFI_PT_RMA + 2 * peer->domain), ofi_node.ac,
		m->rma_iov->key, m->rma_iov->addr, ep->number << 8 | peer->endpoint);
	if (OFI_UNLIKELY(rc != PTL_OK)) {
		ofi_req_free(req);
		return ofi_error(rc);
	}
	FAULT_POINT("ofi.atomic_sent");
	ep->under_way++;
	return 0;
}

/* Return true if a vector has this number of elements. */
static bool atomic_fits(const struct fi_ioc *ioc, size_t count, size_t elements)
{
	size_t sum = 0;
	if (count > OFI_IOVS || (count && !ioc))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (ioc[i].count > ATOMIC_BYTES || (ioc[i].count && !ioc[i].addr))
			return false;
		sum += ioc[i].count;
	}
	return sum == elements;
}

static ssize_t atomic_call(struct fid_ep *fid, const struct atomic_call *call)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	uint64_t kind = call->kind;
	const struct fi_msg_atomic *m = call->msg;
	if (!m || m->rma_iov_count != 1 || !m->rma_iov)
		return -FI_EINVAL;
	size_t elements = m->rma_iov->count;
	if (OFI_UNLIKELY(!ep->enabled || !ep->tx))
		return -FI_EOPBADSTATE;
	size_t most = atomic_most(m->datatype, m->op, kind);
	if (OFI_UNLIKELY(!most))
		return -FI_EOPNOTSUPP;
	if (OFI_UNLIKELY(!(ep->caps & FI_ATOMIC) || !elements || elements > most))
		return -FI_EINVAL;
	if ((m->op != FI_ATOMIC_READ &&
		    !atomic_fits(m->msg_iov, m->iov_count, elements)) ||
		!atomic_fits(call->results, call->result_count, kind ? elements : 0) ||
		!atomic_fits(call->compare, call->compare_count,
			kind == FI_COMPARE_ATOMIC ? elements : 0))
		return -FI_EINVAL;
	if (OFI_UNLIKELY(call->flags & ~(kind | OFI_TX_FLAGS | FI_MORE)))
		return -FI_EBADFLAGS;
	OFI_ENTER(ep->domain);
	const struct ofi_peer *peer = ofi_av_peer(ep->av, m->addr);
	return ofi_tx_leave(
		ep, peer ? atomic_begin(ep, call, atomic_bytes(kind) / most, peer)
			 : -FI_EINVAL);
}

/* ---- calls ---- */

static ssize_t atomic_writemsg(
	struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	return atomic_call(fid, &(struct atomic_call){.msg = msg, .flags = flags});
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
	size_t count, fi_addr_t addr, uint64_t there, uint64_t key, enum fi_datatype type,
	enum fi_op op, void *context)
{
	struct fi_rma_ioc at = {there, 0, key};
	struct fi_msg_atomic msg = {iov, desc, count, addr, &at, 1, type, op, context, 0};
	for (size_t i = 0; iov && i < count; i++)
		at.count += iov[i].count;
	return atomic_writemsg(fid, &msg, ofi_tx_flags(fid));
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc,
	fi_addr_t addr, uint64_t there, uint64_t key, enum fi_datatype type,
	enum fi_op op, void *context)
{
	const struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};
	return atomic_writev(fid, &ioc, &desc, 1, addr, there, key, type, op, context);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count,
	fi_addr_t addr, uint64_t there, uint64_t key, enum fi_datatype type,
	enum fi_op op)
{
	const struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};
	const struct fi_rma_ioc at = {there, count, key};
	const struct fi_msg_atomic msg = {&ioc, NULL, 1, addr, &at, 1, type, op, NULL, 0};
	return atomic_call(fid,
		&(struct atomic_call){.msg = &msg, .flags = FI_INJECT, .silent = true});
}

static ssize_t atomic_fetchmsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
	struct fi_ioc *results, void **result_desc, size_t result_count, uint64_t flags)
{
	(void)result_desc;
	return atomic_call(fid, &(struct atomic_call){.msg = msg,
					.results = results,
					.result_count = result_count,
					.kind = FI_FETCH_ATOMIC,
					.flags = flags});
}

static ssize_t atomic_fetchv(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
	size_t count, struct fi_ioc *results, void **result_desc, size_t result_count,
	fi_addr_t addr, uint64_t there, uint64_t key, enum fi_datatype type,
	enum fi_op op, void *context)
{
	struct fi_rma_ioc at = {there, 0, key};
	struct fi_msg_atomic msg = {iov, desc, count, addr, &at, 1, type, op, context, 0};
	for (size_t i = 0; results && i < result_count; i++)
		at.count += results[i].count;
	return atomic_fetchmsg(fid, &msg, results, result_desc, result_count,
		ofi_tx_flags(fid) & ~FI_INJECT);
}

static ssize_t atomic_fetch(struct fid_ep *fid, const void *buf, size_t count, void *desc,
	void *result, void *result_desc, fi_addr_t addr, uint64_t there, uint64_t key,
	enum fi_datatype type, enum fi_op op, void *context)
{
	const struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};
	struct fi_ioc to = {result, count};
	return atomic_fetchv(fid, &ioc, &desc, 1, &to, &result_desc, 1, addr, there, key,
		type, op, context);
}

static ssize_t atomic_comparemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
	const struct fi_ioc *compare, void **compare_desc, size_t compare_count,
	struct fi_ioc *results, void **result_desc, size_t result_count, uint64_t flags)
{
	(void)compare_desc;
	(void)result_desc;
	return atomic_call(
		fid, &(struct atomic_call){msg, compare, compare_count, results,
			     result_count, FI_COMPARE_ATOMIC, flags, false});
}

static ssize_t atomic_comparev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
	size_t count, const struct fi_ioc *compare, void **compare_desc,
	size_t compare_count, struct fi_ioc *results, void **result_desc,
	size_t result_count, fi_addr_t addr, uint64_t there, uint64_t key,
	enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_rma_ioc at = {there, 0, key};
	struct fi_msg_atomic msg = {iov, desc, count, addr, &at, 1, type, op, context, 0};
	for (size_t i = 0; iov && i < count; i++)
		at.count += iov[i].count;
	return atomic_comparemsg(fid, &msg, compare, compare_desc, compare_count, results,
		result_desc, result_count, ofi_tx_flags(fid) & ~FI_INJECT);
}

static ssize_t atomic_compare(struct fid_ep *fid, const void *buf, size_t count,
	void *desc, const void *compare, void *compare_desc, void *result,
	void *result_desc, fi_addr_t addr, uint64_t there, uint64_t key,
	enum fi_datatype type, enum fi_op op, void *context)
{
	const struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};
	const struct fi_ioc with = {(void *)(uintptr_t)compare, count};
	struct fi_ioc to = {result, count};
	return atomic_comparev(fid, &ioc, &desc, 1, &with, &compare_desc, 1, &to,
		&result_desc, 1, addr, there, key, type, op, context);
}

struct fi_ops_atomic ofi_atomic_ops = {sizeof ofi_atomic_ops, atomic_write, atomic_writev,
	atomic_writemsg, atomic_inject, atomic_fetch, atomic_fetchv, atomic_fetchmsg,
	atomic_compare, atomic_comparev, atomic_comparemsg, atomic_write_valid,
	atomic_fetch_valid, atomic_compare_valid};
