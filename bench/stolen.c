/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stolen - CPU time that messages take from a program that computes
 *
 *	yod -sz N stolen [options]
 *
 * Rank 0 computes, and makes no call to the library until all messages have come: it sees
 * them in its memory.  Meanwhile the other ranks (with one rank, a thread of rank 0) put
 * messages to it, each when the one before was acknowledged and a pause is over.  The
 * price of lost lines of the cache is in the CPU time of the work; other threads' turns
 * are in its time by the clock.
 */
#include "bench.h"
#include "portals3x.h"

#include <dirent.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { PORTAL_DATA = 4, WORD = 8, SLOT = 64, MOST_MESSAGES = 1000000, PIECE_NS = 50000 };
enum { PAUSE_NS = 200000 }; /* between messages, of all senders together */
enum { WORKED = 1 << 16 };  /* words that the work goes through: 512 KiB */

#define NIC_THREAD    "p3nic"
#define KERNEL_THREAD "p3irq"

struct work {
	uint64_t pieces;
	double cpu_ns, wall_ns;   /* of a piece */
	double nic_ns, kernel_ns; /* CPU time of the other threads, in all */
	uint64_t interrupts;
};

struct program {
	struct bench b;
	struct bench_number messages; /* of all senders */
	struct bench_number bytes;    /* of a message; the first word is its number */
	struct bench_watch w;         /* of rank 0: messages; of others: ACKs */
	unsigned senders;
	/* rank 0: number of the last message of each sender */
	volatile uint64_t *arrived;
	uint64_t loops; /* of a piece of work */
	uint64_t *work;
};

/* One sender: a rank, or the thread of a job of one rank. */
struct sender {
	struct program *p;
	struct bench_watch w;
	unsigned number;
	uint64_t count;
	double *sample;
};

/* Return the CPU time of this process's threads whose names begin so.  (The clock of
 * another thread can be read by its pthread_t only, which the library keeps.) */
static double cpu_of(const char *name)
{
	static const char *const file[] = {"comm", "schedstat"};
	char path[300], line[2][100];
	double sum = 0;
	DIR *dir = opendir("/proc/self/task");
	for (struct dirent *d; dir && (d = readdir(dir));) {
		for (int i = 0; i < 2; i++) {
			line[i][0] = '\0';
			snprintf(path, sizeof path, "/proc/self/task/%s/%s", d->d_name,
				file[i]);
			FILE *f = fopen(path, "r");
			if (f && !fgets(line[i], sizeof line[i], f))
				line[i][0] = '\0';
			if (f)
				(void)fclose(f);
		}
		if (strncmp(line[0], name, strlen(name)) == 0)
			sum += strtod(line[1], NULL);
	}
	if (dir)
		(void)closedir(dir);
	return sum;
}

/* ---- work ---- */

static void compute(struct program *p)
{
	uint64_t x = p->work[0];
	for (uint64_t i = 0; i < p->loops; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		p->work[x >> 48] += x;
	}
	p->work[0] = x;
}

static uint64_t count_of(const struct program *p, unsigned sender)
{
	uint64_t all = p->messages.value;
	return all / p->senders + (sender < all % p->senders);
}

static bool all_came(const struct program *p)
{
	for (unsigned i = 0; i < p->senders; i++)
		if (p->arrived[i * SLOT / WORD] != count_of(p, i))
			return false;
	return true;
}

/* Compute this number of pieces, or, if it is 0, until all messages have come. */
static struct work measure(struct program *p, uint64_t pieces)
{
	struct work k = {0};
	ptlx_stats_t before = {.struct_size = sizeof before}, after = before;
	BENCH_DO(PtlXStats, p->b.ni, &before);
	double nic = cpu_of(NIC_THREAD), kernel = cpu_of(KERNEL_THREAD);
	double own = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID), wall = bench_now_ns();
	do {
		compute(p);
		k.pieces++;
	} while (pieces ? k.pieces < pieces : !all_came(p));
	own = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID) - own;
	k.wall_ns = (bench_now_ns() - wall) / (double)k.pieces;
	k.nic_ns = cpu_of(NIC_THREAD) - nic;
	k.kernel_ns = cpu_of(KERNEL_THREAD) - kernel;
	BENCH_DO(PtlXStats, p->b.ni, &after);
	k.interrupts = after.interrupts - before.interrupts; /* 0 in accelerated mode */
	k.cpu_ns = own / (double)k.pieces;
	return k;
}

/* ---- messages ---- */

static void send_all(struct sender *s)
{
	struct program *p = s->p;
	uint64_t word[SLOT / WORD] = {0};
	ptl_handle_md_t md = bench_bind(&p->b, word, p->bytes.value, s->w.eq);
	ptl_process_id_t to = bench_id(&p->b, 0);
	uint64_t ns = (uint64_t)PAUSE_NS * p->senders;
	struct timespec pause = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	for (uint64_t i = 0; i < s->count; i++) {
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		word[0] = i + 1;
		double t = bench_now_ns();
		bench_put(&p->b, md, PTL_ACK_REQ, to, PORTAL_DATA, BENCH_BITS,
			s->number * SLOT, 0);
		bench_await(&s->w, PTL_EVENT_ACK, i + 1);
		s->sample[i] = bench_now_ns() - t;
		bench_await(&s->w, PTL_EVENT_SEND_END, i + 1);
	}
	BENCH_DO(PtlMDUnlink, md);
}

