/* SPDX-License-Identifier: BSD-3-Clause */
/* shrink - finds the smallest part of a program that still shows a disagreement */
#ifndef P3_TESTS_MODEL_SHRINK_H
#define P3_TESTS_MODEL_SHRINK_H

#include "model/play.h"

struct shrink {
	struct play *play;
	unsigned nodes;
	bool fresh; /* use new nodes each time */
};

/* Carry out a whole program; return true if library and model agree. */
bool replay(const struct shrink *s, const struct m_op *ops, unsigned n);
/* Drop operations in place; return the number of the remaining ones. */
unsigned shrink(const struct shrink *s, struct m_op *ops, unsigned n);

#endif
