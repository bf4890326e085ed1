/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random puts and gets of all forms, from all nodes to all nodes, against a sequential
 * model: gn_random_MODE SEEDS OPERATIONS.  GN_SEED is the first seed.
 */
#include "gn.h"
#include "mixer.h"

static void run_seeds(int argc, char **argv);

const struct gn_program gn_program = {.segment = (uintptr_t)4 << 20, .whole = run_seeds};

enum { THREADS = GN_IS_PAR ? 4 : 1 };

static uint64_t first_seed;
static unsigned operations;

static void run_mix(unsigned nth)
{
	size_t base = ((size_t)nth * gn.size + gn.rank) * MIXER_BYTES;
	struct mixer *m = mixer_new(base, first_seed * 1000 + gn.rank * 10 + nth);
	mixer_run(m, operations);
	mixer_free(m);
}

static void run_seeds(int argc, char **argv)
{
	unsigned seeds = argc > 1 ? (unsigned)atoi(argv[1]) : 10;
	operations = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
	first_seed = gn_seed();
	for (unsigned i = 0; i < seeds; i++, first_seed++) {
		for (unsigned k = 1; k < THREADS; k++)
			gn_thread(run_mix, k);
		run_mix(0);
		gn_join();
		gn_barrier();
	}
	if (gn.is_a)
		printf("# tried: %u operations\n",
			seeds * operations * gn.size * (unsigned)THREADS);
}
