/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data of report/: the trace of a node's actions.
 *
 * Only the lease holder touches this data, except hosts, header, code and clock, which
 * any thread may read.
 */
#ifndef P3_NIC_REPORT_STATE_H
#define P3_NIC_REPORT_STATE_H

#include "shm/trace.h"

#include <stdbool.h>
#include <stdint.h>

/* The message that records are about: its peer (P3_TRACE_IN: the peer sent it), and its
 * name. */
struct p3_topic {
	uint32_t peer;
	uint32_t message; /* 0: no message */
};

struct p3_trace {
	struct p3_trace_record *hosts;
	struct p3_trace_header *header;
	uintptr_t code;
	uint32_t clock;
	/* firmware */
	uint32_t mask;
	uint64_t head;
	struct p3_topic topic;
	uint32_t command;  /* record of the command that is being executed */
	bool lease_shown;  /* a lease is recorded when it does something, or idle ones
			    * would fill the ring */
	uint8_t lease_who; /* p3_lease_holder */
	uint64_t lease_at;
};

/* Record an action.  While the trace is off this costs one branch on n->traced. */
#define P3_TRACE(what, ...)                                                              \
	do {                                                                             \
		if (p3_unlikely(n->traced != NULL)) {                                    \
			p3_trace_##what(__VA_ARGS__);                                    \
			__asm__ __volatile__(""); /* no tail call here */                \
		}                                                                        \
	} while (0)

#endif
