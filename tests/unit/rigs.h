/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rigs.h - cases that begin with a rig of some size
 *
 * The file that includes this has struct rig, rig_new(size), rig_free(rig), and the array
 * sizes.
 */
#ifndef RIGS_H
#define RIGS_H

#include "support/cases.h"

#define EACH_SIZE(i)                                                                     \
	unsigned i = 0;                                                                  \
	i < sizeof sizes / sizeof sizes[0];                                              \
	i++

/* A case with a rig of this size, and one with a rig of each size. */
#define RIG_CASE(name, n)                                                                \
	static void name##_with(struct rig *r);                                          \
	CASE(name)                                                                       \
	{                                                                                \
		struct rig *r = rig_new(n);                                              \
		name##_with(r);                                                          \
		rig_free(r);                                                             \
	}                                                                                \
	static void name##_with(struct rig *r)

#define RIGS_CASE(name)                                                                  \
	static void name##_with(struct rig *r);                                          \
	CASE(name)                                                                       \
	{                                                                                \
		for (EACH_SIZE(i)) {                                                     \
			struct rig *r = rig_new(sizes[i]);                               \
			name##_with(r);                                                  \
			rig_free(r);                                                     \
		}                                                                        \
	}                                                                                \
	static void name##_with(struct rig *r)

#endif
