/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seg - shared memory segments: memfds, hugepages, seals, mappings
 *
 * A segment is a memfd of its owner's making, without a name.  Its size is final at
 * creation and sparse; room is reserved with fallocate before it is used, so a machine
 * without memory gives an error and never SIGBUS.  Readers do not rely on the
 * reservation: they make the kernel bring the pages in first.  The owner maps the
 * segment, seals it (SHRINK, GROW, FUTURE_WRITE, SEAL), and may then send the descriptor
 * to others, which can map it read-only and do nothing else to it.
 *
 * The addresses of segments and doorbells are never given back while the process lives:
 * a dropped mapping is replaced by zero pages, and its range is kept for the next one
 * of about the same length, so a thread that still looks through an old pointer reads
 * zeros (no news) and never faults.  To make ranges reusable, lengths are rounded up by
 * an eighth at most: if all peers' segments differ in length, they still use up
 * addresses only for the largest number of peers at a time.  The addresses of a view go
 * back to the kernel with the mapping.
 *
 * A core file holds the reserved part of this process's own segments and nothing of
 * other processes' segments: MADV_DONTDUMP.
 *
 * Several nodes may live in one process (tests do that so that ThreadSanitizer and
 * helgrind see every access): a segment of this process is mapped once and shared.
 *
 * Any threads may call these functions at the same time; they make system calls.  A mutex
 * guards the state, the list of mapped and kept ranges (seg.c).  Returns are 0 or -errno.
 *
 * Mappings take pages as they are used, also after mlockall(MCL_FUTURE): then the kernel
 * brings all pages of a new mapping in at once, and counts its length against
 * RLIMIT_MEMLOCK.  The library's mappings are sparse: gigabytes of which a node uses a
 * few megabytes.  So p3_pages_map() maps one page, unlocks it, and grows the mapping,
 * which the kernel then neither locks nor counts.  Where no limit counts locked memory
 * (ulimit -l unlimited), the pages are locked as they are used.
 *
 * The header takes the place of <fcntl.h> and <sys/mman.h>, whose constants older C
 * libraries lack.
 */
#ifndef P3_SHM_SEG_H
#define P3_SHM_SEG_H

#include "shm/fd.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum p3_huge_policy { P3_HUGE_AUTO, P3_HUGE_ON, P3_HUGE_OFF };

struct p3_seg {
	void *base;
	uint64_t len;
	uint64_t reserved; /* bytes from the start that may be touched */
	uint32_t page;     /* bytes of one of its pages */
	int fd;
	p3_fd_id file; /* identity of the file that fd names */
};

/*
 * Make a segment of len bytes (a multiple of P3_HUGE) with the first reserve bytes
 * reserved.  name appears in /proc/self/maps.  If hugepages cannot be used, ON fails,
 * and AUTO uses ordinary pages and sets *fell_back_out to the error number of the attempt
 * with hugepages (EPERM: the kernel would let peers write to sealed hugepages).  In all
 * other cases *fell_back_out is 0.
 */
int p3_seg_create(const char *name, uint64_t len, uint64_t reserve,
	enum p3_huge_policy huge, struct p3_seg *seg_out, int *fell_back_out);

/* Make the first len bytes usable.  Return -ENOSPC when the machine has no room. */
int p3_seg_reserve(struct p3_seg *seg, uint64_t len);

/* Make whole pages in the middle usable.  Any threads may do so at the same time. */
int p3_seg_reserve_range(const struct p3_seg *seg, uint64_t off, uint64_t len);

/* Seal the segment, once, before the descriptor leaves the process. */
int p3_seg_seal(const struct p3_seg *seg);

/* Make the page that all nodes may write: a small memfd, sealed in size only. */
int p3_seg_create_doorbell(struct p3_seg *seg_out);

/* Return the NUMA node of the first page, or -1 if unknown or the machine has one node
 * only. */
int p3_seg_numa_node(const struct p3_seg *seg);

/* Prefer memory of the NUMA node of the current CPU.  Failure is ignored. */
void p3_seg_bind_here(const struct p3_seg *seg);

/*
 * Map a peer's descriptor: its size must be len exactly, and it must be a sealed memfd
 * (writable: a doorbell).  The descriptor stays the caller's.  Return -EPROTO if the
 * file is anything else.
 */
int p3_seg_map(int fd, uint64_t len, bool writable, void **base_out);

/*
 * Map a peer's file read-only, with the checks of p3_seg_map.  Only the lease holder may
 * read the mapping: then no other thread has an old pointer when it is dropped, and its
 * addresses go back to the kernel.  Peers' heaps can be large, and each process that
 * comes and goes may have one of another length.
 */
int p3_seg_view(int fd, uint64_t len, void **base_out);

/*
 * Make sure that there is memory behind bytes of a peer's segment, before the first
 * look at them.  If the owner never reserved them, a machine without room could not
 * provide them, and the touch would be SIGBUS.  Return -EFAULT if the touch would be
 * SIGBUS, or -ENOMEM after another failure, such as a lack of memory.
 */
int p3_seg_reach(const void *at, uint64_t len);
/* Return false if bytes of the program are known to be in memory that is not there: a
 * thread that reads them waits for a disk, a file server, or a userfaultfd; or ends by a
 * signal, where nothing is mapped. */
bool p3_seg_is_resident(const void *at, uint64_t len);

/*
 * Map one page of a peer's segment a second time, next to such pages of other peers; the
 * whole segment is mapped already.  A node that shares its CPU with many others begins
 * each turn with an empty TLB.  To find a few pages that lie side by side, the CPU reads
 * one or two cache lines of the page tables in all; to find the same pages inside of
 * their segments, it reads some lines for each of them.  If this call fails, the caller
 * uses the page inside the full mapping.  Return -EINVAL if the segment has hugepages or
 * belongs to this process (two addresses for one word would hide a race from
 * ThreadSanitizer), -ENOMEM, or -errno.
 */
int p3_seg_map_page(int fd, uint64_t off, const void **at_out);
/* Unmap such a page.  Its place reads as zeros, if the kernel has a mapping left for
 * that, until another page takes the place. */
void p3_seg_unmap_page(const void *at);

/* End a mapping of a segment, whose pages read as zeros then.  Return false if there is
 * no such mapping. */
bool p3_seg_unmap(void *base, uint64_t len);
/* Destroy a segment of this process, and close its descriptor. */
void p3_seg_destroy(struct p3_seg *seg);

/* Forget all segments in a forked child, which starts without any. */
void p3_seg_forget_all(void);

/* ---- mappings of any file ---- */

/*
 * Map as mmap() does, with the same arguments and the same errors.  A mapping of P3_HUGE
 * bytes or more brings no page in (before Linux 5.16, of hugepages it does after
 * mlockall).  With MAP_FIXED the former mapping is there until the new one is: a thread
 * that reads the range meanwhile reads one or the other.  After an error the range may be
 * unmapped.  ThreadSanitizer does not see the mapping.
 */
void *p3_pages_map(void *at, uint64_t len, int prot, int flags, int fd, uint64_t off);

/*
 * Explain an error: if rc is -EAGAIN or -ENOMEM, and this process has locked its future
 * memory and reached RLIMIT_MEMLOCK, print a line about that and return true.
 */
bool p3_pages_say_limit(int rc);

#endif
