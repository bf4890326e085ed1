/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poll - waits that a library tells, which polls its event queues itself (PtlXWaitsFor)
 *
 * A library above Portals looks for events in a loop of its own, so no call of Portals
 * waits.  Once it has found nothing for a while, it tells its wait; the lease holder
 * writes that into a line of the published segment (layout.h), and ptlstat reads it.  No
 * node decides anything by these lines.  There is no other state, and a call does not
 * block.
 *
 * Memory ordering:
 *	POLL.1	seqlock: the writer, one at a time (LEASE.1), makes version odd, then
 *		releases each word, and the next even version; the reader acquires an
 *		even version and each word, then looks at the version again.  It sees
 *		words that are no older than that version.  If it saw a newer word, the
 *		odd version before that word is visible, too, and the second look differs
 */
#ifndef P3_SHM_POLL_H
#define P3_SHM_POLL_H

#include "shm/atomics.h"

#include <string.h>

#define P3_POLL_NAME  16u /* bytes of a library's name, with a zero byte */
#define P3_POLL_TRIES 64u /* of a reader, while the writer changes the line */

/* The message that a library waits for, and one that has come but that no receive
 * takes. */
struct p3_poll {
	uint64_t eq;       /* handle of the event queue that it polls; 0: no wait */
	uint64_t told_ns;  /* when it told so last, */
	uint64_t since_ns; /* and since when it has found nothing (CLOCK_MONOTONIC) */
	char library[P3_POLL_NAME];
	uint64_t source; /* pid:nid of the message that the oldest receive wants */
	uint64_t tag, ignore;
	uint32_t source_node; /* slot of the source's node, or UINT32_MAX: not known */
	uint32_t receives;    /* that no message has taken */
	uint32_t unexpected;  /* messages that no receive has taken; of one of them: */
	uint32_t from_node;
	uint64_t from;
	uint64_t from_tag;
	uint64_t length;
};

#define P3_POLL_WORDS (sizeof(struct p3_poll) / sizeof(uint64_t))

struct p3_poll_line {
	p3_a64 version;
	p3_a64 w[P3_POLL_WORDS];
	uint64_t pad[2];
};

static inline void p3_poll_write(struct p3_poll_line *line, const struct p3_poll *poll)
{
	uint64_t w[P3_POLL_WORDS], version = p3_get(&line->version);
	memcpy(w, poll, sizeof w);
	p3_set(&line->version, version | 1);
	for (uint32_t i = 0; i < P3_POLL_WORDS; i++)
		p3_release(&line->w[i], w[i]);         /* POLL.1 */
	p3_release(&line->version, (version | 1) + 1); /* POLL.1 */
}

/* Return false, with no wait, if the line changed all the time, or its writer has died
 * while it wrote. */
static inline bool p3_poll_read(const struct p3_poll_line *line, struct p3_poll *poll_out)
{
	uint64_t w[P3_POLL_WORDS];
	for (uint32_t k = 0; k < P3_POLL_TRIES; k++) {
		uint64_t version = p3_acquire(&line->version); /* POLL.1 */
		for (uint32_t i = 0; i < P3_POLL_WORDS; i++)
			w[i] = p3_acquire(&line->w[i]); /* POLL.1 */
		if (version % 2 || p3_get(&line->version) != version)
			continue;
		memcpy(poll_out, w, sizeof w);
		poll_out->library[P3_POLL_NAME - 1] = 0;
		return true;
	}
	*poll_out = (struct p3_poll){0};
	return false;
}

#endif
