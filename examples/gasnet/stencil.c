/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stencil - heat on a plate, in two dimensions: non-blocking puts of edges
 *
 *	yod -sz N stencil
 *
 * The nodes form a grid of rows and columns, each with a block of WIDTH x WIDTH cells and
 * a frame of ghost cells.  In each step a node puts its four edges into the ghost cells
 * of its neighbors: rows are contiguous, columns strided.  One sync and one barrier later
 * the ghosts are there.  The segment holds two blocks, used in turn, so that a fast
 * neighbor does not overwrite the ghosts that this node still reads.
 *
 * The cells of all nodes form a torus, so the heat on it stays the same.
 */
#include "start.h"

#include <math.h>

enum { WIDTH = 64, LINE = WIDTH + 2, STEPS = 200 };

typedef double block_t[LINE][LINE];

static unsigned rows, columns, my_row, my_column;

static block_t *block_of(gasnet_node_t node, int which)
{
	return (block_t *)segment[node].addr + which;
}

static gasnet_node_t at(unsigned row, unsigned column)
{
	return row % rows * columns + column % columns;
}

static void make_grid(void)
{
	rows = (unsigned)sqrt((double)nodes);
	while (nodes % rows)
		rows--;
	columns = nodes / rows;
	my_row = me / columns;
	my_column = me % columns;
}

/* Put a column of this node's block into one of a neighbor's. */
static void put_column(gasnet_node_t node, int which, int from, int to)
{
	block_t *mine = block_of(me, which), *its = block_of(node, which);
	const size_t stride[] = {sizeof(double) * LINE};
	const size_t count[] = {sizeof(double), WIDTH};
	gasnet_puts_nbi_bulk(
		node, &(*its)[1][to], stride, &(*mine)[1][from], stride, count, 1);
}

static void put_row(gasnet_node_t node, int which, int from, int to)
{
	block_t *mine = block_of(me, which), *its = block_of(node, which);
	gasnet_put_nbi_bulk(
		node, &(*its)[to][1], &(*mine)[from][1], sizeof(double) * WIDTH);
}

static void put_edges(int which)
{
	put_row(at(my_row + rows - 1, my_column), which, 1, WIDTH + 1);
	put_row(at(my_row + 1, my_column), which, WIDTH, 0);
	put_column(at(my_row, my_column + columns - 1), which, 1, WIDTH + 1);
	put_column(at(my_row, my_column + 1), which, WIDTH, 0);
	gasnet_wait_syncnbi_puts();
	meet();
}

static void step(int which)
{
	block_t *now = block_of(me, which), *next = block_of(me, !which);
	for (int i = 1; i <= WIDTH; i++)
		for (int j = 1; j <= WIDTH; j++)
			(*next)[i][j] = (*now)[i][j] / 2 +
					((*now)[i - 1][j] + (*now)[i + 1][j] +
						(*now)[i][j - 1] + (*now)[i][j + 1]) /
						8;
}

static double heat(int which)
{
	double sum = 0;
	for (int i = 1; i <= WIDTH; i++)
		for (int j = 1; j <= WIDTH; j++)
			sum += (*block_of(me, which))[i][j];
	return sum;
}

/* Return the heat of all nodes, which node 0 reads from their ghost corners. */
static double all_heat(int which)
{
	double sum = 0;
	(*block_of(me, which))[0][0] = heat(which);
	meet();
	for (gasnet_node_t node = 0; node < nodes; node++) {
		double part;
		gasnet_get(&part, node, &(*block_of(node, which))[0][0], sizeof(part));
		sum += part;
	}
	meet();
	return sum;
}

int main(int argc, char **argv)
{
	start(&argc, &argv, NULL, 0, 2 * sizeof(block_t));
	make_grid();
	for (int i = 1; i <= WIDTH; i++)
		for (int j = 1; j <= WIDTH; j++)
			(*block_of(me, 0))[i][j] = me == 0 && i < 9 && j < 9 ? 1000 : 0;
	double before = all_heat(0);
	for (int i = 0; i < STEPS; i++) {
		put_edges(i & 1);
		step(i & 1);
	}
	double after = all_heat(STEPS & 1);
	expect(fabs(after - before) < 1e-6 * before, "the heat stays the same");
	if (me == 0)
		printf("%u x %u blocks, %d steps: heat %.3f before, %.3f after\n", rows,
			columns, STEPS, before, after);
	meet();
	gasnet_exit(0);
}
