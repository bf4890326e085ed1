/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory descriptors: creation, update, removal. */
#include "nic/obj/md.h"

#include "nic/match/match.h"
#include "nic/obj/eq.h"
#include "nic/obj/ni.h"

#include <stdlib.h>

/* The iovec copies that no operation uses, of all NICs of the process.  A host thread
 * frees them: the firmware does not. */
static p3_a64 unused_iovs;

void p3_md_drop_iov(struct p3_iov *iov)
{
	if (!iov || --iov->refs)
		return;
	uint64_t first = p3_get(&unused_iovs);
	do
		iov->next = (struct p3_iov *)(uintptr_t)first;
	while (!p3_cas64(&unused_iovs, &first, (uintptr_t)iov)); /* IOV.1 */
}

void p3_nic_free_iovs(void)
{
	if (!p3_get(&unused_iovs))
		return;
	uint64_t all = p3_exchange64(&unused_iovs, 0); /* IOV.1 */
	for (struct p3_iov *iov = (struct p3_iov *)(uintptr_t)all, *next; iov;
		iov = next) {
		next = iov->next;
		free(iov);
	}
}

void p3_md_owe_unlink(struct p3_md *md)
{
	struct p3_eq *eq = p3_eq_of_sink(&md->sink);
	if (!eq || md->owes_unlink || p3_md_unlinks_silently(md))
		return;
	md->owes_unlink = true;
	eq->owed++;
}

void p3_md_cancel_unlink(struct p3_md *md)
{
	if (p3_likely(!md->owes_unlink))
		return;
	struct p3_eq *eq = p3_eq_of_sink(&md->sink);
	if (eq)
		eq->owed--;
	md->owes_unlink = false;
}

P3_SPREAD
void p3_md_remove(struct p3_nic *n, struct p3_ni *ni, struct p3_md *md)
{
	p3_md_cancel_unlink(md);
	if (p3_unlikely(md->region.iov != NULL))
		p3_md_drop_iov(md->region.iov);
	md->region.iov = NULL;
	p3_obj_free(n, P3_T_MD, ni, &md->o);
}

static const uint32_t known_options =
	PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
	PTL_MD_ACK_DISABLE | PTL_MD_IOVEC | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE |
	PTL_MD_EVENT_END_DISABLE | PTL_MD_EVENT_AUTO_UNLINK_ENABLE |
	PTL_MD_EVENT_MANUAL_UNLINK_ENABLE;

static bool wraps(const void *start, uint64_t len)
{
	return (uintptr_t)start + len < len;
}

/* Compute size and bounds of an iovec.  Return false if an element is illegal. */
static bool sum_up(struct p3_region *r)
{
	struct p3_iov *iov = r->iov;
	r->size = 0;
	iov->lo = iov->hi = NULL;
	for (uint32_t i = 0; i < iov->n; i++) {
		char *at = iov->v[i].iov_base;
		uint64_t len = iov->v[i].iov_len;
		if ((!at && len) || wraps(at, len) || len >= P3_WHOLE - r->size)
			return false;
		r->size += len;
		if (len && (!iov->hi || at < iov->lo))
			iov->lo = at;
		if (len && at + len > iov->hi)
			iov->hi = at + len;
	}
	return true;
}

/* Return true if the members but the region's bytes are legal, and no other options than
 * these are set. */
static P3_HOT bool is_legal(const ptl_md_t *md, uint32_t options)
{
	return !(md->options & ~options) && md->threshold >= PTL_MD_THRESH_INF &&
	       (md->start || !md->length);
}

/* Return true, with the region, if the descriptor has one piece, and a legal one. */
static P3_HOT bool is_plain(const ptl_md_t *md, struct p3_region *out)
{
	*out = (struct p3_region){.start = md->start, .size = md->length};
	return is_legal(md, known_options & ~(uint32_t)PTL_MD_IOVEC) &&
	       !wraps(md->start, md->length);
}

/* Return PTL_OK and the region, or the code for illegal contents. */
static int md_region(
	const struct p3_ni *ni, const struct p3_cmd *c, struct p3_region *out)
{
	const ptl_md_t *md = &c->md.md;
	if (is_plain(md, out))
		return PTL_OK;
	if (!(md->options & PTL_MD_IOVEC) || !is_legal(md, known_options) ||
		md->length > (ptl_size_t)ni->limits.max_md_iovecs)
		return PTL_MD_ILLEGAL;
	out->iov = c->md.iov;
	return sum_up(out) ? PTL_OK : PTL_MD_ILLEGAL;
}

