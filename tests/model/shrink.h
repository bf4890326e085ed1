/* SPDX-License-Identifier: BSD-3-Clause */
/* shrink - the least of a program that still shows a disagreement */
#ifndef P3_TESTS_MODEL_SHRINK_H
#define P3_TESTS_MODEL_SHRINK_H

#include "model/play.h"

struct shrink {
	struct play *play;
	unsigned nodes;
	bool fresh; /* each time on nodes that have done nothing before */
};

/* Carry out a whole program; true if the two agree. */
bool replay(const struct shrink *s, const struct m_op *ops, unsigned n);
/* Drops operations in place; the number of those that are left. */
unsigned shrink(const struct shrink *s, struct m_op *ops, unsigned n);

#endif
