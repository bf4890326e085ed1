/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits of libraries that poll their event queues: texts and conclusions. */
#include "launcher/ptlstat/ptlstat.h"

#include <string.h>

#define STALE_S 10 /* a library that still polls has told its wait again by then */

struct ptl_poll_name ptl_poll_library(const struct p3_poll *poll)
{
	struct ptl_poll_name name;
	memcpy(name.s, poll->library, sizeof name.s);
	for (char *c = name.s; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return name;
}

const struct p3_poll *ptl_oldest_poll(
	const struct ptl_picture *p, const struct ptl_node *n)
{
	const struct p3_poll *oldest = NULL;
	if (n->unseen || !ptl_is_alive(n) || ptl_is_stopped(n))
		return NULL;
	for (uint32_t k = 0; k < P3_POLLS; k++) {
		const struct p3_poll *poll = &n->of.poll[k].is;
		if (poll->eq && ptl_seconds(p, poll->told_ns) < STALE_S &&
			(!oldest || poll->since_ns < oldest->since_ns))
			oldest = poll;
	}
	return oldest;
}

bool ptl_polls_for(const struct ptl_picture *p, uint32_t i, uint32_t to)
{
	const struct p3_poll *poll = ptl_oldest_poll(p, &p->node[i]);
	return poll && poll->source_node != UINT32_MAX &&
	       ptl_rank_of(p, poll->source_node) == to;
}

static void poll_add_process(
	const struct ptl_picture *p, uint32_t slot, uint64_t who, struct ptl_text *t)
{
	uint32_t rank = slot == UINT32_MAX ? p->size : ptl_rank_of(p, slot);
	uint32_t nid = (uint32_t)who, pid = (uint32_t)(who >> 32);
	if (rank < p->size)
		ptl_add(t, " from node %u", rank);
	else if (nid == UINT32_MAX && pid == UINT32_MAX)
		ptl_add(t, " from any node");
	else
		ptl_add(t, " from nid %u, pid %u", nid, pid);
}

static void poll_add_message(
	const struct ptl_picture *p, const struct p3_poll *poll, struct ptl_text *t)
{
	ptl_add(t, "waits by %s for a message", ptl_poll_library(poll).s);
	poll_add_process(p, poll->source_node, poll->source, t);
	if (poll->ignore == UINT64_MAX)
		ptl_add(t, " with any tag");
	else
		ptl_add(t, " with tag %#llx", (unsigned long long)poll->tag);
	if (poll->ignore && poll->ignore != UINT64_MAX)
		ptl_add(t, " (bits %#llx do not count)",
			(unsigned long long)poll->ignore);
}

void ptl_poll_describe(
	const struct ptl_picture *p, const struct p3_poll *poll, struct ptl_text *t)
{
	poll_add_message(p, poll, t);
	ptl_add(t, " since " PTL_TIME "%.1f s" PTL_TIME, ptl_seconds(p, poll->since_ns));
	if (poll->receives > 1)
		ptl_add(t, ", the oldest of %u receives", poll->receives);
	if (!poll->unexpected)
		return;
	ptl_add(t, "; has unexpected");
	poll_add_process(p, poll->from_node, poll->from, t);
	ptl_add(t, ": tag %#llx, %llu bytes", (unsigned long long)poll->from_tag,
		(unsigned long long)poll->length);
	if (poll->unexpected > 1)
		ptl_add(t, ", and %u more", poll->unexpected - 1);
}

void ptl_polls_blame(const struct ptl_picture *p, struct ptl_lines *l)
{
	for (uint32_t i = 0; i < p->size; i++) {
		const struct p3_poll *poll = ptl_oldest_poll(p, &p->node[i]);
		struct ptl_text t = {.n = 0};
		if (!poll)
			continue;
		ptl_add(&t, PTL_NODE " ");
		poll_add_message(p, poll, &t);
		ptl_add(&t, ", which has not come");
		if (poll->unexpected) {
			ptl_add(&t, "; what came");
			poll_add_process(p, poll->from_node, poll->from, &t);
			ptl_add(&t, " has tag %#llx, and no receive takes it",
				(unsigned long long)poll->from_tag);
		}
		ptl_lines_conclude(l, i, "%s", t.s);
	}
}
