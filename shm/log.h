/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log - one line to stderr, one write(2) each; errno is kept
 *
 *	p3[job 7741 nid 3 pid 18233] warn: hugepages off: need 12, free 4; fix: ...
 *	p3[job 7741 nid 3 pid 18233] drops match: node 1 (nid 1, pid 100): ...
 *
 * error: a call fails.  warn: a call works, but not as requested (say it once a cause).
 * info: the resources of an interface and its statistics.  drops: the first request of
 * each kind that comes to nothing.  debug: interfaces, peers.  PTL3_LOG selects the
 * levels that are written, for each area.  The first function that knows the cause logs
 * it, its callers stay silent.
 *
 * Any thread may call these functions, also with the lease held: none is a cancellation
 * point or takes a lock.  From info on, a line that stderr has no room for is counted
 * and dropped, so that the caller does not wait.  The state is the process's job, node,
 * levels and number of dropped lines.
 */
#ifndef P3_SHM_LOG_H
#define P3_SHM_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum p3_log_level {
	P3_LOG_OFF,
	P3_LOG_ERROR,
	P3_LOG_WARN,
	P3_LOG_INFO,
	P3_LOG_DROPS,
	P3_LOG_DEBUG,
	P3_LOG_LEVELS
};

enum p3_log_area {
	P3_AREA_JOB,   /* start, settings, ranks, domains */
	P3_AREA_NIC,   /* memory, threads, interfaces */
	P3_AREA_PEER,  /* other nodes */
	P3_AREA_MATCH, /* requests to this node that it drops */
	P3_AREA_SEND,  /* requests of this node that are never served */
	P3_AREA_EVENT, /* lost events */
	P3_AREA_HEAP,  /* the shared heap */
	P3_LOG_AREAS
};

/* A file whose lines belong to another area defines this before it includes the
 * header. */
#ifndef P3_LOG_AREA
#define P3_LOG_AREA P3_AREA_JOB
#endif

/* Set the job and node that the lines name; call it when they are known. */
void p3_log_who(uint32_t jid, uint32_t nid);

/* Set the highest level that each area writes; without this call it is warn. */
void p3_log_set(const uint8_t levels[P3_LOG_AREAS]);
bool p3_log_is(enum p3_log_level level, enum p3_log_area area);
/* Return the number of lines that stderr had no room for. */
uint32_t p3_log_unsaid(void);

void p3_log(enum p3_log_level level, enum p3_log_area area, const char *fmt, ...)
	__attribute__((cold, format(printf, 3, 4)));

#define p3_error(...) p3_log(P3_LOG_ERROR, P3_LOG_AREA, __VA_ARGS__)
#define p3_warn(...)  p3_log(P3_LOG_WARN, P3_LOG_AREA, __VA_ARGS__)

/* The words that PTL3_LOG accepts. */
extern const char *const p3_log_level_names[P3_LOG_LEVELS];
extern const char *const p3_log_area_names[P3_LOG_AREAS];

/* Parse levels such as "drops" or "warn,match:drops" (NULL, empty: warn).  Return false
 * if the text is malformed. */
bool p3_log_parse(const char *text, uint8_t levels_out[P3_LOG_AREAS]);

#endif
