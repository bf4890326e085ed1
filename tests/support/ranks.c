/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver of statements that several processes run together, and those processes. */
#include "ranks.h"

#include "asleep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS_MOST = 300, LOOKS_AWAKE = 1000 };

/* State that the driver and the processes of a test share. */
struct room {
	struct meeting meeting, between;
	uint32_t size, rows_n; /* processes; statements that they run */
	int rows[ROWS_MOST];
	_Atomic uint32_t finished; /* of the statements, if there are several */
	_Atomic uint32_t came, said, failed, skipped;
	_Atomic int pid[RANKS_MOST];
	_Atomic uint32_t done[RANKS_MOST], may_die[RANKS_MOST];
	_Atomic uint32_t told[RANKS_MOST];
	char tale[RANKS_MOST][TALES_MOST][TALE];
	_Atomic uint64_t word[WORDS];
	char reason[120];
	_Alignas(64) unsigned char shared[SHARED];
};

static struct room *room;
static char room_path[64], program_path[PATH_MAX];
static bool is_helper;
static bool failed_firmly;

const char *helper_argument;

struct me me;
void (*ranks_progress)(void);

/* ---- failure ---- */

void suite_who(char *text, size_t n)
{
	snprintf(text, n, "%s %u of %u", is_helper ? "helper of rank" : "rank", me.rank,
		me.size);
}

bool suite_failed(bool can_give_up)
{
	(void)can_give_up; /* all processes of this test end */
	room->failed = 1;
	return false;
}

void skip(const char *reason)
{
	snprintf(room->reason, sizeof room->reason, "%s", reason);
	room->skipped = 1;
	_exit(0);
}

/* ---- waits ---- */

void look_at(const char *file, int line, struct patience *p, const char *what)
{
	if (room->failed || room->skipped)
		_exit(1); /* another process has said why */
	if (ranks_progress)
		ranks_progress();
	if (patience_is_over(p))
		check_failed(file, line, "this does not come: %s", what);
	if (++p->looks > LOOKS_AWAKE)
		sleep_us(50); /* pause: between two looks, so that others run */
}

static bool asks_for_one_cpu(void)
{
	const char *cpus = getenv("SUITE_CPUS");
	return cpus && strcmp(cpus, "1") == 0;
}

bool on_one_cpu(void)
{
	return asks_for_one_cpu() || sysconf(_SC_NPROCESSORS_ONLN) < 2;
}

void use_one_cpu(void)
{
	cpu_set_t had, one;
	CPU_ZERO(&had);
	(void)sched_getaffinity(0, sizeof had, &had);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &had)) {
			CPU_ZERO(&one);
			CPU_SET(i, &one);
			(void)sched_setaffinity(0, sizeof one, &one);
			return;
		}
}

unsigned long many(unsigned long full)
{
	const char *text = getenv("SUITE_SHARE");
	unsigned long share = text ? strtoul(text, NULL, 10) : 1, n;
	n = share ? full / share : full;
	return n < 20 ? (full < 20 ? full : 20) : n;
}

/* ---- the room ---- */

static void look_at_barrier(struct patience *p)
{
	look_at(__FILE__, __LINE__, p, "all processes at the barrier");
}

void barrier(void)
{
	meeting_come(
		&room->meeting, me.size, look_at_barrier, ranks_progress ? 100 : 20000);
}

void say(void)
{
	room->said++;
}

void hear(unsigned n)
{
	AWAIT(room->said >= n);
}

void set_word(unsigned i, uint64_t value)
{
	room->word[i] = value;
}

uint64_t word(unsigned i)
{
	return room->word[i];
}

void add_word(unsigned i, uint64_t value)
{
	room->word[i] += value;
}

void await_word(unsigned i, uint64_t least)
{
	AWAIT(room->word[i] >= least);
}

