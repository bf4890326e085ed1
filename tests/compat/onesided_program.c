/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onesided_program - puts, gets, sums and locks all over segments of a gigabyte
 *
 *	onesided_program [options of job.h] [operations]
 *
 * Each rank writes blocks of its own in every segment, at random, and knows their
 * content; reads them back; and checks the others' blocks in its own segment.  Then
 * come sums in shared words, and a list that grows under locks.  Then the last rank
 * only polls its memory, and is served none the less.
 */
#include "onesided_layer.h"

#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 16, PLACES = 40, BIG = 4 << 20, WORDS = 100 };
enum { SUMS = 4096, LIST = 8192, SHARED = 65536 }; /* offsets */

/* The head of a block. */
struct head {
	uint64_t number;
	size_t length; /* of the bytes behind it */
};

static unsigned long tried;
static char *segment;

/* Return the place of a writer's block, spread over the gigabyte, never in its first
 * MiB. */
static size_t place(int writer, int n)
{
	size_t blocks = ((size_t)OS_SEGMENT - 2 * BIG) / BLOCK;
	size_t at =
		((size_t)n * (size_t)job.size + (size_t)writer) * 2654435761u % blocks;
	return BIG + at * BLOCK;
}

/* Numbers of the blocks that this rank has written there, 0: none yet. */
static uint64_t (*written)[PLACES];

static bool taken_twice(void)
{
	for (int a = 0; a < job.size * PLACES; a++)
		for (int b = 0; b < a; b++)
			if (place(a % job.size, a / job.size) ==
				place(b % job.size, b / job.size))
				return true;
	return false;
}

static size_t length_of(uint64_t number)
{
	uint64_t state = number;
	static const size_t limit[] = {8, 256, 4096, BLOCK - sizeof(struct head)};
	uint64_t r = random_next(&state);
	return (size_t)(r >> 2) % limit[r % 4];
}

static size_t make(char *bytes, uint64_t number)
{
	struct head head = {number, length_of(number)};
	memcpy(bytes, &head, sizeof head);
	job_fill(bytes + sizeof head, head.length, number);
	return sizeof head + head.length;
}

static void check(const char *bytes, uint64_t number)
{
	struct head head;
	memcpy(&head, bytes, sizeof head);
	CHECK(head.number == number && head.length == length_of(number));
	CHECK(job_wrong(bytes + sizeof head, head.length, number) == head.length);
	tried++;
}

/* ---- blocks ---- */

/* Return a source, in ordinary memory or in the own segment, which is bound already. */
static char *source(unsigned n)
{
	static char ordinary[32][BLOCK];
	return n % 2 ? ordinary[n / 2 % 32] : segment + (1 << 20) + n / 2 % 32 * BLOCK;
}

static void write_some(int operations, uint64_t *seed)
{
	unsigned under_way[64];
	for (int i = 0; i < operations; i++) {
		uint64_t r = random_next(seed), number = random_next(seed) | 1;
		int to = (int)(r % (uint64_t)job.size), n = (int)(r >> 32) % PLACES;
		n = n < 0 ? -n : n;
		if (i >= 64)
			os_wait(under_way[i % 64]);
		char *bytes = source((unsigned)i % 64);
		size_t length = make(bytes, number);
		if (written[to][n])
			os_fence(); /* the previous put may still be on its way */
		under_way[i % 64] = os_put_nb(to, place(job.rank, n), bytes, length);
		written[to][n] = number;
	}
	os_fence();
}

static void read_back(void)
{
	static char bytes[PLACES][BLOCK];
	unsigned under_way[PLACES];
	for (int from = 0; from < job.size; from++) {
		for (int n = 0; n < PLACES; n++)
			under_way[n] = os_get_nb(
				bytes[n], from, place(job.rank, n), sizeof bytes[n]);
		for (int n = 0; n < PLACES; n++) {
			while (n % 2 && !os_test(under_way[n]))
				;
			os_wait(under_way[n]);
			if (written[from][n])
				check(bytes[n], written[from][n]);
		}
	}
}

