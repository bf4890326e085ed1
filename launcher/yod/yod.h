/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of yod, from the command line to the end of a job on one host
 *
 * One thread calls all functions, yod's main thread, unless a section names another one.
 * A section without a struct for its state has none.
 */
#ifndef P3_LAUNCHER_YOD_YOD_H
#define P3_LAUNCHER_YOD_YOD_H

#include "launcher/frames.h"
#include "launcher/yod/tools.h"
#include "shm/cpuset.h"
#include "shm/layout.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/*
 * say - one line of yod's own to stderr
 *
 *	yod: rank 3 (pid 18233) killed by signal 9 (Killed); ending the job
 *
 * A line names the thing, its value, the expectation and the remedy, in lower case.
 * Only the main threads of yod and its guard call these functions: the place is a static
 * without a lock.  Once there is a job no line blocks: yod and its guard hand lines to
 * the output, and an agent sends them to yod, which prints them.
 * errno stays as it was.
 */

/* Print one line, made as by printf(), with "yod: " before it. */
void p3_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Print lines that have been made elsewhere, each with its newline. */
void p3_say_lines(const char *lines, size_t len);
/* Hand each line, with its newline, to this function instead of printing it; NULL:
 * print. */
void p3_say_by(void (*by)(void *arg, const char *line, size_t len), void *arg);
/* Name the host at the beginning of each line; NULL: do not.  Not copied. */
void p3_say_on(const char *host);
/* Begin the following lines with a place in a file, such as "jobs:3"; NULL: with none.
 * The text is not copied. */
void p3_say_at(const char *place);

/*
 * words - lines of words, quoted as in a shell
 *
 *	-sz 2 prog 'one word' "another \"one\"" a\ third	# and a comment
 *
 * Blanks separate.  In '...' every character stands for itself; in "..." a backslash
 * quotes the characters " \ $ and `, elsewhere any character.  A line ends with a
 * newline that is not quoted; backslash and newline together are ignored.  # begins a
 * comment where a word could.  Nothing is expanded.  The state is in struct p3_words,
 * which belongs to one thread.
 */

struct p3_words {
	char *at;      /* the unread rest; ends with a zero byte */
	uint32_t line; /* number of the line of `at`, from 1 */
};

/* Read the words of the next line that has any.  Make a new array that ends with NULL,
 * with room for head_n entries in front of the words: *argv_out, with *argc_out
 * entries, head included.  The text is changed; words lie in it.  *line_out is the
 * line's number.  Return 0; -ENOENT if no line is left; -EINVAL if a quote is open,
 * from *line_out on; or -ENOMEM. */
int p3_words_next(struct p3_words *words, uint32_t head_n, char ***argv_out,
	int *argc_out, uint32_t *line_out);

/*
 * prog - the programs of a job, and the ranks that run them
 *
 *	yod -sz 2 a x : -sz 3 b		ranks 0 and 1 run "a x", 2 to 4 run "b"
 *
 * Each program may have a working directory and an environment of its own.
 */

#define P3_STATUS_NO_EXEC 126
#define P3_STATUS_NO_FILE 127

struct p3_prog {
	uint32_t first;      /* its first rank */
	uint32_t size;       /* number of nodes; 0: not given yet */
	char **argv;         /* ends with NULL */
	const char *dir;     /* working directory; NULL: yod's */
	const char *lib_dir; /* folder put in front of its LD_LIBRARY_PATH, or NULL */
	const char **env;    /* NAME=VALUE, env_n of them, then NULL */
	uint32_t env_n;
	const char *place; /* origin for messages, such as "jobs:3"; NULL: command line */
};

/* Return the program of a rank. */
const struct p3_prog *p3_prog_of(const struct p3_prog *progs, uint32_t n, uint32_t rank);
/* Add NAME=VALUE, which is not copied.  Return 0 or -ENOMEM. */
int p3_prog_env_add(struct p3_prog *prog, const char *pair);
/* Return the value of a variable in its nodes' environment, or NULL. */
const char *p3_prog_getenv(const struct p3_prog *prog, const char *name);
/* Check before the start that the directory exists and the file may be run.  Return 0,
 * or the exit status after an error line.  p3_prog_say_cannot() reports errors that
 * only running shows (a missing interpreter). */
int p3_prog_check(const struct p3_prog *prog);
int p3_prog_say_cannot(const struct p3_prog *prog, int err);

