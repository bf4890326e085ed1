/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixer - random puts and gets of all forms, compared with a sequential model
 *
 *	struct mixer *m = mixer_new(base, seed);
 *	mixer_run(m, 10000);
 *	mixer_free(m);
 *
 * A mixer owns MIXER_BYTES at one offset of every segment, and no other thread writes
 * there.  It keeps a copy of the right bytes.  Operations that touch the same
 * bytes, one of them by writing, are separated by a sync; all others overlap freely.
 * Each get is compared with the copy.  A mixer belongs to one thread.
 */
#ifndef P3_TESTS_GASNET_MIXER_H
#define P3_TESTS_GASNET_MIXER_H

#include <stddef.h>
#include <stdint.h>

enum { MIXER_BYTES = 6000 };

struct mixer;
/* Write the initial bytes to all nodes. */
struct mixer *mixer_new(size_t base, uint64_t seed);
/* Do a number of random operations, and sync all of them. */
void mixer_run(struct mixer *m, unsigned operations);
/* Compare all bytes of all nodes with the copy, and free the mixer. */
void mixer_free(struct mixer *m);

#endif
