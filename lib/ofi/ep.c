/* SPDX-License-Identifier: BSD-3-Clause */
/* ep.c - endpoints: making, binding, enabling, options, closing */
#include "prov.h"

#include <stdlib.h>
#include <string.h>

enum { EP_CLOSE_MS = 10000, EP_MULTI_RECV = 64 };

/* ---- binding ---- */

static int ep_bind_cq(struct ofi_ep *ep, struct ofi_cq *cq, uint64_t flags)
{
	if (cq->domain != ep->domain || !(flags & (FI_TRANSMIT | FI_RECV)))
		return -FI_EINVAL;
	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
		return -FI_EBADFLAGS;
	if ((flags & FI_TRANSMIT && ep->tx_cq) || (flags & FI_RECV && ep->rx_cq))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
		ofi_hold(&cq->refs);
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
		ofi_hold(&cq->refs);
	}
	return 0;
}

static int ep_bind_cntr(struct ofi_ep *ep, struct ofi_cntr *cntr, uint64_t flags)
{
	static const uint64_t kinds[OFI_CNTRS] = {
		FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
	uint64_t all = 0;
	for (int i = 0; i < OFI_CNTRS; i++) {
		all |= kinds[i];
		if (flags & kinds[i] && ep->cntrs[i])
			return -FI_EINVAL;
	}
	if (cntr->domain != ep->domain || !(flags & all))
		return -FI_EINVAL;
	if (flags & ~all)
		return -FI_EBADFLAGS;
	for (int i = 0; i < OFI_CNTRS; i++) {
		if (!(flags & kinds[i]))
			continue;
		ep->cntrs[i] = cntr;
		ofi_hold(&cntr->refs);
	}
	return 0;
}

/* Return the kinds of remote operations that the counter counts for the endpoint. */
static uint64_t ep_remote(const struct ofi_ep *ep, const struct ofi_cntr *cntr)
{
	return (ep->cntrs[OFI_CNTR_REMOTE_READ] == cntr ? FI_REMOTE_READ : 0) |
	       (ep->cntrs[OFI_CNTR_REMOTE_WRITE] == cntr ? FI_REMOTE_WRITE : 0);
}

/* Let the counter no longer count these remote operations, unless it does so for another
 * endpoint of the domain. */
static void ep_uncount(struct ofi_domain *domain, struct ofi_cntr *cntr, uint64_t flags)
{
	struct ofi_ep *ep;
	uint64_t left = 0;
	LIST_FOREACH(ep, &domain->made, made)
	left |= ep_remote(ep, cntr);
	ofi_mrs_uncount(domain, cntr, flags & ~left);
}

/* Bind a counter; from now on it counts remote operations on the regions of the domain,
 * if the flags say so. */
static int ep_bind_remote(struct ofi_ep *ep, struct ofi_cntr *cntr, uint64_t flags)
{
	const uint64_t remote = flags & (FI_REMOTE_READ | FI_REMOTE_WRITE);
	struct ofi_cntr *before[OFI_CNTRS];
	memcpy(before, ep->cntrs, sizeof before);
	OFI_ENTER(ep->domain);
	int rc = ep_bind_cntr(ep, cntr, flags);
	if (!rc && remote)
		rc = ofi_mrs_count(ep->domain, cntr, flags);
	for (int i = 0; i < OFI_CNTRS && rc; i++)
		if (ep->cntrs[i] != before[i]) {
			ep->cntrs[i] = before[i];
			ofi_let_go(&cntr->refs);
		}
	if (rc && cntr->domain == ep->domain)
		ep_uncount(ep->domain, cntr, remote);
	ofi_leave(ep->domain);
	return rc;
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	if (!bfid)
		return -FI_EINVAL;
	if (ep->enabled)
		return -FI_EOPBADSTATE;
	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return ep_bind_cq(ep, container_of(bfid, struct ofi_cq, fid.fid), flags);
	case FI_CLASS_CNTR:
		return ep_bind_remote(
			ep, container_of(bfid, struct ofi_cntr, fid.fid), flags);
	case FI_CLASS_AV:
		if (ep->av ||
			container_of(bfid, struct ofi_av, fid.fid)->domain != ep->domain)
			return -FI_EINVAL;
		ep->av = container_of(bfid, struct ofi_av, fid.fid);
		ofi_hold(&ep->av->refs);
		return 0;
	case FI_CLASS_EQ:
		return ofi_eq_bind(&ep->eq, bfid, 0);
	default:
		return -FI_EINVAL;
	}
}

