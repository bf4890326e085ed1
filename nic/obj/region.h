/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * region - the bytes of a descriptor: addresses, bounds and copies
 *
 * A region is one piece of memory or the pieces of an iovec.  The functions have no
 * state; the caller holds the lease, or owns the region.
 */
#ifndef P3_NIC_OBJ_REGION_H
#define P3_NIC_OBJ_REGION_H

#include "nic/nic.h"

#include <string.h>
#include <sys/uio.h>

struct p3_region {
	char *start;
	uint64_t size;      /* bytes of all pieces */
	struct p3_iov *iov; /* NULL: contiguous */
};

/* Bounds of the addresses of some bytes of a region.  They are a hint, and may be too
 * wide for iovecs. */
struct p3_bounds {
	const char *lo, *hi;
};

/* Bytes from .. to - 1 of an operation. */
struct p3_range {
	uint64_t from, to;
};

/*
 * Where nodes share CPUs, up to this number of bytes is copied in place: a call of memcpy
 * takes more instructions, and touches another page.  Where each node has a CPU, memcpy
 * is as fast, and faster for messages of two cells (docs/design/polling.md).
 */
#define P3_FEW 64u

/* Copy by two blocks of k bytes, which touch or overlap; all is read before any is
 * written. */
#define P3_COPY_ENDS(k)                                                                  \
	if (p3_likely(len >= (k))) {                                                     \
		char head[k], tail[k];                                                   \
		memcpy(head, from, (k));                                                 \
		memcpy(tail, from + len - (k), (k));                                     \
		memcpy(to, head, (k));                                                   \
		memcpy(to + len - (k), tail, (k));                                       \
		return;                                                                  \
	}

/* Return base + offset.  An empty region may begin at NULL, where C knows no sum. */
static inline char *p3_region_address(char *base, uint64_t offset)
{
	return (char *)((uintptr_t)base + offset);
}

/* Copy 32 to 64 bytes.  Each array is one register: GCC keeps larger ones in memory. */
static P3_HOT void p3_region_copy_halves(char *to, const char *from, uint64_t len)
{
	char a[16], b[16], c[16], d[16];
	memcpy(a, from, 16);
	memcpy(b, from + 16, 16);
	memcpy(c, from + len - 32, 16);
	memcpy(d, from + len - 16, 16);
	memcpy(to, a, 16);
	memcpy(to + 16, b, 16);
	memcpy(to + len - 32, c, 16);
	memcpy(to + len - 16, d, 16);
}

/* Copy at most P3_FEW bytes. */
static P3_HOT void p3_region_copy_few(char *to, const char *from, uint64_t len)
{
	if (p3_likely(len >= 32)) {
		p3_region_copy_halves(to, from, len);
		return;
	}
	P3_COPY_ENDS(16)
	P3_COPY_ENDS(8)
	P3_COPY_ENDS(4)
	P3_COPY_ENDS(2)
	P3_COPY_ENDS(1)
}

/* Return true if p3_region_copy_few() is the way to copy these bytes; crowded: more nodes
 * than CPUs. */
static inline bool p3_region_copies_few(
	bool crowded, const struct p3_region *r, uint64_t len)
{
	return crowded && len <= P3_FEW && !r->iov;
}

/* Copy bytes between a region and plain memory. */
void p3_region_write(
	const struct p3_region *r, uint64_t off, const void *src, uint64_t len);
void p3_region_read(const struct p3_region *r, uint64_t off, void *dst, uint64_t len);
/* Return the address at off; *len_out is the length of the contiguous piece there. */
char *p3_region_at(const struct p3_region *r, uint64_t off, uint64_t *len_out);
struct p3_bounds p3_region_bounds(const struct p3_region *r, uint64_t off, uint64_t len);
bool p3_region_bounds_meet(
	struct p3_bounds b, const struct p3_region *r, uint64_t off, uint64_t len);
/* Return true if the bytes of r have any in common with flen bytes of another region,
 * few, and set the range of these common bytes, counted from off. */
bool p3_region_common(const struct p3_region *few, uint64_t foff, uint64_t flen,
	const struct p3_region *r, uint64_t off, uint64_t len,
	struct p3_range *range_out);
/* List the pieces that the bytes lie in, at most "most".  Return their number. */
unsigned p3_region_iovecs(const struct p3_region *r, uint64_t off, uint64_t len,
	struct iovec *out, unsigned most);

#endif
