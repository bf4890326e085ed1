/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr.c - memory regions: entries that peers put to and get from
 *
 * The domain's index for RMA, and that for RMA with data:
 *
 *	gets | puts, exchanges, gets | ... | refuse
 *	puts with data | ... | refuse
 *
 * A region has an entry for puts and exchanges, which takes gets, too, if they have the
 * same counter or none.  Otherwise gets have an entry before that one, with the queue of
 * their counter.  The last entry of an index takes no bytes of what no region accepts (a
 * wrong key, range or right): then the initiator's ACK or REPLY has a length of 0, which
 * is an error.  Its offset is its own, as it would refuse those of requests.
 */
#include "prov.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

enum {
	MR_CLOSE_MS = 1000,
	MR_COUNTED = 4096,    /* events of a counter; lost ones are counted, too */
	MR_WITH_DATA = 65536, /* completions with data that no read has taken */
	MR_GET = 0,           /* entries of a region */
	MR_PUT = 1,
	MR_DATA = 2,
	MR_ENTRIES = 3
};

struct ofi_mr {
	struct fid_mr fid;
	struct ofi_domain *domain;
	struct ofi_cntr *cntrs[2]; /* MR_GET and MR_PUT; NULL: those of the domain */
	uint64_t access;
	struct iovec iov[OFI_IOVS];
	size_t count;
	ptl_handle_me_t me[MR_ENTRIES]; /* PTL_INVALID_HANDLE: the access is not given */
	ptl_handle_md_t md[MR_ENTRIES];
	bool closing; /* an entry has been removed, and none is posted any more */
	LIST_ENTRY(ofi_mr) next;
};

/* The regions of a domain. */
struct ofi_mrs {
	void *by_key; /* tsearch() */
	LIST_HEAD(, ofi_mr) all;
	struct ofi_cntr *cntrs[2];
	struct ofi_queue data;     /* of the domain, once there is a region for it */
	ptl_handle_me_t refuse[2]; /* the last entries */
};

/* The kinds of operations that the counters of MR_GET and MR_PUT count. */
static const uint64_t mr_kinds[2] = {FI_REMOTE_READ, FI_REMOTE_WRITE};

static ptl_pt_index_t mr_index(const struct ofi_domain *domain, int entry)
{
	return (ptl_pt_index_t)(OFI_PT_RMA + 2 * domain->number + (entry == MR_DATA));
}

/* ---- events ---- */

static void remote_event(struct ofi_sink *sink, const ptl_event_t *event)
{
	struct ofi_queue *queue = container_of(sink, struct ofi_queue, sink);
	ofi_cntr_count(container_of(queue, struct ofi_cntr, remote),
		event->ni_fail_type != PTL_NI_OK);
}

/* A put with data: its endpoint's completion queue tells it. */
static void data_event(struct ofi_sink *sink, const ptl_event_t *event)
{
	struct ofi_queue *queue = container_of(sink, struct ofi_queue, sink);
	unsigned to = (unsigned)event->hdr_data & (OFI_ENDPOINTS - 1);
	unsigned from = (unsigned)event->hdr_data >> 8 & (OFI_ENDPOINTS - 1);
	struct fi_cq_err_entry e = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len = event->mlength,
		.data = event->hdr_data >> OFI_DATA_SHIFT,
		.err = event->ni_fail_type == PTL_NI_OK ? 0 : FI_ECONNABORTED,
		.prov_errno = (int)event->ni_fail_type,
	};
	struct ofi_ep *ep;
	LIST_FOREACH(ep, &queue->domain->eps, next)
	{
		if (ep->number != to)
			continue;
		fi_addr_t source = FI_ADDR_NOTAVAIL;
		if (ep->caps & FI_SOURCE)
			source = ofi_av_find(ep->av, event->initiator, from);
		ofi_cntr_count(ep->cntrs[OFI_CNTR_REMOTE_WRITE], e.err);
		if (ep->rx_cq)
			ofi_cq_add(ep->rx_cq, &e, source);
	}
}

/* ---- entries ---- */

/* The counter of an entry of a region, or NULL. */
static struct ofi_cntr *mr_cntr(const struct ofi_mr *mr, int entry)
{
	if (entry == MR_DATA)
		entry = MR_PUT;
	return mr->cntrs[entry] ? mr->cntrs[entry] : mr->domain->mrs->cntrs[entry];
}