/* ---- enabling ---- */

/* Find the queue of a direction: that of its completion queue, or, with counters only,
 * one of the endpoint. */
static int ep_queue(struct ofi_ep *ep, struct ofi_cq *cq, int direction, uint64_t needed,
	struct ofi_queue **queue)
{
	bool counts = false;
	if (cq) {
		*queue = &cq->queue;
		return 0;
	}
	for (int i = 0; i < OFI_CNTRS; i++)
		counts |= ep->cntrs[i] != NULL;
	if (!(ep->caps & needed))
		return 0;
	if (!counts)
		return -FI_ENOCQ;
	int rc = ofi_queue_open(&ep->own[direction], ep->domain, OFI_EVENTS);
	if (!rc)
		*queue = &ep->own[direction];
	return rc;
}

/* Have the counters look at the queues: at both, or at none if there is no memory. */
static int ep_watch(struct ofi_ep *ep)
{
	struct ofi_queue *queues[2] = {ep->tx, ep->rx};
	int rc = 0, n = 0;
	for (; n < 2 * OFI_CNTRS && !rc; n++)
		if (ep->cntrs[n / 2] && queues[n % 2])
			rc = ofi_cntr_watch(ep->cntrs[n / 2], queues[n % 2]);
	if (!rc)
		return 0;
	for (n--; n-- > 0;)
		if (ep->cntrs[n / 2] && queues[n % 2])
			ofi_cntr_unwatch(ep->cntrs[n / 2], queues[n % 2]);
	return rc;
}

static int ep_enable(struct ofi_ep *ep)
{
	if (ep->enabled)
		return -FI_EOPBADSTATE;
	if (!ep->av)
		return -FI_ENOAV;
	int rc = 0;
	if (!ep->tx)
		rc = ep_queue(ep, ep->tx_cq, 0, FI_SEND | FI_READ | FI_WRITE, &ep->tx);
	if (!rc && !ep->rx)
		rc = ep_queue(ep, ep->rx_cq, 1, FI_RECV, &ep->rx);
	for (int i = 0; i < OFI_LISTS && !rc; i++) {
		if (!(ep->caps & ofi_kinds[i] && ep->caps & FI_RECV))
			ofi_messages_wait(ep->number, i, false);
		else if (!ep->lists[i].ep)
			rc = ofi_list_open(&ep->lists[i], ep, i);
	}
	if (!rc)
		rc = ep_watch(ep);
	if (rc)
		return rc; /* the program closes the endpoint, or tries again */
	FAULT_POINT("ofi.lists_open");
	LIST_INSERT_HEAD(&ep->domain->eps, ep, next);
	ep->enabled = true;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	uint64_t *flags = arg;
	int rc;
	OFI_ENTER(ep->domain);
	switch (command) {
	case FI_ENABLE:
		rc = ep_enable(ep);
		break;
	case FI_GETOPSFLAG:
		rc = !flags || !(*flags & (FI_TRANSMIT | FI_RECV)) ? -FI_EINVAL : 0;
		if (!rc)
			*flags = *flags & FI_TRANSMIT ? ep->tx_flags : ep->rx_flags;
		break;
	case FI_SETOPSFLAG:
		rc = -FI_EINVAL;
		if (flags && *flags & FI_TRANSMIT &&
			!(*flags & ~(FI_TRANSMIT | OFI_TX_FLAGS))) {
			ep->tx_flags = *flags & OFI_TX_FLAGS;
			rc = 0;
		} else if (flags && *flags & FI_RECV &&
			   !(*flags & ~(FI_RECV | OFI_RX_FLAGS))) {
			ep->rx_flags = *flags & OFI_RX_FLAGS;
			rc = 0;
		}
		break;
	default:
		rc = -FI_ENOSYS;
	}
	ofi_leave(ep->domain);
	return rc;
}

/* ---- options and names ---- */

