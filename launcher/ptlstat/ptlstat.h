/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef P3_LAUNCHER_PTLSTAT_PTLSTAT_H
#define P3_LAUNCHER_PTLSTAT_PTLSTAT_H

#include "launcher/look/look.h"
#include "launcher/yod/tools.h"
#include "shm/conf.h"
#include "shm/domain.h"
#include "shm/layout.h"
#include "shm/why.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * ptlstat - the parts of the program ptlstat, which looks at a job from outside
 *
 *	ptlstat.c	the command line, tables; jobs, and reports of other hosts
 *	picture.c	one picture of a job: from yod, /proc and the segments
 *	rows.c		rows of names and values, made of a picture: nodes, settings
 *	why.c		the waits, and the processes that cause them
 *	silence.c	the fate of messages that a node waits for; CCI; lines
 *
 * The job wrote the content of its segments: no value of it is used as a bound.  The
 * program has one thread; its state is struct ptl_picture.
 */

/* A wait of a library, copied as a whole into the words of its line. */
struct ptl_poll {
	uint64_t version;
	struct p3_poll is; /* eq 0: no wait */
	uint64_t pad[2];
};

struct ptl_queue {
	bool there;
	uint32_t size;
	uint64_t posted, read; /* numbers of events */
	uint64_t lost;
};

struct ptl_node {
	struct p3_attach_msg msg;
	char state;         /* of its process, as /proc shows it; 0: there is none */
	bool computes;      /* a thread other than the NIC's runs, or is ready to */
	const char *unseen; /* NULL: the rest is valid; else the reason why it is not */
	uint32_t slot;      /* index of its entry in a peer's table; its rank, except in
			     * a domain */
	uint32_t nnodes;    /* entries of its own table; the job's size, likewise */
	struct ptl_queue queue[P3_QUEUES_SHOWN];
	/* the segment up to the words for peers */
	struct ptl_block {
		struct p3_seg_header header;
		uint64_t word[P3_COUNTERS];
		struct p3_wait_line wait[P3_WAITS];
		uint64_t queue[P3_QUEUES_SHOWN][2];
		struct p3_case cases[P3_WHYS];
		struct p3_cci_line endpoint[P3_CCI_SHOWN];
		struct ptl_poll poll[P3_POLLS];
	} of;
};

/* Return the last request that came to nothing for a reason. */
const struct p3_case *ptl_case_of(const struct ptl_node *n, uint32_t why);

/* The messages and requests from one node to another that have not ended. */
struct ptl_pair {
	uint32_t queued;   /* requests in the send queue */
	uint32_t out;      /* requests sent and not answered */
	uint32_t unread;   /* messages in the lane */
	uint64_t since_ns; /* since then the target took nothing; 0: nothing waits */
	bool cold;         /* the target does not poll that lane */
	uint32_t reading;  /* puts of the target that this node reads from its memory */
	uint32_t
		kept_pid; /* the target keeps the first request, which is for this pid, */
	uint32_t
		kept_at; /* because of its portal index; this is the index plus 1, or 0 */
};

/* One node's requests that came to nothing at another node, or got no ACK. */
struct ptl_drops {
	uint32_t why; /* p3_why of the last request */
	uint32_t count;
};

struct ptl_picture {
	struct p3_look *look;
	uint32_t size, jid, yod;
	uint32_t here;      /* nodes of this host */
	const char *domain; /* its name, empty: a process alone; NULL: a job of yod's */
	bool whole;         /* no process outside the picture can send to its nodes */
	uint64_t at_ns;
	struct ptl_node *node;
};

/* The requests of a node to one on another host. */
struct ptl_far {
	uint32_t slot;
	const char *host; /* its name, or NULL: not known */
	struct ptl_pair pair;
	double silent; /* seconds since the host was heard; negative: not known */
};

/* Take a picture.  Return 0 or -errno as p3_look_again(). */
int ptl_picture_take(struct p3_look *look, struct ptl_picture *picture_out);
void ptl_picture_drop(struct ptl_picture *picture);
struct ptl_pair ptl_pair_of(const struct ptl_picture *p, uint32_t from, uint32_t to);
struct ptl_drops ptl_drops_of(const struct ptl_picture *p, uint32_t from, uint32_t at);
/* Return true if this slot of node i's table is a node on another host. */
bool ptl_far_of(
	const struct ptl_picture *p, uint32_t i, uint32_t slot, struct ptl_far *far_out);
/* Return true if the node is on another host, so that only its rank is known. */
bool ptl_is_far(const struct ptl_node *n);
/* Return the node that has this slot, or the size of the picture. */
uint32_t ptl_rank_of(const struct ptl_picture *p, uint32_t slot);
/* Return true if the node still waits as in the picture, and has received nothing
 * since. */
bool ptl_is_as_pictured(const struct ptl_picture *p, uint32_t i);
uint64_t ptl_unread_events(const struct ptl_queue *q);
double ptl_seconds(const struct ptl_picture *p, uint64_t since_ns);
/* Write "joined", "stopped", "killed by signal 9" and so on, from yod's table and
 * /proc. */