/*
 * place - the CPUs of each node and of its NIC thread
 *
 * The job's CPUs are those of yod's affinity mask, or of a list that is part of it.
 * They form units: cores (hardware threads of one core are one unit), NUMA nodes, or
 * single CPUs of the list.  Nodes take units in turn; with per_unit, that number of
 * consecutive nodes share a unit, and the job must fit.
 *
 *	--bind core, 4 CPUs, 2 nodes	node 0: 0, node 1: 1; NIC threads: 2 and 3
 *
 * A NIC thread has the next CPU of its node's NUMA node that no node is bound to; if
 * there is none left, all CPUs of the job.  Nodes bound to NUMA nodes have their NIC
 * threads there, too.  PTL3_NIC_CPUS overrides this (spawn.c).
 */

enum p3_bind { P3_BIND_NONE, P3_BIND_CORE, P3_BIND_NUMA, P3_BIND_LIST };

struct p3_place_want {
	enum p3_bind bind;
	struct p3_cpuset list; /* CPUs of P3_BIND_LIST */
	uint32_t per_unit;     /* 0: no limit */
};

/* The machine to place nodes on; a test makes its own. */
struct p3_place_machine {
	const char *root; /* directory that contains /sys: "" */
	struct p3_cpuset mask;
	uint32_t quota; /* CPUs of the cgroup's quota, UINT32_MAX: no quota */
};

struct p3_place {
	bool bound;             /* false: only cpus is valid */
	uint32_t cpus;          /* number of CPUs that the job may use */
	struct p3_cpuset job;   /* the set of these CPUs */
	uint32_t end;           /* one more than the last rank of this host */
	struct p3_cpuset *node; /* indexed by rank; others than this host's are empty */
	struct p3_cpuset *nic;
};

/* Place n nodes, from rank first on, for a bind other than NONE.  Return 0, or -ERANGE,
 * -ENOMEM or -EINVAL after an error line. */
int p3_place_make(const struct p3_place_machine *here, const struct p3_place_want *want,
	uint32_t first, uint32_t n, struct p3_place *place_out);
/* Return true if this process may run on one of the CPUs.  To find out, the function sets
 * the process's affinity mask to them, and then restores it. */
bool p3_place_is_possible(const struct p3_cpuset *set);
void p3_place_free(struct p3_place *place);

/*
 * hosts - the hosts of a job, and the ranks of each
 *
 *	--hosts c1,c2		the ranks in even blocks
 *	--hosts c1:4,c2:2	ranks 0 to 3 on c1, 4 and 5 on c2
 *	--hostfile F		a host in each line: c1, c1:4 or c1 slots=4; # a comment
 *
 * If any host has a number of slots, hosts without one have one slot.  An IPv6 address
 * stands in brackets: [fe80::1]:4.
 */

#define P3_HOST_NAMES 64 /* letters of a name at most */

struct p3_host {
	char name[P3_HOST_NAMES + 1];
	uint32_t slots; /* 0: none were given */
	uint32_t first; /* its first rank */
	uint32_t size;  /* number of its ranks */
};

struct p3_hosts {
	uint32_t n; /* 0: the job runs on this host, without agents */
	struct p3_host *host;
};

/* Read a list, or a file of hosts.  Return 0, -EINVAL after a line, or -ENOMEM. */
int p3_hosts_parse(const char *list, struct p3_hosts *hosts_out);
int p3_hosts_read(const char *file, struct p3_hosts *hosts_out);
/* Give each host its block of the job's ranks, and drop hosts without any.  Return 0, or
 * -EINVAL after a line. */
int p3_hosts_place(struct p3_hosts *hosts, uint32_t size);
/* Return the host of a rank. */
const struct p3_host *p3_hosts_of(const struct p3_hosts *hosts, uint32_t rank);

/*
 * opt - yod's command line, and load files
 *
 *	yod [options] -sz N [--wdir DIR] [--env NAME=VALUE] program [arguments]
 *		[: -sz N [...] program [arguments]]...
 *	yod [options] -F file		a line for each program: -sz N [...] program [...]
 *
 * Options end at the first word that is no option: the program.  One table in opt.c
 * makes the parser and --help; a new option is a row there and a member here.
 */

#define P3_OPT_SIZE_MAX ((int)P3_MAX_NODES)