static ptl_md_t mr_describe(struct ofi_mr *mr, int entry)
{
	struct ofi_cntr *cntr = mr_cntr(mr, entry);
	struct ofi_queue *queue = entry == MR_DATA ? &mr->domain->mrs->data
				  : cntr           ? &cntr->remote
						   : NULL;
	ptl_md_t md = {
		.start = mr->iov[0].iov_base,
		.length = mr->iov[0].iov_len,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
		.user_ptr = queue ? &queue->sink : NULL,
		.eq_handle = queue ? queue->eq : PTL_EQ_NONE,
	};
	ofi_describe(&md, mr->iov, mr->count);
	if (entry != MR_GET)
		md.options |= PTL_MD_OP_PUT;
	if (entry == MR_GET || (entry == MR_PUT && mr->access & FI_REMOTE_READ))
		md.options |= PTL_MD_OP_GET;
	return md;
}

static int mr_post(struct ofi_mr *mr, int entry)
{
	return PtlMEMDAttach(ofi_node.ni, mr_index(mr->domain, entry), ofi_anyone,
		mr->fid.key, 0, PTL_RETAIN, PTL_INS_BEFORE, mr_describe(mr, entry),
		PTL_RETAIN, &mr->me[entry], &mr->md[entry]);
}

/* Remove the entries, that for gets last: that for puts may take gets, too.  Return false
 * if transfers still use one; those before it stay away then, and the region is closing
 * until it has none.  The lock is free for moments. */
static bool mr_withdraw(struct ofi_mr *mr)
{
	static const int order[MR_ENTRIES] = {MR_PUT, MR_DATA, MR_GET};
	uint64_t end = ofi_now() + MR_CLOSE_MS;
	for (int n = 0; n < MR_ENTRIES; n++) {
		int i = order[n];
		while (mr->me[i] != PTL_INVALID_HANDLE &&
			PtlMEUnlink(mr->me[i]) == PTL_ME_IN_USE) {
			if (ofi_now() >= end)
				return false;
			ofi_let_others(mr->domain);
		}
		mr->me[i] = PTL_INVALID_HANDLE;
		mr->closing = true;
		FAULT_POINT("ofi.region_closing");
	}
	return true;
}

/* Give gets an entry of their own, if that of puts does not do for them; a code of
 * Portals. */
static int mr_split(struct ofi_mr *mr)
{
	bool shares = mr->access & FI_REMOTE_WRITE &&
		      mr_cntr(mr, MR_GET) == mr_cntr(mr, MR_PUT);
	if (!(mr->access & FI_REMOTE_READ) || shares || mr->closing ||
		mr->me[MR_GET] != PTL_INVALID_HANDLE)
		return PTL_OK;
	return mr_post(mr, MR_GET);
}

/* Let the entries of gets and those of puts post to their counters from now on; all that
 * change at once are known before, as two that differ give gets an entry of their own. */
static int mr_recount(struct ofi_mr *mr)
{
	int rc = mr_split(mr);
	for (int i = MR_GET; i <= MR_PUT; i++) {
		if (mr->me[i] == PTL_INVALID_HANDLE)
			continue;
		ptl_md_t md = mr_describe(mr, i);
		int updated = PtlMDUpdate(mr->md[i], NULL, &md, PTL_EQ_NONE);
		rc = rc != PTL_OK ? rc : updated;
	}
	return ofi_error(rc);
}

/* ---- counters ---- */

/* Open a queue whose lost events count, and give it a sink.  Its first event must have
 * told its number before, since the sink would take that event for one of a peer. */
static int mr_open_queue(struct ofi_queue *queue, struct ofi_domain *domain,
	unsigned count, void (*event)(struct ofi_sink *, const ptl_event_t *))
{
	int rc = ofi_queue_open(queue, domain, count);
	if (rc)
		return rc;
	if (!ofi_queue_start(queue)) {
		ofi_queue_close(queue);
		return -FI_ENOMEM;
	}
	queue->sink.event = event;
	return 0;
}

/* Make the queue of a counter for remote operations. */
static int mr_open_remote(struct ofi_cntr *cntr)
{
	if (cntr->remote.domain)
		return 0;
	int rc = mr_open_queue(&cntr->remote, cntr->domain, MR_COUNTED, remote_event);
	ofi_queue_wake(&cntr->news); /* threads that wait must look there, too */
	return rc;
}

