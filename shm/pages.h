/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages - mappings that take pages as they are used, also after mlockall
 *
 * After mlockall(MCL_FUTURE) the kernel brings all pages of a new mapping in at once, and
 * counts its length against RLIMIT_MEMLOCK.  The library's mappings are sparse: gigabytes
 * of which a node uses a few megabytes.  So it maps one page, unlocks it, and grows the
 * mapping, which the kernel then neither locks nor counts.  Where no limit counts locked
 * memory (ulimit -l unlimited), the pages are locked as they are used.
 *
 * Any threads may call these functions at the same time; they make system calls, and
 * there is no state.
 */
#ifndef P3_SHM_PAGES_H
#define P3_SHM_PAGES_H

#include <stdbool.h>
#include <stdint.h>

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