static int ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (!value || !len)
		return -FI_EINVAL;
	size_t room = *len;
	*len = sizeof ep->min_multi_recv;
	if (room < sizeof ep->min_multi_recv)
		return -FI_ETOOSMALL;
	memcpy(value, &ep->min_multi_recv, sizeof ep->min_multi_recv);
	return 0;
}

static int ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (!value || len != sizeof ep->min_multi_recv)
		return -FI_EINVAL;
	memcpy(&ep->min_multi_recv, value, sizeof ep->min_multi_recv);
	return 0;
}

static int ep_getname(fid_t fid, void *addr, size_t *len)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	if (!len || (!addr && *len))
		return -FI_EINVAL;
	struct ofi_name name = ofi_name_of(ofi_node.id, ep->number, ep->domain->number);
	size_t room = *len;
	*len = sizeof name;
	if (room)
		memcpy(addr, &name, room < sizeof name ? room : sizeof name);
	return room < sizeof name ? -FI_ETOOSMALL : 0;
}

/* ---- closing ---- */

/* With all receives withdrawn, take no more messages, and handle all events that name
 * something of the endpoint.  Return false if there may be more. */
static bool ep_quiet(struct ofi_ep *ep)
{
	bool quiet = true;
	for (int i = 0; i < OFI_LISTS; i++) {
		ofi_messages_wait(ep->number, i, false);
		quiet &= !ep->lists[i].ep || ofi_late_withdraw(&ep->lists[i]);
	}
	return quiet && (!ep->rx || ofi_queue_fence(ep->rx));
}

/* Wait until Portals has ended all operations of the endpoint; receives that no message
 * has taken, and bytes that nobody has fetched, are withdrawn. */
static bool ep_settle(struct ofi_ep *ep)
{
	struct ofi_queue *queues[2];
	int count = 0;
	uint64_t end = ofi_now() + EP_CLOSE_MS;
	if (ep->tx)
		queues[count++] = ep->tx;
	if (ep->rx && ep->rx != ep->tx)
		queues[count++] = ep->rx;
	for (;;) {
		struct ofi_req *req, *next;
		bool busy = false;
		for (int i = 0; i < OFI_LISTS; i++)
			busy |= ep->lists[i].ep && !ofi_list_withdraw(&ep->lists[i]);
		for (req = TAILQ_FIRST(&ep->domain->watched); req; req = next) {
			next = TAILQ_NEXT(req, watch);
			if (req->ep == ep)
				ofi_tx_withdraw(req);
		}
		ofi_watch_end(ep);
		if (!busy && !ep->under_way && ep_quiet(ep))
			return true;
		if (ofi_now() >= end)
			return false;
		ofi_sleep(ep->domain, queues, count, 1);
	}
}

static void ep_unbind(struct ofi_ep *ep)
{
	struct ofi_cq *cqs[2] = {ep->tx_cq, ep->rx_cq};
	for (int i = 0; i < OFI_CNTRS; i++) {
		if (!ep->cntrs[i])
			continue;
		if (ep->enabled) {
			ofi_cntr_unwatch(ep->cntrs[i], ep->tx);
			ofi_cntr_unwatch(ep->cntrs[i], ep->rx);
		}
		ep_uncount(ep->domain, ep->cntrs[i], ep_remote(ep, ep->cntrs[i]));
		ofi_let_go(&ep->cntrs[i]->refs);
	}
	for (int i = 0; i < 2; i++) {
		if (cqs[i]) {
			ofi_silence_end(cqs[i]); /* the receives are gone */
			ofi_let_go(&cqs[i]->refs);
		}
		if (!ep->own[i].domain)
			continue;
		ofi_queue_quiet(&ep->own[i]);
		ofi_queue_close(&ep->own[i]);
	}
	if (ep->av)
		ofi_let_go(&ep->av->refs);
	if (ep->eq)
		ofi_let_go(&ep->eq->refs);
}

