/* SPDX-License-Identifier: BSD-3-Clause */
/* generate - the next operation of a random program, given the state of the model */
#ifndef P3_TESTS_MODEL_GENERATE_H
#define P3_TESTS_MODEL_GENERATE_H

#include "model/model.h"
#include "support/random.h"

struct generator {
	uint64_t state;
	unsigned nodes;
	unsigned made;
	/* Properties of this program, in percent. */
	unsigned longs;  /* lengths that do not travel in one piece */
	unsigned faults; /* bad handles and arguments */
	unsigned bursts;
	unsigned iovecs;
	unsigned events; /* events taken from queues; the others may be lost */
};

void generate_begin(struct generator *g, uint64_t seed);
struct m_op generate_op(struct generator *g, const struct model *m);

#endif
