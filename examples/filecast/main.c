/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filecast - copy a file to all ranks of a job
 *
 *	yod -sz N filecast FILE OUTDIR
 *
 * Rank 0 reads FILE; every rank writes OUTDIR/<rank>.  The file goes down a binomial
 * tree in chunks, which every rank forwards while more are coming, through 2 MiB of
 * buffers in each rank, for any length of the file.  See wire.h for the messages,
 * cast.h for the flow control.
 */
#include "cast.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- progress, printed when a copy takes longer than a second ---- */

enum { PATIENCE = 1 };
static double begun;
static bool drawn;

static void draw_bar(double part, double rate)
{
	enum { WIDTH = 40 };
	static const char full[] = "########################################";
	int n = (int)(part * WIDTH);
	fprintf(stderr, "\r[%.*s%*s] %3d%% %7.0f MB/s ", n, full, WIDTH - n, "",
		(int)(part * 100), rate);
}

static void progress(uint64_t done, uint64_t all)
{
	static double shown;
	double t = file_clock();
	if (t - begun < PATIENCE || (t - shown < 0.1 && done < all))
		return;
	shown = t;
	drawn = true;
	draw_bar((double)done / (double)all, (double)done / 1e6 / (t - begun + 1e-9));
}

static void clear_bar(void)
{
	fprintf(stderr, "\r%70s\r", "");
}

/* ---- results, on rank 0 ---- */

static void print_report(unsigned rank, const struct report *r)
{
	printf("rank %u: %llu bytes sha256 ", rank, (unsigned long long)r->length);
	for (int i = 0; i < DIGEST; i++)
		printf("%02x", r->digest[i]);
	putchar('\n');
}

/*
 * Return the times of the busiest rank.  Ranks hash and write while they forward.  The
 * rank with the least time left for the transfer hardly waited for the others, so that
 * time is the cost of the transfer.
 */
static const struct spent *busiest(const struct cast *c)
{
	const struct spent *best = &c->report[0].spent;
	for (unsigned i = 1; i < c->w.size; i++)
		if (c->report[i].spent.transfer < best->transfer)
			best = &c->report[i].spent;
	return best;
}

static void print_times(const struct cast *c, double seconds)
{
	const struct spent *s = busiest(c);
	printf("; %.3f s in all; the busiest rank: %.3f s hashing, %.3f s files, %.3f s "
	       "transfer, %.1f MB/s to each\n",
		seconds, s->hashing, s->files, s->transfer,
		(double)c->length / 1e6 / (s->transfer + 1e-9));
}

static void print_summary(const struct cast *c, double seconds)
{
	unsigned differ = 0;
	for (unsigned i = 0; i < c->w.size; i++) {
		print_report(i, &c->report[i]);
		differ += !cast_agrees(c, i);
	}
	if (differ)
		printf("%u of %u ranks differ from rank 0", differ, c->w.size);
	else
		printf("all %u ranks agree", c->w.size);
	print_times(c, seconds);
}

/* Print results; lost lines are a failure, too: a full disk, a closed pipe. */
static int print_results(const struct cast *c)
{
	if (drawn)
		clear_bar();
	if (c->status == CAST_FAILED) {
		fprintf(stderr, "filecast: %s\n", c->why);
		return 1;
	}
	print_summary(c, file_clock() - begun);
	if (fflush(stdout)) {
		perror("filecast: the results cannot be printed; expected room on "
		       "stdout");
		return 1;
	}
	return c->status != CAST_OK;
}

/* ---- */

static void usage(struct wire *w)
{
	if (w->rank == 0)
		fprintf(stderr,
			"usage: yod -sz N filecast FILE OUTDIR\n"
			"Copies FILE to OUTDIR/<rank> on every rank of the job.\n");
	wire_leave(w, 2);
}

static void prepare(struct cast *c)
{
	wire_open(&c->w);
	if (c->w.rank)
		return;
	c->report = calloc(c->w.size, sizeof *c->report);
	if (!c->report) {
		fprintf(stderr, "filecast: no memory for %u reports; use fewer ranks\n",
			c->w.size);
		exit(1);
	}
	if (isatty(STDERR_FILENO))
		c->progress = progress;
}

int main(int argc, char **argv)
{
	static struct cast c = {.copy.fd = -1};
	signal(SIGXFSZ, SIG_IGN); /* writes fail instead */
	signal(SIGPIPE, SIG_IGN);
	wire_start(&c.w);
	if (argc != 3)
		usage(&c.w);
	prepare(&c);
	begun = file_clock();
	cast_run(&c, argv[1], argv[2]);
	int status = c.w.rank ? c.status != CAST_OK : print_results(&c);
	free(c.report);
	wire_leave(&c.w, status);
}
