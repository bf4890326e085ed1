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
 */
#ifndef P3_LAUNCHER_GUARD_H
#define P3_LAUNCHER_GUARD_H

struct p3_guard {
	int alive_fd; /* at its end of file the guard is gone */
	int stdin_fd; /* standard input of rank 0 */
};

/*
 * Split into guard and yod.  The call returns in the child only (0, or -errno without
 * having split); the guard exits with the status of the child.
 */
int p3_guard_split(struct p3_guard *guard_out);

#endif
