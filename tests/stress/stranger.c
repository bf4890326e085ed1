/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stranger PID... - lists the actions that the kernel allows this process on other
 * processes, one a line; nothing may be changed for good
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(pid_t pid, const char *what, bool done)
{
	if (done)
		printf("%d %s\n", (int)pid, what);
}

static bool opens(pid_t pid, const char *file, int flags)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	int fd = open(path, flags | O_CLOEXEC);
	char byte;
	bool done = fd >= 0 &&
		    (flags & O_DIRECTORY || read(fd, &byte, 1) >= 0 || errno == EIO);
	if (fd >= 0)
		close(fd);
	return done;
}

static bool takes_descriptor(pid_t pid)
{
	bool any = false;
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	for (int i = 0; pidfd >= 0 && i < 64; i++) {
		int fd = (int)syscall(SYS_pidfd_getfd, pidfd, i, 0);
		any |= fd >= 0;
		if (fd >= 0)
			close(fd);
	}
	if (pidfd >= 0)
		close(pidfd);
	return any;
}

static bool reads(pid_t pid)
{
	char here;
	struct iovec a = {&here, 1}, b = {(void *)0x1000, 1};
	return process_vm_readv(pid, &a, 1, &b, 1, 0) == 1 || errno == EFAULT;
}

static bool traces(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
		return false;
	(void)ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	(void)waitpid(pid, NULL, __WALL);
	(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return true;
}

static bool moves(pid_t pid)
{
	cpu_set_t set[8]; /* 8,192 CPUs: one set is too short for some kernels */
	return sched_getaffinity(pid, sizeof set, set) == 0 &&
	       sched_setaffinity(pid, sizeof set, set) == 0;
}

static void try_all(pid_t pid)
{
	struct rlimit limit;
	/* SIGCONT is allowed within the session */
	tell(pid, "signal", kill(pid, 0) == 0);
	tell(pid, "mem", opens(pid, "mem", O_RDWR));
	tell(pid, "fd", opens(pid, "fd", O_RDONLY | O_DIRECTORY));
	tell(pid, "maps", opens(pid, "maps", O_RDONLY));
	tell(pid, "map_files", opens(pid, "map_files", O_RDONLY | O_DIRECTORY));
	tell(pid, "getfd", takes_descriptor(pid));
	tell(pid, "readv", reads(pid));
	tell(pid, "affinity", moves(pid));
	tell(pid, "limits",
		prlimit(pid, RLIMIT_CORE, NULL, &limit) == 0 &&
			prlimit(pid, RLIMIT_CORE, &limit, NULL) == 0);
	tell(pid, "ptrace", traces(pid));
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		try_all(atoi(argv[i]));
	printf("tried as uid %u\n", (unsigned)getuid());
	return 0;
}