static int ep_close(struct fid *fid)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	struct ofi_domain *domain = ep->domain;
	OFI_ENTER(domain);
	if (!ep_settle(ep)) {
		ofi_leave(domain);
		return -FI_EBUSY;
	}
	FAULT_POINT("ofi.endpoint_quiet");
	LIST_REMOVE(ep, made);
	if (ep->enabled)
		LIST_REMOVE(ep, next);
	for (int i = 0; i < OFI_LISTS; i++)
		if (ep->lists[i].ep)
			ofi_list_close(&ep->lists[i]);
	FAULT_POINT("ofi.endpoint_half_closed");
	ep_unbind(ep);
	ofi_endpoint_number_free(ep->number);
	ofi_leave(domain);
	ofi_let_go(&domain->refs);
	free(ep);
	return 0;
}

/* clang-format off */
OFI_NO(int, ep_tx_ctx, struct fid_ep *ep, int index, struct fi_tx_attr *attr,
	struct fid_ep **tx, void *context)
OFI_NO(int, ep_rx_ctx, struct fid_ep *ep, int index, struct fi_rx_attr *attr,
	struct fid_ep **rx, void *context)
OFI_NO(ssize_t, ep_size_left, struct fid_ep *ep)

OFI_NO(int, ep_setname, fid_t fid, void *addr, size_t addrlen)
OFI_NO(int, ep_getpeer, struct fid_ep *ep, void *addr, size_t *addrlen)
OFI_NO(int, ep_connect, struct fid_ep *ep, const void *addr, const void *param,
	size_t len)
OFI_NO(int, ep_listen, struct fid_pep *pep)
OFI_NO(int, ep_accept, struct fid_ep *ep, const void *param, size_t len)
OFI_NO(int, ep_reject, struct fid_pep *pep, fid_t handle, const void *param, size_t len)
OFI_NO(int, ep_shutdown, struct fid_ep *ep, uint64_t flags)
OFI_NO(int, ep_join, struct fid_ep *ep, const void *addr, uint64_t flags,
	struct fid_mc **mc, void *context)
/* clang-format on */

static struct fi_ops ep_fid_ops = OFI_FID_OPS(ep_close, ep_bind, ep_control);
static struct fi_ops_ep ep_ops = {
	.size = sizeof ep_ops,
	.cancel = ofi_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = ep_tx_ctx,
	.rx_ctx = ep_rx_ctx,
	.rx_size_left = ep_size_left,
	.tx_size_left = ep_size_left,
};
static struct fi_ops_cm ep_cm = {sizeof ep_cm, ep_setname, ep_getname, ep_getpeer,
	ep_connect, ep_listen, ep_accept, ep_reject, ep_shutdown, ep_join};

int ofi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
	void *context)
{
	if (!info || !ep)
		return -FI_EINVAL;
	if (info->ep_attr && info->ep_attr->type != FI_EP_UNSPEC &&
		info->ep_attr->type != FI_EP_RDM)
		return -FI_EINVAL;
	struct ofi_ep *made = calloc(1, sizeof *made);
	if (!made)
		return -FI_ENOMEM;
	made->domain = container_of(domain, struct ofi_domain, fid);
	int rc = ofi_enter(made->domain);
	if (!rc) {
		rc = ofi_endpoint_number(&made->number);
		if (!rc)
			LIST_INSERT_HEAD(&made->domain->made, made, made);
		ofi_leave(made->domain);
	}
	if (rc) {
		free(made);
		return rc;
	}
	made->fid.fid = (struct fid){FI_CLASS_EP, context, &ep_fid_ops};
	made->fid.ops = &ep_ops;
	made->fid.cm = &ep_cm;
	made->fid.msg = &ofi_msg_ops;
	made->fid.tagged = &ofi_tagged_ops;
	made->fid.rma = &ofi_rma_ops;
	made->fid.atomic = &ofi_atomic_ops;
	made->source = (uint64_t)made->number << OFI_SOURCE_SHIFT;
	made->caps = info->caps;
	made->tx_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	made->rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	made->min_multi_recv = EP_MULTI_RECV;
	for (int i = 0; i < OFI_LISTS; i++)
		ofi_messages_wait(made->number, i, true);
	ofi_hold(&made->domain->refs);
	*ep = &made->fid;
	return 0;
}

int ofi_ep_open2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
	uint64_t flags, void *context)
{
	return flags ? -FI_EBADFLAGS : ofi_ep_open(domain, info, ep, context);
}