struct p3_opt {
	uint32_t size; /* number of nodes of all programs */
	uint32_t prog_n;
	struct p3_prog *prog; /* at least one */
	bool keep_going;
	bool tag;
	bool only; /* drop the output of ranks that are not in only_ranks */
	struct p3_ranks only_ranks;
	const char *output_dir; /* NULL: nodes print to yod's output */
	int output_dir_fd;      /* its descriptor, or -1; set by main */
	bool shared_heap;
	bool line_buffered;
	const char *valgrind;  /* auto, on or off */
	bool plan;             /* print the plan, and start nothing */
	bool stats;            /* print statistics at the end */
	int64_t timeout_ms;    /* 0: no limit */
	int64_t kill_after_ms; /* between SIGTERM and SIGKILL */
	int64_t why_after_ms;  /* time in a barrier after which yod says why; 0: never */
	const char *trace;     /* trace file, or NULL */
	const char *mode;      /* NULL: the environment decides */
	const char *domain;    /* domain where the nodes meet others, or NULL */
	uint32_t nid_base;     /* node id of rank 0; with domain, the least one */
	struct p3_hosts hosts; /* other hosts that run the job; none: this one does */
	const char *hosts_of;  /* the option that named them, or NULL */
	const char *rsh;       /* argument of --rsh, or NULL */
	const char *load;      /* argument of -F; NULL: no load file */
	struct p3_place_want place;
};

#define P3_OPT_NID_BASE      10000u
#define P3_OPT_NID_BASE_MOST 4000000000u /* keeps the last rank's id below PTL_NID_ANY */

#define P3_OPT_RUN           (-1)
#define P3_OPT_USAGE         2

/* Parse.  Return P3_OPT_RUN, or the exit status (0 after --help) after all output. */
int p3_opt_parse(int argc, char **argv, struct p3_opt *opt_out);

/* settings - the nodes' PTL3_* variables, checked once for the job */

/* Return the value of a setting in a program's nodes, or NULL if it is unset or empty. */
const char *p3_settings_text(const struct p3_prog *prog, int conf_id);
/* Print a line for each wrong value and unknown name.  Return 0, or -EINVAL for a wrong
 * value.  An unknown name is no error, since it may be that of another version. */
int p3_settings_check(const struct p3_opt *opt);

/*
 * plan - the resources that a job will take, before anything starts (--plan)
 *
 * It prints memory by the formula of shm/footprint.h, hugepages, CPUs and places,
 * descriptors, and beside each the supply of the machine.  Reasons why the job cannot
 * run go to stderr.  Programs with different settings (-x, a load file) have lines of
 * their own; sums are over all nodes.
 */

/* Return the number of descriptors that yod, or an agent, needs for n nodes that call
 * PtlInit. */
uint64_t p3_plan_yod_fds(const struct p3_opt *opt, uint32_t n, bool agent);
/* Raise the limit of open files of this process, if it is below that. */
void p3_plan_raise_fds(rlim_t need);
/* Return false, after an error line, if the hard limit of open files is below that. */
bool p3_plan_check_fds(const struct p3_opt *opt, uint32_t n, bool agent);
/* Print the hosts of a job and the ranks of each.  Return 0. */
int p3_plan_print_hosts(const struct p3_opt *opt);
/* Print the plan.  Return 0, or the exit status if the job could not run. */
int p3_plan_print(const struct p3_opt *opt, const struct p3_place *place);

/*
 * signals - the signals that yod takes, and the signal state that its nodes start with
 *
 * yod takes its signals through a signalfd, so they are blocked in it; nodes get the
 * mask and the dispositions that yod was started with.  An ignored HUP (nohup) stays
 * ignored in yod and its nodes.  The guard calls these
 * functions, too.
 */

/* Take the signals, once, before anything else. */
void p3_signals_take(void);
/* Return a signalfd of the calling process (close-on-exec, non-blocking), or -errno; with
 * `ends` one of the signals that end the job, which is polled and never read. */
int p3_signals_fd(bool ends);
/* Return true if this signal ends the job. */
bool p3_signals_ends(int sig);
/* Return the next signal that came, or 0. */
int p3_signals_next(int fd);
/* Restore the state in which yod was started in a forked child, before exec. */
void p3_signals_give_back(void);

