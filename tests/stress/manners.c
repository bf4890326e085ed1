/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * manners CASE - things that a library must not do to its program, and must tolerate
 * from it; under yod, with verified traffic (streams.c) between all ranks meanwhile
 *
 *	signals	no handler is installed, the library's threads block all signals
 *	storm	signals all the time, without SA_RESTART, from PtlInit to PtlFini
 *	forks	fork, posix_spawn, system and popen by a thread
 *	closed	descriptors 0, 1 and 2 are closed before PtlInit
 *	swept	the program closes all descriptors, and opens others in their places
 *	replaced	the program gives the number of one descriptor to its own file
 *	moved	chdir, umask, setgid and setuid after PtlNIInit, and before another one
 *	stack	operations of all kinds by a thread with the smallest stack
 *	pinned	the program's thread is on one CPU, the library's are not
 *	cancel	a thread that is to be cancelled makes calls of all kinds: none is a
 *		cancellation point
 *	refused	the same after the kernel has begun to refuse membarrier
 *	far	with much address space taken, differently in each rank
 *	locked	all memory, also that of later mappings, is locked before PtlInit
 */
#include "stress/streams.h"
#include "shm/atomics.h"
#include "shm/cpuset.h"
#include "support/deny.h"
#include "support/memory.h"
#include "support/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static bool all[S_RANKS];

static void begin(void)
{
	mp_start();
	streams_open(1, all);
	mp_barrier();
}

static void busy(unsigned ms)
{
	streams_round(all, ms);
	streams_rest();
	mp_barrier();
}

/* Open the interface again, with all its objects. */
static void again(void)
{
	mp_barrier();
	mp_ok(PtlNIFini(mp.ni));
	mp_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &mp.ni));
	streams_open(1, all);
	mp_barrier();
}

/* ---- signals ---- */

enum { SIGNALS = 65 };

static void read_table(struct sigaction *table)
{
	memset(table, 0, SIGNALS * sizeof *table);
	for (int i = 1; i < SIGNALS; i++)
		(void)sigaction(i, NULL, &table[i]);
}

static void check_table(const struct sigaction *was)
{
	struct sigaction is[SIGNALS];
	read_table(is);
	for (int i = 1; i < SIGNALS; i++)
		mp_check(is[i].sa_handler == was[i].sa_handler &&
				 is[i].sa_flags == was[i].sa_flags,
			"the action of signal %d has changed", i);
}

/* Check a mask: KILL and STOP cannot be blocked, 32 and 33 are libc's. */
static void check_mask(const char *tid)
{
	const unsigned long long must_not =
		1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) | 3ull << 31;
	unsigned long long mask = 0;
	char line[200];
	snprintf(line, sizeof line, "/proc/self/task/%.20s/status", tid);
	FILE *f = fopen(line, "re");
	while (f && fgets(line, sizeof line, f))
		(void)sscanf(line, "SigBlk: %llx", &mask);
	if (f)
		fclose(f);
	mp_check((mask | must_not) == ~0ull, "thread %s blocks %llx only", tid, mask);
}

static unsigned check_threads(void)
{
	unsigned n = 0;
	struct dirent *e;
	DIR *d = opendir("/proc/self/task");
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && atoi(e->d_name) != getpid()) {
			check_mask(e->d_name);
			n++;
		}
	if (d)
		closedir(d);
	return n;
}

static void signals(void)
{
	struct sigaction was[SIGNALS];
	read_table(was);
	begin();
	check_table(was);
	mp_check(check_threads() >= 2, "where are the library's threads?");
	busy(200);
	check_table(was);
	(void)check_threads();
	again();
	check_table(was);
}

/* ---- storm ---- */

static p3_a32 drops;

static void on_alarm(int number)
{
	(void)number;
	p3_add32(&drops, 1);
}

static void let_it_rain(void)
{
	struct sigaction act = {.sa_handler = on_alarm};
	struct itimerval often = {{0, 150}, {0, 150}};
	mp_check(!sigaction(SIGALRM, &act, NULL) && !setitimer(ITIMER_REAL, &often, NULL),
		"no storm");
}

