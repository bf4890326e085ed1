/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * still - hold the library's threads while the main thread is counted
 *
 * A NIC thread that sleeps between two ticks would wake by the clock, take the lease, and
 * do work that the main thread then does not do.  A program that links still.c has its
 * own syscall(), with which the library sleeps: a thread that wakes while the program is
 * still goes to sleep again at once, until still_end().
 */
#ifndef BENCH_STILL_H
#define BENCH_STILL_H

#include <stdint.h>

/* Main thread: return when a thread of the library is held.  There must be one. */
void still_begin(void);
void still_end(void);

/* Return the number of calls of syscall() that the main thread has made. */
uint64_t still_syscalls(void);

#endif
