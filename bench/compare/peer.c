/* SPDX-License-Identifier: BSD-3-Clause */
/* The common functions of the programs of bench/compare. */
#include "peer.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

const char *peer_program = "peer";
static const char *own_name;
static bool tails; /* p99 is wanted, too */
unsigned peer_rank;
uint64_t peer_last_round;
static double p99; /* of the rounds that timed() has timed one by one */
pid_t peer_child[PEER_NODES];

void peer_die(const char *fmt, ...)
{
	char line[300];
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	fprintf(stderr, "%s: %s\n", peer_program, line);
	exit(1);
}

void *peer_allocate(size_t bytes)
{
	size_t whole = (bytes + 4095) / 4096 * 4096;
	void *p = aligned_alloc(4096, whole ? whole : 4096);
	if (!p)
		peer_die("no memory for %zu bytes; expected that they fit; use smaller "
			 "sizes",
			bytes);
	memset(p, 0, whole);
	return p;
}

void *peer_share(size_t bytes)
{
	void *p = mmap(
		NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		peer_die("no shared memory of %zu bytes: %s", bytes, strerror(errno));
	return p;
}

/* Return the CPUs that this process had at its first call. */
static const struct cpus *cpus_at_start(void)
{
	static struct cpus at_start;
	static bool known;
	if (!known && !cpus_read(&at_start))
		peer_die("the CPUs cannot be asked for: %s", strerror(errno));
	known = true;
	return &at_start;
}

unsigned peer_cpus(void)
{
	return cpus_count(cpus_at_start());
}

void peer_pin(unsigned rank)
{
	int cpu = cpus_nth(cpus_at_start(), rank);
	if (!cpus_pin(cpu))
		peer_die("cannot be pinned to CPU %d: %s", cpu, strerror(errno));
}

/* ---- rounds ---- */

/* Plan as many rounds as portalperf does; a window is a round of 64 messages. */
static struct peer_plan plan_of(bool quick, bool windows, uint64_t bytes)
{
	uint64_t rounds = quick ? 20 : bench_usual_rounds(bytes);
	rounds = windows ? rounds / 16 + 1 : rounds;
	uint64_t batches = rounds < PEER_BATCHES ? rounds : PEER_BATCHES;
	return (struct peer_plan){.warm = rounds / 10 + 1,
		.batches = batches,
		.each = rounds / batches,
		.singles = !tails                   ? 0
			   : rounds / batches < 128 ? rounds / batches
						    : 128};
}

static uint64_t plan_rounds(const struct peer_plan *p)
{
	return p->warm + p->batches * (p->each + p->singles);
}

/* Time rounds in batches, and return the median of a round, in ns. */
static double timed(const struct peer_plan *p, peer_rounds *rounds, uint64_t x)
{
	double ns[PEER_BATCHES];
	double *single = peer_allocate(p->batches * p->singles * sizeof *single);
	uint64_t done = p->warm, n = 0;
	rounds(x, 0, p->warm);
	for (uint64_t b = 0; b < p->batches; b++, done += p->each) {
		double t = bench_now_ns();
		rounds(x, done, p->each);
		ns[b] = (bench_now_ns() - t) / (double)p->each;
		for (uint64_t i = 0; i < p->singles; i++, done++) {
			t = bench_now_ns();
			rounds(x, done + p->each, 1);
			single[n++] = bench_now_ns() - t;
		}
	}
	p99 = bench_stat_of(single, n).p99;
	free(single);
	return bench_stat_of(ns, p->batches).p50;
}

static double began[PEER_STEPS + 1];
static bool looks;

void peer_step(enum peer_step step)
{
	if (looks)
		began[step] = bench_now_ns();
}

/* Run rounds without bytes, and return the median of a step, in ns. */
static double step_of(const struct peer_plan *p, peer_rounds *rounds, uint64_t step)
{
	uint64_t all = plan_rounds(p), n = 0;
	double *ns = peer_allocate(all * sizeof *ns);
	looks = true;
	for (uint64_t i = 0; i < all; i++) {
		rounds(0, i, 1);
		if (i >= p->warm)
			ns[n++] = began[step + 1] - began[step];
	}
	looks = false;
	double median = bench_stat_of(ns, n).p50;
	free(ns);
	return median;
}

/* ---- processes that are copies of this one ---- */

static struct job {
	_Alignas(128) _Atomic unsigned ready; /* nodes that have started */
	_Atomic unsigned done;                /* nodes that did all their rounds */
} * job;

static void on_child_end(int sig)
{
	static const char line[] = ": a process of a pattern has ended; expected that "
				   "all do all their rounds\n";
	(void)sig;
	(void)!write(STDERR_FILENO, peer_program, strlen(peer_program));
	(void)!write(STDERR_FILENO, line, sizeof line - 1);
	_exit(1);
}

/* If alive is true, make this process exit with an error line as soon as a child ends: it
 * would wait for that child for ever.  If alive is false, end this rule. */
static void expect_children(bool alive)
{
	struct sigaction act = {
		.sa_handler = alive ? on_child_end : SIG_DFL, .sa_flags = SA_NOCLDSTOP};
	sigset_t chld;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigaction(SIGCHLD, &act, NULL);
	sigprocmask(SIG_UNBLOCK, &chld, NULL);
}

/* Count this node, and wait until there are so many. */
static void count_up(_Atomic unsigned *count, unsigned nodes)
{
	atomic_fetch_add_explicit(count, 1, memory_order_acq_rel);
	while (atomic_load_explicit(count, memory_order_acquire) < nodes)
		sched_yield();
}

double peer_job(
	const struct peer_test *t, unsigned nodes, uint64_t x, const struct peer_plan *p)
{
	pid_t parent = getpid();
	double ns = 0;
	job = job ? job : peer_share(sizeof *job);
	memset(job, 0, sizeof *job);
	fflush(stdout);
	expect_children(true);
	for (unsigned i = 1; i < nodes; i++) {
		peer_rank = i;
		peer_child[i] = fork();
		if (peer_child[i] < 0)
			peer_die("fork: %s", strerror(errno));
		if (!peer_child[i])
			break;
		peer_rank = 0;
	}
	if (peer_rank) {
		expect_children(false);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	peer_pin(peer_rank);
	if (t->open)
		t->open(x);
	count_up(&job->ready, nodes);
	if (peer_rank)
		t->rounds(x, 0, plan_rounds(p));
	else
		ns = timed(p, t->rounds, x);
	if (t->close)
		t->close(x);
	count_up(&job->done, nodes);
	while (peer_rank) /* until it is killed: its checks count, too */
		pause();
	expect_children(false);
	for (unsigned i = 1; i < nodes; i++) {
		kill(peer_child[i], SIGKILL);
		waitpid(peer_child[i], NULL, 0);
	}
	return ns;
}

/* ---- threads ---- */

static struct thread {
	const struct peer_threads *of;
	pthread_t id;
	double begin, end;
} thread[PEER_THREADS];

static struct peer_plan threads_plan;
static pthread_barrier_t threads_start;

static void *be_thread(void *arg)
{
	struct thread *t = arg;
	unsigned number = (unsigned)(t - thread);
	uint64_t round = 0, rounds = plan_rounds(&threads_plan);
	if (t->of->enter)
		t->of->enter(number);
	while (round < threads_plan.warm)
		t->of->window(number, round++);
	pthread_barrier_wait(&threads_start);
	t->begin = bench_now_ns();
	while (round < rounds)
		t->of->window(number, round++);
	t->end = bench_now_ns();
	if (t->of->leave)
		t->of->leave();
	return NULL;
}

/* Run the windows of all threads, and return the time of one, in ns. */
static double run_threads(
	const struct peer_threads *t, uint64_t count, const struct peer_plan *p)
{
	double begin = 0, end = 0; /* the first thread's start, and the last one's end */
	threads_plan = *p;
	pthread_barrier_init(&threads_start, NULL, (unsigned)count);
	for (unsigned i = 0; i < count; i++) {
		thread[i].of = t;
		t->open(i);
	}
	t->meet();
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&thread[i].id, NULL, be_thread, &thread[i]) != 0)
			peer_die("no thread %u; expected that %" PRIu64 " can be made", i,
				count);
	for (unsigned i = 0; i < count; i++) {
		pthread_join(thread[i].id, NULL);
		begin = i && begin < thread[i].begin ? begin : thread[i].begin;
		end = end > thread[i].end ? end : thread[i].end;
	}
	t->meet();
	for (unsigned i = 0; i < count; i++)
		t->close(i);
	pthread_barrier_destroy(&threads_start);
	return (end - begin) / (double)(p->batches * p->each);
}

