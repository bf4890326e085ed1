/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bounded SECONDS COMMAND... - run a test, and end it when it hangs
 *
 * SECONDS is the limit on an idle machine.  While more threads are runnable than there
 * are CPUs, time counts in proportion less, up to ten times the limit.  A test that is
 * cut off says where it was (tests/support/cut_off).  The exit status is the command's,
 * or 124 after a cut.
 *
 * With P3_OWN_SHM the command gets a /dev/shm of its own, where the system permits that;
 * users other than root share the machine's, and one such command of a user runs at a
 * time.  The wait for its turn does not count.
 *
 * It runs once for each test, so it has to start in little time.
 */
#include <errno.h>
#include <fcntl.h>
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

#define TICK_MS 250
#define MOST    10 /* times the limit, whatever else runs */
#define MARK    "P3_BOUNDED"

static double now_s(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Return the number of runnable threads beside this one, or 0 if it is unknown. */
static unsigned runnable(void)
{
	unsigned n = 0;
	FILE *f = fopen("/proc/loadavg", "re");
	if (f) {
		if (fscanf(f, "%*s %*s %*s %u", &n) != 1)
			n = 0;
		(void)fclose(f);
	}
	return n > 0 ? n - 1 : 0;
}

static unsigned count_cpus(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		cpus = CPU_COUNT(&set);
	return cpus > 0 ? (unsigned)cpus : 1;
}

/* Return the part of a CPU that a thread has while others run, 1 at most. */
static double share_of_cpu(void)
{
	unsigned n = runnable(), cpus = count_cpus();
	return n > cpus ? (double)cpus / n : 1;
}

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

/* Return 0, or -1 with the reason in errno. */
static int own_shm(void)
{
	char path[64];
	if (unshare(CLONE_NEWNS) == 0 &&
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777") == 0)
		return 0;
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
static int await(pid_t child, double limit, int *status)
{
	struct pollfd end = {pidfd_open(child, 0), POLLIN, 0};
	double began = now_s(), last = began, used = 0;
	while (used < limit && last - began < MOST * limit) {
		(void)poll(&end, 1, TICK_MS);
		if (waitpid(child, status, WNOHANG) == child)
			return 1;
		double now = now_s();
		used += (now - last) * share_of_cpu();
		last = now;
	}
	return 0;
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
	double limit = argc > 2 ? strtod(argv[1], &end) : 0;
	if (!(limit > 0) || *end) {
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
	if (await(child, limit, &status))
		return tell(status);
	(void)execl(P3_CUT_OFF, P3_CUT_OFF, mark, argv[1], (char *)NULL);
	perror("bounded: " P3_CUT_OFF);
	return 124;
}
