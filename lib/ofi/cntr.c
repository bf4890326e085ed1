/* SPDX-License-Identifier: BSD-3-Clause */
/* cntr.c - counters, and the queues whose events they count */
#include "prov.h"

#include <stdlib.h>

int ofi_cntr_watch(struct ofi_cntr *cntr, struct ofi_queue *queue)
{
	struct ofi_queue **queues = realloc(
		cntr->queues, (size_t)(cntr->nqueues + 1) * sizeof(struct ofi_queue *));
	if (!queues)
		return -FI_ENOMEM;
	cntr->queues = queues;
	queues[cntr->nqueues++] = queue;
	return 0;
}

void ofi_cntr_unwatch(struct ofi_cntr *cntr, struct ofi_queue *queue)
{
	for (int i = 0; i < cntr->nqueues; i++)
		if (cntr->queues[i] == queue) {
			cntr->queues[i] = cntr->queues[--cntr->nqueues];
			return;
		}
}
