/* SPDX-License-Identifier: BSD-3-Clause */
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
 * threads, since a forked child has only the thread that forked.  There is no state but
 * that of the two processes.
 */
#ifndef P3_LAUNCHER_GUARD_H
#define P3_LAUNCHER_GUARD_H

/* Duties of the guard when yod has ended. */
struct p3_guard_duty {
	int grace_ms; /* longest time for children to end, before it kills them */
	void (*last)(void *arg); /* called last; or NULL */
	void *arg;
};

struct p3_guard {
	int alive_fd; /* at its end of file the guard is gone */
	int stdin_fd; /* standard input of rank 0 */
};

/*
 * Fork: this process becomes the guard, its child yod.  Return 0 in the child, or -errno
 * if there is no child.  The guard does not return: it exits with the child's status.
 */
int p3_guard_split(const struct p3_guard_duty *duty, struct p3_guard *guard_out);

#endif
