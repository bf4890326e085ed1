/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory descriptors: creation, update, removal. */
#include "nic/obj/obj.h"

#include <stdlib.h>

/* The iovec copies that no operation uses, of all NICs of the process.  A host thread
 * frees them: the firmware does not. */
static p3_a64 md_unused_iovs;

void p3_md_drop_iov(struct p3_iov *iov)
{
	if (!iov || --iov->refs)
		return;
	uint64_t first = p3_get(&md_unused_iovs);
	do
		iov->next = (struct p3_iov *)(uintptr_t)first;
	while (!p3_cas64(&md_unused_iovs, &first, (uintptr_t)iov)); /* IOV.1 */
}

void p3_nic_free_iovs(void)
{
	if (!p3_get(&md_unused_iovs))
		return;
	uint64_t all = p3_exchange64(&md_unused_iovs, 0); /* IOV.1 */
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

P3_HOT
void p3_md_remove(struct p3_nic *n, struct p3_ni *ni, struct p3_md *md)
{
	p3_md_cancel_unlink(md);
	if (p3_unlikely(md->region.iov != NULL))
		p3_md_drop_iov(md->region.iov);
	md->region.iov = NULL;
	p3_obj_free(n, P3_T_MD, ni, &md->o);
}

static const uint32_t md_known_options =
	PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
	PTL_MD_ACK_DISABLE | PTL_MD_IOVEC | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE |
	PTL_MD_EVENT_END_DISABLE | PTL_MD_EVENT_AUTO_UNLINK_ENABLE |
	PTL_MD_EVENT_MANUAL_UNLINK_ENABLE | PTLX_MD_REPLY_ALWAYS;

static bool md_wraps(const void *start, uint64_t len)
{
	return (uintptr_t)start + len < len;
}

/* Compute size and bounds of an iovec.  Return false if an element is illegal. */
static bool md_sum_up(struct p3_region *r)
{
	struct p3_iov *iov = r->iov;
	r->size = 0;
	iov->lo = iov->hi = NULL;
	for (uint32_t i = 0; i < iov->n; i++) {
		char *at = iov->v[i].iov_base;
		uint64_t len = iov->v[i].iov_len;
		if ((!at && len) || md_wraps(at, len) || len >= P3_WHOLE - r->size)
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
static P3_HOT bool md_is_legal(const ptl_md_t *md, uint32_t options)
{
	return !(md->options & ~options) && md->threshold >= PTL_MD_THRESH_INF &&
	       (md->start || !md->length);
}

/* Return true, with the region, if the descriptor has one piece, and a legal one. */
static P3_HOT bool md_is_plain(const ptl_md_t *md, struct p3_region *out)
{
	*out = (struct p3_region){.start = md->start, .size = md->length};
	return md_is_legal(md, md_known_options & ~(uint32_t)PTL_MD_IOVEC) &&
	       !md_wraps(md->start, md->length);
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

/* Set the region of a descriptor that is an iovec, or illegal.  iov is its copy. */
static __attribute__((noinline)) int md_understand_pieces(const struct p3_nic *n,
	uint32_t ni, const ptl_md_t *md, struct p3_iov *iov, struct p3_region *out)
{
	if (!(md->options & PTL_MD_IOVEC) || !iov || !md_is_legal(md, md_known_options) ||
		md->length > (ptl_size_t)n->ni[ni].limits.max_md_iovecs)
		return PTL_MD_ILLEGAL;
	out->iov = iov;
	return md_sum_up(out) ? PTL_OK : PTL_MD_ILLEGAL;
}

/* Return PTL_OK and the meaning of a descriptor, or the code for illegal contents. */
static P3_HOT int md_understand(const struct p3_nic *n, uint32_t ni, const ptl_md_t *md,
	struct p3_iov *iov, struct p3_md_meaning *out)
{
	if (p3_unlikely(!md_is_plain(md, &out->region))) {
		int rc = md_understand_pieces(n, ni, md, iov, &out->region);
		if (rc != PTL_OK)
			return rc;
	}
	return md_queue(n, ni, md, &out->sink);
}

/* Return the bits of enum p3_md_odd that options make. */
static P3_HOT uint32_t md_odd_options(const struct p3_sink *sink)
{
	const uint32_t usual = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_EVENT_START_DISABLE;
	const uint32_t unusual = PTL_MD_ACK_DISABLE | PTL_MD_IOVEC | PTL_MD_MAX_SIZE |
				 PTL_MD_EVENT_END_DISABLE;
	uint32_t odd = (sink->options ^ usual) & (usual | unusual);
	if (!sink->eq)
		odd = (odd & ~(uint32_t)(P3_MD_ODD_STARTS | P3_MD_ODD_ENDS)) |
		      P3_MD_ODD_QUEUE;
	return odd | (sink->options / (P3_MD_CRAY / P3_MD_ODD_CRAY) & P3_MD_ODD_CRAY);
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
	md->odd = md_odd_options(&meaning->sink) |
		  (user->threshold == PTL_MD_THRESH_INF ? 0u
			  : user->threshold             ? (uint32_t)P3_MD_ODD_THRESHOLD
					    : P3_MD_ODD_THRESHOLD | P3_MD_ODD_INACTIVE);
}

P3_HOT
int p3_md_prepare(struct p3_nic *n, uint32_t ni, const ptl_md_t *what, struct p3_iov *iov,
	struct p3_md_meaning *out)
{
	int rc = md_understand(n, ni, what, iov, out);
	return p3_likely(rc == PTL_OK) ? p3_obj_room(n, P3_T_MD, ni) : rc;
}

P3_HOT
struct p3_md *p3_md_create(struct p3_nic *n, uint32_t ni, const ptl_md_t *what,
	bool unlink, uint32_t me, const struct p3_md_meaning *meaning)
{
	struct p3_md *md = p3_obj_new(n, P3_T_MD, ni);
	md_fill(md, what, meaning);
	md->unlink = unlink;
	md->owes_unlink = false;
	md->me = me;
	md->pending = 0;
	/* log2 of the largest of 1, 2 .. 128 that divides the address */
	unsigned log = (unsigned)__builtin_ctzl((uintptr_t)what->start | 128);
	if (log >= 3)
		n->ni[ni].aligned[7 - log]++;
	p3_obj_born(&md->o);
	return md;
}

P3_HOT
int p3_md_make(struct p3_nic *n, uint32_t ni, const ptl_md_t *what, struct p3_iov *iov,
	bool unlink, uint32_t me, struct p3_md **md_out)
{
	struct p3_md_meaning meaning;
	int rc = p3_md_prepare(n, ni, what, iov, &meaning);
	if (p3_likely(rc == PTL_OK))
		*md_out = p3_md_create(n, ni, what, unlink, me, &meaning);
	return rc;
}

int p3_md_bind(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md;
	if (!p3_ni_is(n, c->ni, c->handle))
		return PTL_NI_INVALID;
	int rc = p3_md_make(
		n, c->ni, &c->md.md, c->md.iov, c->md.unlink == PTL_UNLINK, P3_NONE, &md);
	if (rc == PTL_OK)
		c->md.handle_out = p3_get(&md->o.name);
	return rc;
}

P3_HOT
int p3_md_at_rest(const struct p3_nic *n, uint32_t ni, uint64_t test_eq)
{
	if (test_eq == PTL_EQ_NONE)
		return PTL_OK;
	const struct p3_eq *eq = p3_eq_named(n, test_eq);
	if (p3_unlikely(!eq || eq->o.ni != ni))
		return PTL_EQ_INVALID;
	bool rests = !eq->owed && p3_eq_is_empty(eq, test_eq);
	return p3_likely(rests) ? PTL_OK : PTL_MD_NO_UPDATE;
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

int p3_md_update(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md_meaning meaning;
	struct p3_md *md = p3_md_named(n, c->handle);
	if (!md)
		return PTL_MD_INVALID;
	c->ni = (uint16_t)md->o.ni;
	int legal = PTL_OK;
	if (c->md.change)
		legal = md_understand(n, c->ni, &c->md.md, c->md.iov, &meaning);
	int rest = p3_md_at_rest(n, c->ni, c->md.test_eq);
	/* A conditional update also needs that no operation on the descriptor is under
	 * way: then no message that was matched before touches the old region any
	 * more. */
	if (rest == PTL_OK && c->md.test_eq != PTL_EQ_NONE && md->pending)
		rest = PTL_MD_NO_UPDATE;
	if (legal != PTL_OK || rest == PTL_EQ_INVALID)
		return legal != PTL_OK ? legal : rest;
	if (md->region.iov && (c->old.options & PTL_MD_IOVEC) && !c->old.start &&
		c->old.length)
		return PTL_SEGV;
	md_tell(md, &c->old);
	if (!c->md.change)
		return PTL_OK;
	if (rest == PTL_OK) { /* operations under way keep the former elements */
		p3_md_cancel_unlink(md);
		p3_md_drop_iov(md->region.iov);
		md_fill(md, &c->md.md, &meaning);
	}
	return rest;
}
