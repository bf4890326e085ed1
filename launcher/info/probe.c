/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CPU, the rules by which bytes are moved, and the ways to move data that the kernel,
 * its settings and the container allow: each is tried, as the library would do it.
 */
#include "launcher/info/info.h"
#include "nic/proto/proto.h"
#include "nic/xfer/movers.h"
#include "shm/seg.h"
#include "shm/layout.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <linux/membarrier.h>
#include <linux/memfd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define YAMA  "/proc/sys/kernel/yama/ptrace_scope"

/* The features of the CPU that memcpy, or the kernel's copy, chooses by. */
static const char *const cpu_features[] = {"erms", "fsrm", "avx2", "avx512f"};

/* Return the value of a line "name : value" of /proc/cpuinfo, or NULL. */
static char *cpu_value_of(char *line, const char *name)
{
	size_t k = strlen(name);
	char *colon = strchr(line, ':');
	if (strncmp(line, name, k) || strspn(line + k, " \t") + line + k != colon)
		return NULL;
	line[strcspn(line, "\n")] = 0;
	return colon + 1 + strspn(colon + 1, " ");
}

/* List those words of flags that are features. */
static json_t *cpu_list_features(char *flags)
{
	json_t *a = json_array();
	char *next = NULL;
	for (char *word = strtok_r(flags, " ", &next); word;
		word = strtok_r(NULL, " ", &next))
		for (size_t i = 0; i < sizeof cpu_features / sizeof *cpu_features; i++)
			if (!strcmp(word, cpu_features[i]))
				json_array_append_new(a, json_string(word));
	return a;
}

static void cpu_take_line(json_t *o, char *line)
{
	static const char *const names[][2] = {
		{"vendor_id", "vendor"}, {"model name", "model_name"}};
	static const char *const numbers[][2] = {
		{"cpu family", "family"}, {"model", "model"}};
	char *value;
	for (int i = 0; i < 2; i++) {
		if ((value = cpu_value_of(line, names[i][0])))
			json_object_set_new(o, names[i][1], json_string(value));
		if ((value = cpu_value_of(line, numbers[i][0])))
			json_object_set_new(
				o, numbers[i][1], json_integer(strtoll(value, NULL, 10)));
	}
	if ((value = cpu_value_of(line, "flags")))
		json_object_set_new(o, "features", cpu_list_features(value));
}

json_t *p3_info_cpu(void)
{
	char *line = NULL;
	size_t room = 0;
	json_t *o = json_pack("{s:n, s:n, s:n, s:n, s:[]}", "vendor", "family", "model",
		"model_name", "features");
	FILE *f = fopen("/proc/cpuinfo", "re");
	while (f && getline(&line, &room, f) > 0 && *line != '\n') /* the first CPU */
		cpu_take_line(o, line);
	free(line);
	if (f)
		fclose(f);
	json_object_set_new(o, "copy",
		json_sprintf("memcpy of libc %s, which chooses its loop by the CPU",
			gnu_get_libc_version()));
	return o;
}

json_t *p3_info_movers(void)
{
	return json_pack("{s:o, s:o, s:o}", "heap",
		json_sprintf("where the bytes lie in a shared heap; puts above %u bytes",
			P3_EAGER_MOST_HEAP),
		"cma",
		json_sprintf("puts above %u bytes, or above %u where copies took less "
			     "time lately; slices of %u to %u KiB, of the length "
			     "that took the least time lately, up to %u us each "
			     "(ptlstat: slice_bytes)",
			P3_EAGER_MOST, P3_EAGER_MOST_PAST, P3_SLICE_LEAST >> 10,
			P3_SLICE_MOST >> 10, P3_SLICE_NS / 1000),
		"window",
		json_string("instead of cma where that took clearly less time lately, or "
			    "where cma is not allowed"));
}

/* ---- probes ---- */

