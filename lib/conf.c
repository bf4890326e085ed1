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

/* ---- the wire ---- */

/* A number and what stands behind it; NULL: none, or too great. */
static const char *number(const char *text, uint64_t *out)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	*out = value;
	return *text >= '0' && *text <= '9' && !errno ? end : NULL;
}

/* As in 1% or 0.25%, in millionths; half of all at most. */
static const char *share(const char *text, uint32_t *ppm_out)
{
	uint64_t ppm, digit = 1000;
	text = number(text, &ppm);
	if (!text || ppm > 50)
		return NULL;
	ppm *= 10000;
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9' && digit; digit /= 10)
			ppm += (uint64_t)(*text++ - '0') * digit;
	*ppm_out = (uint32_t)ppm;
	return *text == '%' && ppm <= 500000 ? text + 1 : NULL;
}

/* One word of the list, as in drop=1%; what stands behind it, or NULL. */
static const char *one_fault(const char *text, struct p3_faults *f)
{
	static const char *const names[P3_FAULT_KINDS] = {
		"drop=", "corrupt=", "delay=", "dup=", "reorder="};
	for (int i = 0; i < P3_FAULT_KINDS; i++)
		if (strncmp(text, names[i], strlen(names[i])) == 0)
			return share(text + strlen(names[i]), &f->ppm[i]);
	return strncmp(text, "seed=", 5) == 0 ? number(text + 5, &f->seed) : NULL;
}

static bool parse_wire(const char *text, struct p3_faults *f)
{
	static const char faulty[] = "faulty";
	*f = (struct p3_faults){.on = false};
	if (!text || !*text || strcmp(text, "shm") == 0)
		return true;
	if (strncmp(text, faulty, sizeof faulty - 1) != 0)
		return false;
	text += sizeof faulty - 1;
	f->on = true;
	for (char before = ':'; text && *text; before = ',')
		text = *text == before ? one_fault(text + 1, f) : NULL;
	return text != NULL;
}

static struct p3_faults wire(int *rc)
{
	struct p3_faults f;
	const char *text = getenv("PTL3_WIRE");
	if (parse_wire(text, &f))
		return f;
	p3_error("PTL3_WIRE is '%s'; expected shm, or faulty with any of drop, corrupt, "
		 "delay, dup and reorder (50%% at most) and a seed, as in "
		 "faulty:drop=1%%,dup=0.5%%,seed=7; unset it for the default",
		text);
	*rc = -EINVAL;
	return f;
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
		.faults = wire(&rc),
	};
	c.heap = heap_size(c.shared_heap, &rc);
	if (!rc)
		*conf_out = c;
	return rc;
}
