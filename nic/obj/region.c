/* SPDX-License-Identifier: BSD-3-Clause */
/* The pieces of a region: walks over them, copies, and common bytes. */
#include "nic/obj/state.h"

char *p3_region_at(const struct p3_region *r, uint64_t off, uint64_t *len_out)
{
	if (!r->iov) {
		*len_out = r->size - off;
		return p3_region_address(r->start, off);
	}
	for (uint32_t i = 0; i < r->iov->n; i++) {
		const ptl_md_iovec_t *v = &r->iov->v[i];
		if (off < v->iov_len) {
			*len_out = v->iov_len - off;
			return (char *)v->iov_base + off;
		}
		off -= v->iov_len;
	}
	*len_out = 0;
	return NULL;
}

/* The position of a walk over a region's pieces. */
struct region_walk {
	const struct p3_region *region;
	uint32_t element;
	uint64_t offset; /* offset in the region */
};

static struct region_walk region_walk_from(const struct p3_region *r, uint64_t off)
{
	struct region_walk w = {.region = r, .offset = off};
	if (r->iov)
		while (w.element < r->iov->n && w.offset >= r->iov->v[w.element].iov_len)
			w.offset -= r->iov->v[w.element++].iov_len;
	return w;
}

/* Return the next piece, at most len bytes of it, or NULL behind the end. */
static char *region_walk_on(struct region_walk *w, uint64_t len, uint64_t *piece_out)
{
	const struct p3_region *r = w->region;
	if (!r->iov) {
		*piece_out = len;
		w->offset += len;
		return p3_region_address(r->start, w->offset - len);
	}
	while (w->element < r->iov->n && w->offset == r->iov->v[w->element].iov_len) {
		w->element++;
		w->offset = 0;
	}
	if (w->element == r->iov->n)
		return NULL;
	const ptl_md_iovec_t *v = &r->iov->v[w->element];
	*piece_out = v->iov_len - w->offset < len ? v->iov_len - w->offset : len;
	w->offset += *piece_out;
	return (char *)v->iov_base + w->offset - *piece_out;
}

P3_PATH
void p3_region_write(
	const struct p3_region *r, uint64_t off, const void *src, uint64_t len)
{
	const char *from = src;
	struct region_walk w = region_walk_from(r, off);
	for (uint64_t piece; len; from += piece, len -= piece) {
		char *to = region_walk_on(&w, len, &piece);
		if (!to)
			return;
		/* Words must not tear, and the memmove of AddressSanitizer copies single
		 * bytes. */
		if (piece <= 16)
			p3_region_copy_few(to, from, piece);
		else
			memmove(to, from, piece);
	}
}

P3_PATH
void p3_region_read(const struct p3_region *r, uint64_t off, void *dst, uint64_t len)
{
	char *to = dst;
	struct region_walk w = region_walk_from(r, off);
	for (uint64_t piece; len; to += piece, len -= piece) {
		const char *from = region_walk_on(&w, len, &piece);
		if (!from)
			return;
		memcpy(to, from, piece);
	}
}

/* Return bounds of the bytes' addresses; those of an iovec are the bounds of all of its
 * elements. */
static struct p3_bounds region_bounds(
	const struct p3_region *r, uint64_t off, uint64_t len)
{
	if (r->iov)
		return (struct p3_bounds){r->iov->lo, r->iov->hi};
	char *at = p3_region_address(r->start, off);
	return (struct p3_bounds){at, p3_region_address(at, len)};
}

struct p3_bounds p3_region_bounds(const struct p3_region *r, uint64_t off, uint64_t len)
{
	struct p3_bounds b = region_bounds(r, 0, 0);
	struct region_walk w = region_walk_from(r, off);
	bool first = true;
	for (uint64_t piece; len; len -= piece, first = false) {
		char *at = region_walk_on(&w, len, &piece);
		if (!at)
			break;
		if (first || at < b.lo)
			b.lo = at;
		if (first || at + piece > b.hi)
			b.hi = at + piece;
	}
	return first ? (struct p3_bounds){NULL, NULL} : b;
}

bool p3_region_bounds_meet(
	struct p3_bounds b, const struct p3_region *r, uint64_t off, uint64_t len)
{
	struct p3_bounds other = region_bounds(r, off, len);
	return len && b.lo < other.hi && other.lo < b.hi;
}

/* Widen the range by the bytes that r has in common with one piece, which begins at
 * pos. */
static void region_common_with_piece(const char *at, uint64_t len, uint64_t pos,
	const struct p3_region *r, uint64_t off, uint64_t rest, struct p3_range *range)
{
	struct region_walk w = region_walk_from(r, off);
	for (uint64_t piece; rest; rest -= piece) {
		const char *other = region_walk_on(&w, rest, &piece);
		if (!other)
			return;
		const char *lo = at > other ? at : other;
		const char *hi = at + len < other + piece ? at + len : other + piece;
		if (lo >= hi)
			continue;
		uint64_t first = pos + (uint64_t)(lo - at),
			 end = pos + (uint64_t)(hi - at);
		if (first < range->from)
			range->from = first;
		if (end > range->to)
			range->to = end;
	}
}

/* Compare each piece of the long region with the few pieces of the short one. */
bool p3_region_common(const struct p3_region *few, uint64_t foff, uint64_t flen,
	const struct p3_region *r, uint64_t off, uint64_t len, struct p3_range *range_out)
{
	*range_out = (struct p3_range){len, 0};
	if (!flen ||
		!p3_region_bounds_meet(p3_region_bounds(few, foff, flen), r, off, len))
		return false;
	struct region_walk w = region_walk_from(r, off);
	uint64_t pos = 0;
	for (uint64_t piece; pos < len; pos += piece) {
		const char *at = region_walk_on(&w, len - pos, &piece);
		if (!at)
			break;
		region_common_with_piece(at, piece, pos, few, foff, flen, range_out);
	}
	return range_out->from < range_out->to;
}

unsigned p3_region_iovecs(const struct p3_region *r, uint64_t off, uint64_t len,
	struct iovec *out, unsigned most)
{
	struct region_walk w = region_walk_from(r, off);
	unsigned n = 0;
	for (uint64_t piece; len && n < most; len -= piece, n++) {
		char *at = region_walk_on(&w, len, &piece);
		if (!at)
			break;
		out[n] = (struct iovec){at, piece};
	}
	return n;
}