int ofi_mrs_count(struct ofi_domain *domain, struct ofi_cntr *cntr, uint64_t flags)
{
	struct ofi_mrs *mrs = domain->mrs;
	struct ofi_mr *mr;
	int rc = mr_open_remote(cntr);
	for (int i = 0; i < 2 && !rc; i++)
		if (flags & mr_kinds[i] && mrs->cntrs[i] && mrs->cntrs[i] != cntr)
			rc = -FI_ENOSYS; /* regions are those of all endpoints */
	for (int i = 0; i < 2 && !rc; i++)
		if (flags & mr_kinds[i])
			mrs->cntrs[i] = cntr;
	LIST_FOREACH(mr, &mrs->all, next)
	rc = rc ? rc : mr_recount(mr);
	return rc;
}

void ofi_mrs_uncount(struct ofi_domain *domain, struct ofi_cntr *cntr, uint64_t flags)
{
	struct ofi_mr *mr;
	bool changes = false;
	for (int i = 0; i < 2; i++) {
		if (!(flags & mr_kinds[i]) || domain->mrs->cntrs[i] != cntr)
			continue;
		domain->mrs->cntrs[i] = NULL;
		changes = true;
	}
	LIST_FOREACH(mr, &domain->mrs->all, next)
	if (changes)
		(void)mr_recount(mr);
}

static int mr_bind_cntr(struct ofi_mr *mr, struct ofi_cntr *cntr, uint64_t flags)
{
	if (cntr->domain != mr->domain || !(flags & (FI_REMOTE_READ | FI_REMOTE_WRITE)))
		return -FI_EINVAL;
	if (flags & ~(FI_REMOTE_READ | FI_REMOTE_WRITE))
		return -FI_EBADFLAGS;
	for (int i = 0; i < 2; i++)
		if (flags & mr_kinds[i] && mr->cntrs[i])
			return -FI_EINVAL;
	int rc = mr_open_remote(cntr);
	for (int i = 0; i < 2 && !rc; i++) {
		if (!(flags & mr_kinds[i]))
			continue;
		mr->cntrs[i] = cntr;
		ofi_hold(&cntr->refs);
	}
	return rc ? rc : mr_recount(mr);
}

/* ---- regions ---- */

static int mr_compare(const void *a, const void *b)
{
	uint64_t x = ((const struct ofi_mr *)a)->fid.key;
	uint64_t y = ((const struct ofi_mr *)b)->fid.key;
	return x < y ? -1 : x > y;
}

static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct ofi_mr *mr = container_of(fid, struct ofi_mr, fid.fid);
	if (!bfid)
		return -FI_EINVAL;
	if (bfid->fclass == FI_CLASS_EP)
		return 0; /* a region serves all endpoints of its domain */
	if (bfid->fclass != FI_CLASS_CNTR)
		return -FI_EINVAL;
	OFI_ENTER(mr->domain);
	int rc = mr_bind_cntr(mr, container_of(bfid, struct ofi_cntr, fid.fid), flags);
	ofi_leave(mr->domain);
	return rc;
}

/* A region is enabled when it is made. */
static int mr_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)arg;
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static int mr_close(struct fid *fid)
{
	struct ofi_mr *mr = container_of(fid, struct ofi_mr, fid.fid);
	struct ofi_domain *domain = mr->domain;
	OFI_ENTER(domain);
	bool free_now = mr_withdraw(mr);
	if (free_now) {
		tdelete(mr, &domain->mrs->by_key, mr_compare);
		LIST_REMOVE(mr, next);
	}
	ofi_leave(domain);
	if (!free_now)
		return -FI_EBUSY;
	for (int i = 0; i < 2; i++)
		if (mr->cntrs[i])
			ofi_let_go(&mr->cntrs[i]->refs);
	ofi_let_go(&domain->refs);
	free(mr);
	return 0;
}

static struct fi_ops mr_fid_ops = OFI_FID_OPS(mr_close, mr_bind, mr_control);

/* Make the queue of completions with data.  Threads that sleep must look there, too. */
static int mr_open_data(struct ofi_domain *domain)
{
	struct ofi_mrs *mrs = domain->mrs;
	struct ofi_ep *ep;
	if (domain->data)
		return 0;
	int rc = mr_open_queue(&mrs->data, domain, MR_WITH_DATA, data_event);
	if (rc)
		return rc;
	domain->data = &mrs->data;
	LIST_FOREACH(ep, &domain->eps, next)
	{
		struct ofi_cntr *cntr = ep->cntrs[OFI_CNTR_REMOTE_WRITE];
		if (ep->rx_cq)
			ofi_queue_wake(&ep->rx_cq->news);
		if (cntr)
			ofi_queue_wake(&cntr->news);
	}
	return 0;
}

