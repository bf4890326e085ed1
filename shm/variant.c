/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts that can be left out. */
#include "shm/variant.h"

#include <string.h>

static const char *const ablation_name[P3_ABLATIONS] = {[P3_PREFETCHES] = "prefetches",
	[P3_LINES] = "lines",
	[P3_SHADOWS] = "shadows",
	[P3_CREDITS] = "credits",
	[P3_INDEX] = "index",
	[P3_BATCHES] = "batches"};

static bool ablation_add(const char *word, size_t len, uint32_t *parts)
{
	for (uint32_t i = 0; i < P3_ABLATIONS; i++)
		if (strlen(ablation_name[i]) == len &&
			memcmp(word, ablation_name[i], len) == 0) {
			*parts |= 1u << i;
			return true;
		}
	return false;
}

bool p3_ablation_parse(const char *text, uint32_t *parts_out)
{
	uint32_t parts = 0;
	*parts_out = 0;
	if (!text || !*text || strcmp(text, "none") == 0)
		return true;
	for (;; text++) {
		size_t len = strcspn(text, ",");
		if (!ablation_add(text, len, &parts))
			return false;
		text += len;
		if (!*text)
			break;
	}
	*parts_out = parts;
	return true;
}

#ifdef P3_ABLATION
uint32_t p3_ablated;

bool p3_ablate(uint32_t parts)
{
	p3_ablated = parts;
	return true;
}
#else
bool p3_ablate(uint32_t parts)
{
	return !parts;
}
#endif
