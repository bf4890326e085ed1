/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * asks - an agent's answers to questions about the job
 *
 *	ptlstat --hosts or yod's own report
 *	  --ASK-->  yod  --ASK-->  each agent  --socket-->  ptlstat, its child
 *	  <--REPORT--    <--REPORT--           <--pipe--
 *
 * ptlstat looks at the nodes of the agent's host as it does under a yod of one host
 * (attach.h), and writes what it would print.  The agent sends that as one frame, also
 * if the child does not end in time or writes more than P3_ASKS_LONG: then what there is.
 *
 * The agent's main thread calls these functions from the loop of run.c, which reaps the
 * children.  None of them blocks.  The state is struct p3_asks.
 */
#ifndef P3_LAUNCHER_ASKS_H
#define P3_LAUNCHER_ASKS_H

#include "launcher/rdv/attach.h"
#include "launcher/yod/agent.h"

#define P3_ASKS_MOST 8u /* questions at a time */
#define P3_ASKS_LONG (4u << 20)

struct p3_asks;

/* Return NULL with errno on failure. */
struct p3_asks *p3_asks_create(struct p3_agent *agent, struct p3_attach *attach);
void p3_asks_destroy(struct p3_asks *asks);
/* Return a descriptor that is readable when p3_asks_step() has work. */
int p3_asks_fd(const struct p3_asks *asks);
void p3_asks_step(struct p3_asks *asks);
/* Take a question. */
void p3_asks_take(struct p3_asks *asks, const struct p3_frame *ask);

#endif
