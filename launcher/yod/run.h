/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run - one job, from the first fork to the last reaped process
 *
 * Everything is one thread around one epoll descriptor: signals, the rendezvous, the
 * output, the guard.  (Only the sinks of output.h have threads of their own.)
 *
 * A node ends in three steps: yod reads its wait status, and leaves it unreaped; the
 * rendezvous tells the survivors; yod reaps it when they have dropped it.
 *
 * The job is ended in steps, too, each with a deadline:
 *
 *	RUNS --^C, HUP, QUIT--> ASKED (the same signal) --1 s--> TERMED
 *		at QUIT and at a timeout a report (report.h) comes first
 *	RUNS --failed node, timeout, TERM--> TERMED (SIGTERM)
 *	TERMED --5 s (--kill-after)--> KILLED (SIGKILL)
 *	any --second signal, guard gone--> KILLED
 *
 * In an agent (agent.h) the stages are the same, but yod decides what ends the job.
 *
 * yod's main thread calls p3_run_job(); the state is struct run (run.c).
 */
#ifndef P3_LAUNCHER_RUN_H
#define P3_LAUNCHER_RUN_H

#include "launcher/yod/opt.h"

#include <stdint.h>

#define P3_STATUS_TIMEOUT 124
#define P3_STATUS_YOD     125

struct p3_agent;
struct p3_guard;
struct p3_signals;

/* Run the job; in an agent, run the ranks of its host.  agent is NULL in yod itself.
 * Return the exit status of yod. */
int p3_run_job(const struct p3_opt *opt, const struct p3_place *place, uint32_t jid,
	const struct p3_guard *guard, const struct p3_signals *signals,
	struct p3_agent *agent);

#endif
