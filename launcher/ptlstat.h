/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ptlstat - looks at a job from outside
 *
 *	ptlstat.c	the command line, the list of jobs
 *	ptlstat_read.c	one picture of a job: what yod, /proc and the segments say
 *	ptlstat_top.c	rates, as a table that is drawn anew
 *	ptlstat_json.c	the same for programs
 *	ptlstat_why.c	who waits for what
 *	ptlstat_silence.c what became of messages that a node waits for
 *	ptlstat_conf.c	settings, and what the nodes got
 *
 * What a segment says was written by the job: nothing of it is used as a bound.
 */
#ifndef P3_LAUNCHER_PTLSTAT_H
#define P3_LAUNCHER_PTLSTAT_H

#include "launcher/look.h"
#include "shm/layout.h"
#include "shm/why.h"

#include <stdbool.h>

/* A thread that said what it sleeps for. */
struct ptl_wait {
	uint32_t kind; /* p3_wait_kind, 0: nobody */
	uint32_t tid;
	uint64_t since_ns, deadline_ns;
	uint64_t received; /* messages, when it began */
	uint64_t n;
	uint64_t handle[P3_WAIT_HANDLES];
};

struct ptl_queue {
	bool there;
	uint32_t size;
	uint64_t posted, read; /* events */
	uint64_t lost;
};

/* What /proc says of its process. */
struct ptl_proc {
	char state; /* 0: there is none */
	char name[20];
	bool computes; /* some thread but the NIC's runs, or would */
};

struct ptl_node {
	struct p3_attach_msg msg;
	struct ptl_proc proc;
	const char *unseen; /* NULL: what follows is there; else why not */
	uint32_t slot;      /* what its peers' entries are numbered by, */
	uint32_t nnodes;    /* and how many there are: rank and size, but in a domain */
	uint64_t word[P3_COUNTERS];
	struct ptl_wait wait[P3_WAITS];
	struct ptl_queue queue[P3_QUEUES_SHOWN];
	struct p3_case cases[P3_WHY_END]; /* by p3_why */
};

/* What one node has for another that is not over. */
struct ptl_pair {
	uint32_t queued;   /* in the send queue */
	uint32_t out;      /* sent, and not answered */
	uint32_t unread;   /* messages that lie in the lane */
	uint64_t since_ns; /* nothing was taken since then; 0: nothing waits */
	bool cold;         /* the target does not poll that lane */
	uint32_t
		reading; /* of the target's puts, which this node reads from its memory */
};

/* Requests of one node that came to nothing at another, or to no ACK. */
struct ptl_drops {
	uint32_t why; /* p3_why of the last one */
	uint32_t count;
};

struct ptl_picture {
	struct p3_look *look;
	uint32_t size, jid, yod;
	const char *domain; /* its name, empty: a process alone; NULL: a job of yod's */
	bool whole;         /* no process that is not in it can send to its nodes */
	uint64_t at_ns;
	struct ptl_node *node;
};

/* 0 or -errno as p3_look_again(). */
int ptl_picture_take(struct p3_look *look, struct ptl_picture *picture_out);
void ptl_picture_drop(struct ptl_picture *picture);
struct ptl_pair ptl_pair_of(const struct ptl_picture *p, uint32_t from, uint32_t to);
struct ptl_drops ptl_drops_of(const struct ptl_picture *p, uint32_t from, uint32_t at);
/* Return which node has this slot, or the size of the picture. */
uint32_t ptl_rank_of(const struct ptl_picture *p, uint32_t slot);
/* Return true if the node waits as it did, and has received nothing since. */
bool ptl_is_as_pictured(const struct ptl_picture *p, uint32_t i);
uint64_t ptl_unread_events(const struct ptl_queue *q);
double ptl_seconds(const struct ptl_picture *p, uint64_t since_ns);

/* "joined", "stopped", "killed by signal 9", ...: of yod's word and of /proc's. */
void ptl_state_text(const struct ptl_node *n, char *text, size_t size);
bool ptl_is_stopped(const struct ptl_node *n);
bool ptl_is_alive(const struct ptl_node *n);
/* The oldest of what its threads wait for, or NULL. */
const struct ptl_wait *ptl_oldest_wait(const struct ptl_node *n);
const char *ptl_mode_name(uint64_t mode);

struct ptl_name {
	uint32_t word; /* p3_counter */
	const char *name;
};

/* Words by name: those that grow, gauges, settings; each ends with a NULL name. */
extern const struct ptl_name ptl_counters[], ptl_gauges[], ptl_settings[];

void ptl_top(const struct ptl_picture *was, const struct ptl_picture *is, bool screen);
void ptl_json_job(const struct ptl_picture *was, const struct ptl_picture *is);
void ptl_json_jobs(void);
/* Return the node of an earlier picture that is the same incarnation, or NULL. */
const struct ptl_node *ptl_before(
	const struct ptl_picture *was, const struct ptl_node *n);
void ptl_json_why(const struct ptl_picture *p);
void ptl_why(const struct ptl_picture *p,
	void (*line)(void *arg, bool conclusion, const char *text), void *arg);

/* A node waits for an event: what became of the messages that could have made it? */
enum ptl_silence {
	PTL_UNKNOWN,      /* not all that it depends on can be seen */
	PTL_LOST,         /* some were dropped or lost: ptl_find_lost() */
	PTL_NO_EVENT,     /* some came, and made none that it waits for */
	PTL_NOTHING_SENT, /* there were none: that is certain */
};
enum ptl_silence ptl_silence_of(const struct ptl_picture *p, uint32_t i);
/* Say what was dropped or lost between node i and the others (line NULL: do not); return
 * how many lines that makes. */
uint32_t ptl_find_lost(const struct ptl_picture *p, uint32_t i,
	void (*line)(void *arg, const char *text), void *arg);

void ptl_conf(const struct ptl_picture *p); /* NULL: of no job */

#endif