/* Ask the library until there were many signals: a process without a CPU gets none. */
static void rain_on(void)
{
	struct patience p = patience_begin();
	while (p3_get(&drops) <= 1000) {
		ptlx_stats_t st = {.struct_size = sizeof st};
		mp_check(!patience_is_over(&p), "%u signals only", p3_get(&drops));
		mp_ok(PtlXStats(mp.ni, &st));
	}
}

static void storm(void)
{
	int most;
	let_it_rain();
	for (int i = 0; i < 10; i++) {
		mp_start();
		mp_barrier();
		PtlFini();
		free(mp_pattern);
	}
	mp_ok(PtlInit(&most));
	begin();
	for (int i = 0; i < 5; i++) {
		busy(150);
		again();
	}
	rain_on();
	struct itimerval never = {{0, 0}, {0, 0}};
	(void)setitimer(ITIMER_REAL, &never, NULL);
}

/* ---- forks ---- */

extern char **environ;
static p3_a32 forking;

static void end_well(pid_t child, const char *what)
{
	int status;
	while (waitpid(child, &status, 0) < 0)
		mp_check(errno == EINTR, "%s: no child", what);
	mp_check(status == 0, "%s: status %#x", what, status);
}

/* Fork a child that makes calls and ends in one of three ways. */
static void fork_once(unsigned n)
{
	ptl_sr_value_t value;
	ptl_handle_eq_t eq;
	unsigned rank, size;
	void *block;
	pid_t child = fork();
	mp_check(child >= 0, "fork");
	if (child) {
		end_well(child, "fork");
		return;
	}
	if (PtlNIStatus(mp.ni, PTL_SR_DROP_COUNT, &value) != PTL_NO_INIT ||
		PtlEQAlloc(mp.ni, 4, PTL_EQ_HANDLER_NONE, &eq) != PTL_NO_INIT ||
		PtlGetRank(mp.ni, &rank, &size) != PTL_NO_INIT ||
		PtlXAlloc(8, &block) != PTL_NO_INIT || PtlXBarrier() != PTL_NO_INIT ||
		PtlNIFini(mp.ni) != PTL_NO_INIT)
		_exit(1);
	if (n % 3 == 0)
		execl("/bin/true", "true", (char *)NULL);
	if (n % 3 == 1)
		exit(0);
	_exit(0);
}

static void spawn_once(void)
{
	char *argv[] = {"true", NULL};
	pid_t child;
	mp_check(posix_spawn(&child, "/bin/true", NULL, NULL, argv, environ) == 0,
		"posix_spawn");
	end_well(child, "posix_spawn");
}

static void ask_once(void)
{
	char line[20] = "";
	FILE *f = popen("echo hello", "re");
	mp_check(f && fgets(line, sizeof line, f) && !strcmp(line, "hello\n"), "popen");
	mp_check(pclose(f) == 0, "pclose");
	mp_check(system("exit 3") == 3 << 8, "system");
}

/* Fork until the traffic is over, and three times at least. */
static void *fork_on(void *arg)
{
	unsigned *n = arg;
	while (p3_get(&forking) || *n < 3) {
		fork_once(*n);
		if (*n % 4 == 0)
			spawn_once();
		if (*n % 4 == 2)
			ask_once();
		++*n;
	}
	return NULL;
}

static void forks(void)
{
	pthread_t thread;
	unsigned n = 0;
	begin();
	fflush(NULL);
	p3_set(&forking, 1);
	mp_check(!pthread_create(&thread, NULL, fork_on, &n), "no thread");
	streams_round(all, 1500);
	p3_set(&forking, 0);
	pthread_join(thread, NULL);
	streams_rest();
	mp_barrier();
	busy(100);
}

/* ---- closed ---- */

/* Close the numbers that programs write to without having opened them. */
static void closed(void)
{
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	begin();
	busy(200);
	again();
	busy(100);
	for (int fd = 0; fd < 3; fd++)
		mp_check(fcntl(fd, F_GETFD) < 0, "descriptor %d is the library's", fd);
}

/* ---- swept ---- */

static struct sweep files;

