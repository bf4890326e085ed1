/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fd - descriptors of the library, which lie among those of the program
 *
 * Any thread may call these functions; there is no state.
 */
#ifndef P3_SHM_FD_H
#define P3_SHM_FD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Move the file of fd to a descriptor above the numbers that programs give their files
 * (and that they close without knowing them), if the limit of open files allows; else
 * above 2, since any program may write to 0, 1 and 2.  Close fd if it is not kept.
 * Return the descriptor, or -1 with errno.
 */
int p3_fd_high(int fd);

/*
 * Identify the file that a descriptor names.  A program may close numbers that it does
 * not know, and its next files get these numbers: before the library uses a descriptor
 * again it checks that the number still names the same file.  Eventfds share one inode;
 * the kernel's number of each, in /proc, tells them apart.  Two instances of epoll look
 * alike, and so do two eventfds while that number cannot be read: without /proc, after
 * chroot(), and while no descriptor is free.
 */
typedef uint64_t p3_fd_id; /* made of device, inode and eventfd; 0: no file */
p3_fd_id p3_fd_file(int fd);
bool p3_fd_is(int fd, p3_fd_id id);

/*
 * Add one to an eventfd; set a non-blocking one to 0; close a descriptor.  None of them
 * is a cancellation point, because the callers may hold the lease or a lock.
 */
void p3_fd_signal(int fd);
void p3_fd_drain(int fd);
void p3_fd_close(int fd);

/* Close a descriptor if it still names this file. */
void p3_fd_close_own(int fd, p3_fd_id id);

#endif