static struct sender sender_of(struct program *p, unsigned number)
{
	uint64_t count = count_of(p, number);
	return (struct sender){.p = p,
		.w = {.eq = bench_queue(&p->b, 64), .may_lose = BENCH_LOSE_NONE},
		.number = number,
		.count = count,
		.sample = bench_allocate(count * sizeof(double))};
}

static void *send_to_oneself(void *arg)
{
	send_all(arg);
	return NULL;
}

/* ---- results ---- */

static void run_target(struct program *p)
{
	enum { QUICK = 20, USUAL = 4000 };
	bool is_alone = p->b.size == 1; /* a thread of rank 0 sends the messages */
	struct sender own = {0};
	pthread_t thread;
	if (is_alone)
		own = sender_of(p, 0);
	p->loops = 1000000;
	double t = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	compute(p);
	t = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID) - t;
	p->loops = (uint64_t)((double)p->loops * PIECE_NS / t) + 1;
	bench_barrier();
	struct work alone = measure(p, p->b.quick ? QUICK : USUAL);
	bench_barrier();
	if (is_alone && pthread_create(&thread, NULL, send_to_oneself, &own))
		bench_die(1, "no thread for the messages; expected one; raise ulimit -u");
	struct work with = measure(p, 0);
	if (is_alone)
		(void)pthread_join(thread, NULL);
	struct bench_stat mine = bench_stat_of(own.sample, own.count);
	struct bench_stat *all = bench_allocate(p->b.size * sizeof *all);
	bench_gather(&p->b, &mine, sizeof mine, all);
	while (p->w.seen[PTL_EVENT_PUT_END] < p->messages.value && bench_try(&p->w))
		;
	bench_expect(&p->b, &p->w, "put", PTL_EVENT_PUT_END, p->messages.value);
	double messages = (double)p->messages.value;
	BENCH_ROW(&p->b, BENCH_COUNT("nodes", p->b.size),
		BENCH_COUNT("messages", p->messages.value),
		BENCH_REAL("nic_ns", with.nic_ns / messages, 0),
		BENCH_REAL("kernel_ns", with.kernel_ns / messages, 0),
		BENCH_REAL("interrupts", (double)with.interrupts / messages, 2),
		BENCH_REAL("work", with.cpu_ns / alone.cpu_ns, 3),
		BENCH_REAL("wall", with.wall_ns / alone.wall_ns, 3),
		BENCH_PERCENTILES(all[!is_alone], "us", 1e3, 1),
		BENCH_REAL("max_us", all[!is_alone].max / 1e3, 1));
	free(all);
}

static const char about[] =
	"usage: yod -sz N stolen [options]\n"
	"CPU time that messages take from rank 0, which computes without a call.\n";

static const char legend[] =
	"nic, kernel, interrupts: CPU time of rank 0's NIC thread, of its thread that\n"
	"stands for the kernel, and interrupts, for each message.\n"
	"work: CPU time of a piece of the work, against that without messages; wall: "
	"the\n"
	"same by the clock.  p50 ...: from PtlPut to the ACK, at rank 1.\n";

int main(int argc, char **argv)
{
	static struct program p = {
		.b = {.program = "stolen", .about = about, .legend = legend},
		.messages = {4000, 1, MOST_MESSAGES},
		.bytes = {WORD, WORD, SLOT},
		.w = {.may_lose = BENCH_LOSE_NONE}};
	const struct bench_option rows[] = {
		{"messages", "N", "from all senders; default 4000", bench_set_number,
			&p.messages},
		{"bytes", "N", "of a message; default 8", bench_set_number, &p.bytes},
		{0}};
	bench_options(&p.b, rows, argc, argv);
	p.senders = p.b.size > 1 ? p.b.size - 1 : 1;
	if (p.b.quick)
		p.messages.value = p.senders * 3;
	if (p.messages.value < p.senders)
		bench_refuse(&p.b,
			"--messages: %" PRIu64 "; expected one or more for each of %u "
			"senders; raise it",
			p.messages.value, p.senders);
	if (p.b.rank == 0) {
		void *memory = bench_allocate(p.senders * SLOT);
		p.work = bench_allocate(WORKED * sizeof *p.work);
		p.arrived = memory;
		p.w.eq = bench_queue(&p.b, p.messages.value + 64);
		bench_post(&p.b, PORTAL_DATA, PTL_MD_OP_PUT, memory, p.senders * SLOT,
			p.w.eq);
	}
	bench_begin(&p.b);
	if (p.b.rank) {
		struct sender s = sender_of(&p, p.b.rank - 1);
		bench_barrier();
		bench_barrier();
		send_all(&s);
		struct bench_stat mine = bench_stat_of(s.sample, s.count);
		bench_gather(&p.b, &mine, sizeof mine, NULL);
	} else {
		run_target(&p);
	}
	bench_finish(&p.b);
}
