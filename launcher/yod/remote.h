/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs on several hosts: yod's side, the agents, and what goes between them
 *
 * The main thread of yod, or of an agent, calls all functions.
 */
#ifndef P3_LAUNCHER_YOD_REMOTE_H
#define P3_LAUNCHER_YOD_REMOTE_H

#include "launcher/yod/yod.h"
#include "launcher/rdv/rdv.h"
#include "shm/domain.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * spec - the order of an agent: everything that it needs for its part of a job, as bytes
 *
 * It has the programs of all ranks, their arguments and environments, yod's own
 * environment, directory and umask, the options that the agent obeys, and the hosts.  An
 * order travels on the standard input of the agent, never in arguments or an
 * environment, which other users could see.
 */

struct p3_spec {
	uint32_t jid;
	uint32_t host;   /* which of opt's hosts the agent is on */
	const char *dir; /* yod's working directory */
	uint32_t mask;   /* yod's umask */
	char **env;      /* yod's environment, ends with NULL */
	const char *tag; /* a word that no other job of this user has */
	struct p3_opt opt;
};

/* Return the bytes, which the caller frees, or NULL if out of memory. */
char *p3_spec_pack(const struct p3_spec *spec, size_t *len_out);
/* Unpack an order, which keeps pointers into the bytes.  Return false if they are no
 * order, or out of memory. */
bool p3_spec_unpack(const char *bytes, size_t len, struct p3_spec *spec_out);

/*
 * drain - bytes of frames on their way to a descriptor: rank 0's input, or a file
 *
 *	INPUT, OUTPUT frames --p3_drain_take--> [ 64 KiB ] --> descriptor
 *			     <--ROOM, by moved()---
 *
 * The drain keeps the bytes that its reader does not take yet, so their sender sends no
 * more of them than there is room for.  The state is struct p3_drain, of which the owner
 * sets moved and arg.
 */

struct p3_drain {
	struct p3_loop *loop;
	struct p3_loop_fd to; /* fd -1: closed */
	bool ended;
	struct p3_backlog bytes; /* P3_STREAM_ROOM at most */
	/* Called when n bytes were written, or with an errno when they are lost: then it
	 * may close the drain, or let later bytes be tried. */
	void (*moved)(struct p3_drain *d, size_t n, int err);
	void *arg;
};

/* Take over a descriptor.  Return 0 or -errno. */
int p3_drain_open(struct p3_drain *d, struct p3_loop *loop, int fd);
/* Take bytes; len 0 is their end.  Return false if there are more than there is room
 * for, or the end was before. */
bool p3_drain_take(struct p3_drain *d, const void *bytes, size_t len);
void p3_drain_close(struct p3_drain *d);

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
 *	run.c	p3_agent_open, for its loop; p3_agent_close
 */

#define P3_AGENT_OPTION "--agent" /* the only word of its command line */

/* The first members are for other files, too. */
struct p3_agent {
	struct p3_spec spec;
	const struct p3_host *host; /* this one */
	/* the domain where the nodes of this host meet, or NULL: the job has one host,
	 * and they need none */
	const char *domain;
	/* of this host, as the remote shell has used it, or "" if it does not tell */
	char address[INET6_ADDRSTRLEN];
	char *bytes; /* of the order */
	struct p3_frames conn;
	char name[P3_DOMAIN_NAMES + 1]; /* of the domain */
	struct p3_taps *taps;           /* the nodes' output */
	struct p3_drain input;          /* the pipe of rank 0 */
	struct p3_backlog trace;        /* that yod has no room for yet */
	uint64_t trace_room;
	void (*take)(void *arg, const struct p3_frame *f, const char *bytes);
	void *arg;
};

/* Take yod's order, environment and directory.  Return the agent, or NULL with the exit
 * status. */
struct p3_agent *p3_agent_connect(int *status_out);
/* Tell yod that the job cannot start, and the exit status for that. */
void p3_agent_refuse(struct p3_agent *agent, int status);
/* Report this host as ready.  Return true when all hosts are ready, or false if the job
 * does not start. */
bool p3_agent_await_go(struct p3_agent *agent);
/* Remove what killed processes have left of the domain; the guard calls it last. */
void p3_agent_clean(const struct p3_agent *agent);

/* ---- in the loop of run.c ---- */

/* Let the loop serve the connection.  *taps_out takes the nodes' pipes and sends their
 * bytes; *stdin_out is rank 0's standard input (/dev/null without that rank).  Frames
 * that are not about output or input go to `order`; NULL: the connection is broken.
 * Return 0 or -errno. */
int p3_agent_open(struct p3_agent *agent, struct p3_loop *loop, struct p3_taps **taps_out,
	int *stdin_out,
	void (*order)(void *arg, const struct p3_frame *f, const char *bytes), void *arg);