void tell(const void *tale, size_t n)
{
	unsigned at = room->told[me.rank];
	CHECK(n <= TALE);
	memcpy(room->tale[me.rank][at % TALES_MOST], tale, n);
	room->told[me.rank] = at + 1;
}

unsigned tales_told(void)
{
	return room->told[me.rank];
}

const void *told(unsigned rank, unsigned n)
{
	AWAIT(room->told[rank] > n);
	return room->tale[rank][n % TALES_MOST];
}

unsigned char *shared(void)
{
	return room->shared;
}

void may_die(unsigned rank)
{
	room->may_die[rank] = 1;
}

int pid_of(unsigned rank)
{
	AWAIT(room->pid[rank] != 0);
	return room->pid[rank];
}

void signal_rank(unsigned rank, int number)
{
	int pid = pid_of(rank);
	if (number == SIGKILL)
		may_die(rank);
	CHECK(kill(pid, number) == 0);
	if (number == SIGSTOP)
		AWAIT(process_has_state(pid, 'T'));
	if (number == SIGKILL)
		await_end(rank);
}

void await_end(unsigned rank)
{
	int pid = pid_of(rank);
	AWAIT(thread_state(pid) == 0 || thread_state(pid) == 'Z');
}

void leave(void)
{
	may_die(me.rank);
	room->done[me.rank] = 1;
	exit(0);
}

/* ---- processes ---- */

static struct room *map_room(const char *path, int flags)
{
	return map_shared(
		open(path, O_RDWR | O_CLOEXEC | flags, 0600), sizeof(struct room));
}

static void name_domain(char *text, size_t n)
{
	snprintf(text, n, "%s", check_base_name(room_path));
}

int spawn(const char *helper, const char *argument, const char *domain)
{
	char number[12], rank[12], own[64];
	snprintf(number, sizeof number, "%d", suite_now->number);
	snprintf(rank, sizeof rank, "%u", me.rank);
	name_domain(own, sizeof own);
	pid_t parent = getpid(), pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		(void)unsetenv("PTL3_YOD_FD");
		(void)setenv("PTL3_DOMAIN", domain ? domain : own, 1);
		execl("/proc/self/exe", "helper", "--helper", number, rank, helper,
			argument ? argument : "", (char *)NULL);
		_exit(126);
	}
	return pid;
}

void join(int pid)
{
	int status = 0;
	pid_t got = 0;
	struct patience p = patience_begin();
	while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
		look_at(__FILE__, __LINE__, &p, "the end of a helper");
		sleep_us(100);
	}
	CHECK_EQ(got, pid);
	if (status != 0)
		check_failed(__FILE__, __LINE__, "a helper ends with status %#x",
			(unsigned)status);
}

_Noreturn static void helper_main(char **argv)
{
	suite_now = statement_of(atoi(argv[2]));
	me.rank = (unsigned)atoi(argv[3]);
	me.size = suite_now->processes;
	is_helper = true;
	room = map_room(room_path, 0);
	helper_argument = argv[5];
	exit(scene_run(argv[4]) ? 0 : 125);
}

static bool a_rank_may_die(void)
{
	for (unsigned i = 0; i < me.size; i++)
		if (room->may_die[i])
			return true;
	return false;
}

static void come_between(void)
{
	meeting_come(&room->between, room->size, look_at_barrier, 20000);
}

/* Go on to the next statement when all processes are done with this one. */
static void finish_row(unsigned row)
{
	suite_free();
	come_between();
	if (me.rank == 0) {
		room->said = 0;
		for (unsigned i = 0; i < WORDS; i++)
			room->word[i] = 0;
		for (unsigned i = 0; i < RANKS_MOST; i++)
			room->told[i] = 0;
		memset(room->shared, 0, sizeof room->shared);
		room->finished = row + 1;
	}
	come_between();
}

