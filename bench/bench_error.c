/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of errors, and calls and events that fail. */
#include "bench.h"

#include <stdarg.h>
#include <stdlib.h>

enum { ERRORS_SHOWN = 3 };

static const char *program = "bench";
static unsigned own_rank;

void bench_name_errors(const char *name, unsigned rank)
{
	program = name;
	own_rank = rank;
}

__attribute__((format(printf, 1, 0))) static void say(const char *fmt, va_list args)
{
	char line[400];
	vsnprintf(line, sizeof line, fmt, args);
	fprintf(stderr, "%s: rank %u: %s\n", program, own_rank, line);
}

void bench_die(int status, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
	exit(status);
}

void bench_wrong(struct bench *b, const char *fmt, ...)
{
	va_list args;
	if (b->errors++ >= ERRORS_SHOWN)
		return;
	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
}

void bench_check(int rc, const char *what)
{
	if (rc != PTL_OK)
		bench_die(1, "%s answers %s, expected PTL_OK; see portals3.h", what,
			PtlErrorStr((unsigned)rc));
}

/*
 * Process a failure, or an event after a gap in the sequence.  The NIC serves gets and
 * acknowledged puts also while the target's program is off its CPU, so the target's queue
 * may overflow.  It then loses only events of the kind may_lose, and their number follows
 * from sequence.
 */
void bench_watch_odd(struct bench_watch *w, int rc)
{
	if (rc == PTL_EQ_DROPPED && w->may_lose != BENCH_LOSE_NONE) {
		w->seen[w->may_lose] += (ptl_seq_t)(w->last.sequence - w->sequence - 1);
		rc = PTL_OK;
	}
	bench_check(rc, "waiting for an event");
	if (w->last.ni_fail_type != PTL_NI_OK)
		bench_die(1,
			"%s with ni_fail_type %u, expected PTL_NI_OK; is the peer gone?",
			PtlEventKindStr(w->last.type), w->last.ni_fail_type);
}