/* Send the last frames, wait until yod has taken them, and close the connection. */
void p3_agent_close(struct p3_agent *agent);
/* Send bytes of this host's trace file, as yod has room for them.  Return their number,
 * or -1 if out of memory. */
ssize_t p3_agent_trace(struct p3_agent *agent, const void *bytes, size_t len);
/* Return true if output or traces are left, and yod is there. */
bool p3_agent_has_output(const struct p3_agent *agent);

/*
 * answers - what ptlstat says about the ranks of this host
 *
 *	ptlstat --hosts, or yod's own report
 *	  --ASK-->  yod  --ASK-->  each agent  --socket-->  ptlstat, its child
 *	  <--REPORT--    <--REPORT--           <--pipe--
 *
 * ptlstat, from yod's own folder, looks at the nodes as it does from outside (rdv.h), and
 * writes what it would print.  That is the answer, also if the child does not end in
 * time or writes more than P3_ANSWERS_LONG: then what there is.  A yod whose ranks are
 * all here asks itself.  The loop must go on meanwhile, since ptlstat gets its data from
 * yod.
 *
 * The loop of run.c calls these functions, and reaps the children.  None of them blocks.
 */

#define P3_REPORT_MS    5000
#define P3_REPORT_NODES 16u /* larger jobs: conclusions only */
#define P3_ANSWERS_MOST 8u  /* questions at a time */
#define P3_ANSWERS_LONG (4u << 20)

struct p3_answers;

/* It gets the answer to a question of this number, with 0 or an errno. */
typedef void p3_answered(
	void *arg, uint64_t number, int status, const char *bytes, size_t len);
/* Return NULL if out of memory. */
struct p3_answers *p3_answers_create(
	struct p3_loop *loop, struct p3_attach *attach, p3_answered *done, void *arg);
void p3_answers_destroy(struct p3_answers *a);
/* Take a question. */
void p3_answers_take(struct p3_answers *a, const struct p3_frame *ask);
/* Wait for no answer any more. */
void p3_answers_end(struct p3_answers *a);

/*
 * query - questions to all agents of a job: of ptlstat --hosts, and of yod itself
 *
 *	ptlstat  --connect-->  abstract socket "portals3-hosts/UID/JOB"	SOCK_STREAM
 *		 --ASK-->  yod  --ASK-->  all agents (answers)
 *		 <--REPORT of each host--
 *
 * A REPORT to ptlstat has in node the host's index, in number the number of reports, in
 * value 0 or an errno, and as bytes the host's name with its zero byte, and the text.  A
 * host that is lost or does not answer in time has a report with an errno.
 *
 * Only yod's own user and root are served.  yod prints the reports to its own question on
 * its standard error.  Memory is bounded: there are at most P3_QUERY_MOST questions,
 * and agents bound their reports.  The loop of agents.c calls these functions;
 * none of them blocks.
 */

#define P3_QUERY_MOST 8u

struct p3_agents;
struct p3_query;

/* Open the service.  Return 0 or -errno. */
int p3_query_create(struct p3_agents *agents, struct p3_query **query_out);
void p3_query_destroy(struct p3_query *query);
/* Ask what the job waits for, and print the answers.  Return true if some are yet to
 * come. */
bool p3_query_begin_own(struct p3_query *query);
/* Take the report of a host; f NULL: there will be none. */
void p3_query_take(struct p3_query *query, uint32_t host, const struct p3_frame *f,
	const char *bytes);

/*
 * agents - a job on several hosts: yod's side
 *
 *	yod --hosts	guard		as on one host
 *			yod		this loop: a remote shell for each host, no nodes
 *	each host	yod --agent	runs the host's ranks
 *
 * yod starts all agents, sends each its order, and lets the nodes start when all agents
 * are ready: an unreachable host, or a program that one host does not have, ends the job
 * before any node runs.  Then yod decides what concerns several hosts:
 *
 *  - The first failing rank ends the job (END to all agents), unless --keep-going.
 *  - Signals go to all agents, which act on them as yod does on one host, and take the
 *    same steps (yod.h).
 *  - A barrier is over when all hosts have told that all their ranks have come.
 *  - An agent whose connection ends before DONE is lost, and its ranks with it: they
 *    count as killed.
 *
 * Agents end their nodes when yod's side of a connection closes.  So no node stays,
 * however yod ends.  The nodes' output has the same queues as on one host.
 */

/* Time for the agents of a killed yod to end, before the remote shells are killed. */
#define P3_AGENTS_GRACE_MS 4000

/* Run the job.  Return the exit status of yod. */
int p3_agents_run(const struct p3_opt *opt, uint32_t jid, const struct p3_guard *guard);

