/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scene - the parts of a race: a setup, then actors with a thread each
 *
 * Each actor's operations are atomic and keep their order; a message counts from the
 * moment of its matching.  So the steps of a scene are complete at its target: longer
 * operations belong into tales, which list their possible outcomes themselves.
 */
#ifndef P3_TESTS_MODEL_SCENE_H
#define P3_TESTS_MODEL_SCENE_H

#include "model/play.h"

#define S_NODES  3u
#define S_ACTORS 3u
#define S_OPS    6u
#define S_SETUP  24u
#define S_EVENTS 64u
#define S_LOOSE  4u /* queues of initiators: their order is not that of the calls */
#define S_MEMORY (320u * 1024) /* bytes of the arenas that scenes use */

struct answer {
	int rc;
	ptl_event_t event;
};

struct actor {
	unsigned node, n;
	struct m_op op[S_OPS];
	uint32_t delay[S_OPS];
};

struct scene {
	const char *name;
	unsigned nsetup, nactors;
	struct m_op setup[S_SETUP];
	struct actor actor[S_ACTORS];
};

typedef void scene_fn(struct scene *s, uint64_t *random);
extern scene_fn *const scenes[]; /* ends with NULL */

bool tell_tales(struct play *p, uint64_t seed, unsigned rounds, uint64_t end);

#endif