void ptl_state_text(const struct ptl_node *n, char *text, size_t size);
/* Return the node's process: that of a wrapper script until the program has said HELLO;
 * 0: none. */
static inline uint32_t ptl_process_of(const struct ptl_node *n)
{
	return n->msg.os_pid ? n->msg.os_pid : n->msg.started_pid;
}
bool ptl_is_stopped(const struct ptl_node *n);
bool ptl_is_alive(const struct ptl_node *n);
/* Return the oldest wait of its threads, or NULL. */
const struct p3_wait_line *ptl_oldest_wait(const struct ptl_node *n);
const char *ptl_mode_name(uint64_t mode);

/* ---- why.c: waits of libraries that poll (shm/poll.h) ---- */

struct ptl_text;
struct ptl_lines;
/* The library's name, printable. */
struct ptl_poll_name {
	char s[P3_POLL_NAME];
};
struct ptl_poll_name ptl_poll_library(const struct p3_poll *poll);
/* Return the oldest one of a node that runs and still polls, or NULL. */
const struct p3_poll *ptl_oldest_poll(
	const struct ptl_picture *p, const struct ptl_node *n);

/* ---- rows.c: rows of names and values, which the caller drops ---- */

/* Return a job and its nodes; rates are from the first picture to the second. */
json_t *ptl_rows_job(const struct ptl_picture *was, const struct ptl_picture *is);
/* Return a job, a line for each node, and conclusions.  Lines that differ in their node
 * only become one, but for lines of nodes if these are to stay apart. */
json_t *ptl_rows_why(const struct ptl_picture *p, bool apart);
/* Return the settings of nodes. */
json_t *ptl_rows_conf(const struct ptl_picture *p);

/* ---- why.c and silence.c ---- */

/* Add two arrays of lines, "nodes" and "why", to an object. */
void ptl_why(const struct ptl_picture *p, bool apart, json_t *o);
/* Append a node's endpoints to its line. */
void ptl_cci_describe(const struct ptl_node *n, struct ptl_text *t);
/* Add a conclusion for each endpoint that has held its peers up for so long. */
void ptl_cci_blame(const struct ptl_picture *p, double least_s, struct ptl_lines *l);
/* The fate of the messages that could have made the event a node waits for. */
enum ptl_silence {
	PTL_UNKNOWN,      /* not all causes can be seen */
	PTL_LOST,         /* messages were dropped or lost: see ptl_find_lost() */
	PTL_NO_EVENT,     /* messages came, but caused none of the awaited events */
	PTL_NOTHING_SENT, /* certain: no message was sent */
};
enum ptl_silence ptl_silence_of(const struct ptl_picture *p, uint32_t i);
/* Add a conclusion for each way in which messages between node i and the others were
 * dropped or lost (l NULL: count only).  Return their number. */
uint32_t ptl_find_lost(const struct ptl_picture *p, uint32_t i, struct ptl_lines *l);
/* Return true if the node has dropped requests, or lost events. */
bool ptl_has_drops(const struct ptl_node *n);

/* Return the value that a node with these words has in effect, or NULL. */
const char *ptl_conf_got(const uint64_t *w, enum p3_conf_id id, char text[30]);

/* A line of `ptlstat why`, put together piece by piece. */
struct ptl_text {
	char s[1400];
	size_t n;
};

/* Append to a line; a rest that does not fit is cut off. */
__attribute__((format(printf, 2, 3))) static inline void ptl_add(
	struct ptl_text *t, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(t->s + t->n, sizeof t->s - t->n, fmt, args);
	va_end(args);
	if (n > 0)
		t->n += (size_t)n;
	if (t->n > sizeof t->s - 1)
		t->n = sizeof t->s - 1;
}

static inline const char *ptl_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/*
 * lines - the lines of `ptlstat why`, collected so that equal ones become one
 *
 * A text has the mark PTL_NODE in place of the node that it is about, and a PTL_TIME
 * before and behind each time.  Texts that are equal but for their times become one line,
 * with the ranks of all and the shortest times: "each of nodes 1-63 waits ... since 5.0 s
 * or more".
 * A struct ptl_lines begins as zeros.
 */

#define PTL_NODE "\1"
#define PTL_TIME "\2"

struct ptl_line {
	bool conclusion;
	struct p3_ranks nodes;
	uint32_t n;   /* number of nodes */
	uint32_t pid; /* of the only node, or 0: not to be shown */
	char *text;
};

struct ptl_lines {
	struct ptl_line *line;
	uint32_t n;
	uint32_t conclusions; /* calls of ptl_lines_conclude() */
	bool apart;           /* lines of nodes stay apart */
	bool failed;          /* memory ran out */
};

/* Add a line about a node, whose process is pid; or a conclusion. */
void ptl_lines_add(struct ptl_lines *l, bool conclusion, uint32_t node, uint32_t pid,
	const char *text);
__attribute__((format(printf, 3, 4))) void ptl_lines_conclude(
	struct ptl_lines *l, uint32_t node, const char *fmt, ...);
/* Add the texts of all lines to an object, as "nodes" and "why", and free them. */
void ptl_lines_tell(struct ptl_lines *l, json_t *o);

#endif
