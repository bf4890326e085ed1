/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halo - heat spreads over a plate whose rows are distributed over the ranks
 *
 *	yod -sz N halo [PICTURE.pgm]
 *
 * A rank has ROWS / N rows, and a ghost row above and below them for copies of its
 * neighbours' edges.  In each step it puts its own edges straight into the neighbours'
 * ghost rows.  There are two plates, read and written in turn: a neighbour that is one
 * step ahead spoils nothing, and it cannot be two ahead.  Rank 0 gets all rows in the
 * end.
 */
#include "job.h"

#include <errno.h>

enum { PORTAL = 4, ROWS = 96, COLUMNS = 96, STEPS = 400, LAST = STEPS % 2 };
enum { ABOVE, BELOW };

typedef double row_t[COLUMNS];
static row_t plate[2][ROWS + 2], alone[2][ROWS + 2], whole[ROWS];
static unsigned rows, came[2];
static ptl_handle_eq_t arrivals;
static ptl_handle_md_t source;

static void open_portal(void)
{
	ptl_md_t md = {.start = plate,
		.length = sizeof plate,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		.eq_handle = arrivals = job_queue(64)};
	job_listen(PORTAL, md);
	source = job_bind(plate, sizeof plate, PTL_EQ_NONE);
}

static ptl_size_t offset_of(unsigned which, unsigned row)
{
	return (ptl_size_t)((char *)plate[which][row] - (char *)plate);
}

static void put_edge(
	unsigned which, unsigned row, unsigned to, unsigned ghost, ptl_hdr_data_t side)
{
	check(PtlPutRegion(source, offset_of(which, row), sizeof(row_t), PTL_NO_ACK_REQ,
		      job_id(to), PORTAL, 0, 0, offset_of(which, ghost), side),
		"PtlPutRegion");
}

static void exchange_edges(unsigned which, unsigned step)
{
	int above = job.rank > 0, below = job.rank + 1 < job.size;
	if (above)
		put_edge(which, 1, job.rank - 1, rows + 1, BELOW);
	if (below)
		put_edge(which, rows, job.rank + 1, 0, ABOVE);
	while ((above && came[ABOVE] < step) || (below && came[BELOW] < step))
		came[job_await(arrivals, PTL_EVENT_PUT_END).hdr_data]++;
}

static void relax(row_t *from, row_t *to, unsigned n)
{
	for (unsigned r = 1; r <= n; r++)
		for (unsigned c = 1; c < COLUMNS - 1; c++)
			to[r][c] = 0.25 * (from[r - 1][c] + from[r + 1][c] +
						  from[r][c - 1] + from[r][c + 1]);
}

/* The left edge is kept hot, all other edges cold. */
static void run(row_t (*of)[ROWS + 2], unsigned n, int together)
{
	for (unsigned r = 1; r <= n; r++)
		of[0][r][0] = of[1][r][0] = 255;
	for (unsigned step = 0; step < STEPS; step++) {
		if (together)
			exchange_edges(step % 2, step + 1);
		relax(of[step % 2], of[(step + 1) % 2], n);
	}
}

static void fetch_all(void)
{
	ptl_handle_eq_t done = job_queue(64);
	ptl_handle_md_t md = job_bind(whole, sizeof whole, done);
	for (unsigned i = 0; i < job.size; i++) {
		check(PtlGetRegion(md, sizeof(row_t) * i * rows, sizeof(row_t) * rows,
			      job_id(i), PORTAL, 0, 0, offset_of(LAST, 1)),
			"PtlGetRegion");
		job_await(done, PTL_EVENT_REPLY_END);
	}
}

static void paint(const char *file)
{
	FILE *f = fopen(file, "w");
	if (f)
		fprintf(f, "P2 %d %d 255\n", COLUMNS, ROWS);
	for (int i = 0; f && i < ROWS * COLUMNS; i++)
		fprintf(f, "%d\n", (int)whole[i / COLUMNS][i % COLUMNS]);
	if (f && fclose(f) == 0)
		return;
	fprintf(stderr,
		"halo: %s: %s; expected a file that rank 0 can write; choose another\n",
		file, strerror(errno));
	exit(1);
}

int main(int argc, char **argv)
{
	job_start();
	job_want(ROWS % job.size == 0, "a divisor of 96 ranks, as in yod -sz 4 halo");
	job_want_arguments(argc <= 2, argc,
		"at most one name, of a picture, as in yod -sz 4 halo out.pgm");
	rows = ROWS / job.size;
	open_portal();
	job_meet();
	run(plate, rows, 1);
	job_meet();
	if (job.rank == 0) {
		fetch_all();
		run(alone, ROWS, 0);
		expect(!memcmp(whole, alone[LAST] + 1, sizeof whole), "temperatures");
		printf("%u ranks: the same temperatures as one\n", job.size);
		if (argc > 1)
			paint(argv[1]);
	}
	job_end();
	return 0;
}