/* ---- tests and arguments ---- */

static double measure(
	const struct peer *peer, const struct peer_test *t, uint64_t x, bool quick)
{
	struct peer_plan p =
		plan_of(quick, t->parts == PEER_WINDOW, t->threads ? PEER_WORD : x);
	bool step = !strcmp(t->name, "step");
	double ns;
	if (t->run)
		return t->run(x, quick);
	peer_last_round = plan_rounds(&p) - 1;
	if (t->open && !peer->forks)
		t->open(step ? 0 : x);
	ns = t->threads    ? run_threads(t->threads, x, &p)
	     : peer->forks ? peer_job(t, 2, x, &p)
	     : step        ? step_of(&p, t->rounds, x)
			   : timed(&p, t->rounds, x);
	if (t->close && !peer->forks)
		t->close(x);
	if (!strcmp(t->name, "stream") || !strcmp(t->name, "threads"))
		return (double)x * 1e3 * t->parts / ns;
	bool is_rate = !strcmp(t->name, "rate") || !strcmp(t->name, "faa");
	return is_rate ? t->parts * 1e3 / ns : ns / t->parts;
}

static void run_test(const struct peer *peer, const char *name, uint64_t x, bool quick)
{
	bool known = false;
	for (const struct peer_test *t = peer->tests; t->name; t++) {
		if (strcmp(name, t->name) != 0)
			continue;
		known = true;
		if (x < t->least || x > t->most) {
			if (peer->partial)
				continue;
			peer_die("%s=%" PRIu64 ": expected %" PRIu64 " to %" PRIu64, name,
				x, t->least, t->most);
		}
		if (peer->before)
			peer->before(x);
		double value = measure(peer, t, x, quick);
		if (peer_rank == 0)
			printf("%s\t%s\t%" PRIu64 "\t%.6g", t->who ? t->who : own_name,
				name, x, value);
		if (peer_rank == 0 && tails)
			printf("\t%.6g", p99 / (t->parts ? t->parts : 1));
		if (peer_rank == 0)
			putchar('\n');
		fflush(stdout);
		if (peer->after)
			peer->after();
	}
	if (!known)
		peer_die("'%s': not a pattern of this program; expected one that its "
			 "source lists",
			name);
}

