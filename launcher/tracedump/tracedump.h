/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef P3_LAUNCHER_TRACEDUMP_TRACEDUMP_H
#define P3_LAUNCHER_TRACEDUMP_TRACEDUMP_H

#include "launcher/yod/tools.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * tracedump - the parts of the program tracedump
 *
 *	tracedump.c	command line
 *	load.c		traces from files, a core or a job: one clock, one list
 *	flow.c		the records about one message; slices of time, and the messages'
 *			arrows between them
 *	text.c		functions, by elfutils; names; lines, as of the SeaStar's tool
 *	json.c		Trace Event Format, for ui.perfetto.dev and chrome://tracing
 *	svg.c		a picture
 *
 * Input comes from other processes and may be anything: numbers are checked before they
 * are used, and texts are made printable ASCII.  The program has one thread; its
 * state is struct td_trace, and the functions that text.c has found.
 */

#define TD_NONE UINT32_MAX

/* One incarnation of a node. */
struct td_block {
	struct p3_trace_header header;
	uint32_t file; /* index in td_trace */
	uint32_t node;
	enum p3_trace_fate fate;
	struct p3_trace_look now;
	uint64_t written[P3_TRACE_RINGS];
	uint64_t lost;
	uint32_t unsound; /* records with an impossible time */
};

struct td_event {
	struct p3_trace_entry e;
	int64_t ns; /* time since the job began */
	uint32_t block;
	uint32_t before;  /* the preceding event in the same ring, or TD_NONE */
	uint32_t after;   /* hosts' ring: the next event of this thread, or TD_NONE */
	uint32_t message; /* or TD_NONE */
};

/* The records of a message's way. */
enum td_way {
	TD_COMMAND,
	TD_SEND,
	TD_TAKE,
	TD_MATCH,
	TD_DELIVER,
	TD_EVENT,
	TD_TAKEN,
	TD_ANSWER,
	TD_ANSWERED,
	TD_WAY
};

struct td_message {
	uint16_t from, to;
	uint32_t name;        /* as in its records */
	uint32_t way[TD_WAY]; /* events; TD_NONE: not recorded */
	uint32_t several;     /* bits: this part of the way was recorded twice */
};

#define TD_ERROR_UNKNOWN INT64_MAX

/* The file of one host. */
struct td_file {
	const char *path;
	bool known;         /* ahead is an estimate, or this is the first file */
	int64_t ahead;      /* ns by which its clock is ahead of the first file's */
	int64_t error;      /* of that, or TD_ERROR_UNKNOWN */
	uint32_t moved;     /* records that were moved so that causes precede effects */
	int64_t moved_most; /* by this time at most */
};

struct td_trace {
	uint32_t jid;
	uint32_t size; /* number of nodes */
	struct p3_trace_look began;
	uint32_t nfiles; /* more than one: of several hosts */
	struct td_file *file;
	uint32_t nblocks;
	struct td_block *block;
	uint32_t nevents;
	struct td_event *event; /* sorted by time */
	uint32_t nmessages;
	struct td_message *message;
};

/* ---- load.c: each returns 0, or an error after a line ---- */

/* Load a file or a core; or the files of several hosts of one job, and set their times on
 * one clock. */
int td_load_files(char *const *paths, uint32_t n, struct td_trace *trace_out);
int td_load_job(uint32_t pid, struct td_trace *trace_out);
void td_free(struct td_trace *trace);
/* Align the clocks of the files, by records that are in order of their own times. */
int td_merge(struct td_trace *trace);
/* Call found for each node of a core. */
int td_core_each(const char *path, int fd,
	int (*found)(void *arg, const struct p3_trace_taken *taken), void *arg);

/* ---- flow.c: messages ---- */

/* Find the messages that records are about.  Times that are apart, of several clocks, do
 * not tell the order of records: then all records of a name are one message. */
int td_find_messages(struct td_trace *trace, bool apart);
/* "17", or "b17" in a base ring: the number of cells that were in the lane before it. */
struct td_name {
	char text[16];
};
struct td_name td_name_of(uint32_t name);

/* ---- text.c ---- */

struct td_code {
	const char *function; /* never NULL */
	uint32_t offset;
};

struct td_code td_code_of(const struct td_trace *trace, const struct td_event *ev);
void td_code_end(void);

/* ---- filters ---- */

struct td_filter {
	bool some; /* only records of these nodes */
	struct p3_ranks nodes;
	int64_t since, until;
	const char *at;   /* name of a point or a function; NULL: all */
	uint32_t peer;    /* TD_NONE: all */
	uint32_t message; /* TD_NONE: all */
};

bool td_shows(const struct td_trace *trace, const struct td_filter *f,
	const struct td_event *ev);

/* ---- flow.c: slices ---- */

/* A thread of a node has a row of slices; 0 is the firmware. */
struct td_slice {
	uint32_t node, thread;
	int64_t from, to;
	unsigned depth; /* number of slices around it */
	uint32_t event; /* event that names it: the one at its end, except for hosts */
	bool frame;     /* a lease or a request, around the firmware's actions */
	const char *name;
};

/* A message's arrow begins, passes and ends inside slices, in this order. */
struct td_stop {
	uint32_t event, node, thread;
	int64_t ns;
};
#define TD_STOPS 5u

void td_each_slice(const struct td_trace *trace, const struct td_filter *f,
	void (*show)(void *arg, const struct td_slice *s), void *arg);
unsigned td_stops(const struct td_trace *trace, const struct td_filter *f,
	const struct td_message *m, struct td_stop out[TD_STOPS]);

/* ---- names ---- */

const char *td_point(unsigned point);
/* Return the name of the value of a record at this point, or "". */
const char *td_value(unsigned point, unsigned value);
/* Describe the record in words, without time and place. */
void td_describe(const struct td_event *ev, char *text, size_t size);

/* ---- output ---- */

void td_text(const struct td_trace *trace, const struct td_filter *f, FILE *out);
int td_json(const struct td_trace *trace, const struct td_filter *f, FILE *out);
int td_svg(const struct td_trace *trace, const struct td_filter *f, FILE *out);

#endif