/*
 * reap - the ends of child processes
 *
 * yod is a subreaper: a descendant whose parent dies becomes yod's child.  A child that
 * yod has not reaped keeps its pid, so a kill() of a child never hits another process.
 * The kernel has all state; the guard calls these functions, too.
 */

/* Return true, and the wait status, if this child has ended.  The caller must still reap
 * it (p3_reap_take). */
bool p3_reap_fate(pid_t pid, int *status_out);
/* Return true if this child has ended, or is ending in the kernel: all of its threads,
 * since a program may end its first one and go on. */
bool p3_reap_is_ending(pid_t pid);
/* Return true if a thread of a killed process has only to get a CPU to end. */
bool p3_reap_waits_for_cpu(pid_t pid);
/* Return the signal that stopped this child, or 0. */
int p3_reap_stopped(pid_t pid);
/* Write a text such as "exited with status 1" for a wait status. */
void p3_reap_describe(char *text, size_t len, int status);
/* Reap a child that has ended. */
void p3_reap_take(pid_t pid);
/* Return a child that has ended, 0 if none has, or -1 if there are no children.  The
 * caller must still reap it: until then further calls may return the same child. */
pid_t p3_reap_any(void);
/* Kill and reap all descendants.  Return false if some are left after 5 s in which none
 * of them waited for a CPU. */
bool p3_reap_sweep(void);
/* If this wait status is that of a crash, print the command that shows where the rank has
 * crashed, or how to get a core file, and return true.  The program has not changed its
 * working directory, as far as yod knows. */
bool p3_crash_say(
	const struct p3_prog *prog, uint32_t rank, pid_t pid, int status, bool agent);

/*
 * guard - yod is two processes, each of which cleans up if the other is killed
 *
 *	guard	the process that the user started.  In the foreground group; hands
 *		signals and typed input on, waits, passes on the exit status.
 *	yod	its child, in a process group of its own; runs the job.
 *
 * yod killed: its nodes die with it (PDEATHSIG), their descendants become the guard's
 * children (it is a subreaper), and the guard kills them.  Guard killed: yod sees the
 * end of file of a pipe and kills the job.  So no single SIGKILL, and none sent to the
 * group of the terminal, leaves a process behind.
 *
 * In a job on several hosts yod's children are remote shells.  Killed, yod closes their
 * standard input, and the agents end their nodes and themselves; the guard gives them
 * time for it.
 *
 * main() calls p3_guard_split() once, after p3_signals_take() and before there are
 * threads, since a forked child has only the thread that forked.
 */

struct p3_agent;

struct p3_guard {
	int alive_fd; /* at its end of file the guard is gone */
	int stdin_fd; /* standard input of rank 0 */
};

/* Fork: this process becomes the guard, its child yod, or the agent.  Return 0 in the
 * child, or -errno if there is no child.  The guard does not return: it gives the
 * children of an ended yod grace_ms to end, cleans up, and exits with yod's status. */
int p3_guard_split(int grace_ms, struct p3_agent *agent, struct p3_guard *guard_out);

/*
 * spawn - the start of the process of one node
 *
 * The node has a process group of its own, standard input (rank 0 only), output, and
 * one more descriptor: its socket to yod (P3_JOB_ENV).  The kernel kills the node when
 * the thread that called p3_spawn_node() ends, so only yod's main thread may call that
 * function.
 */

struct p3_spawn_conf {
	const struct p3_opt *opt;
	uint32_t here; /* nodes on this host */
	const struct p3_place *place;
	uint32_t nid_base;
	int stdin_fd;         /* standard input of rank 0 */
	int give_up_fd[2];    /* once one is readable, p3_spawn_node() stops waiting */
	bool pipes;           /* stdout and stderr go through pipes */
	struct rlimit nofile; /* the nodes' limit */
};

struct p3_spawned {
	pid_t pid;
	int sock;
	int out[2]; /* read ends; -1 without pipes */
};

/* Return the number of records of each node's trace: that of the environment, else the
 * usual number if wanted is set (yod --trace), else 0. */
uint32_t p3_spawn_trace_records(bool wanted);
/* Set the environment that all nodes share, once, in yod.  Return 0 or -errno. */
int p3_spawn_environment(const struct p3_spawn_conf *conf);
/* A program that is no node, and the ends of its pipes. */
struct p3_spawned_tool {
	pid_t pid;
	int to, from; /* its standard input and output */
};

#define P3_SPAWN_LOOK 3

