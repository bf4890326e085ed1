/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel - constants of Linux that headers of older C libraries lack
 *
 * Include this header in place of <fcntl.h> and <sys/mman.h> where one of them is used.
 * It has constants only: no function, no state.
 */
#ifndef P3_SHM_KERNEL_H
#define P3_SHM_KERNEL_H

#include <fcntl.h>
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

#endif