/* Enter a region into its domain's list, with its entries.  The domain is entered. */
static int mr_add(struct ofi_mr *mr)
{
	struct ofi_mrs *mrs = mr->domain->mrs;
	struct ofi_mr **found = tsearch(mr, &mrs->by_key, mr_compare);
	if (!found)
		return -FI_ENOMEM;
	if (*found != mr)
		return -FI_ENOKEY;
	int rc = mr->access & FI_REMOTE_WRITE ? mr_open_data(mr->domain) : 0;
	if (!rc && mr->access & FI_REMOTE_WRITE)
		rc = ofi_error(mr_post(mr, MR_DATA));
	FAULT_POINT("ofi.region_half");
	if (!rc && mr->access & FI_REMOTE_WRITE)
		rc = ofi_error(mr_post(mr, MR_PUT));
	if (!rc)
		rc = ofi_error(mr_split(mr));
	if (rc) {
		tdelete(mr, &mrs->by_key, mr_compare);
		(void)mr_withdraw(mr);
		return rc == -FI_EAGAIN ? -FI_ENOMEM : rc;
	}
	LIST_INSERT_HEAD(&mrs->all, mr, next);
	return 0;
}

/* A region of all memory begins at address 0, where no descriptor may begin.  Make its
 * offsets addresses nevertheless, but for the first. */
static void mr_all_memory(struct ofi_mr *mr)
{
	size_t len = mr->iov[0].iov_len;
	if (mr->count != 1 || mr->iov[0].iov_base || !len)
		return;
	mr->iov[0] = (struct iovec){(void *)1, 1};
	mr->iov[1] = (struct iovec){
		(void *)1, (len < OFI_SPACE_END ? len : OFI_SPACE_END) - 1};
	mr->count = 2;
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
	struct fid_mr **mr)
{
	const uint64_t access =
		FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	if (!fid || fid->fclass != FI_CLASS_DOMAIN || !attr || !mr || !attr->iov_count ||
		!attr->mr_iov || attr->offset || attr->access & ~access)
		return -FI_EINVAL;
	if (attr->iov_count > OFI_IOVS)
		return -FI_EINVAL;
	if (flags & ~FI_RMA_EVENT)
		return -FI_EBADFLAGS;
	struct ofi_mr *made = calloc(1, sizeof *made);
	if (!made)
		return -FI_ENOMEM;
	made->domain = container_of(fid, struct ofi_domain, fid.fid);
	made->access = attr->access;
	made->count = attr->iov_count;
	memcpy(made->iov, attr->mr_iov, attr->iov_count * sizeof *attr->mr_iov);
	mr_all_memory(made);
	for (int i = 0; i < MR_ENTRIES; i++)
		made->me[i] = PTL_INVALID_HANDLE;
	made->fid.fid = (struct fid){FI_CLASS_MR, attr->context, &mr_fid_ops};
	made->fid.key = attr->requested_key;
	int rc = ofi_enter(made->domain);
	if (!rc) {
		rc = mr_add(made);
		ofi_leave(made->domain);
	}
	if (rc) {
		free(made);
		return rc;
	}
	ofi_hold(&made->domain->refs);
	*mr = &made->fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count,
	uint64_t access, uint64_t offset, uint64_t key, uint64_t flags,
	struct fid_mr **mr, void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = key,
		.context = context,
	};
	return mr_regattr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
	uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	return mr_regv(fid, &iov, 1, access, offset, key, flags, mr, context);
}

struct fi_ops_mr ofi_mr_ops = {sizeof ofi_mr_ops, mr_reg, mr_regv, mr_regattr};

/* ---- the domain ---- */

int ofi_mrs_open(struct ofi_domain *domain)
{
	domain->mrs = calloc(1, sizeof *domain->mrs);
	if (!domain->mrs)
		return -FI_ENOMEM;
	domain->mrs->refuse[0] = domain->mrs->refuse[1] = PTL_INVALID_HANDLE;
	ptl_handle_me_t *refuse = domain->mrs->refuse;
	int rc = ofi_accept(mr_index(domain, MR_PUT), 0, &refuse[0]);
	if (rc == PTL_OK)
		rc = ofi_accept(mr_index(domain, MR_DATA), 0, &refuse[1]);
	if (rc != PTL_OK)
		ofi_mrs_close(domain);
	return ofi_error(rc);
}

/* All regions are closed. */
void ofi_mrs_close(struct ofi_domain *domain)
{
	for (int i = 0; i < 2; i++)
		if (domain->mrs->refuse[i] != PTL_INVALID_HANDLE)
			PtlMEUnlink(domain->mrs->refuse[i]);
	ofi_queue_close(&domain->mrs->data);
	free(domain->mrs);
}
