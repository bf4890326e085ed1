/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agents - a job on several hosts: yod's side
 *
 *	yod --hosts	guard		as on one host
 *			yod		this loop: a remote shell for each host, no nodes
 *	each host	yod --agent	runs the host's ranks (agent.h)
 *
 * yod starts all agents, sends each its order, and lets the nodes start when all agents
 * are ready: an unreachable host, or a program that one host does not have, ends the job
 * before any node runs.  Then yod decides what concerns several hosts:
 *
 *  - The first failing rank ends the job (END to all agents), unless --keep-going.
 *  - Signals go to all agents, which act on them as yod does on one host, and take the
 *    same steps (run.h).
 *  - A barrier is over when all hosts have told that all their ranks have come.
 *  - An agent whose connection ends before DONE is lost, and its ranks with it: they
 *    count as killed.
 *
 * Agents end their nodes when yod's side of a connection closes.  So no node stays,
 * however yod ends.  The nodes' output has the same queues as on one host, and a pipe for
 * each stream between outlets.h and output.h.
 *
 * yod's main thread calls p3_agents_run(); the state is struct p3_agents (agentsin.h).
 */
#ifndef P3_LAUNCHER_AGENTS_H
#define P3_LAUNCHER_AGENTS_H

#include "launcher/yod/opt.h"

/* Time for the agents of a killed yod to end, before the remote shells are killed. */
#define P3_AGENTS_GRACE_MS 4000

struct p3_guard;

/* Run the job.  Return the exit status of yod. */
int p3_agents_run(const struct p3_opt *opt, uint32_t jid, const struct p3_guard *guard);

#endif
