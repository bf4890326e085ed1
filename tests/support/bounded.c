/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bounded SECONDS COMMAND... - run a test, and end it when it hangs
 *
 * A test that is cut off after SECONDS says where it was (tests/support/cut_off).  The
 * exit status is the command's, or 124 after a cut.
 *
 * With P3_OWN_SHM the command gets a /dev/shm of its own, where the system permits that;
 * users other than root share the machine's, and one such command of a user runs at a
 * time.  The wait for its turn does not count.
 *
 * It runs once for each test, so it has to start in little time.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MARK "P3_BOUNDED"

/* Make an environment variable that tells the test's processes from all others. */
static const char *make_mark(void)
{
	static char mark[80];
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	(void)snprintf(mark, sizeof(mark), MARK "=%d.%lld%09ld", (int)getpid(),
		(long long)t.tv_sec, t.tv_nsec);
	return mark;
}

/* Return 0, or -1 with the reason in errno.  /proc/kallsyms is empty then: libfabric
 * looks through it twice in each process, for something that no test needs. */
static int own_shm(void)
{
	char path[64];
	if (unshare(CLONE_NEWNS) == 0 &&
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777") == 0) {
		(void)mount("/dev/null", "/proc/kallsyms", NULL, MS_BIND, NULL);
		return 0;
	}
	(void)snprintf(path, sizeof(path), "/tmp/portals-shm-%u.lock", getuid());
	int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return lock < 0 ? -1 : flock(lock, LOCK_EX);
}

static pid_t start(const char *mark, char **command)
{
	pid_t child = fork();
	if (child != 0)
		return child;
	if (setenv(MARK, strchr(mark, '=') + 1, 1) == 0)
		(void)execvp(command[0], command);
	(void)fprintf(stderr, "bounded: %s: %s\n", command[0], strerror(errno));
	_exit(1);
}

/* Wait for the end of a child within a limit of seconds; return whether it has ended. */
static int await(pid_t child, int limit, int *status)
{
	struct pollfd end = {pidfd_open(child, 0), POLLIN, 0};
	(void)poll(&end, 1, limit * 1000);
	return waitpid(child, status, WNOHANG) == child;
}

/* Say how the command has ended, and return the status to end with. */
static int tell(int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	(void)printf("bounded: ended by signal %d (%s)\n", WTERMSIG(status),
		strsignal(WTERMSIG(status)));
	return 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	char *end;
	long limit = argc > 2 ? strtol(argv[1], &end, 10) : 0;
	if (limit <= 0 || limit > INT_MAX / 1000 || *end) {
		(void)fprintf(stderr, "usage: bounded SECONDS COMMAND...\n");
		return 1;
	}
	const char *mark = make_mark();
	(void)close_range(3, ~0u, 0);
	if (getenv("P3_OWN_SHM") && own_shm() != 0) {
		perror("bounded: a /dev/shm for this test alone");
		return 1;
	}
	pid_t child = start(mark, argv + 2);
	int status;
	if (child < 0) {
		perror("bounded: fork");
		return 1;
	}
	if (await(child, (int)limit, &status))
		return tell(status);
	(void)execl(P3_CUT_OFF, P3_CUT_OFF, mark, argv[1], (char *)NULL);
	perror("bounded: " P3_CUT_OFF);
	return 124;
}