static void look_at_own(void)
{
	static char bytes[BLOCK];
	for (int writer = 0; writer < job.size; writer++)
		for (int n = 0; n < PLACES; n++) {
			uint64_t number = os_word(place(writer, n));
			if (number == 0)
				continue;
			os_look(bytes, place(writer, n), sizeof bytes);
			check(bytes, number);
		}
}

/* Put the largest block, across the end of the gigabyte's last but one block. */
static void big(void)
{
	char *bytes = malloc(BIG), *again = malloc(BIG);
	size_t at = (size_t)OS_SEGMENT - BIG;
	int to = (job.rank + 1) % job.size;
	job_fill(bytes, BIG, (uint64_t)job.rank);
	os_put(to, at, bytes, BIG);
	memset(again, 0, BIG);
	os_get(again, to, at, BIG);
	CHECK(memcmp(bytes, again, BIG) == 0);
	os_barrier();
	uint64_t before = (uint64_t)((job.rank + job.size - 1) % job.size);
	os_look(again, at, BIG);
	CHECK(job_wrong(again, BIG, before) == BIG);
	free(bytes);
	free(again);
	os_barrier();
	tried++;
}

/* ---- shared words and list ---- */

static void sums(int times)
{
	uint64_t add[WORDS];
	for (int i = 0; i < times; i++) {
		for (int w = 0; w < WORDS; w++)
			add[w] = (uint64_t)((job.rank + 1) * (w + i));
		os_accumulate(i % job.size, SUMS, add, WORDS);
		tried++;
	}
	os_barrier();
	uint64_t ranks = (uint64_t)(job.size * (job.size + 1) / 2);
	for (int w = 0; w < WORDS; w++) {
		uint64_t sum = 0;
		for (int i = job.rank; i < times; i += job.size)
			sum += (uint64_t)(w + i) * ranks;
		CHECK(os_word(SUMS + (size_t)w * 8) == sum);
	}
	os_barrier();
}

/* Every rank appends to rank 0's list; each entry is there once. */
static void list(int times)
{
	uint64_t length;
	for (int i = 0; i < times; i++) {
		uint64_t entry = (uint64_t)(job.rank * times + i);
		os_lock(0, 3);
		os_get(&length, 0, LIST, sizeof length);
		os_put(0, LIST + 8 * (length + 1), &entry, sizeof entry);
		length++;
		os_put(0, LIST, &length, sizeof length);
		os_unlock(0, 3);
		tried++;
	}
	os_barrier();
	int all = times * job.size;
	for (int entry = 0; entry < all && job.rank == 0; entry++) {
		int found = 0;
		for (int i = 1; i <= all; i++)
			found += os_word(LIST + 8 * (size_t)i) == (uint64_t)entry;
		CHECK(os_word(LIST) == (uint64_t)all && found == 1);
	}
	os_barrier();
}

/* The last rank makes no call until all others have written and read back. */
static void served_asleep(void)
{
	int last = job.size - 1;
	uint64_t one = 1, bytes[512], back[512];
	if (job.rank == last) {
		while (os_word(SHARED) < (uint64_t)last)
			usleep(1000);
	} else {
		size_t at = SHARED + 4096 * ((size_t)job.rank + 1);
		for (int i = 0; i < 30; i++) {
			job_fill(bytes, sizeof bytes, (uint64_t)(job.rank + i));
			os_put(last, at, bytes, sizeof bytes);
			os_get(back, last, at, sizeof back);
			CHECK(memcmp(bytes, back, sizeof back) == 0);
			tried++;
		}
		os_accumulate(last, SHARED, &one, 1);
	}
	os_barrier();
}

int main(int argc, char **argv)
{
	job_begin(argc, argv);
	int operations = job.words[0] ? atoi(job.words[0]) : 1000;
	uint64_t seed = (uint64_t)job.rank + 1;
	written = calloc((size_t)job.size, sizeof *written);
	CHECK(!taken_twice());
	segment = os_begin();
	job_barrier();
	for (int i = 0; i < 2; i++) {
		write_some(operations, &seed);
		read_back();
		os_barrier();
		look_at_own();
		os_barrier();
	}
	big();
	sums(40);
	list(40);
	served_asleep();
	job_barrier();
	CHECK(job_drops() == 0);
	os_end();
	job_end("one-sided operations", tried);
	free(written);
	return 0;
}