/* Start such a program, in a process group of its own.  argv[0] is a path, or is found in
 * PATH.  look >= 0: it gets this as descriptor P3_SPAWN_LOOK, and has no input; it writes
 * errors to its output, too.  Return 0 or -errno. */
int p3_spawn_tool(const char *const *argv, int look, struct p3_spawned_tool *tool_out);
/* Start a node.  Return 0 when the program runs, else -errno, and true if its exec
 * failed; then the node leaves nothing behind.  -EINTR: a give_up_fd became readable
 * first; the node may run, and *spawned_out is valid. */
int p3_spawn_node(const struct p3_spawn_conf *conf, const struct p3_prog *prog,
	uint32_t rank, struct p3_spawned *spawned_out, bool *at_exec_out);

/*
 * outdir - a folder with a file for each rank and stream: rank3.out, rank3.err
 *
 * Nodes write to their files directly, in append mode, so a file holds all that its
 * node wrote before it died.
 */

/* Make the folder if it does not exist, and empty files for `size` ranks.  Return a
 * descriptor of the folder (close-on-exec), or -1 after an error line. */
int p3_outdir_open(const char *dir, uint32_t size);
/* Print that a file of the folder lacks bytes of its rank, which goes on. */
void p3_outdir_say_lost(const char *dir, uint32_t rank, int which, int err);
/* Open a rank's file; which is 0 for stdout, 1 for stderr; more: flags of open().
 * Return a descriptor or -errno. */
int p3_outdir_file(int dir_fd, uint32_t rank, int which, int more);

/*
 * taps - descriptors that are read while there is room for their bytes
 *
 *	nodes' pipes --take()--> yod's output, or the yod of an agent
 *	yod's standard input --take()--> the agent of rank 0
 *
 * The reader of a tap grants it room, P3_STREAM_ROOM bytes at first.  A tap without room
 * is not read, so its node is held up, as by a full pipe; the other taps go on.  When a
 * node has ended, other holders of its pipes may print for 2 more seconds.  Output has
 * tap 2 * rank for stdout and 2 * rank + 1 for stderr.  The state is struct p3_taps.
 */

#define P3_OUTPUT_IDLE_MS 200

struct p3_taps;

struct p3_taps_conf {
	uint32_t n;
	/* Called with the bytes of a tap, and with none at its end.  What it returns is
	 * ignored, since a tap brings no more than there is room for. */
	bool (*take)(void *arg, uint32_t i, const char *bytes, size_t len);
	/* NULL, or called when the node has written nothing for P3_OUTPUT_IDLE_MS within
	 * a line. */
	void (*idle)(void *arg, uint32_t i);
	void *arg;
};

/* Return a copy of a standard input, or -1.  Another process, such as a pager, may take
 * what has come, and a read must not block then: that is a property of the open file,
 * which others share, so a pipe or terminal is opened once more. */
int p3_taps_open(int fd);
/* Return NULL if out of memory. */
struct p3_taps *p3_taps_create(struct p3_loop *loop, const struct p3_taps_conf *conf);
void p3_taps_destroy(struct p3_taps *taps);
/* Take over a descriptor.  Return 0 or -errno. */
int p3_taps_add(struct p3_taps *taps, uint32_t i, int fd);
/* Grant room for n more bytes.  Return false if that is more than was used. */
bool p3_taps_room(struct p3_taps *taps, uint32_t i, uint64_t n);
/* Close a tap whose bytes have no reader any more. */
void p3_taps_close(struct p3_taps *taps, uint32_t i);
/* Note that the node has ended. */
void p3_taps_ended(struct p3_taps *taps, uint32_t rank);
/* Return true if all taps are at their end. */
bool p3_taps_are_done(const struct p3_taps *taps);

/*
 * output - the nodes' output, each line tagged with its rank, and yod's own lines
 *
 *	p3_output_take --> [ 64 KiB ] --> [ sink, one buffer ] --> stdout, stderr
 *	p3_say() --> [ own lines, 1 MiB ] --> [ the sink of stderr ]
 *
 * A line goes out in one write, whole, with "[rank] " before it.  A partial line goes out
 * when its node has written nothing more for 200 ms, and its rest follows without a
 * second tag; only if another node has printed meanwhile, the rest begins a new line with
 * a tag.  A line that does not fit in the stream goes out piece by piece, and the others
 * wait.  A full stream takes no bytes, so a node that prints faster than the reader reads
 * is held up: nothing is dropped, nothing grows.  Bytes other than newlines are passed
 * through unseen.
 *
 * A sink writes by a thread of its own: a reader that stops (a pager) stops the nodes'
 * output and nothing else in yod.  Own lines that find no room then are counted, and a
 * line tells the number later.  If the reader is gone, the nodes' pipes are closed,
 * so that they get the same error as without yod.
 *
 * The thread of the loop calls all functions.  The state is struct p3_output.
 */