static void check_pipes(void)
{
	int i = sweep_touched(&files);
	mp_check(i < 0, "the library has used pipe %d", i);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Put until an operation with another rank fails, within half a minute. */
static void put_until_it_fails(ptl_handle_md_t md, ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	struct patience p = patience_begin();
	do {
		mp_check(!patience_is_over(&p), "puts go on and on");
		mp_put(md, 0, 8, PTL_NOACK_REQ, (mp.rank + 1) % mp.size, S_FREE, 0, 0);
		mp_check(mp_next_soon(eq, &ev), "a put has no end");
		sleep_ms(10);
	} while (ev.ni_fail_type == PTL_NI_OK);
}

static void swept(void)
{
	static char word[8];
	const char *mode = getenv("PTL3_MODE");
	begin();
	busy(100);
	ptl_handle_eq_t eq = mp_queue(64), more;
	ptl_handle_md_t md = mp_bind(word, sizeof word, eq, 0);
	mp_check(sweep(&files), "%u pipes only", files.n);
	put_until_it_fails(md, eq);
	int rc = PTL_OK; /* larger queues have a file of their own */
	for (unsigned i = 0; i < 64 && rc == PTL_OK; i++)
		rc = PtlEQAlloc(mp.ni, 1 << 13, PTL_EQ_HANDLER_NONE, &more);
	mp_check(rc == PTL_NO_SPACE, "memory of a file that is closed");
	mp_check(PtlXBarrier() == PTL_FAIL, "a barrier with nobody");
	uint64_t before = cpu_ns();
	/* pause: the time over which the CPU time is measured */
	sleep_ms(1500);
	if (!mode || strcmp(mode, "dedicated") != 0)
		mp_check(cpu_ns() - before < 700000000, "a thread spins");
	check_pipes();
	mp_ok(PtlNIFini(mp.ni));
	PtlFini();
	check_pipes();
	printf("# tried: %u descriptors\n", 2 * files.n);
	exit(0);
}

/* ---- replaced ---- */

/* The program gives that number alone to a pipe, or to an eventfd of its own. */
static void replaced(void)
{
	static char word[8];
	begin();
	ptl_handle_eq_t eq = mp_queue(64);
	ptl_handle_md_t md = mp_bind(word, sizeof word, eq, 0);
	int theirs = sweep_find("[eventfd]"), ends[2] = {-1, -1}, left = 0;
	uint64_t value = 0;
	bool is_pipe = mp.rank % 2 == 0;
	mp_check(theirs >= 0, "the library has no eventfd");
	mp_check(pipe(ends) == 0 && write(ends[1], "program", 8) == 8, "no pipe");
	int mine = is_pipe ? ends[0] : eventfd(5, EFD_NONBLOCK);
	mp_check(mine >= 0 && dup2(mine, theirs) == theirs, "no descriptor");
	put_until_it_fails(md, eq);
	mp_check(PtlXBarrier() == PTL_FAIL, "a barrier with nobody");
	mp_ok(PtlNIFini(mp.ni));
	PtlFini();
	mp_check(fcntl(theirs, F_GETFD) >= 0, "descriptor %d is closed", theirs);
	if (is_pipe)
		mp_check(ioctl(theirs, FIONREAD, &left) == 0 && left == 8,
			"%d bytes are left in the pipe", left);
	else
		mp_check(read(theirs, &value, sizeof value) == 8 && value == 5,
			"the eventfd is at %llu", (unsigned long long)value);
	exit(0);
}

/* ---- moved ---- */

static void moved(void)
{
	begin();
	busy(100);
	mp_check(chdir("/") == 0, "chdir");
	(void)umask(0777);
	if (getuid() == 0)
		mp_check(setgid(65534) == 0 && setuid(65534) == 0, "setuid");
	mp_barrier();
	busy(200);
	again();
	busy(200);
}

/* ---- stack ---- */

static void *on_little_stack(void *arg)
{
	(void)arg;
	streams_round(all, 300);
	return NULL;
}

static void stack(void)
{
	pthread_t thread;
	pthread_attr_t attr;
	long least = sysconf(_SC_THREAD_STACK_MIN);
	begin();
	pthread_attr_init(&attr);
	mp_check(pthread_attr_setstacksize(
			 &attr, (size_t)(least > 16384 ? least : 16384)) == 0,
		"no stack of %ld", least);
	mp_check(!pthread_create(&thread, &attr, on_little_stack, NULL), "no thread");
	pthread_join(thread, NULL);
	streams_rest();
	mp_barrier();
	again();
}

/* ---- cancel ---- */

/* Each rank waits in turn until its neighbour, which computes first, puts. */
static void wait_cancelled(void)
{
	static char word[8];
	int which;
	ptl_event_t ev;
	unsigned next = (mp.rank + 1) % mp.size;
	ptl_handle_eq_t eq = mp_queue(16), empty = mp_queue(16);
	ptl_handle_md_t md = mp_bind(word, sizeof word, PTL_EQ_NONE, 0);
	mp_attach(S_FREE, word, sizeof word, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	mp_ok(PtlXBarrier());
	for (unsigned i = 0; i < mp.size; i++) {
		mp_check(PtlEQPoll(&empty, 1, 20, &ev, &which) == PTL_EQ_EMPTY,
			"an event of nobody");
		if (i == mp.rank)
			compute_ms(20);
		else
			mp_ok(PtlEQWait(eq, &ev));
		mp_put(md, 0, sizeof word, PTL_NOACK_REQ, next, S_FREE, 0, 0);
		if (i == mp.rank)
			mp_ok(PtlEQWait(eq, &ev));
	}
	mp_ok(PtlXBarrier());
}

/* Put to a rank without an interface, so that the library asks yod for news of it. */
static void put_to_nobody_cancelled(void)
{
	static char word[8];
	mp_ok(PtlXBarrier());
	if (mp.rank == 0) {
		mp_ok(PtlNIFini(mp.ni));
		mp_ok(PtlXBarrier());
		mp_ok(PtlXBarrier());
		mp_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &mp.ni));
		return;
	}
	ptl_handle_md_t md = mp_bind(word, sizeof word, PTL_EQ_NONE, 0);
	mp_ok(PtlXBarrier());
	mp_put(md, 0, sizeof word, PTL_NOACK_REQ, 0, S_FREE, 0, 0);
	mp_ok(PtlXBarrier());
}