/*
 * The state of a job on several hosts, for the files that work on it:
 *
 *	agents.c	starting, signals, frames of agents, traces, lost agents, the end
 *	query.c		questions to all agents
 *	collectives.c	barriers, ends of ranks and cards, which concern all hosts;
 *			standard input and output
 *
 * A file calls only files below it in this list.
 */

enum p3_uplink_state {
	P3_UPLINK_UNBORN, /* its remote shell is yet to start */
	P3_UPLINK_STARTING,
	P3_UPLINK_GREETED, /* HELLO has come */
	P3_UPLINK_READY,
	P3_UPLINK_RUNS,
	P3_UPLINK_DONE,
	P3_UPLINK_LOST
};

/* The connection to the agent of a host. */
struct p3_uplink {
	struct p3_agents *agents;
	const struct p3_host *host;
	struct p3_spawned_tool rsh;
	struct p3_frames conn;
	struct p3_tracefile *trace; /* of the host; NULL: none is requested */
	enum p3_uplink_state state;
	bool exited;       /* the remote shell has ended, with the wait status below */
	bool over;         /* so has the connection, and its ranks' streams */
	bool in_barrier;   /* all its ranks wait in the present barrier */
	bool begun;        /* bytes have come */
	bool in_frame;     /* it was cut off within a frame */
	int64_t silent_ms; /* it was cut off after this silence; 0: it was not */
	int status;
	int64_t greet_at; /* time to name a host that has not answered */
	int64_t over_at;  /* time to treat the remote shell and connection as ended */
	int64_t end_at;   /* time to kill the remote shell, whose agent has ended */
};

struct p3_agents_rank {
	pid_t pid; /* 0: it has not started */
	bool ended;
	bool lost;   /* bytes of its output could not be written */
	bool gone;   /* it will never come to a barrier */
	bool carded; /* its card has come */
};

struct p3_agents {
	struct p3_control c;
	const struct p3_opt *opt;
	const struct p3_hosts *hosts;
	uint32_t jid;
	struct p3_spec spec; /* of each agent, but for its host */
	uint32_t begun_n;    /* hosts whose remote shells have been started */
	char *self;          /* path of yod, on each host */
	/* words of the remote shell, which are in the text; then the host, the command
	 * line and NULL */
	char **rsh, *rsh_text, *rsh_command;
	int rsh_n;                /* number of the words */
	int stdin_fd;             /* standard input for rank 0 */
	int64_t slow_ms;          /* that agents still have to end */
	struct p3_taps *input;    /* from stdin_fd to the agent of rank 0 */
	struct p3_drain *files;   /* of --output-dir, by stream; or NULL */
	bool go_sent;             /* GO was sent to the agents: the nodes start */
	bool output_lost;         /* output of a rank could not be written */
	uint64_t early_signals;   /* bits of the signals that came before GO */
	int64_t barrier_since;    /* the first host came to the barrier; or P3_NEVER */
	uint64_t round;           /* number of the present barrier */
	struct p3_query *query;   /* NULL: no questions can be asked */
	uint32_t gone_n, cards_n; /* numbers of such ranks */
	char *cards;              /* P3_JOB_CARD_LEN bytes for each rank */
	struct p3_agents_rank *rank;
	struct p3_uplink link[];
};

/* ---- collectives.c ---- */

/* Send a frame to all agents. */
void p3_agents_tell_all(struct p3_agents *a, struct p3_frame f, const void *bytes);
void p3_agents_on_barrier(struct p3_uplink *l, uint64_t round, bool came);
/* Write the names of the hosts whose ranks have not all come to the barrier. */
void p3_agents_name_late(const struct p3_agents *a, char *text, size_t size);
/* Release the barrier of all hosts: with 0, or with EPIPE and a rank that has ended. */
void p3_agents_release(struct p3_agents *a, int status, uint32_t ended);
void p3_agents_on_gone(struct p3_agents *a, uint32_t rank);
/* Process a card.  Return false if its length is wrong. */
bool p3_agents_on_card(struct p3_agents *a, uint32_t rank, const char *card, size_t len);

/* Open yod's output, the files of --output-dir, and the way of input.  Return 0 or
 * -errno. */
int p3_forward_open(struct p3_agents *a);
/* Begin to send yod's standard input, or its end, to rank 0. */
void p3_forward_begin_input(struct p3_agents *a);
/* Take bytes of a stream of a rank; len 0 is its end.  Return false if there are more
 * than its agent may send. */
bool p3_forward_take(struct p3_agents *a, uint32_t i, const char *bytes, size_t len);
/* Return true if a file of --output-dir (a FIFO) has yet to take bytes. */
bool p3_forward_owes(void *agents);
/* Return false if files lack output of ranks, after a line if there are several. */
bool p3_forward_say_lost(const struct p3_agents *a);
/* Close all but yod's output. */
void p3_forward_close(struct p3_agents *a);

#endif
