/* SPDX-License-Identifier: BSD-3-Clause */
/* Shrinking a failing program. */
#include "model/play.h"

#include <string.h>

#define SHRINK_NS 60000000000u

bool replay(const struct shrink *s, const struct m_op *ops, unsigned n)
{
	struct play *p = s->play;
	if (s->fresh)
		play_renew(p);
	play_begin(p, s->nodes);
	for (unsigned i = 0; i < n && !p->differs; i++) {
		struct m_op op = ops[i];
		(void)play_op(p, &op);
	}
	bool same = !p->differs && play_end(p);
	if (!same && !s->fresh)
		play_renew(p);
	return same;
}

/* Leave out blocks of "size" operations wherever the disagreement stays. */
static unsigned leave_out(
	const struct shrink *s, struct m_op *ops, unsigned n, unsigned size, uint64_t end)
{
	static struct m_op less[PLAY_OPS];
	unsigned at = 0;
	while (at < n && now_ns() < end) {
		unsigned cut = n - at < size ? n - at : size;
		memcpy(less, ops, at * sizeof *ops);
		memcpy(less + at, ops + at + cut, (n - at - cut) * sizeof *ops);
		if (replay(s, less, n - cut)) {
			at += cut;
			continue;
		}
		n -= cut;
		memcpy(ops, less, n * sizeof *ops);
	}
	return n;
}

unsigned shrink(const struct shrink *s, struct m_op *ops, unsigned n)
{
	uint64_t end = now_ns() + SHRINK_NS;
	unsigned before;
	for (unsigned size = n / 2 + 1; size > 1; size = size / 2)
		n = leave_out(s, ops, n, size, end);
	do {
		before = n;
		n = leave_out(s, ops, n, 1, end);
	} while (n < before && now_ns() < end);
	return n;
}