static void run_list(const struct peer *peer, const char *arg, bool quick)
{
	char test[32];
	char *end;
	size_t length = strcspn(arg, "=");
	if (!arg[length] || length >= sizeof test)
		peer_die("'%.60s': expected test=list, as in latency=8,1024", arg);
	memcpy(test, arg, length);
	test[length] = '\0';
	for (const char *at = arg + length + 1;; at = end + 1) {
		uint64_t x = strtoull(at, &end, 10);
		if (*at < '0' || *at > '9' || (*end && *end != ','))
			peer_die("'%.60s': expected numbers, as in latency=8,1024", arg);
		run_test(peer, test, x, quick);
		if (!*end)
			return;
	}
}

void peer_run(const struct peer *peer, int argc, char **argv)
{
	int at = 1;
	if (peer->named) {
		if (argc < 2)
			peer_die("expected a name, quick or full, test=list");
		own_name = argv[at++];
	}
	tails = argc > at && !strcmp(argv[at], "tails");
	if (argc < at + 2 ||
		(strcmp(argv[at], "quick") && strcmp(argv[at], "full") && !tails))
		peer_die("expected quick or full, then test=list, as in latency=8,1024");
	for (int i = at + 1; i < argc; i++)
		run_list(peer, argv[i], argv[at][0] == 'q');
}

/* ---- data ---- */

void peer_stamp(char *at, uint64_t bytes, uint64_t round)
{
	if (bytes < PEER_WORD)
		return;
	memcpy(at, &round, sizeof round);
	memcpy(at + bytes - sizeof round, &round, sizeof round);
}

void peer_check(const char *at, uint64_t bytes, uint64_t round)
{
	if (bytes >= PEER_WORD &&
		(memcmp(at, &round, sizeof round) ||
			memcmp(at + bytes - sizeof round, &round, sizeof round)))
		peer_die("message %" PRIu64 " of %" PRIu64
			 " bytes: wrong bytes; expected what was sent",
			round, bytes);
}
