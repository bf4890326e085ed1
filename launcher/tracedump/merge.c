/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clocks of several hosts.  A message is taken after it was sent, and its answer
 * comes after it was given.  With the clock of the one host ahead by d, the smallest
 * difference of such times in the one direction is an upper limit of d, and in the other
 * direction a lower one.  The estimate is in the middle, and its error half of the rest.
 */
#include "launcher/tracedump/tracedump.h"
#include "launcher/tools/options.h"

#include <errno.h>
#include <stdlib.h>

#define NO_LIMIT INT64_MAX
#define TURNS    100 /* of the enforcement; each one moves records on by one message */

/* Two records on different hosts, of which the second is later. */
struct step {
	uint32_t first, second;
};

struct merge {
	struct td_trace *t;
	struct step *step;
	uint32_t nsteps;
	int64_t *least; /* of two files: smallest difference of a step from i to j */
};

static uint32_t merge_file_of(const struct td_trace *t, uint32_t event)
{
	return t->block[t->event[event].block].file;
}

/* ---- pairs of records ---- */

static void merge_add_step(struct merge *m, uint32_t first, uint32_t second)
{
	if (first != TD_NONE && second != TD_NONE &&
		merge_file_of(m->t, first) != merge_file_of(m->t, second))
		m->step[m->nsteps++] = (struct step){first, second};
}

/* Find the steps.  A name that was sent twice, by two lives of a node, does not tell
 * which records belong together. */
static void merge_find_steps(struct merge *m)
{
	for (uint32_t i = 0; i < m->t->nmessages; i++) {
		const struct td_message *msg = &m->t->message[i];
		if (msg->way[TD_SEND] == TD_NONE || msg->several & 1u << TD_SEND)
			continue;
		merge_add_step(m, msg->way[TD_SEND], msg->way[TD_TAKE]);
		if (!(msg->several & (1u << TD_ANSWER | 1u << TD_ANSWERED)))
			merge_add_step(m, msg->way[TD_ANSWER], msg->way[TD_ANSWERED]);
	}
}

/* ---- estimates ---- */

static int64_t *merge_least(const struct merge *m, uint32_t from, uint32_t to)
{
	return &m->least[from * m->t->nfiles + to];
}

static void merge_find_limits(struct merge *m)
{
	for (uint32_t i = 0; i < m->t->nfiles * m->t->nfiles; i++)
		m->least[i] = NO_LIMIT;
	for (uint32_t i = 0; i < m->nsteps; i++) {
		const struct step *s = &m->step[i];
		int64_t ns = m->t->event[s->second].ns - m->t->event[s->first].ns;
		int64_t *at = merge_least(
			m, merge_file_of(m->t, s->first), merge_file_of(m->t, s->second));
		*at = ns < *at ? ns : *at;
	}
}

/* Estimate how far clock j is ahead of clock i.  Return the error, TD_ERROR_UNKNOWN with
 * messages in one direction only, or -1 without any. */
static int64_t merge_estimate(
	const struct merge *m, uint32_t i, uint32_t j, int64_t *ahead_out)
{
	int64_t up = *merge_least(m, i, j), down = *merge_least(m, j, i);
	*ahead_out = 0;
	if (up == NO_LIMIT && down == NO_LIMIT)
		return -1;
	if (up == NO_LIMIT || down == NO_LIMIT) {
		*ahead_out = down == NO_LIMIT ? up : -down;
		return TD_ERROR_UNKNOWN;
	}
	*ahead_out = (up - down) / 2;
	return llabs(up + down) / 2;
}

