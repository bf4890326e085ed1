/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onesided_layer - puts, gets and locks on a segment of each process, whose owner does
 * nothing for them
 *
 * The segment is mapped, never touched, and bound once: by an entry for peers, without
 * events, and by a descriptor from which the owner sends.  Bytes outside go through a
 * descriptor of their own for each transfer.  A put is complete when its ACK has come,
 * a get with its REPLY; their match bits name the operation, half of which the entry
 * ignores.
 *
 * One thread.
 */
#ifndef COMPAT_ONESIDED_LAYER_H
#define COMPAT_ONESIDED_LAYER_H

#include "job.h"

enum { OS_SEGMENT = 1 << 30, OS_OPERATIONS = 256, OS_LOCKS = 16 };

/* Return the own segment, to prepare puts in it; its first page is the layer's.
 * os_look reads bytes that others have put there. */
char *os_begin(void);
void os_end(void);

/* Put without blocking: return an operation for os_wait. */
unsigned os_put_nb(int to, size_t offset, const void *bytes, size_t length);
unsigned os_get_nb(void *bytes, int from, size_t offset, size_t length);
void os_wait(unsigned operation);
bool os_test(unsigned operation);

/* Wait until all puts and gets of this process are complete at their targets. */
void os_fence(void);

void os_put(int to, size_t offset, const void *bytes, size_t length);
void os_get(void *bytes, int from, size_t offset, size_t length);

/* Take a lock by PtlGetPut of a word of that process; it has one holder at a time. */
void os_lock(int of, unsigned which);
void os_unlock(int of, unsigned which);

/* Add add[i] to there[i], under a lock. */
void os_accumulate(int to, size_t offset, const uint64_t *add, size_t words);

/* Meet by flags in the segments, which are polled in memory without a call. */
void os_barrier(void);

/* Copy own bytes as they are in memory now, by words of 8 bytes. */
void os_look(void *bytes, size_t offset, size_t length);
uint64_t os_word(size_t offset);

#endif