/* Return only if no call was a cancellation point. */
static void *go_on_cancelled(void *arg)
{
	int most;
	void *block;
	(void)pthread_cancel(pthread_self());
	streams_round(all, 100);
	streams_rest();
	wait_cancelled();
	put_to_nobody_cancelled();
	for (int i = 0; i < 3; i++) {
		mp_ok(PtlXBarrier());
		mp_ok(PtlXAlloc(100, &block));
		mp_ok(PtlXFree(block));
		mp_ok(PtlNIFini(mp.ni));
		PtlFini();
		mp_ok(PtlInit(&most));
		mp_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &mp.ni));
	}
	*(bool *)arg = true;
	pthread_testcancel();
	return NULL;
}

static void go_on_and_cancel(void)
{
	pthread_t thread;
	void *end = NULL;
	bool through = false;
	mp_check(!pthread_create(&thread, NULL, go_on_cancelled, &through), "no thread");
	pthread_join(thread, &end);
	mp_check(through, "a call was a cancellation point");
	mp_check(end == PTHREAD_CANCELED, "the thread was not cancelled after");
	streams_open(1, all);
	mp_barrier();
	busy(100);
}

static void cancel(void)
{
	begin();
	busy(100);
	go_on_and_cancel();
}

static void refused(void)
{
	begin();
	busy(100);
	if (!deny_call(SYS_membarrier)) {
		perror("skipped: seccomp");
		exit(77);
	}
	go_on_and_cancel();
}

/* ---- pinned ---- */

static bool read_cpus(pid_t tid, struct p3_cpuset *set)
{
	*set = (struct p3_cpuset){{0}};
	return sched_getaffinity(tid, sizeof *set, (cpu_set_t *)(void *)set->word) == 0;
}