static P3_HOT int md_queue(
	const struct p3_nic *n, uint32_t ni, const ptl_md_t *md, struct p3_sink *sink_out)
{
	*sink_out = (struct p3_sink){.options = md->options | n->ni[ni].options};
	if (md->eq_handle == PTL_EQ_NONE)
		return PTL_OK;
	struct p3_eq *eq = p3_eq_named(n, md->eq_handle);
	if (p3_unlikely(!eq))
		return PTL_EQ_INVALID;
	sink_out->eq = eq;
	sink_out->eq_life = eq->life;
	return p3_likely(eq->o.ni == ni) ? PTL_OK : PTL_MD_ILLEGAL;
}

static int understand(struct p3_nic *n, const struct p3_cmd *c, struct p3_md_meaning *out)
{
	int rc = md_region(&n->ni[c->ni], c, &out->region);
	return rc == PTL_OK ? md_queue(n, c->ni, &c->md.md, &out->sink) : rc;
}

/* Return the bits of enum p3_md_odd that options make. */
static P3_HOT uint32_t odd_options(const struct p3_sink *sink)
{
	const uint32_t usual = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_EVENT_START_DISABLE;
	const uint32_t unusual = PTL_MD_ACK_DISABLE | PTL_MD_IOVEC | PTL_MD_MAX_SIZE |
				 PTL_MD_EVENT_END_DISABLE;
	uint32_t odd = (sink->options ^ usual) & (usual | unusual);
	if (!sink->eq)
		odd = (odd & ~(uint32_t)(P3_ODD_STARTS | P3_ODD_ENDS)) | P3_ODD_QUEUE;
	return odd | (sink->options / (P3_MD_CRAY / P3_ODD_CRAY) & P3_ODD_CRAY);
}

static P3_HOT uint32_t odd_threshold(int32_t threshold)
{
	return threshold == PTL_MD_THRESH_INF ? 0u
	       : threshold                    ? (uint32_t)P3_ODD_THRESHOLD
					      : P3_ODD_THRESHOLD | P3_ODD_INACTIVE;
}

static P3_HOT void md_fill(
	struct p3_md *md, const ptl_md_t *user, const struct p3_md_meaning *meaning)
{
	md->region = meaning->region;
	md->sink = meaning->sink;
	md->exhausted = false;
	md->local_offset = 0;
	md->words = (struct p3_md_words){.start = (uintptr_t)user->start,
		.length = user->length,
		.threshold = user->threshold,
		.max_size = user->max_size,
		.options = user->options,
		.user_ptr = (uintptr_t)user->user_ptr};
	md->odd = odd_options(&meaning->sink) | odd_threshold(user->threshold);
}

static P3_HOT void count_alignment(struct p3_ni *ni, const ptl_md_t *md)
{
	/* log2 of the largest of 1, 2 .. 128 that divides the address */
	unsigned log = (unsigned)__builtin_ctzl((uintptr_t)md->start | 128);
	if (log >= 3)
		ni->aligned[7 - log]++;
}

int p3_md_prepare(struct p3_nic *n, const struct p3_cmd *c, struct p3_md_meaning *out)
{
	int rc = understand(n, c, out);
	return rc == PTL_OK ? p3_obj_room(n, P3_T_MD, c->ni) : rc;
}

/* Make a descriptor of the match entry with the index me, or P3_NONE. */
static P3_HOT struct p3_md *create(struct p3_nic *n, uint32_t ni, const ptl_md_t *what,
	bool unlink, uint32_t me, const struct p3_md_meaning *meaning)
{
	struct p3_md *md = p3_obj_new(n, P3_T_MD, ni);
	md_fill(md, what, meaning);
	md->unlink = unlink;
	md->owes_unlink = false;
	md->me = me;
	md->pending = 0;
	count_alignment(&n->ni[ni], what);
	p3_obj_born(&md->o);
	return md;
}

struct p3_md *p3_md_create(
	struct p3_nic *n, struct p3_cmd *c, const struct p3_md_meaning *meaning)
{
	struct p3_md *md =
		create(n, c->ni, &c->md.md, c->md.unlink == PTL_UNLINK, P3_NONE, meaning);
	c->md.handle_out = p3_get(&md->o.name);
	return md;
}

