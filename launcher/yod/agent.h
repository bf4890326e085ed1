/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent - yod on another host, which runs that host's part of a job: yod --agent
 *
 * The agent is what yod is on one host: rendezvous, lifelines, reaping, the sweep, with
 * a guard of its own.  In addition it has a connection to yod (frames.h), on its
 * standard input and output.  yod decides: a failing node ends the job only when yod
 * says so, and a barrier is over when yod has heard of all hosts.  When the connection
 * breaks, yod or the remote shell has ended: the agent kills its nodes, cleans up and
 * ends.
 *
 *	main()	p3_agent_connect: take the order; p3_agent_await_go: wait for GO
 *	run.c	p3_agent_open, then p3_agent_step from its loop, p3_agent_close
 *
 * The agent's main thread calls all functions; the state is struct p3_agent.
 */
#ifndef P3_LAUNCHER_AGENT_H
#define P3_LAUNCHER_AGENT_H

#include "launcher/yod/frames.h"
#include "launcher/yod/order.h"

#include <stdbool.h>

#define P3_AGENT_OPTION "--agent" /* the only word of its command line */

struct p3_agent;

/* Take yod's order, environment and directory.  Return the agent, or NULL with the exit
 * status. */
struct p3_agent *p3_agent_connect(int *status_out);
const struct p3_order *p3_agent_order(const struct p3_agent *agent);
const struct p3_host *p3_agent_host(const struct p3_agent *agent);
/* Return the name of the domain where the nodes of this host meet, or NULL: the job has
 * one host, and they need none. */
const char *p3_agent_domain(const struct p3_agent *agent);

/* Return the address of this host that the remote shell has used, or "" if it does not
 * tell. */
const char *p3_agent_address(const struct p3_agent *agent);

/* Tell yod that the job cannot start, and the exit status for that. */
void p3_agent_refuse(struct p3_agent *agent, int status);
/* Report this host as ready.  Return true when all hosts are ready, or false if the job
 * does not start. */
bool p3_agent_await_go(struct p3_agent *agent);

/* Remove what killed processes have left of the domain; the guard calls it last. */
void p3_agent_clean(void *agent);

/* ---- in the loop of run.c ---- */

/* Open what the loop needs: *stdin_out is rank 0's standard input (/dev/null without that
 * rank).  Frames that are not about output or input go to `order`; NULL: the connection
 * is broken.  Return 0 or -errno. */
int p3_agent_open(struct p3_agent *agent, int *stdin_out,
	void (*order)(void *arg, const struct p3_frame *f, const char *bytes), void *arg);
/* Send the last frames, wait until yod has taken them, and close the connection. */
void p3_agent_close(struct p3_agent *agent);
int p3_agent_fd(const struct p3_agent *agent);
void p3_agent_step(struct p3_agent *agent);
void p3_agent_tell(struct p3_agent *agent, struct p3_frame f, const void *bytes);
/* Take the read end of a node's stream; note the node's end. */
int p3_agent_add(struct p3_agent *agent, uint32_t rank, int which, int fd);
void p3_agent_ended(struct p3_agent *agent, uint32_t rank, int status);
/* Send bytes of this host's trace file, as yod has room for them.  Return false if out of
 * memory. */
bool p3_agent_trace(struct p3_agent *agent, const void *bytes, size_t len);
/* Return true if output or traces are left, and yod is there. */
bool p3_agent_has_output(const struct p3_agent *agent);

#endif
