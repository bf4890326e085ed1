/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deny PROGRAM... - run a program for which process_vm_readv fails with EPERM, as it
 * does in many containers and under kernel.yama.ptrace_scope=1.  The exit status is 77
 * if that is impossible here.
 */
#include "../support/deny.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (!deny_call(SYS_process_vm_readv)) {
		perror("seccomp");
		return 77;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
