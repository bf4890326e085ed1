/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agentsin - the state of a job on several hosts, for the files that work on it
 *
 *	agents.c	starting, the loop, signals, the end
 *	uplink.c	frames of agents, and agents that are lost
 *	traces.c	the trace file of each host (--trace)
 *	inquiry.c	questions to all agents (inquiry.h)
 *	together.c	barriers, ends of ranks and cards, which concern all hosts
 *
 * A file calls only files below it in this list.  One thread calls all functions.
 */
#ifndef P3_LAUNCHER_AGENTSIN_H
#define P3_LAUNCHER_AGENTSIN_H

#include "launcher/yod/agents.h"
#include "launcher/yod/beat.h"
#include "launcher/yod/frames.h"
#include "launcher/yod/inquiry.h"
#include "launcher/yod/order.h"
#include "launcher/yod/rsh.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* epoll keys from here on are hosts */
#define P3_AGENTS_KEY 16u
/* more than the time of all steps of an ending agent, besides --kill-after */
#define P3_AGENTS_SLOW_MS 12000

/* Time for a remote shell to end when its agent has started no node, or has ended. */
#define P3_AGENTS_SHELL_MS 2000
/* Time for an agent to answer, until a line names its host. */
#define P3_AGENTS_GREET_MS 10000

/* Remote shells that start at a time: more would find a server that refuses them
 * (MaxStartups of sshd on a gateway), and no CPU. */
#define P3_AGENTS_STARTS 32u

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
	struct p3_rsh_started rsh; /* descriptors, -1: closed */
	struct p3_frames conn;
	enum p3_uplink_state state;
	bool exited;       /* the remote shell has ended, with the wait status below */
	bool closed;       /* the connection is closed */
	bool over;         /* both, and its ranks' streams are ended */
	bool writes;       /* EPOLLOUT is watched */
	bool in_barrier;   /* all its ranks wait in the present barrier */
	bool begun;        /* bytes have come */
	bool in_frame;     /* it was cut off within a frame */
	int64_t silent_ms; /* it was cut off after this silence; 0: it was not */
	int trace;         /* file of the host's traces, or -1 */
	struct p3_beat beat;
	int status;
	int64_t greet_at; /* time to name a host that has not answered */
	int64_t over_at;  /* time to treat the remote shell and connection as ended */
	int64_t end_at;   /* time to kill the remote shell, whose agent has ended */
};

struct p3_agents_rank {
	pid_t pid;
	bool started, ended;
	bool gone;   /* it will never come to a barrier */
	bool carded; /* its card has come */
};

enum p3_agents_stage { P3_AGENTS_GOING, P3_AGENTS_ENDING };

struct p3_agents {
	const struct p3_opt *opt;
	const struct p3_hosts *hosts;
	uint32_t jid;
	struct p3_order order; /* of each agent, but for its host */
	uint32_t begun_n;      /* hosts whose remote shells have been started */
	char *self;            /* path of yod, on each host */
	struct p3_rsh rsh;
	int ep, signals, alive_fd;
	int in_fd;        /* standard input for rank 0; -1: it has ended */
	bool in_plain;    /* in_fd is a file, which epoll cannot watch */
	bool in_watched;  /* epoll watches in_fd */
	bool slow;        /* agents had not ended at the first stage_at */
	bool in_over;     /* rank 0 reads no more input */
	uint64_t in_room; /* bytes of input that its agent has room for */
	struct p3_outlets *outlets;
	struct p3_output *output;
	struct p3_stats *stats; /* NULL: not requested */
	enum p3_agents_stage stage;
	bool go_sent;           /* GO was sent to the agents: the nodes start */
	bool hurry, decided;    /* as in struct run of run.c */
	bool trace_lost;        /* a trace file could not be written */
	uint64_t early_signals; /* bits of the signals that came before GO */
	int status;
	int64_t stage_at, timeout_at, stopped_at, drain_at;
	int64_t why_at;             /* time to report the present barrier */
	int64_t why_ms;             /* age at which a barrier is reported */
	uint64_t round;             /* number of the present barrier */
	struct p3_inquiry *inquiry; /* NULL: no questions can be asked */
	int end_signal;           /* the signal that ends the job after a report, or 0 */
	uint32_t gone_n, cards_n; /* numbers of such ranks */
	size_t card_len;
	char *cards; /* P3_JOB_CARD_LEN bytes for each rank */
	struct p3_agents_rank *rank;
	struct p3_uplink link[];
};

/* ---- traces.c ---- */

/* Make the files.  Return 0, or -errno after an error line. */
int p3_agents_open_traces(struct p3_agents *a);
/* Append what has come from an agent, and give it room for as much.  Return false if it
 * is more than there was room for. */
bool p3_agents_on_trace(
	struct p3_agents *a, uint32_t host, const char *bytes, size_t len);
/* Close the files.  Return false if a part could not be written; an error
 * line has said so. */
bool p3_agents_close_traces(struct p3_agents *a);

/* ---- together.c ---- */

/* Send a frame to all agents. */
void p3_agents_tell_all(struct p3_agents *a, struct p3_frame f, const void *bytes);
/* Send a signal to all nodes, once they are to start. */
void p3_agents_signal(struct p3_agents *a, int sig);
/* Send the signals that came before the nodes were to start. */
void p3_agents_pass_signals(struct p3_agents *a);
void p3_agents_on_barrier(struct p3_agents *a, uint32_t host, uint64_t round);
/* Name the hosts whose ranks have not all come to the barrier. */
void p3_agents_say_barrier(struct p3_agents *a);
void p3_agents_on_broken(struct p3_agents *a, uint32_t rank);
void p3_agents_on_gone(struct p3_agents *a, uint32_t rank);
/* Process a card.  Return false if its length is wrong. */
bool p3_agents_on_card(struct p3_agents *a, uint32_t rank, const char *card, size_t len);

/* ---- uplink.c ---- */

void p3_agents_decide(struct p3_agents *a, int status);
/* End the job: as after a failure, or now. */
void p3_agents_end(struct p3_agents *a, bool now);
/* Start the agents of further hosts, P3_AGENTS_STARTS at a time, and send them their
 * orders.  Return 0 or -errno after a line. */
int p3_uplink_start_more(struct p3_agents *a);
/* Name a host whose agent has not answered, if it is time, and let another one start. */
void p3_uplink_see_wait(struct p3_agents *a, uint32_t host);
/* Receive and process frames of an agent. */
void p3_uplink_receive(struct p3_agents *a, uint32_t host);
/* Send the frames that wait for an agent. */
void p3_uplink_flush(struct p3_agents *a, uint32_t host);
/* Send a frame if one is due, and cut off an agent that has been silent for too long. */
void p3_uplink_beat(struct p3_agents *a, uint32_t host);
/* Close the connection: the agent ends its nodes. */
void p3_uplink_cut(struct p3_agents *a, uint32_t host);
/* Note the end of a remote shell. */
void p3_uplink_exited(struct p3_agents *a, uint32_t host, int status);
/* Return true if the remote shell and its connection have ended.  If that is too early,
 * print a line, once. */
bool p3_uplink_is_over(struct p3_agents *a, uint32_t host);

#endif
