/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cci_paper - the figures of "SeaStar Unchained" (Dillow, Atchley) beside those of a run
 *
 * The paper compares CCI in the firmware of a Cray XT5 with Portals in its kernel.  The
 * absolute figures of that machine say nothing here; its shapes do: each is judged by the
 * medians of the run.
 */
#ifndef BENCH_CCI_PAPER_H
#define BENCH_CCI_PAPER_H

#include "bench.h"

enum { CCI_FIGURES = 32 };

struct cci_latency {
	uint64_t bytes;
	double uu, ro, put, acked; /* ns */
};

struct cci_rate {
	uint64_t bytes;
	double uu, ro, put; /* million messages a second */
};

struct cci_figures {
	struct cci_latency latency[CCI_FIGURES];
	struct cci_rate rate[CCI_FIGURES];
	unsigned latencies, rates;
};

void cci_figures_latency(struct cci_figures *f, const struct cci_latency *l);
void cci_figures_rate(struct cci_figures *f, const struct cci_rate *r);
/* Rank 0: print the paper's figures beside these, and judge the shapes of which the run
 * has the sizes. */
void cci_figures_print(struct bench *b, const struct cci_figures *f);

#endif
