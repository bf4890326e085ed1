/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints bytes that follow from a seed, for test_yod.sh: NULs, short lines, one of a
 * MiB, no newline at the end.
 *
 *	yod_chunks SEED exit		in writes of random lengths
 *	yod_chunks SEED die		the same; killed behind the last write
 *
 * SEED "rank" is the node's rank.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BEFORE = 200000, LONG_LINE = 1 << 20, BEHIND = 50001 };

static uint64_t state;

static uint32_t next(void)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t x = state;
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(x >> 32);
}

/* Fill with any bytes, with newlines more often or never. */
static void fill(char *at, size_t n, int newlines)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t r = next();
		at[i] = (char)(r % 40 == 0 ? '\n' : r >> 8);
		if (!newlines && at[i] == '\n')
			at[i] = 0;
	}
}

static void put(const char *at, size_t n)
{
	while (n) {
		size_t most = 1 + next() % (next() % 8 ? 300 : 100000);
		ssize_t done = write(STDOUT_FILENO, at, n < most ? n : most);
		if (done < 0 && errno != EINTR)
			exit(1);
		at += done < 0 ? 0 : done;
		n -= done < 0 ? 0 : (size_t)done;
	}
}

int main(int argc, char **argv)
{
	static char bytes[BEFORE + LONG_LINE + BEHIND];
	if (argc != 3)
		return 2;
	const char *seed = strcmp(argv[1], "rank") ? argv[1] : getenv("PTL_MY_RID");
	state = seed ? strtoull(seed, NULL, 10) : 0;
	fill(bytes, BEFORE, 1);
	fill(bytes + BEFORE, LONG_LINE, 0);
	fill(bytes + BEFORE + LONG_LINE, BEHIND, 1);
	bytes[sizeof bytes - 1] = 'x';
	put(bytes, sizeof bytes);
	if (!strcmp(argv[2], "die"))
		raise(SIGKILL);
	return 0;
}