/* Run a statement's function as one of its processes. */
static void run_row(unsigned row)
{
	suite_now = statement_of(room->rows[row]);
	me.size = suite_now->processes;
	me.is_client = me.rank == 0;
	me.is_server = me.rank == 1;
	if (me.rank < me.size) {
		suite_now->fn();
		if (!a_rank_may_die() && me.size > 1)
			barrier();
		rank_ends();
	}
	if (room->rows_n > 1)
		finish_row(row);
}

_Noreturn static void rank_main(void)
{
	room = map_room(room_path, 0);
	me.rank = room->came++;
	if (me.rank >= room->size)
		exit(4);
	room->pid[me.rank] = getpid();
	for (unsigned i = 0; i < room->rows_n; i++)
		run_row(i);
	room->done[me.rank] = 1;
	exit(0);
}

/* ---- the driver ---- */

static pid_t started[RANKS_MOST];
static unsigned started_n;

static bool by_hand(void)
{
	const char *by = getenv("SUITE_BY");
	return by && strcmp(by, "hand") == 0;
}

/* Return the program that starts ranks on several hosts, or NULL. */
static const char *by_launcher(void)
{
	const char *by = getenv("SUITE_BY");
	return by && by[0] == '/' ? by : NULL;
}

_Noreturn static void exec_on_hosts(const char *launcher, const char *number)
{
	enum { HOSTS = 3 };
	char count[12], each[12], path[80];
	unsigned n = room->size;
	snprintf(count, sizeof count, "%u", n);
	snprintf(each, sizeof each, "%u", (n + HOSTS - 1) / HOSTS);
	snprintf(path, sizeof path, "SUITE_ROOM=%s", room_path);
	execl(launcher, launcher, "-n", count, "-p", each, "-x", path, "-x",
		"PTL3_LOG=info", program_path, "--rank", number, (char *)NULL);
	_exit(126);
}

static void exec_ranks(int number)
{
	char count[12], text[12], limit[24], domain[64];
	const char *yod = getenv("P3_YOD"), *most = getenv("P3_LIMIT");
	snprintf(count, sizeof count, "%u", room->size);
	snprintf(text, sizeof text, "%d", number);
	snprintf(limit, sizeof limit, "%s", most ? most : "3000");
	if (by_launcher())
		exec_on_hosts(by_launcher(), text);
	name_domain(domain, sizeof domain);
	(void)setenv("PTL3_DOMAIN_NODES", "128", 1);
	bool with_domain = by_hand() || (suite_now->flags & DOMAIN);
	(void)setenv("PTL3_DOMAIN", with_domain ? domain : "none", 1);
	if (by_hand())
		execl("/proc/self/exe", "rank", "--rank", text, (char *)NULL);
	else if (with_domain)
		execlp(yod, "yod", "--keep-going", "--timeout", limit, "--domain", domain,
			"-sz", count, program_path, "--rank", text, (char *)NULL);
	else
		execlp(yod, "yod", "--keep-going", "--timeout", limit, "-sz", count,
			program_path, "--rank", text, (char *)NULL);
	_exit(126);
}

static void start_ranks(int number)
{
	started_n = by_hand() ? room->size : 1;
	for (unsigned i = 0; i < started_n; i++) {
		started[i] = fork();
		if (started[i] < 0)
			exit(3);
		if (started[i] == 0)
			exec_ranks(number);
	}
}

/* Return true if all processes of the test have ended. */
static bool have_ended(bool wait)
{
	bool all = true;
	for (unsigned i = 0; i < started_n; i++) {
		if (started[i] && waitpid(started[i], NULL, wait ? 0 : WNOHANG) != 0)
			started[i] = 0;
		all &= started[i] == 0;
	}
	return all;
}

static void show_stacks(void)
{
	for (unsigned i = 0; i < RANKS_MOST && i < 8; i++) {
		char command[200];
		if (!room->pid[i] || room->done[i])
			continue;
		snprintf(command, sizeof command,
			"timeout 20s gdb -nx -batch -p %d -ex 'thread apply all "
			"backtrace 12' "
			"2>/dev/null </dev/null | grep -E '^(#|Thread)' | head -60 >&2",
			room->pid[i]);
		fprintf(stderr, "# rank %u, state %c:\n", i, thread_state(room->pid[i]));
		if (system(command) != 0)
			fprintf(stderr, "# no gdb\n");
	}
}

