/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways to move data that the kernel, its settings and the container allow: each is
 * tried, as the library would do it.
 */
#include "info/probe.h"
#include "shm/seg.h"
#include "shm/layout.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <linux/memfd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define YAMA  "/proc/sys/kernel/yama/ptrace_scope"

struct probe {
	bool allowed;
	char why[300];
};

__attribute__((format(printf, 3, 4))) static struct probe answer(
	struct probe *p, bool allowed, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(p->why, sizeof p->why, fmt, args);
	va_end(args);
	p->allowed = allowed;
	return *p;
}

/* Return the number in a file, or -1 if there is no such file or number. */
static long number_in(const char *file)
{
	long n = -1;
	FILE *f = fopen(file, "re");
	if (f && fscanf(f, "%ld", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

/* ---- cross-memory reads ---- */

/* Let a sibling of a process read the process' memory.  Return 0 or an errno. */
static int read_brother(pid_t target, const int *word)
{
	int status, got;
	pid_t reader = fork();
	if (reader < 0)
		return errno;
	if (!reader) {
		struct iovec here = {&got, sizeof got};
		struct iovec there = {(void *)(uintptr_t)word, sizeof got};
		ssize_t n = process_vm_readv(target, &here, 1, &there, 1, 0);
		_exit(n == sizeof got ? 0 : n < 0 ? errno : EIO);
	}
	if (waitpid(reader, &status, 0) < 0)
		return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/* Try a read.  told: the target permits it to descendants of this process, by
 * PR_SET_PTRACER, as yod's ranks do among each other. */
static int try_cma(bool told)
{
	static const int word = 4711;
	int ready[2];
	char done;
	if (pipe2(ready, O_CLOEXEC))
		return errno;
	pid_t target = fork();
	if (!target) {
		if (told)
			(void)prctl(PR_SET_PTRACER, (unsigned long)getppid(), 0, 0, 0);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	int rc = target < 0 ? errno : read(ready[0], &done, 1) == 1 ? 0 : EPIPE;
	rc = rc ? rc : read_brother(target, &word);
	close(ready[0]);
	if (target > 0) {
		kill(target, SIGKILL);
		waitpid(target, NULL, 0);
	}
	return rc;
}

static struct probe probe_cma(void)
{
	struct probe p;
	long scope = number_in(YAMA);
	int rc = try_cma(false);
	if (!rc)
		return answer(&p, true, "process_vm_readv copies long messages");
	if (rc == ENOSYS)
		return answer(&p, false,
			"the kernel has no process_vm_readv "
			"(CONFIG_CROSS_MEMORY_ATTACH)");
	if (scope == 1 && !try_cma(true))
		return answer(&p, true,
			"among ranks of one yod; not among other processes, as " YAMA
			" is 1");
	if (scope > 0)
		return answer(&p, false,
			"%s: " YAMA " is %ld; 0, or 1 under yod, allows "
			"it",
			strerror(rc), scope);
	return answer(&p, false,
		"%s: a filter of system calls, as containers have (Docker: --cap-add "
		"SYS_PTRACE)",
		strerror(rc));
}

/* ---- memory ---- */

/* Try a sealed file that its owner can write, and that others can only read. */
static int try_sealed(void)
{
	int fd = memfd_create("portals-info", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return errno;
	int rc = 0;
	void *own = MAP_FAILED;
	if (ftruncate(fd, P3_PAGE))
		rc = errno;
	if (!rc) {
		own = mmap(NULL, P3_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		rc = own == MAP_FAILED ? errno : 0;
	}
	if (!rc &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE))
		rc = errno;
	if (own != MAP_FAILED)
		munmap(own, P3_PAGE);
	close(fd);
	return rc;
}

static struct probe probe_segments(void)
{
	struct probe p;
	int rc = try_sealed();
	if (rc == EINVAL)
		return answer(&p, false,
			"the kernel cannot seal memory against writing "
			"(Linux 5.1 can)");
	if (rc)
		return answer(&p, false, "memfd_create: %s", strerror(rc));
	return answer(&p, true,
		"shared segments and windows; the shared heap, for yod "
		"--shared-heap and PtlXAlloc");
}

static int try_hugepage(void)
{
	int fd = memfd_create("portals-info", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
	if (fd < 0)
		return errno;
	int rc = ftruncate(fd, (off_t)P3_HUGE) ? errno : 0;
	if (!rc && fallocate(fd, 0, 0, (off_t)P3_HUGE))
		rc = errno;
	close(fd);
	return rc;
}

static struct probe probe_hugepages(void)
{
	struct probe p;
	long all = number_in(PAGES "nr_hugepages");
	long left = number_in(PAGES "free_hugepages");
	int rc = try_hugepage();
	if (!rc)
		return answer(&p, true,
			"%ld of %ld pages of 2 MiB are free (yod --plan "
			"says how many a job wants)",
			left, all);
	if (all < 0)
		return answer(
			&p, false, "the kernel has none of 2 MiB: %s", strerror(rc));
	return answer(&p, false,
		"%s: %ld of %ld pages are free; echo 64 | sudo tee " PAGES "nr_hugepages",
		strerror(rc), left, all);
}

/* ---- others ---- */

static struct probe probe_membarrier(void)
{
	struct probe p;
	const long want = MEMBARRIER_CMD_GLOBAL_EXPEDITED |
			  MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED |
			  MEMBARRIER_CMD_PRIVATE_EXPEDITED |
			  MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
	long has = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	if (has < 0)
		return answer(
			&p, false, "%s: each message pays for a fence", strerror(errno));
	if ((has & want) != want)
		return answer(&p, false,
			"this kernel lacks expedited barriers (Linux 4.16 "
			"has them): each message pays for a fence");
	return answer(&p, true, "sleepers are found without a fence in each message");
}

static struct probe probe_pidfd(void)
{
	struct probe p;
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (fd < 0)
		return answer(&p, false,
			"%s: the end of a process in a domain is seen "
			"within a second, not at once",
			strerror(errno));
	close(fd);
	return answer(&p, true, "the end of a process is seen at once");
}

static void add(json_t *a, const char *name, struct probe p)
{
	json_t *o = json_object();
	json_object_set_new(o, "name", json_string(name));
	json_object_set_new(o, "allowed", json_boolean(p.allowed));
	json_object_set_new(o, "why", json_string(p.why));
	json_array_append_new(a, o);
}

json_t *p3_info_probe(void)
{
	json_t *a = json_array();
	add(a, "segments", probe_segments());
	add(a, "cma", probe_cma());
	add(a, "hugepages", probe_hugepages());
	add(a, "membarrier", probe_membarrier());
	add(a, "pidfd", probe_pidfd());
	return a;
}
