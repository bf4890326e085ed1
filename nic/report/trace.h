/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace - trace records (shm/trace.h).  Other files call these functions through
 * P3_TRACE, except p3_trace_start().
 *
 * Only the lease holder calls these functions, except p3_trace_host() and
 * p3_trace_command(), which host threads call without the lease.  The state is n->trace
 * and n->traced (nic/report/state.h).
 */
#ifndef P3_NIC_REPORT_TRACE_H
#define P3_NIC_REPORT_TRACE_H

#include "nic/state.h"

/* Format the trace of a new life, or turn it off. */
void p3_trace_start(struct p3_nic *n);

/* Record an action of the firmware, with its present topic (fw), or of a host thread
 * (host). */
P3_TRACED void p3_trace_fw(
	struct p3_nic *n, enum p3_trace_point point, uint32_t value, uint64_t detail);
P3_TRACED void p3_trace_host(
	struct p3_nic *n, enum p3_trace_point point, uint32_t value, uint64_t detail);

P3_TRACED void p3_trace_command(struct p3_nic *n, struct p3_cmd *c);
P3_TRACED void p3_trace_execute(struct p3_nic *n, const struct p3_cmd *c);
P3_TRACED void p3_trace_lease(struct p3_nic *n, enum p3_lease_holder who);
P3_TRACED void p3_trace_given(struct p3_nic *n);
/* Record a request at the current position of a lane. */
P3_TRACED void p3_trace_send(
	struct p3_nic *n, const struct p3_peer *p, uint64_t word0, uint64_t length);
P3_TRACED void p3_trace_take(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint64_t length);
P3_TRACED void p3_trace_match(
	struct p3_nic *n, struct p3_peer *p, bool hit, uint64_t bits);
P3_TRACED void p3_trace_wait(struct p3_nic *n, struct p3_peer *p, uint32_t kind);
P3_TRACED void p3_trace_delivered(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint64_t length);
P3_TRACED void p3_trace_begin(struct p3_nic *n, struct p3_pull *pull);
/* Change the topic to one that p3_trace_keep saved, and record an action. */
P3_TRACED void p3_trace_about(struct p3_nic *n, struct p3_topic topic,
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

#endif