struct p3_output;

struct p3_output_conf {
	struct p3_loop *loop; /* NULL: only p3_output_close() writes */
	uint32_t ranks;       /* 0: yod's own lines alone, which wait for the start */
	bool plain;           /* without tags, and the newlines in front of them */
	/* Tell that a stream has no reader only when bytes of it are lost. */
	bool remote;
	/* Called when n bytes of a stream were handed on; n is 0 if the stream has no
	 * reader any more. */
	void (*moved)(void *arg, uint32_t i, size_t n);
	void *arg;
};

/* Make the output to the descriptors to[].  Return NULL with errno. */
struct p3_output *p3_output_create(const struct p3_output_conf *conf, const int to[2]);
/* Open a stream: 2 * rank for stdout, 2 * rank + 1 for stderr.  Return 0 or -ENOMEM. */
int p3_output_add(struct p3_output *out, uint32_t i);
/* Take bytes of a stream; len 0 is its end.  Return false if there are more than there is
 * room for, P3_STREAM_ROOM at first. */
bool p3_output_take(void *output, uint32_t i, const char *bytes, size_t len);
/* Note that the node has written nothing more for P3_OUTPUT_IDLE_MS. */
void p3_output_idle(void *output, uint32_t i);
/* Start writing; from here on the process has threads. */
int p3_output_start(struct p3_output *out);
/* Return true if all streams are at their end, and all output and own lines are written.
 */
bool p3_output_is_done(const struct p3_output *out);
/* Return true if output could not be written although there is a reader; a line said
 * so. */
bool p3_output_is_lost(const struct p3_output *out);
/* Wait for own lines that are not written yet, while their reader takes some every 10 s
 * (in a hurry every 0.5 s, or every 3 s if it would take some and the thread that writes
 * has no CPU), and free the output, unless a write is still under way.  From here on
 * p3_say() writes by itself, as before p3_output_create(). */
void p3_output_close(struct p3_output *out, bool hurry);

/*
 * stats - statistics of each node (--stats)
 *
 *	rdv  --joined (published segment)-->  [ one descriptor a node ]
 *	run  --started, ended-->  times, fate, and the counters' last state
 *
 * Counters are read from the published segment (shm/layout.h) when the node's process
 * has ended or joins anew, so those of a killed process are right, too; lives of a node
 * add up.  Nothing is mapped: a file that is no segment has no counters.
 */

struct p3_stats;

/* Return NULL if out of memory. */
struct p3_stats *p3_stats_create(uint32_t size);
void p3_stats_destroy(struct p3_stats *stats);
void p3_stats_started(struct p3_stats *stats, uint32_t rank);
/* Note a node's published segment; the descriptor stays the caller's. */
void p3_stats_joined(struct p3_stats *stats, uint32_t rank, int published);
/* Note a node's end, before the process is reaped. */
void p3_stats_ended(struct p3_stats *stats, uint32_t rank, pid_t pid, int wait_status);
/* Return the record of a node, for an agent to send; take the record that an agent has
 * sent.  Both ends run one build. */
const void *p3_stats_record(const struct p3_stats *stats, uint32_t rank, size_t *len_out);
void p3_stats_take(struct p3_stats *stats, uint32_t rank, const void *record, size_t len);
/* Print a line for each node and one for all, to stderr. */
void p3_stats_print(const struct p3_stats *stats);

/*
 * control - signals, time-out, reports and the end of a job, wherever its ranks run
 *
 *	signals, guard, time-out --> control --ops--> run.c: processes of this host
 *						      agents.c: agents of all hosts
 *
 * The job is ended in steps, each with a deadline:
 *
 *	GOING --^C, HUP, QUIT--> ASKED (the same signal) --1 s--> TERMED
 *		at QUIT and at a timeout a report (remote.h) comes first
 *	GOING --failed node, timeout, TERM--> TERMED (SIGTERM)
 *	TERMED --5 s (--kill-after)--> KILLED (SIGKILL)
 *	any --second signal, guard gone--> KILLED
 *
 * In an agent (remote.h) the steps are the same, but yod decides what ends the job.  The
 * state is struct p3_control, of which the owner sets the first members.
 */

