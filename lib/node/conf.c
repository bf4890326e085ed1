/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings from the environment: the effect of shm/conf.h's table on this library. */
#include "lib/node/conf.h"
#include "shm/variant.h"
#include "shm/atomics.h"
#include "shm/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Words of the table and their enumerators are in the same order. */
_Static_assert(P3_MODE_AUTO == 0 && P3_MODE_LEASE == 1 && P3_MODE_DEDICATED == 2 &&
		       P3_MODE_PARK == 3,
	"auto|lease|dedicated|park");
_Static_assert(
	P3_INTERRUPT_FUTEX == 0 && P3_INTERRUPT_SIGNAL == 1 && P3_INTERRUPT_POLL == 2,
	"futex|signal|poll");
_Static_assert(P3_PERSONALITY_AUTO == 0 && P3_PERSONALITY_DOCUMENT == 1 &&
		       P3_PERSONALITY_CRAY == 2,
	"auto|document|cray");
_Static_assert(P3_HUGE_AUTO == 0 && P3_HUGE_ON == 1 && P3_HUGE_OFF == 2, "auto|on|off");

static void as_error(void *arg, const char *line)
{
	(void)arg;
	p3_error("%s", line);
}

static void as_warning(void *arg, const char *line)
{
	(void)arg;
	p3_warn("%s", line);
}

static uint64_t value(enum p3_conf_id id)
{
	uint64_t v;
	(void)p3_conf_value(p3_conf_row(id), p3_conf_text(id), &v);
	return v;
}

/* Return true if a setting whose words are on|off is on. */
static bool is_first(enum p3_conf_id id)
{
	return value(id) == 0;
}

/* Leave out the parts that PTL3_ABLATE lists.  Return -EINVAL after a line if this
 * library cannot. */
static int ablate(void)
{
	uint32_t parts;
	const char *text = p3_conf_text(P3_CONF_ABLATE);
	(void)p3_ablation_parse(text, &parts);
	if (p3_ablate(parts))
		return 0;
	p3_error("PTL3_ABLATE is '%s', but this libportals cannot leave out any part; "
		 "load the one in ablation/ of a build with P3_ABLATION, or unset it",
		text);
	return -EINVAL;
}

int p3_conf_read(struct p3_conf *conf_out)
{
	int rc = p3_conf_check(as_error, NULL);
	if (!rc)
		rc = ablate();
	if (rc)
		return rc;
	struct p3_conf c = {.mode = (enum p3_mode)value(P3_CONF_MODE),
		.personality = (enum p3_personality)value(P3_CONF_PERSONALITY),
		.huge = (enum p3_huge_policy)value(P3_CONF_HUGEPAGES),
		.cma = is_first(P3_CONF_CMA),
		.bulk = is_first(P3_CONF_BULK),
		.membarrier = is_first(P3_CONF_MEMBARRIER),
		.base_lanes_only = value(P3_CONF_LANES) == P3_CONF_LANES_BASE,
		.unswept = value(P3_CONF_LANES) == P3_CONF_LANES_UNSWEPT,
		.shared_heap = is_first(P3_CONF_SHARED_HEAP),
		.heap = value(P3_CONF_HEAP),
		.interrupt = (enum p3_interrupt)value(P3_CONF_INTERRUPT),
		.inlined = (uint32_t)value(P3_CONF_INLINE),
		.domain_nodes = (uint32_t)value(P3_CONF_DOMAIN_NODES)};
	if (c.shared_heap && !p3_conf_text(P3_CONF_HEAP))
		c.heap = P3_HEAP_LARGE;
	(void)p3_conf_trace(p3_conf_text(P3_CONF_TRACE), &c.trace);
	(void)p3_conf_absent(p3_conf_text(P3_CONF_ABSENT), &c.hold_s);
	(void)p3_conf_wire(p3_conf_text(P3_CONF_WIRE), &c.faults);
	*conf_out = c;
	return 0;
}

bool p3_conf_matches_on_host(uint32_t rank)
{
	bool on_host = false;
	(void)p3_conf_match(p3_conf_text(P3_CONF_MATCH), rank, &on_host);
	return on_host;
}

void p3_conf_log(void)
{
	uint8_t levels[P3_LOG_AREAS];
	if (p3_log_parse(p3_conf_text(P3_CONF_LOG), levels))
		p3_log_set(levels);
}

void p3_conf_join_fences(void)
{
	if (is_first(P3_CONF_MEMBARRIER) && value(P3_CONF_MODE) != P3_MODE_PARK)
		(void)p3_fence_join();
}

void p3_conf_set_stdout(void)
{
	static p3_a32 done;
	if (is_first(P3_CONF_STDOUT) || p3_exchange32(&done, 1))
		return;
	/* A stdout that keeps its old buffer keeps the limits of a full buffer, and is
	 * not written at the end of a line.  The new buffer is never freed: stdout is
	 * used until the process ends. */
	char *buffer = malloc(BUFSIZ);
	(void)fflush(stdout);
	if (buffer && setvbuf(stdout, buffer, _IOLBF, BUFSIZ) != 0)
		free(buffer);
}

void p3_conf_warn_unknown(void)
{
	p3_conf_unknown(environ, as_warning, NULL);
}
