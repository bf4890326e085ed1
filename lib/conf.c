/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings from the environment: one table of names and values. */
#include "lib/lib.h"
#include "shm/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct choice {
	const char *word;
	int value;
};

static const struct choice modes[] = {{"auto", P3_MODE_AUTO}, {"lease", P3_MODE_LEASE},
	{"dedicated", P3_MODE_DEDICATED}, {"park", P3_MODE_PARK}, {NULL, 0}};
static const struct choice pages[] = {
	{"auto", P3_HUGE_AUTO}, {"on", P3_HUGE_ON}, {"off", P3_HUGE_OFF}, {NULL, 0}};
static const struct choice onoff[] = {{"on", 1}, {"off", 0}, {NULL, 0}};
static const struct choice lanes[] = {{"full", 0}, {"base", 1}, {NULL, 0}};

/* The value of a variable, or what it is without. */
static int choose(const char *name, const struct choice *choices, int without, int *rc)
{
	const char *text = getenv(name);
	if (!text || !*text)
		return without;
	for (const struct choice *c = choices; c->word; c++)
		if (strcmp(c->word, text) == 0)
			return c->value;
	p3_error("%s is '%s'; expected %s, %s%s%s; unset it for the default", name, text,
		choices[0].word, choices[1].word, choices[2].word ? ", " : "",
		choices[2].word ? choices[2].word : "");
	*rc = -EINVAL;
	return without;
}

static uint64_t heap_size(bool shared, int *rc)
{
	uint64_t len;
	const char *text = getenv(P3_HEAP_ENV);
	if (p3_heap_size(text, shared ? P3_HEAP_LARGE : P3_HEAP_USUAL, &len))
		return len;
	p3_error(P3_HEAP_ENV
		" is '%s'; expected bytes, or with K, M or G, 1024G at most, "
		"as in 64M; unset it for the default",
		text);
	*rc = -EINVAL;
	return 0;
}

int p3_conf_read(struct p3_conf *conf_out)
{
	int rc = 0;
	struct p3_conf c = {
		.mode = (enum p3_mode)choose("PTL3_MODE", modes, P3_MODE_AUTO, &rc),
		.huge = (enum p3_huge_policy)choose(
			"PTL3_HUGEPAGES", pages, P3_HUGE_AUTO, &rc),
		.cma = choose("PTL3_CMA", onoff, 1, &rc),
		.bulk = choose("PTL3_BULK", onoff, 1, &rc),
		.base_lanes_only = choose("PTL3_LANES", lanes, 0, &rc),
		.shared_heap = choose(P3_HEAP_SHARED_ENV, onoff, 0, &rc),
	};
	c.heap = heap_size(c.shared_heap, &rc);
	if (!rc)
		*conf_out = c;
	return rc;
}