__attribute__((format(printf, 3, 4))) static json_t *probe_answer(
	const char *name, bool allowed, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	json_t *why = json_vsprintf(fmt, args);
	va_end(args);
	return json_pack("{s:s, s:b, s:o}", "name", name, "allowed", allowed, "why", why);
}

/* Return the number in a file, or -1 if there is no such file or number. */
static long probe_number_in(const char *file)
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
static int probe_read_brother(pid_t target, const int *word)
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
static int probe_try_cma(bool told)
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
	rc = rc ? rc : probe_read_brother(target, &word);
	close(ready[0]);
	if (target > 0) {
		kill(target, SIGKILL);
		waitpid(target, NULL, 0);
	}
	return rc;
}

static json_t *probe_cma(void)
{
	long scope = probe_number_in(YAMA);
	int rc = probe_try_cma(false);
	if (!rc)
		return probe_answer("cma", true, "process_vm_readv copies long messages");
	if (rc == ENOSYS)
		return probe_answer("cma", false,
			"the kernel has no process_vm_readv "
			"(CONFIG_CROSS_MEMORY_ATTACH)");
	if (scope == 1 && !probe_try_cma(true))
		return probe_answer("cma", true,
			"among ranks of one yod; not among other processes, as " YAMA
			" is 1");
	if (scope > 0)
		return probe_answer("cma", false,
			"%s: " YAMA " is %ld; 0, or 1 under yod, allows it", strerror(rc),
			scope);
	return probe_answer("cma", false,
		"%s: a filter of system calls, as containers have (Docker: --cap-add "
		"SYS_PTRACE)",
		strerror(rc));
}

/* ---- memory ---- */

/* Try a sealed file that its owner can write, and that others can only read. */
static int probe_try_sealed(void)
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

static json_t *probe_segments(void)
{
	int rc = probe_try_sealed();
	if (rc == EINVAL)
		return probe_answer("segments", false,
			"the kernel cannot seal memory against writing (Linux 5.1 can)");
	if (rc)
		return probe_answer("segments", false, "memfd_create: %s", strerror(rc));
	return probe_answer("segments", true,
		"shared segments and windows; the shared heap, for yod --shared-heap and "
		"PtlXAlloc");
}

static int probe_try_hugepage(void)
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

static json_t *probe_hugepages(void)
{
	long all = probe_number_in(PAGES "nr_hugepages");
	long left = probe_number_in(PAGES "free_hugepages");
	int rc = probe_try_hugepage();
	if (!rc)
		return probe_answer("hugepages", true,
			"%ld of %ld pages of 2 MiB are free (yod --plan says how many a "
			"job wants)",
			left, all);
	if (all < 0)
		return probe_answer("hugepages", false,
			"the kernel has none of 2 MiB: %s", strerror(rc));
	return probe_answer("hugepages", false,
		"%s: %ld of %ld pages are free; echo 64 | sudo tee " PAGES "nr_hugepages",
		strerror(rc), left, all);
}

/* ---- others ---- */

static json_t *probe_membarrier(void)
{
	const long want = MEMBARRIER_CMD_GLOBAL_EXPEDITED |
			  MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED |
			  MEMBARRIER_CMD_PRIVATE_EXPEDITED |
			  MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
	long has = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	if (has < 0)
		return probe_answer("membarrier", false,
			"%s: each message pays for a fence", strerror(errno));
	if ((has & want) != want)
		return probe_answer("membarrier", false,
			"this kernel lacks expedited barriers (Linux 4.16 has them): "
			"each message pays for a fence");
	return probe_answer(
		"membarrier", true, "sleepers are found without a fence in each message");
}

static json_t *probe_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (fd < 0)
		return probe_answer("pidfd", false,
			"%s: the end of a process in a domain is seen within a second, "
			"not at once",
			strerror(errno));
	close(fd);
	return probe_answer("pidfd", true, "the end of a process is seen at once");
}

json_t *p3_info_probe(void)
{
	return json_pack("[o, o, o, o, o]", probe_segments(), probe_cma(),
		probe_hugepages(), probe_membarrier(), probe_pidfd());
}
