/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fd - descriptors of the library, which lie among those of the program
 */
#ifndef P3_SHM_FD_H
#define P3_SHM_FD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The same file under a number above those that programs give their files (and that they
 * close without knowing them), if the limit of open files allows; else above 2, where
 * programs write unasked.  -1 with errno if there is none, and fd is closed.
 */
int p3_fd_high(int fd);

/*
 * Which file a descriptor names.  A program may close numbers that it does not know, and
 * its next files get them: before ours are used again they must name the same files as
 * before.  Not for eventfds and the like, which all look alike.
 */
typedef uint64_t p3_fd_id; /* of device and inode; 0: no file */
p3_fd_id p3_fd_file(int fd);
bool p3_fd_is(int fd, p3_fd_id id);

/*
 * Add one to an eventfd; and close a descriptor.  Neither is a cancellation point: their
 * callers may hold the lease, or a lock.
 */
void p3_fd_signal(int fd);
void p3_fd_close(int fd);

#endif