/* Find the file that can be estimated best from those that are known. */
static bool merge_find_next(const struct merge *m, uint32_t *file_out)
{
	struct td_file *file = m->t->file;
	int64_t best = -1, ahead;
	struct td_file got = {.path = NULL};
	for (uint32_t k = 0; k < m->t->nfiles * m->t->nfiles; k++) {
		uint32_t i = k / m->t->nfiles, j = k % m->t->nfiles;
		int64_t error = file[i].known && !file[j].known
					? merge_estimate(m, i, j, &ahead)
					: -1;
		if (error < 0 || (best >= 0 && error >= best))
			continue;
		best = error;
		*file_out = j;
		got.ahead = file[i].ahead + ahead;
		got.error = file[i].error == TD_ERROR_UNKNOWN || error == TD_ERROR_UNKNOWN
				    ? TD_ERROR_UNKNOWN
				    : file[i].error + error;
	}
	if (best < 0)
		return false;
	file[*file_out].known = true;
	file[*file_out].ahead = got.ahead;
	file[*file_out].error = got.error;
	return true;
}

static void merge_set_clocks(struct merge *m)
{
	struct td_trace *t = m->t;
	uint32_t k;
	t->file[0].known = true;
	merge_find_limits(m);
	while (merge_find_next(m, &k))
		;
	for (uint32_t i = 0; i < t->nevents; i++)
		t->event[i].ns -= t->file[merge_file_of(t, i)].ahead;
}

/* ---- enforcement ---- */

static void merge_move(struct td_trace *t, uint32_t i, int64_t to, int64_t *was)
{
	struct td_file *f = &t->file[merge_file_of(t, i)];
	f->moved += t->event[i].ns == was[i];
	t->event[i].ns = to;
	if (to - was[i] > f->moved_most)
		f->moved_most = to - was[i];
}

/* Move records that are before those that must precede them.  Return false if none is. */
static bool merge_move_steps(const struct merge *m, int64_t *was)
{
	bool any = false;
	for (uint32_t i = 0; i < m->nsteps; i++) {
		const struct step *s = &m->step[i];
		int64_t least_ns = m->t->event[s->first].ns + 1;
		if (m->t->event[s->second].ns >= least_ns)
			continue;
		merge_move(m->t, s->second, least_ns, was);
		any = true;
	}
	return any;
}

/* Keep the order of each node's own records; t->event is in order of the old times. */
static void merge_keep_order(struct td_trace *t, int64_t *last, int64_t *was)
{
	for (uint32_t b = 0; b < t->nblocks; b++)
		last[b] = INT64_MIN;
	for (uint32_t i = 0; i < t->nevents; i++) {
		int64_t *at = &last[t->event[i].block];
		if (t->event[i].ns < *at)
			merge_move(t, i, *at, was);
		*at = t->event[i].ns;
	}
}

static int merge_enforce(struct merge *m)
{
	struct td_trace *t = m->t;
	int64_t *last = calloc(t->nblocks + 1, sizeof *last);
	int64_t *was = calloc(t->nevents + 1, sizeof *was);
	bool ok = last && was;
	for (uint32_t i = 0; ok && i < t->nevents; i++)
		was[i] = t->event[i].ns;
	for (int turn = 0; ok && turn < TURNS && merge_move_steps(m, was); turn++)
		merge_keep_order(t, last, was);
	free(last);
	free(was);
	return ok ? 0 : -ENOMEM;
}

int td_merge(struct td_trace *t)
{
	int rc = td_find_messages(t, true);
	struct merge m = {.t = t,
		.step = calloc(2 * (size_t)t->nmessages + 1, sizeof *m.step),
		.least = calloc((size_t)t->nfiles * t->nfiles, sizeof *m.least)};
	rc = rc ? rc : m.step && m.least ? 0 : -ENOMEM;
	if (!rc) {
		merge_find_steps(&m);
		merge_set_clocks(&m);
		rc = merge_enforce(&m);
	}
	/* Let no time be before the begin, which is that of the first file. */
	int64_t first = 0;
	for (uint32_t i = 0; i < t->nevents; i++)
		first = t->event[i].ns < first ? t->event[i].ns : first;
	for (uint32_t i = 0; i < t->nevents; i++)
		t->event[i].ns -= first;
	free(m.step);
	free(m.least);
	if (rc == -ENOMEM)
		p3_tool_say("out of memory; expected room for all records at once");
	return rc;
}
