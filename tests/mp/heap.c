/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap - long messages out of shared heaps, from memory of PtlXAlloc
 *
 * Each node puts to and gets from its neighbours; meanwhile threads allocate and free,
 * and children are forked that write all over their memory: no parent may see that, and
 * each child must find the content of the moment of its fork.
 */
#include "mp.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 700000, ROUNDS = 30, CHILDREN = 15, THREADS = 3, BLOCKS = 200 };
/* A sanitizer's malloc may be locked for ever in a child of a program with threads. */
#ifdef P3_SANITIZED
#define FORKED_CHURN 0
#else
#define FORKED_CHURN 20
#endif

enum { BITS_IN = 1, BITS_OUT = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards stop */
static bool stop;

static unsigned char *get_memory(size_t n)
{
	void *at;
	mp_check(PtlXAlloc(n, &at) == PTL_OK && at, "PtlXAlloc");
	return at;
}

/* ---- beside the messages ---- */

static void churn_once(unsigned *seed)
{
	unsigned char *b[BLOCKS];
	size_t n[BLOCKS];
	for (unsigned i = 0; i < BLOCKS; i++) {
		n[i] = (size_t)rand_r(seed) % 5000 + 1;
		b[i] = i % 3 ? malloc(n[i]) : calloc(1, n[i]);
		mp_check(i % 3 || (!b[i][0] && !b[i][n[i] - 1]), "calloc is not zero");
		memset(b[i], (int)i, n[i]);
		if (i % 5 == 0)
			b[i] = realloc(b[i], n[i] * 3);
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		mp_check(
			b[i][0] == (unsigned char)i && b[i][n[i] - 1] == (unsigned char)i,
			"a block of malloc has changed");
		free(b[i]);
	}
}

static bool set_stop(bool also)
{
	pthread_mutex_lock(&lock);
	bool is = stop |= also;
	pthread_mutex_unlock(&lock);
	return is;
}

static void *churn(void *arg)
{
	unsigned seed = *(unsigned *)arg;
	while (!set_stop(false)) {
		FILE *f = fopen("/dev/null", "we");
		churn_once(&seed);
		if (f)
			fclose(f);
	}
	return NULL;
}

/* In the child: check that all blocks are there and writable, and malloc works. */
static void child(unsigned char *mine, unsigned seed)
{
	unsigned state = seed;
	mp_compare(mine, LENGTH, seed, "in a forked child");
	memset(mine, 0xee, LENGTH);
	for (int i = 0; i < FORKED_CHURN; i++)
		churn_once(&state);
	_exit(0);
}

static void fork_one(unsigned char *mine, unsigned seed)
{
	int status;
	mp_fill(mine, LENGTH, seed);
	pid_t pid = fork();
	mp_check(pid >= 0, "fork: %s", strerror(errno));
	if (!pid)
		child(mine, seed);
	mp_compare(mine, LENGTH, seed, "in the parent");
	mp_check(waitpid(pid, &status, 0) == pid && status == 0, "a child failed: %#x",
		(unsigned)status);
	mp_compare(mine, LENGTH, seed, "in the parent, behind the child");
}

static void run_a_program(void)
{
	char line[100] = "";
	FILE *f = popen("echo $((6 * 7)); true", "re");
	mp_check(f && fgets(line, sizeof line, f) && !strcmp(line, "42\n"), "popen");
	mp_check(pclose(f) == 0, "pclose");
}

/* ---- messages ---- */

struct buffers {
	unsigned char *in, *out, *got, *sent;
	ptl_handle_eq_t eq, in_eq;
	ptl_handle_md_t put, get;
};

static void exchange(struct buffers *b, unsigned round)
{
	unsigned next = (mp.rank + 1) % mp.size, last = (mp.rank + mp.size - 1) % mp.size;
	mp_fill(b->sent, LENGTH, round + mp.rank);
	mp_barrier();
	mp_put(b->put, 0, LENGTH, PTL_ACK_REQ, next, BITS_IN, 0, 0);
	(void)mp_expect(b->eq, PTL_EVENT_SEND_END);
	(void)mp_expect(b->eq, PTL_EVENT_ACK);
	(void)mp_expect(b->in_eq, PTL_EVENT_PUT_END);
	mp_compare(b->in, LENGTH, round + last, "put");
	memset(b->got, 0, LENGTH);
	mp_get(b->get, 0, LENGTH, next, BITS_OUT, 0);
	(void)mp_expect(b->eq, PTL_EVENT_REPLY_END);
	mp_compare(b->got, LENGTH, 1000 + next, "get");
	mp_barrier();
}

static void check_mover(int rounds)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	uint64_t all = 2ull * LENGTH * (unsigned)rounds;
	mp_check(PtlXStats(mp.ni, &st) == PTL_OK, "PtlXStats");
	mp_check(getenv("PTL3_HEAP") || st.moved_direct_bytes == all,
		"%llu bytes of %llu came direct",
		(unsigned long long)st.moved_direct_bytes, (unsigned long long)all);
}

static struct buffers open_buffers(void)
{
	struct buffers b = {get_memory(LENGTH), get_memory(LENGTH), get_memory(LENGTH),
		get_memory(LENGTH), mp_queue(64), mp_queue(64), 0, 0};
	mp_fill(b.out, LENGTH, 1000 + mp.rank);
	mp_attach(BITS_IN, (char *)b.in, LENGTH, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		b.in_eq);
	mp_attach(BITS_OUT, (char *)b.out, LENGTH, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
	b.put = mp_bind((char *)b.sent, LENGTH, b.eq, 0);
	b.get = mp_bind((char *)b.got, LENGTH, b.eq, 0);
	return b;
}

int main(void)
{
	pthread_t thread[THREADS];
	unsigned seed[THREADS];
	mp_start();
	struct buffers b = open_buffers();
	unsigned char *mine = get_memory(LENGTH);
	for (unsigned i = 0; i < THREADS; i++) {
		seed[i] = mp.rank * 100 + i;
		mp_check(!pthread_create(&thread[i], NULL, churn, &seed[i]), "thread");
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		exchange(&b, i);
		if (i % (ROUNDS / CHILDREN) == 0)
			fork_one(mine, i);
	}
	run_a_program();
	set_stop(true);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	if (mp.size > 1)
		check_mover(ROUNDS);
	mp_end();
	return 0;
}
