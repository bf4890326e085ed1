/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * farperf - the wire between hosts beside TCP, in one run
 *
 *	farperf.c	options, the two processes, the report
 *	far_tcp.c	raw TCP between the same two addresses
 *	far_portals.c	the same patterns by puts and gets over the far wire
 *
 * Two processes, each a node on a host of its own, run short blocks of TCP and of Portals
 * in turn, so that both meet the same load of the machine.  A figure is a median over
 * blocks, a ratio the median over pairs of neighbours.
 */
#ifndef BENCH_FAR_FARPERF_H
#define BENCH_FAR_FARPERF_H

#include "shm/atomics.h"
#include "shm/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FAR_LONG   (1u << 20) /* most bytes of a long message */
#define FAR_WINDOW 64u        /* short messages of a window */
#define FAR_AHEAD  4u         /* long messages under way */

enum far_row {
	FAR_PING,
	FAR_SLEEPY,
	FAR_RATE,
	FAR_PUT,
	FAR_GET,
	FAR_BYPASS,
	FAR_PUT_64K,
	FAR_GET_64K,
	FAR_ROWS
};

static inline bool far_is_put(enum far_row row)
{
	return row == FAR_PUT || row == FAR_PUT_64K;
}

/* Return the bytes of a message of a row of long messages. */
static inline size_t far_bytes(enum far_row row)
{
	return row == FAR_PUT_64K || row == FAR_GET_64K ? 1u << 16 : FAR_LONG;
}

/* Memory that both processes share. */
struct far_shared {
	p3_a32 met, stopped;
	struct {
		p3_a32 len;
		unsigned char text[128];
	} name[2]; /* of the endpoints */
	p3_a32 tcp_port, stream_port;
};

struct far_end {
	unsigned rank;
	const char *address[2];
	const char *provider; /* stream, or one of libfabric */
	struct far_shared *shared;
	pid_t pid; /* the launcher's: of its process, 0 when it has ended */
};

_Noreturn void far_die(const char *what, const char *why);
uint64_t far_now(void);
/* Wait for the other process. */
void far_meet(struct far_end *e);

/* ---- TCP ---- */

/* Connect both ranks; one of them writes the port. */
int far_tcp_connect(struct far_end *e, p3_a32 *port);
void far_tcp_open(struct far_end *e);
/* Run count round trips, windows or long messages; rank 0 begins. */
void far_tcp_run(struct far_end *e, enum far_row row, uint64_t count);

/* ---- Portals ---- */

void far_portals_open(struct far_end *e, int sock);
void far_portals_run(struct far_end *e, enum far_row row, uint64_t count);
/* Stay in a call (waiting) or outside of the library for this time. */
void far_portals_idle(bool waiting, unsigned ms);
/* Return a counter: enum p3_counter. */
uint64_t far_portals_counter(enum p3_counter counter);
void far_portals_close(void);

#endif
