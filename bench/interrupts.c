/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * interrupts - price of the interrupts of generic mode (PTL3_MATCH)
 *
 *	yod -sz 1 interrupts [options]
 *
 * Two threads interrupt each other in turns, on one CPU or on two, without a message of
 * Portals: by waking a sleeper of a futex, by a signal for which a thread waits, or, with
 * poll, by a word that the other thread polls.  Times are half of a round trip.
 */
#include "bench.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 20000 };
enum way { FUTEX, SIGNAL, POLL, WAYS };

static const char *const way_name[WAYS] = {"futex", "signal", "poll"};

/* The word that a thread waits for: the other thread counts it up, and then
 * interrupts. */
struct bell {
	_Alignas(128) _Atomic(uint32_t) rings;
	pid_t tid;
};

struct program {
	struct bench b;
	uint32_t rounds;
	struct bell bell[2];
	enum way way;
	int cpu[2];
	double other_cpu; /* CPU time of the second thread, ns */
	double sample[ROUNDS];
};

static void ring(const struct program *p, struct bell *bell)
{
	atomic_fetch_add_explicit(&bell->rings, 1, memory_order_release);
	if (p->way == FUTEX)
		(void)syscall(
			SYS_futex, &bell->rings, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	else if (p->way == SIGNAL)
		(void)syscall(SYS_tgkill, getpid(), bell->tid, SIGRTMAX);
}

static void await(const struct program *p, struct bell *bell, uint32_t number)
{
	uint32_t seen;
	sigset_t set;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGRTMAX);
	while ((seen = atomic_load_explicit(&bell->rings, memory_order_acquire)) !=
		number)
		if (p->way == FUTEX)
			(void)syscall(SYS_futex, &bell->rings, FUTEX_WAIT_PRIVATE, seen,
				NULL, NULL, 0);
		else if (p->way == SIGNAL)
			(void)sigwaitinfo(&set, NULL);
}

static void pin_to(int cpu)
{
	if (!cpus_pin(cpu))
		bench_die(1, "a thread cannot be pinned to CPU %d: %s", cpu,
			strerror(errno));
}

static void *answer(void *arg)
{
	struct program *p = arg;
	pin_to(p->cpu[1]);
	p->bell[1].tid = (pid_t)syscall(SYS_gettid);
	ring(p, &p->bell[0]);
	for (uint32_t i = 1; i <= p->rounds; i++) {
		await(p, &p->bell[1], i);
		ring(p, &p->bell[0]);
	}
	p->other_cpu = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

/* Time one way on these CPUs.  Two threads that poll need a CPU each. */
static void run(struct program *p, enum way way, int cpu)
{
	pthread_t thread;
	if (way == POLL && cpu == p->cpu[0])
		return;
	p->way = way;
	p->cpu[1] = cpu;
	memset(p->bell, 0, sizeof p->bell);
	p->bell[0].tid = (pid_t)syscall(SYS_gettid);
	if (pthread_create(&thread, NULL, answer, p))
		bench_die(1, "no second thread; expected one; raise ulimit -u");
	await(p, &p->bell[0], 1);
	double t = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (uint32_t i = 1; i <= p->rounds; i++) {
		double since = bench_now_ns();
		ring(p, &p->bell[1]);
		await(p, &p->bell[0], i + 1);
		p->sample[i - 1] = (bench_now_ns() - since) / 2;
	}
	t = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID) - t;
	(void)pthread_join(thread, NULL);
	struct bench_stat s = bench_stat_of(p->sample, p->rounds);
	BENCH_ROW(&p->b, BENCH_TEXT("way", way_name[p->way]),
		BENCH_TEXT("CPUs", p->cpu[0] == p->cpu[1] ? "one" : "two"),
		BENCH_COUNT("rounds", s.n), BENCH_PERCENTILES(s, "ns", 1, 0),
		BENCH_REAL("max_ns", s.max, 0),
		BENCH_REAL("cpu_ns", (t + p->other_cpu) / (double)s.n / 2, 0));
}

static const char about[] = "usage: yod -sz 1 interrupts [options]\n"
			    "Price of an interrupt as generic mode makes it: between two "
			    "threads, no message.\n";

static const char legend[] =
	"Half of a round trip.  CPUs: the threads share one, or have two.\n"
	"cpu: CPU time of both threads for each interrupt.\n";

int main(int argc, char **argv)
{
	static struct program p = {
		.b = {.program = "interrupts", .about = about, .legend = legend}};
	bench_options(&p.b, &(const struct bench_option){0}, argc, argv);
	p.rounds = p.b.quick ? 20 : ROUNDS;
	/* keep the signal for sigwaitinfo, in both threads */
	sigset_t set;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGRTMAX);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	bench_begin(&p.b);
	p.cpu[0] = cpus_nth(&p.b.cpus, 0);
	pin_to(p.cpu[0]);
	/* first on one CPU, then on two if there are two */
	for (unsigned n = 0; n < 2 && n < p.b.ncpus; n++)
		for (int way = 0; way < WAYS; way++)
			run(&p, (enum way)way, cpus_nth(&p.b.cpus, n));
	bench_finish(&p.b);
}