/* Return true if this is a process of this test: the number of a rank that has died may
 * belong to another program by now. */
static bool is_of_test(int pid)
{
	static char text[1 << 17];
	char path[40], mark[80];
	snprintf(path, sizeof path, "/proc/%d/environ", pid);
	snprintf(mark, sizeof mark, "SUITE_ROOM=%s", room_path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof text);
	close(fd);
	return n > 0 && memmem(text, (size_t)n, mark, strlen(mark) + 1);
}

static void end_all(void)
{
	for (unsigned i = 0; i < RANKS_MOST; i++)
		if (room->pid[i] && !room->done[i] && is_of_test(room->pid[i]))
			(void)kill(room->pid[i], SIGKILL);
	for (unsigned i = 0; i < started_n && by_hand(); i++)
		if (started[i])
			(void)kill(started[i], SIGKILL);
	struct patience p = patience_begin();
	while (!have_ended(false) && !patience_is_over(&p))
		sleep_us(1000);
	for (unsigned i = 0; i < started_n; i++)
		if (started[i])
			(void)kill(started[i], SIGKILL);
	(void)have_ended(true);
}

/* Fail if a process has ended that should not, or at the end has never begun. */
static void look_at_ranks(bool at_end)
{
	for (unsigned i = 0; i < room->size; i++) {
		char state = room->pid[i] ? thread_state(room->pid[i]) : '-';
		bool gone = at_end || state == 0 || state == 'Z';
		if (!gone || room->done[i] || room->may_die[i] || room->failed ||
			room->skipped)
			continue;
		fprintf(stderr, "# %d %s: rank %u ends early\n", suite_now->number,
			suite_now->name, i);
		room->failed = 1;
	}
}

/* Return true if a statement's processes cannot be one job on several hosts. */
static bool is_for_one_host(void)
{
	return by_launcher() && suite_now->flags & DOMAIN;
}

/* Wait for the end of all processes, or for the first failure. */
static void watch_processes(void)
{
	struct patience p = patience_times(4);
	uint32_t finished = 0;
	while (!have_ended(false) && !room->failed && !room->skipped) {
		if (finished != room->finished && room->finished < room->rows_n) {
			finished = room->finished;
			suite_now = statement_of(room->rows[finished]);
			p = patience_times(4);
		}
		if (patience_is_over(&p)) {
			fprintf(stderr, "# %d %s: does not end\n", suite_now->number,
				suite_now->name);
			show_stacks();
			room->failed = 1;
		}
		look_at_ranks(false);
		sleep_us(500);
	}
}

/* Run all processes of statements; return true if none of them fails. */
static bool run_processes(void)
{
	if (is_for_one_host()) {
		room->skipped = 1;
		snprintf(room->reason, sizeof room->reason, "one host");
		return true;
	}
	start_ranks(suite_now->number);
	watch_processes();
	look_at_ranks(true);
	end_all();
	return !room->failed;
}

/* Run statements in the same processes, up to one that fails or is left out; return how
 * many have run. */
static unsigned run_rows(const struct statement *const *rows, unsigned n)
{
	room = map_room(room_path, O_CREAT | O_TRUNC);
	room->rows_n = n;
	for (unsigned i = 0; i < n; i++) {
		room->rows[i] = rows[i]->number;
		if (rows[i]->processes > room->size)
			room->size = rows[i]->processes;
	}
	suite_now = rows[0];
	uint64_t began = now_ns();
	bool good = run_processes();
	unsigned done = room->finished;
	for (unsigned i = 0; i < done; i++) {
		suite_now = rows[i];
		suite_report(true, NULL);
	}
	if (done < n) {
		suite_now = rows[done++];
		suite_report(good, room->skipped ? room->reason : NULL);
		failed_firmly |= !good && !(suite_now->flags & WEAK);
	}
	if (getenv("SUITE_TIMES"))
		printf("# %d ms\n", (int)((now_ns() - began) / 1000000));
	fflush(stdout);
	(void)munmap(room, sizeof *room);
	return done;
}

