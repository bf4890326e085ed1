/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seg - shared memory segments: memfds, hugepages, seals, mappings
 *
 * A segment is a memfd of its owner's making, without a name.  Its size is final at
 * creation and sparse; room is reserved with fallocate before it is used, so a short
 * machine gives an error and never SIGBUS.  Readers do not believe that: they reach out
 * for the pages first.  The owner maps it, seals SHRINK | GROW |
 * FUTURE_WRITE | SEAL, and may then hand the descriptor on: others can map it
 * read-only and do nothing else to it.
 *
 * The addresses of segments and doorbells are never given back while the process lives:
 * a dropped mapping is replaced by zero pages, and its range is kept for the next one of
 * about the same length, so a thread that still looks through an old pointer reads zeros
 * (no news) and never faults.  Lengths are rounded up for that, by an eighth at most:
 * peers whose segments all differ in length use up addresses only for as many as there
 * are at a time.  The addresses of a view go back to the kernel with the mapping.
 *
 * A core file holds what this process has reserved in segments of its own, and nothing
 * of those of others: MADV_DONTDUMP.
 *
 * Several nodes may live in one process (tests do that so that ThreadSanitizer and
 * helgrind see every access): a segment of this process is mapped once and shared.
 *
 * All functions may be called by any thread at the same time (one mutex inside; they
 * make system calls).  Returns are 0 or -errno.
 */
#ifndef P3_SHM_SEG_H
#define P3_SHM_SEG_H

#include "shm/fd.h"

#include <stdbool.h>
#include <stdint.h>

enum p3_huge_policy { P3_HUGE_AUTO, P3_HUGE_ON, P3_HUGE_OFF };

struct p3_seg {
	void *base;
	uint64_t len;
	uint64_t reserved; /* bytes from the start that may be touched */
	uint32_t page;     /* size of its pages, bytes */
	int fd;
	p3_fd_id file; /* that fd names */
};

/*
 * Make a segment of len bytes (a multiple of P3_HUGE) with the first reserve bytes
 * reserved.  AUTO falls back to ordinary pages and says so in *fell_back_out
 * (errno of the attempt, else 0); ON fails instead.  name appears in /proc/self/maps.
 */
int p3_seg_create(const char *name, uint64_t len, uint64_t reserve,
	enum p3_huge_policy huge, struct p3_seg *seg_out, int *fell_back_out);

/* Make the first len bytes usable.  -ENOSPC when the machine has no room. */
int p3_seg_reserve(struct p3_seg *seg, uint64_t len);

/* The same for some bytes in the middle, whole pages; any threads at the same time. */
int p3_seg_reserve_range(const struct p3_seg *seg, uint64_t off, uint64_t len);

/* Seal it; done once, before the descriptor leaves the process. */
int p3_seg_seal(const struct p3_seg *seg);

/* The page that all nodes may write: a small memfd, sealed in size only. */
int p3_seg_create_doorbell(struct p3_seg *seg_out);

/* NUMA node of its first page; -1: not known here, or there is one only. */
int p3_seg_numa_node(const struct p3_seg *seg);

/* Prefer memory of the NUMA node of the CPU that runs this.  Best effort, silent. */
void p3_seg_bind_here(const struct p3_seg *seg);

/*
 * Map a peer's descriptor: its size must be len exactly, it must be a sealed memfd
 * (writable: a doorbell).  The descriptor stays the caller's.  -EPROTO if it is not
 * what it should be.
 */
int p3_seg_map(int fd, uint64_t len, bool writable, void **base_out);

/*
 * The same, read-only, for a file that only the lease holder looks at, so that nobody has
 * an old pointer when it is dropped: its addresses are given back then.  Peers' heaps can
 * be large, and each process that comes and goes may have one of another length.
 */
int p3_seg_view(int fd, uint64_t len, void **base_out);

/*
 * Before some bytes of a peer's segment are looked at for the first time: is there memory
 * behind them?  What its owner never reserved could not be had on a machine without room,
 * and the touch would be SIGBUS.  -EFAULT: there is none, -ENOMEM: not now.
 */
int p3_seg_reach(const void *at, uint64_t len);

/*
 * One page of a peer's segment, which is mapped already, once more, beside those of other
 * peers.  A node that shares its CPU with many begins each turn with an empty TLB; what
 * the CPU reads of the page tables for a few pages side by side is a line or two, for
 * pages of as many segments it is some lines for each.  -EINVAL: the segment has
 * hugepages, or is of this process (where two addresses for one word would hide a race
 * from ThreadSanitizer); -ENOMEM; -errno.  Then it is looked at where all of it is.
 */
int p3_seg_map_page(int fd, uint64_t off, const void **at_out);
/* It reads as zeros then, if the kernel has a mapping left for that, until the place is
 * taken again. */
void p3_seg_unmap_page(const void *at);

/* End of a mapping (of a peer's, or an own segment's: closes the descriptor). */
void p3_seg_unmap(void *base, uint64_t len);
void p3_seg_destroy(struct p3_seg *seg);

/* A forked child starts without segments. */
void p3_seg_forget_all(void);

#endif