#define P3_STATUS_TIMEOUT 124
#define P3_STATUS_YOD     125

enum p3_stage { P3_GOING, P3_ASKED, P3_TERMED, P3_KILLED };

struct p3_control_ops {
	/* Hand on a signal that does not end the job. */
	void (*signal)(void *arg, int sig);
	/* A child has ended. */
	void (*child)(void *arg);
	/* End the job by a signal of the user. */
	void (*ask)(void *arg, int sig);
	/* End the job as after a failure of a rank, or now. */
	void (*end)(void *arg, bool now);
	/* Report what the ranks wait for.  Return true if that is under way:
	 * p3_control_reported() tells its end. */
	bool (*report)(void *arg);
	/* Return the time at which ranks began to wait in the present barrier, or
	 * P3_NEVER; print a line about them, who wait for so long. */
	int64_t (*barrier)(void *arg);
	void (*say_barrier)(void *arg, double seconds);
	/* Return true if processes are left; or output that is not yet in `output`. */
	bool (*is_left)(void *arg);
	bool (*owes)(void *arg);
	/* Do what is due behind each run of the loop. */
	void (*turn)(void *arg);
};

struct p3_control {
	const struct p3_opt *opt;
	const struct p3_control_ops *ops;
	void *arg;
	bool agent;
	struct p3_loop loop;
	struct p3_loop_fd signals, alive;
	struct p3_output *output; /* NULL in an agent */
	struct p3_stats *stats;   /* NULL: not requested */
	enum p3_stage stage;
	int64_t stage_at;       /* time of the next step */
	int64_t turn_at;        /* time of the next turn at the latest */
	int64_t timeout_at;     /* --timeout */
	int64_t stopped_at;     /* time of a stop by TSTP; 0: not stopped */
	int64_t went_on_at;     /* time of the end of the last stop, or 0 */
	int64_t drain_at;       /* time to give up the output */
	int64_t why_ms;         /* age at which a barrier is reported */
	int64_t reported_since; /* begin of the last barrier that was reported */
	int end_signal;         /* the signal that ends the job after the report, or 0 */
	bool hurry;   /* aborted by a signal: do not wait long for output's readers */
	bool decided; /* status is final */
	int status;
};

/* Open the loop, take signals, and become a subreaper.  Return 0 or -errno. */
int p3_control_open(struct p3_control *c, const struct p3_guard *guard);
/* Close what is open.  Return the exit status; whole: all output is written. */
int p3_control_close(struct p3_control *c, bool whole);
/* Set the exit status, unless it is set. */
void p3_control_decide(struct p3_control *c, int status);
/* Enter a stage, whose next step is due after ms; -1: never. */
void p3_control_enter(struct p3_control *c, enum p3_stage stage, int64_t ms);
/* Kill the job, and wait for no reader of its output. */
void p3_control_kill(struct p3_control *c);
/* Process a signal that yod got. */
void p3_control_on_signal(struct p3_control *c, int sig);
/* Note that the report is there, or cannot be. */
void p3_control_reported(struct p3_control *c);
/* Name a rank that has failed, on another host or NULL, and set the exit status. */
void p3_control_rank_failed(
	struct p3_control *c, uint32_t rank, pid_t pid, const char *host, int status);
/* Run the loop until no process is left, and no output that is worth waiting for. */
void p3_control_run(struct p3_control *c);

/*
 * run - one job, from the first fork to the last reaped process
 *
 * Everything is one thread around one loop: signals, the rendezvous, the output, the
 * guard.  (Only the sinks of output.c have threads of their own.)
 *
 * A node ends in three steps: yod reads its wait status, and leaves it unreaped; the
 * rendezvous tells the survivors; yod reaps it when they have dropped it.  The state is
 * struct run (run.c).
 */

/* Run the job; in an agent, run the ranks of its host.  agent is NULL in yod itself.
 * Return the exit status of yod. */
int p3_run_job(const struct p3_opt *opt, const struct p3_place *place, uint32_t jid,
	const struct p3_guard *guard, struct p3_agent *agent);

#endif
