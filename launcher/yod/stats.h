/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats - statistics of each node (--stats)
 *
 *	rdv  --joined (published segment)-->  [ one descriptor a node ]
 *	run  --started, ended-->  times, fate, and the counters' last state
 *
 * Counters are read from the published segment (shm/layout.h) when the node's process
 * has ended or joins anew, so those of a killed process are right, too; lives of a node
 * add up.  Nothing is mapped: a file that is no segment has no counters.  Only yod's
 * main thread calls these functions.
 */
#ifndef P3_LAUNCHER_STATS_H
#define P3_LAUNCHER_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct p3_stats;

/* Return NULL if out of memory. */
struct p3_stats *p3_stats_create(uint32_t size);
void p3_stats_destroy(struct p3_stats *stats);

void p3_stats_started(struct p3_stats *stats, uint32_t rank);

/* Note a node's published segment; the descriptor stays the caller's. */
void p3_stats_joined(void *stats, uint32_t rank, int published);

/* Note a node's end, before the process is reaped. */
void p3_stats_ended(struct p3_stats *stats, uint32_t rank, pid_t pid, int wait_status);

/* Return the record of a node, for an agent to send; take the record that an agent has
 * sent.  Both ends run one build. */
const void *p3_stats_record(const struct p3_stats *stats, uint32_t rank, size_t *len_out);
void p3_stats_take(struct p3_stats *stats, uint32_t rank, const void *record, size_t len);

/* Print a line for each node and one for all, to stderr. */
void p3_stats_print(const struct p3_stats *stats);

#endif
