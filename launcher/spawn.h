/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn - starts the process of one node
 *
 * The node has a process group of its own, standard input (rank 0 only), output, and
 * one descriptor more: its socket to yod (P3_JOB_ENV).  It is killed when the thread
 * that called p3_spawn_node() ends, so that must be yod's main thread.
 */
#ifndef P3_LAUNCHER_SPAWN_H
#define P3_LAUNCHER_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct p3_place;
struct p3_prog;
struct p3_ranks;
struct p3_signals;

struct p3_spawn_conf {
	uint32_t size;
	const struct p3_place *place;
	uint32_t nid_base;
	const char *mode;   /* NULL: leave PTL3_MODE as it is */
	const char *domain; /* or NULL */
	bool trace;         /* the nodes write one */
	bool line_buffered; /* from PtlInit on */
	bool shared_heap;   /* preload the allocator that the shared heap needs */
	int stdin_fd;       /* for rank 0 */
	int give_up_fd;     /* readable: stop waiting for the exec */
	const struct p3_ranks *only; /* others print to nowhere; NULL: nobody does */
	int output_dir_fd; /* stdout and stderr are files there (outdir.h); or -1 */
	bool pipes;        /* stdout and stderr through pipes */
	const struct p3_signals *signals;
	struct rlimit nofile; /* what nodes get */
};

struct p3_spawned {
	pid_t pid;
	int sock;
	int out[2]; /* read ends, -1 without pipes */
};

enum p3_spawn_fault { P3_SPAWN_FORK = 1, P3_SPAWN_PREPARE, P3_SPAWN_EXEC };

/* Of the trace of each node, by the environment; wanted: by yod --trace, too. */
uint32_t p3_spawn_trace_records(bool wanted);

/* The environment that all nodes have in common; once, in yod.  0 or -errno. */
int p3_spawn_environment(const struct p3_spawn_conf *conf);

/*
 * Returns when the program runs.  Else -errno and which part failed: nothing is left
 * of the node then.  -EINTR: give_up_fd became readable first; the node may run,
 * *spawned_out is valid.
 */
int p3_spawn_node(const struct p3_spawn_conf *conf, const struct p3_prog *prog,
	uint32_t rank, struct p3_spawned *spawned_out, enum p3_spawn_fault *fault_out);

#endif
