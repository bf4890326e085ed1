/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poll.c - poll sets: which of several completion queues and counters have news
 *
 * All members belong to the domain of the set, whose lock protects the list of them.
 * A member cannot be closed, nor can a set that has members.
 */
#include "prov.h"

#include <stdlib.h>

struct ofi_member {
	struct fid *fid;  /* of a completion queue or counter */
	uint64_t counted; /* of a counter: the operations that the program knows of */
};

struct ofi_poll {
	struct fid_poll fid;
	struct ofi_domain *domain;
	struct ofi_member *members;
	int count;
};

/* Return 0 and the references of an object that may be a member, or -FI_E*. */
static int poll_check(
	const struct ofi_poll *set, struct fid *fid, uint64_t flags, int **refs)
{
	const struct ofi_domain *domain = NULL;
	if (flags)
		return -FI_EBADFLAGS;
	if (fid && fid->fclass == FI_CLASS_CQ) {
		struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid.fid);
		*refs = &cq->refs;
		domain = cq->domain;
	} else if (fid && fid->fclass == FI_CLASS_CNTR) {
		struct ofi_cntr *cntr = container_of(fid, struct ofi_cntr, fid.fid);
		*refs = &cntr->refs;
		domain = cntr->domain;
	}
	return domain == set->domain ? 0 : -FI_EINVAL;
}

/* Return the place of a member, or -1. */
static int poll_find(const struct ofi_poll *set, const struct fid *fid)
{
	int i = set->count - 1;
	while (i >= 0 && set->members[i].fid != fid)
		i--;
	return i;
}

static int poll_insert(struct ofi_poll *set, struct fid *fid)
{
	if (poll_find(set, fid) >= 0)
		return -FI_EALREADY;
	struct ofi_member *members = realloc(
		set->members, (size_t)(set->count + 1) * sizeof(struct ofi_member));
	if (!members)
		return -FI_ENOMEM;
	set->members = members;
	members[set->count++] = (struct ofi_member){.fid = fid};
	return 0;
}

static int poll_add(struct fid_poll *fid, struct fid *member, uint64_t flags)
{
	struct ofi_poll *set = container_of(fid, struct ofi_poll, fid);
	int *refs = NULL;
	int rc = poll_check(set, member, flags, &refs);
	if (rc)
		return rc;
	ofi_hold(refs); /* its mutex comes before the domain's */
	rc = ofi_enter(set->domain);
	if (!rc) {
		rc = poll_insert(set, member);
		ofi_leave(set->domain);
	}
	if (rc)
		ofi_let_go(refs);
	return rc;
}

static int poll_del(struct fid_poll *fid, struct fid *member, uint64_t flags)
{
	struct ofi_poll *set = container_of(fid, struct ofi_poll, fid);
	int *refs = NULL;
	int rc = poll_check(set, member, flags, &refs);
	if (!rc)
		rc = ofi_enter(set->domain);
	if (rc)
		return rc;
	int i = poll_find(set, member);
	if (i >= 0)
		set->members[i] = set->members[--set->count];
	ofi_leave(set->domain);
	if (i < 0)
		return -FI_EINVAL;
	ofi_let_go(refs);
	return 0;
}

/* Make progress.  Return true if the member has news, and the number of operations that
 * it has counted. */
static bool poll_look(const struct ofi_member *member, uint64_t *counted)
{
	*counted = member->counted;
	if (member->fid->fclass == FI_CLASS_CQ)
		return ofi_cq_peek(container_of(member->fid, struct ofi_cq, fid.fid));
	*counted = ofi_cntr_counted(container_of(member->fid, struct ofi_cntr, fid.fid));
	return *counted != member->counted;
}

/* All members make progress, also those that the array has no room for. */
static int poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct ofi_poll *set = container_of(fid, struct ofi_poll, fid);
	int got = 0;
	if (count < 0 || (!context && count))
		return -FI_EINVAL;
	OFI_ENTER(set->domain);
	for (int i = 0; i < set->count; i++) {
		struct ofi_member *member = &set->members[i];
		uint64_t counted;
		if (!poll_look(member, &counted) || got == count)
			continue;
		member->counted = counted;
		context[got++] = member->fid->context;
	}
	ofi_leave(set->domain);
	return got;
}

static int poll_close(struct fid *fid)
{
	struct ofi_poll *set = container_of(fid, struct ofi_poll, fid.fid);
	OFI_ENTER(set->domain);
	bool held = set->count != 0;
	ofi_leave(set->domain);
	if (held)
		return -FI_EBUSY;
	ofi_let_go(&set->domain->refs);
	free(set->members);
	free(set);
	return 0;
}

static struct fi_ops poll_fid_ops = OFI_FID_OPS(poll_close, ofi_no_bind, ofi_no_control);
static struct fi_ops_poll poll_ops = {
	.size = sizeof poll_ops,
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

int ofi_poll_open(
	struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **poll)
{
	if (!poll)
		return -FI_EINVAL;
	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	struct ofi_poll *made = calloc(1, sizeof *made);
	if (!made)
		return -FI_ENOMEM;
	made->fid.fid = (struct fid){FI_CLASS_POLL, NULL, &poll_fid_ops};
	made->fid.ops = &poll_ops;
	made->domain = container_of(domain, struct ofi_domain, fid);
	ofi_hold(&made->domain->refs);
	*poll = &made->fid;
	return 0;
}