static unsigned check_cpus(pid_t tid, const struct p3_cpuset *want)
{
	char path[64], name[32] = "";
	struct p3_cpuset has;
	snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)tid);
	FILE *f = fopen(path, "re");
	if (f) {
		(void)!fgets(name, sizeof name, f);
		fclose(f);
	}
	if (strncmp(name, "p3nic.", 6))
		return 0;
	mp_check(read_cpus(tid, &has) && p3_cpuset_equal(&has, want),
		"the NIC's thread is pinned as the program's");
	mp_check((unsigned)atoi(name + 6) == mp.id[mp.rank].nid, "its name is %s", name);
	return 1;
}

static void pinned(void)
{
	struct p3_cpuset before;
	struct dirent *e;
	unsigned found = 0;
	mp_check(read_cpus(0, &before), "affinity");
	mp_pin(0);
	begin();
	busy(200);
	DIR *d = opendir("/proc/self/task");
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			found += check_cpus(atoi(e->d_name), &before);
	if (d)
		closedir(d);
	mp_check(found == 1, "%u threads of NICs", found);
}

/* ---- far ---- */

static void say_where(void)
{
	char line[400];
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof line, f))
		if (strstr(line, "p3-host")) {
			printf("at %s", line);
			break;
		}
	if (f)
		fclose(f);
}

static void far(void)
{
	const char *rank = getenv("PTL_MY_RID");
	size_t much = (size_t)(1 + 7 * atoi(rank ? rank : "0")) << 34;
	void *taken = mmap(NULL, much, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	mp_check(taken != MAP_FAILED, "no address space");
	begin();
	say_where();
	busy(300);
}

/* ---- locked ---- */

enum {
	MORE_KIB = 96 << 10,
	MORE_LOCKED_KIB = 512 << 10,
	LOCK_LEAST = 128 << 20, /* of a user with a limit */
	LOCK_MOST = 1 << 30
};

static unsigned long status_kib(const char *key)
{
	unsigned long kib = memory_kib(key);
	mp_check(kib, "%s is unknown", key);
	return kib;
}

/* Lock all memory, with a limit: without one the library's memory counts, too. */
static void lock_all(void)
{
	struct rlimit most;
	mp_check(getrlimit(RLIMIT_MEMLOCK, &most) == 0, "getrlimit");
	if (geteuid() != 0 && most.rlim_cur < LOCK_LEAST) {
		printf("# skipped: ulimit -l is %llu bytes; expected %u or more\n",
			(unsigned long long)most.rlim_cur, LOCK_LEAST);
		exit(77);
	}
	if (most.rlim_cur > LOCK_MOST)
		most.rlim_cur = LOCK_MOST;
	mp_check(setrlimit(RLIMIT_MEMLOCK, &most) == 0, "setrlimit");
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		printf("# skipped: mlockall: %s\n", strerror(errno));
		exit(77);
	}
}

static void locked(void)
{
	lock_all();
	unsigned long before = status_kib("VmRSS");
	begin();
	busy(100);
	again();
	fork_once(0);
	busy(100);
	unsigned long resident = status_kib("VmHWM"), counted = status_kib("VmLck");
	mp_check(resident < before + MORE_KIB, "%lu KiB are resident, %lu before PtlInit",
		resident, before);
	mp_check(counted < before + MORE_LOCKED_KIB, "%lu KiB count as locked", counted);
}

/* ---- all ---- */

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*scene)(void);
	} scenes[] = {{"signals", signals}, {"storm", storm}, {"forks", forks},
		{"closed", closed}, {"swept", swept}, {"replaced", replaced},
		{"moved", moved}, {"stack", stack}, {"pinned", pinned},
		{"cancel", cancel}, {"refused", refused}, {"far", far},
		{"locked", locked}};
	const char *what = argc > 1 ? argv[1] : "";
	bool found = false;
	memset(all, true, sizeof all);
	for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
		if (!strcmp(scenes[i].name, what)) {
			found = true;
			scenes[i].scene();
		}
	mp_check(found, "manners: what is %s?", what);
	printf("# tried: %llu messages\n", (unsigned long long)streams.messages);
	mp_end();
	return 0;
}
