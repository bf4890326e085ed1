/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report - what people and tools read of a node: gauges, text, trace, reasons
 *
 * Only the lease holder calls these functions, except where a comment says (any).
 */
#ifndef P3_NIC_REPORT_REPORT_H
#define P3_NIC_REPORT_REPORT_H

#include "nic/state.h"

struct p3_ask;

/* ---- mirror: the gauges of the control block, and lines of queues and of waits ---- */

#define P3_MIRROR_PASSES 4096u /* a power of two */

/* Write the gauges as they are now.  next is the holder of the lease after this call:
 * the caller, or P3_LEASE_FREE if it is about to leave. */
P3_RARE void p3_mirror_gauges(struct p3_nic *n, enum p3_lease_holder next);
/* Write this peer's gauges. */
void p3_mirror_peer(struct p3_peer *p, uint64_t now_ns);
/* A peer is gone: show that nothing waits for it. */
void p3_mirror_lost(struct p3_peer *p);
/* Show the queue and the place of its ring, or that there is no queue any more. */
void p3_mirror_queue(struct p3_nic *n, const struct p3_eq *eq);
void p3_mirror_no_queue(struct p3_nic *n, const struct p3_eq *eq);
/* Write the settings in effect, once. */
void p3_mirror_conf(struct p3_nic *n);

/* The events or the result that a thread waits for. */
struct p3_wants {
	enum p3_wait_kind kind;
	uint32_t n;
	const uint64_t *handles; /* COMMAND: its p3_op */
};

/* (any) Take a line for the calling thread, which is about to sleep.  Return NULL if
 * there is none left. */
struct p3_wait_line *p3_mirror_wait(struct p3_nic *n, const struct p3_wants *wants,
	uint64_t since_ns, uint64_t deadline_ns);
/* (any) Give the line back.  Accept NULL. */
void p3_mirror_waited(struct p3_wait_line *line);

/* Command: show the wait of a library until its queue is freed, or take it back. */
int p3_mirror_poll(struct p3_nic *n, struct p3_cmd *c);

/* Command: write the match list, the entry or the event queues that c names into
 * c->dump.text. */
int p3_dump_write(struct p3_nic *n, struct p3_cmd *c);

/* ---- trace records (shm/trace.h) ---- */

/*
 * Other files call these functions through P3_TRACE, except p3_trace_start().  Host
 * threads call p3_trace_host() and p3_trace_command() without the lease.  The state is
 * n->trace and n->traced.
 */

/* Format the trace of a new life, or turn it off. */
void p3_trace_start(struct p3_nic *n);

/* Record an action of the firmware, with its present topic (fw), or of a host thread
 * (host). */
P3_RARE void p3_trace_fw(
	struct p3_nic *n, enum p3_trace_point point, uint32_t value, uint64_t detail);
P3_RARE void p3_trace_host(
	struct p3_nic *n, enum p3_trace_point point, uint32_t value, uint64_t detail);

P3_RARE void p3_trace_command(struct p3_nic *n, struct p3_cmd *c);
P3_RARE void p3_trace_execute(struct p3_nic *n, const struct p3_cmd *c);
P3_RARE void p3_trace_lease(struct p3_nic *n, enum p3_lease_holder who);
P3_RARE void p3_trace_given(struct p3_nic *n);
/* Record a request at the current position of a lane; kind is its p3_request_name(). */
P3_RARE void p3_trace_send(
	struct p3_nic *n, const struct p3_peer *p, uint32_t kind, uint64_t length);
P3_RARE void p3_trace_take(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint64_t length);
P3_RARE void p3_trace_match(struct p3_nic *n, struct p3_peer *p, bool hit, uint64_t bits);
P3_RARE void p3_trace_wait(struct p3_nic *n, struct p3_peer *p, uint32_t kind);
P3_RARE void p3_trace_delivered(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint64_t length);
P3_RARE void p3_trace_begin(struct p3_nic *n, struct p3_pull *pull);
/* Change the topic to one that p3_trace_keep saved, and record an action. */
P3_RARE void p3_trace_about(struct p3_nic *n, struct p3_topic topic,
	enum p3_trace_point point, uint32_t value, uint64_t detail);

static inline void p3_trace_keep(struct p3_nic *n, struct p3_topic *topic_out)
{
	*topic_out = n->trace.topic;
}

static inline void p3_trace_focus(
	struct p3_nic *n, struct p3_topic topic, uint32_t command)
{
	n->trace.topic = topic;
	n->trace.command = command;
}

/* ---- why: reasons of requests that come to nothing ---- */

/* The state is in the published segment (struct p3_case_line), and told and told_own of
 * struct p3_peer. */

/* Report a request that no descriptor accepted.  It is passed by value, so that an
 * accepted request is never in memory. */
P3_RARE void p3_why_dropped(
	struct p3_nic *n, struct p3_peer *p, const struct p3_ni *ni, struct p3_ask ask);
/* Report a put that requested an ACK and was served by a descriptor that gives none. */
P3_RARE void p3_why_no_ack(struct p3_nic *n, struct p3_peer *p, struct p3_ask ask);
/* Report a request that was served with its first mlength bytes only. */
P3_RARE void p3_why_truncated(
	struct p3_nic *n, struct p3_peer *p, struct p3_ask ask, uint64_t mlength);
/* Report a request of this node that cannot be sent or will not be answered; p may be
 * NULL. */
P3_RARE void p3_why_nowhere(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, const struct p3_move *m);
/* Report an answer that came after its descriptor, or the descriptor's queue, was
 * freed. */
P3_RARE void p3_why_late(struct p3_nic *n, const struct p3_pending *t);
/* Report that the target of a put could not read its bytes from the copy that this node
 * made of them.  No event tells the program: SEND_END was posted when the copy was
 * made. */
P3_RARE void p3_why_failed(struct p3_nic *n, const struct p3_pending *t);
/* Report that an event was lost because its queue was full, once for each queue. */
P3_RARE void p3_why_lost(struct p3_evq_tx *tx);
/* Log the number of cases of each reason when the NIC stops. */
P3_RARE void p3_why_sum(struct p3_nic *n);

#endif
