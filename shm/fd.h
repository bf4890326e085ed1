/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fd - descriptors of the library, which lie among those of the program
 */
#ifndef P3_SHM_FD_H
#define P3_SHM_FD_H

/*
 * The same file under a number above 2, where programs do not write unasked, even if
 * they run with these closed; -1 with errno if there is none, and fd is closed.
 */
int p3_fd_above_std(int fd);

/*
 * Add one to an eventfd; and close a descriptor.  Neither is a cancellation point: their
 * callers may hold the lease, or a lock.
 */
void p3_fd_signal(int fd);
void p3_fd_close(int fd);

#endif
