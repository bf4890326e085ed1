/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn - the start of the process of one node
 *
 * The node has a process group of its own, standard input (rank 0 only), output, and
 * one more descriptor: its socket to yod (P3_JOB_ENV).  The kernel kills the node when
 * the thread that called p3_spawn_node() ends, so only yod's main thread may call that
 * function.  There is no state.
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
	uint32_t size; /* nodes of the job */
	uint32_t here; /* nodes on this host */
	const struct p3_place *place;
	uint32_t nid_base;
	const char *mode;   /* NULL: leave PTL3_MODE unchanged */
	const char *domain; /* or NULL */
	bool trace;         /* the nodes write a trace */
	bool line_buffered; /* stdout is line-buffered from PtlInit on */
	bool shared_heap;   /* preload the allocator that the shared heap needs */
	int stdin_fd;       /* standard input of rank 0 */
	int give_up_fd;     /* once readable, p3_spawn_node() stops waiting */
	const struct p3_ranks *only; /* the other ranks' output is dropped; NULL: no
				      * rank's is */
	int output_dir_fd; /* folder for stdout and stderr as files (outdir.h); or -1 */
	bool pipes;        /* stdout and stderr go through pipes */
	const struct p3_signals *signals;
	struct rlimit nofile; /* the nodes' limit */
};

struct p3_spawned {
	pid_t pid;
	int sock;
	int out[2]; /* read ends; -1 without pipes */
};

enum p3_spawn_fault { P3_SPAWN_FORK = 1, P3_SPAWN_PREPARE, P3_SPAWN_EXEC };

/* Return the number of records of each node's trace: that of the environment, else the
 * usual number if wanted is set (yod --trace), else 0. */
uint32_t p3_spawn_trace_records(bool wanted);

/* Set the environment that all nodes share, once, in yod.  Return 0 or -errno. */
int p3_spawn_environment(const struct p3_spawn_conf *conf);

/*
 * Start a node.  Return 0 when the program runs, else -errno and the part that failed;
 * then the node leaves nothing behind.  -EINTR: give_up_fd became readable first; the
 * node may run, and *spawned_out is valid.
 */
int p3_spawn_node(const struct p3_spawn_conf *conf, const struct p3_prog *prog,
	uint32_t rank, struct p3_spawned *spawned_out, enum p3_spawn_fault *fault_out);

#endif