/* Statements that run together, behind the others. */
static const struct statement *rows[ROWS_MOST];
static unsigned rows_n;

/* On several hosts each has a job of its own: a process there can use the library only
 * once all processes of its job begin to, and a statement may need fewer than others. */
static void run(const struct statement *s)
{
	if (suite.together && !by_launcher() && !(s->flags & (DOMAIN | ALONE)))
		rows[rows_n++] = s;
	else
		(void)run_rows(&s, 1);
}

static void choose_room(void)
{
	if (readlink("/proc/self/exe", program_path, sizeof program_path - 1) < 0)
		exit(3);
	/* Hosts share the machine's files, and no other memory. */
	snprintf(room_path, sizeof room_path, "%s/%.40s.%d",
		by_launcher() ? "/tmp" : "/dev/shm", check_base_name(program_path),
		(int)getpid());
	(void)setenv("SUITE_ROOM", room_path, 1);
}

int main(int argc, char **argv)
{
	const char *path = getenv("SUITE_ROOM");
	if (path)
		snprintf(room_path, sizeof room_path, "%s", path);
	if (argc == 3 && strcmp(argv[1], "--rank") == 0)
		rank_main();
	if (argc == 6 && strcmp(argv[1], "--helper") == 0)
		helper_main(argv);
	if (!by_hand() && !by_launcher() && !getenv("P3_YOD")) {
		fprintf(stderr, "P3_YOD, the path of yod, is not set\n");
		return 2;
	}
	if (!suite_plan(argc, argv, true))
		return 2;
	choose_room();
	if (asks_for_one_cpu())
		use_one_cpu();
	suite_run(argc, argv, run);
	for (unsigned i = 0; i < rows_n;)
		i += run_rows(rows + i, rows_n - i);
	(void)unlink(room_path);
	return failed_firmly;
}

/* ---- data ---- */

enum { PATTERN = 1 << 17, CUTS = 1 << 16 };

const unsigned char *pattern(uint64_t seed)
{
	static unsigned char bytes[PATTERN];
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static _Atomic bool ready;
	(void)once;
	if (!ready) { /* all threads write the same bytes */
		for (size_t i = 0; i < PATTERN; i += 8) {
			uint64_t x = mix(i);
			memcpy(bytes + i, &x, 8);
		}
		ready = true;
	}
	return bytes + mix(seed) % CUTS;
}

bool is_pattern(const void *at, size_t length, uint64_t seed)
{
	for (size_t i = 0; i < length; i += CUTS, seed++) {
		size_t n = length - i < CUTS ? length - i : CUTS;
		if (memcmp((const char *)at + i, pattern(seed), n) != 0)
			return false;
	}
	return true;
}

void fill(void *at, size_t length, uint64_t seed)
{
	for (size_t i = 0; i < length; i += CUTS, seed++)
		memcpy((char *)at + i, pattern(seed),
			length - i < CUTS ? length - i : CUTS);
}

void check_bytes_at(
	const char *file, int line, const void *at, size_t length, uint64_t seed)
{
	const unsigned char *bytes = at;
	if (is_pattern(at, length, seed))
		return;
	for (size_t i = 0; i < length; i++) {
		unsigned char want = pattern(seed + i / CUTS)[i % CUTS];
		if (bytes[i] != want)
			check_failed(file, line, "byte %zu of %zu is %#x, not %#x", i,
				length, bytes[i], want);
	}
	check_failed(file, line, "the bytes change while they are compared");
}
