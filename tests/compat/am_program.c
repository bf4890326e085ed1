/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * am_program - active messages of all kinds, polled and from a signal handler
 *
 *	am_program [options of job.h] [messages]
 *
 * Random requests to all ranks, whose bytes handlers check and answer; then the same
 * while a timer's signal polls, too, wherever it strikes; then with ranks that compute
 * and never call anything: signals alone serve them.  Odd ranks leave by _exit.
 */
#include "am_layer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { ECHO, LOOK, LOOK_LONG, ANSWER, DONE, READY };
enum { SLOT = 65536, SLOTS = 4, TICK_US = 700, LOOKS = 50 };

static unsigned long tried, answers, asked;
static char *segment;
static bool *slot_used; /* by target and slot: a long request is under way */
static volatile unsigned done, ready;
static volatile uint64_t looked;

/* ---- handlers ---- The argument names the bytes: a number, with the slot in its low
 * bits for long ones. */

static void echo(struct am_message *m)
{
	CHECK(job_wrong(m->bytes, m->length, m->argument) == m->length);
	am_reply(m, ANSWER, m->argument, m->bytes, m->length);
}

static void look(struct am_message *m)
{
	CHECK(job_wrong(m->bytes, m->length, m->argument) == m->length);
	looked++;
}

static void look_long(struct am_message *m)
{
	size_t slot = (size_t)m->from * SLOTS + m->argument % SLOTS;
	CHECK(m->bytes == segment + slot * SLOT);
	CHECK(job_wrong(m->bytes, m->length, m->argument) == m->length);
	am_reply(m, ANSWER, m->argument, m->bytes, m->length < 100 ? m->length : 100);
	looked++;
}

static void answer(struct am_message *m)
{
	CHECK(!m->is_request);
	CHECK(job_wrong(m->bytes, m->length, m->argument) == m->length);
	if (m->argument >> 63)
		slot_used[(size_t)m->from * SLOTS + m->argument % SLOTS] = false;
	answers++;
}

static void is_done(struct am_message *m)
{
	CHECK(m->length == 0);
	done++;
}

static void is_ready(struct am_message *m)
{
	CHECK(m->length == 0);
	ready++;
}

static const am_handler handlers[AM_HANDLERS] = {[ECHO] = echo,
	[LOOK] = look,
	[LOOK_LONG] = look_long,
	[ANSWER] = answer,
	[DONE] = is_done,
	[READY] = is_ready};

/* ---- requests ---- */

static void ask(int to, uint64_t *seed)
{
	char bytes[AM_MEDIUM];
	uint64_t argument = random_next(seed) >> 1;
	size_t length = (size_t)(random_next(seed) % (AM_MEDIUM + 1));
	if (argument % 4 == 0)
		length = 0;
	job_fill(bytes, length, argument);
	am_request(to, argument % 3 ? ECHO : LOOK, argument, bytes, length);
	asked += argument % 3 != 0;
}

static int free_slot(int to)
{
	for (int i = 0; i < SLOTS; i++)
		if (!((volatile bool *)slot_used)[to * SLOTS + i])
			return i;
	return -1;
}

static void ask_long(int to, uint64_t *seed)
{
	static char bytes[SLOT];
	int slot;
	while ((slot = free_slot(to)) < 0)
		am_poll();
	uint64_t argument =
		(random_next(seed) / SLOTS * SLOTS + (uint64_t)slot) | (uint64_t)1 << 63;
	size_t length = (size_t)(random_next(seed) % SLOT) + 1;
	slot_used[to * SLOTS + slot] = true;
	job_fill(bytes, length, argument);
	am_request_long(to, LOOK_LONG, argument, bytes, length,
		(size_t)(job.rank * SLOTS + slot) * SLOT);
	asked++;
}

static void random_requests(int messages, uint64_t seed)
{
	for (int i = 0; i < messages; i++) {
		int to = (int)(random_next(&seed) % (uint64_t)job.size);
		if (random_next(&seed) % 8 == 0)
			ask_long(to, &seed);
		else
			ask(to, &seed);
		tried++;
	}
}

/* Meet, and serve the others until they are here, too. */
static void meet(void)
{
	static unsigned meetings;
	am_quiet();
	for (int i = 0; i < job.size; i++)
		am_request(i, DONE, 0, NULL, 0);
	meetings++;
	while (done < meetings * (unsigned)job.size)
		am_poll();
	am_quiet();
	CHECK(answers == asked);
}

/* ---- signals ---- */

static void on_tick(int signal)
{
	int error = errno;
	(void)signal;
	am_signal_begins();
	am_poll();
	am_signal_ends();
	errno = error;
}

static void tick(long us)
{
	struct itimerval timer = {.it_interval.tv_usec = us, .it_value.tv_usec = us};
	struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void send_looks(uint64_t seed)
{
	for (int i = 0; i < LOOKS; i++)
		for (int to = 1; to < job.size; to += 2) {
			char bytes[AM_MEDIUM];
			job_fill(bytes, sizeof bytes, seed);
			am_request(to, LOOK, seed, bytes, sizeof bytes);
			seed += 3;
		}
}

/* Let odd ranks compute until each of the others' requests has been processed.  These
 * are sent when the odd ranks say that they begin: a rank that still met would process
 * them there. */
static void served_by_signals(void)
{
	int senders = (job.size + 1) / 2;
	meet();
	uint64_t until = looked + (uint64_t)senders * LOOKS;
	for (int to = 0; to < job.size && job.rank % 2 == 1; to += 2)
		am_request(to, READY, 0, NULL, 0);
	if (job.rank % 2 == 0) {
		while (ready < (unsigned)job.size / 2)
			am_poll();
		send_looks((uint64_t)job.rank);
	}
	double start = job_now();
	if (job.rank % 2 == 1)
		while (looked < until)
			CHECK(job_now() < start + 100);
	meet();
	if (job.rank % 2 == 1)
		CHECK(am_counts().from_signals > 0);
}

int main(int argc, char **argv)
{
	job_begin(argc, argv);
	int messages = job.words[0] ? atoi(job.words[0]) : 2000;
	size_t length = (size_t)job.size * SLOTS * SLOT;
	segment = malloc(length);
	slot_used = calloc((size_t)job.size * SLOTS, sizeof *slot_used);
	am_begin(segment, length, handlers);
	job_barrier();
	random_requests(messages, (uint64_t)job.rank * 1000);
	meet();
	tick(TICK_US);
	random_requests(messages, (uint64_t)job.rank * 1001);
	served_by_signals();
	meet();
	tick(0);
	struct am_count count = am_counts();
	CHECK(count.rotations > 0);
	job_barrier();
	CHECK(job_drops() == 0);
	job_barrier();
	if (job.rank % 2 == 0) {
		job_end("active messages", tried);
		return 0;
	}
	fflush(stdout);
	_exit(0);
}