P3_SPREAD
struct p3_md *p3_md_make_plain(
	struct p3_nic *n, uint32_t ni, const ptl_md_t *what, bool unlink, uint32_t me)
{
	struct p3_md_meaning meaning;
	if (p3_unlikely(!is_plain(what, &meaning.region) ||
			md_queue(n, ni, what, &meaning.sink) != PTL_OK ||
			p3_obj_room(n, P3_T_MD, ni) != PTL_OK))
		return NULL;
	return create(n, ni, what, unlink, me, &meaning);
}

int p3_md_new(struct p3_nic *n, struct p3_cmd *c, struct p3_md **md_out)
{
	struct p3_md_meaning meaning;
	int rc = p3_md_prepare(n, c, &meaning);
	if (rc == PTL_OK)
		*md_out = p3_md_create(n, c, &meaning);
	return rc;
}

int p3_md_bind(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md;
	if (!p3_ni_is(n, c->ni, c->handle))
		return PTL_NI_INVALID;
	return p3_md_new(n, c, &md);
}

int p3_md_at_rest(struct p3_nic *n, const struct p3_cmd *c)
{
	if (c->md.test_eq == PTL_EQ_NONE)
		return PTL_OK;
	struct p3_eq *eq = p3_eq_named(n, c->md.test_eq);
	if (!eq || eq->o.ni != c->ni)
		return PTL_EQ_INVALID;
	bool rests = !eq->owed && p3_eq_is_empty(eq, c->md.test_eq);
	return rests ? PTL_OK : PTL_MD_NO_UPDATE;
}

/* Describe the descriptor as its user would describe it now. */
static void md_tell(const struct p3_md *md, ptl_md_t *out)
{
	const struct p3_iov *iov = md->region.iov;
	ptl_md_iovec_t *to = out->start;
	uint64_t room = iov && (out->options & PTL_MD_IOVEC) ? out->length : 0;
	for (uint64_t i = 0; i < room && i < iov->n; i++)
		to[i] = iov->v[i];
	struct p3_eq *eq = p3_eq_of_sink(&md->sink);
	*out = (ptl_md_t){.start = (void *)(uintptr_t)md->words.start,
		.length = md->words.length,
		.threshold = md->words.threshold,
		.max_size = md->words.max_size,
		.options = md->words.options,
		.user_ptr = (void *)(uintptr_t)md->words.user_ptr,
		.eq_handle = eq ? p3_get(&eq->o.name) : PTL_EQ_NONE};
}

/* Replace a descriptor's contents; operations under way keep the former elements. */
static void replace(
	struct p3_md *md, struct p3_cmd *c, const struct p3_md_meaning *meaning)
{
	p3_md_cancel_unlink(md);
	p3_md_drop_iov(md->region.iov);
	md_fill(md, &c->md.md, meaning);
}

/* Return PTL_OK if a descriptor may be updated.  A conditional update also needs that
 * no operation on the descriptor is under way: then no message that was matched before
 * touches the old region any more. */
static int may_update(struct p3_nic *n, const struct p3_cmd *c, const struct p3_md *md)
{
	int rc = p3_md_at_rest(n, c);
	bool conditional = c->md.test_eq != PTL_EQ_NONE;
	return rc == PTL_OK && conditional && md->pending ? PTL_MD_NO_UPDATE : rc;
}

int p3_md_update(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md_meaning meaning;
	struct p3_md *md = p3_md_named(n, c->handle);
	if (!md)
		return PTL_MD_INVALID;
	c->ni = (uint16_t)md->o.ni;
	int legal = c->md.change ? understand(n, c, &meaning) : PTL_OK;
	int rest = may_update(n, c, md);
	if (legal != PTL_OK || rest == PTL_EQ_INVALID)
		return legal != PTL_OK ? legal : rest;
	if (md->region.iov && (c->old.options & PTL_MD_IOVEC) && !c->old.start &&
		c->old.length)
		return PTL_SEGV;
	md_tell(md, &c->old);
	if (!c->md.change)
		return PTL_OK;
	if (rest == PTL_OK)
		replace(md, c, &meaning);
	return rest;
}
