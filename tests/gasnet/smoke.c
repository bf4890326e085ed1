/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * smoke.c - a first test of GASNet over Portals: a bit of everything, in a minute
 *
 * usage: yod -sz N smoke [divisor]; the divisor makes fewer rounds; exit status 0 if all
 * is right
 */
#include <gasnet.h>
#include <gasnet_coll.h>

#include <unistd.h>

enum { SEGMENT = 16 << 20, H_ADD = 200, H_ADDED, H_ECHO, H_ECHOED, H_LONG, H_LONGED };

static gasnet_seginfo_t segments[1024];
static gasnet_node_t me, nodes, next, prev;
static volatile int added, echoed, longed, requests;
static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
static char echo[8192];
static int divisor = 1;

#define WANT(cond)                                                                       \
	do {                                                                             \
		if (!(cond)) {                                                           \
			fprintf(stderr, "smoke: node %u, line %d: wrong: %s\n", me,      \
				__LINE__, #cond);                                        \
			gasnet_exit(1);                                                  \
		}                                                                        \
	} while (0)

static void add(gasnet_token_t token, gasnet_handlerarg_t a, gasnet_handlerarg_t b)
{
	gasnet_hsl_lock(&lock);
	requests++;
	gasnet_hsl_unlock(&lock);
	gasnet_AMReplyShort1(token, H_ADDED, a + b);
}

static void added_up(gasnet_token_t token, gasnet_handlerarg_t sum)
{
	gasnet_node_t from;
	gasnet_AMGetMsgSource(token, &from);
	WANT(from < nodes);
	added += sum;
}

static void do_echo(gasnet_token_t token, void *buf, size_t nbytes,
	gasnet_handlerarg_t a0, gasnet_handlerarg_t a1, gasnet_handlerarg_t a2)
{
	WANT((uintptr_t)buf % 16 == 0);
	gasnet_AMReplyMedium3(token, H_ECHOED, buf, nbytes, a0, a1, a2);
}

static void got_echo(gasnet_token_t token, void *buf, size_t nbytes,
	gasnet_handlerarg_t a0, gasnet_handlerarg_t a1, gasnet_handlerarg_t a2)
{
	(void)token;
	WANT(a0 == (int)nbytes && a1 == -1 && a2 == INT32_MIN);
	memcpy(echo, buf, nbytes);
	echoed++;
}

static void do_long(gasnet_token_t token, void *buf, size_t nbytes,
	gasnet_handlerarg_t hi, gasnet_handlerarg_t lo, gasnet_handlerarg_t first)
{
	void *back = (void *)((uintptr_t)(uint32_t)hi << 32 | (uint32_t)lo);
	for (size_t i = 0; i < nbytes; i++)
		WANT(((unsigned char *)buf)[i] == (unsigned char)(first + (int)i));
	gasnet_AMReplyLong1(token, H_LONGED, buf, nbytes, back, first);
}

static void got_long(
	gasnet_token_t token, void *buf, size_t nbytes, gasnet_handlerarg_t first)
{
	(void)token;
	for (size_t i = 0; i < nbytes; i++)
		WANT(((unsigned char *)buf)[i] == (unsigned char)(first + (int)i));
	longed++;
}

static void barrier(void)
{
	gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
	WANT(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK);
}

static void test_short(void)
{
	const int N = 20000 / divisor;
	for (int i = 0; i < N; i++)
		WANT(gasnet_AMRequestShort2(next, H_ADD, i, -i + 1) == GASNET_OK);
	GASNET_BLOCKUNTIL(added == N);
	GASNET_BLOCKUNTIL(requests == N);
	barrier();
}

static void test_medium(void)
{
	static const size_t sizes[] = {
		0, 1, 7, 8, 9, 15, 16, 17, 511, 512, 1000, 1983, 1984};
	char out[1984];
	int n = 0;
	for (size_t k = 0; k < 20 * sizeof(sizes) / sizeof(*sizes); k++) {
		size_t size = sizes[k % (sizeof(sizes) / sizeof(*sizes))];
		for (size_t i = 0; i < size; i++)
			out[i] = (char)(i * 7 + k);
		gasnet_AMRequestMedium3(next, H_ECHO, out, size, size, -1, INT32_MIN);
		n++;
		GASNET_BLOCKUNTIL(echoed == n);
		WANT(memcmp(out, echo, size) == 0);
	}
	barrier();
}

static void test_long(void)
{
	static const size_t sizes[] = {0, 1, 8, 1900, 1968, 1969, 4095, 65536, 126976};
	unsigned char *out = malloc(1 << 17);
	char *to = (char *)segments[next].addr + 4096;
	char *back = (char *)segments[me].addr + (1 << 20);
	for (int k = 0; k < 90; k++) {
		size_t size = sizes[k % 9];
		for (size_t i = 0; i < size; i++)
			out[i] = (unsigned char)(k + (int)i);
		if (k & 1)
			gasnet_AMRequestLong3(next, H_LONG, out, size, to + k,
				(uintptr_t)(back + k) >> 32, (uintptr_t)(back + k), k);
		else
			gasnet_AMRequestLongAsync3(next, H_LONG, out, size, to + k,
				(uintptr_t)(back + k) >> 32, (uintptr_t)(back + k), k);
		GASNET_BLOCKUNTIL(longed == k + 1);
	}
	free(out);
	barrier();
}

static void test_put_get(void)
{
	char *there = segments[next].addr, *here = segments[me].addr;
	char *a = malloc(3 << 20), *b = malloc(3 << 20);
	for (size_t i = 0; i < 3 << 20; i++)
		a[i] = (char)(i * 13 + me);
	for (size_t n = 1; n <= 3 << 20; n = n * 3 + 1) {
		gasnet_put_bulk(next, there + 5, a + 1, n);
		memset(b, 0, n);
		gasnet_get_bulk(b, next, there + 5, n);
		WANT(memcmp(a + 1, b, n) == 0);
		gasnet_put(next, there, a, n);
		gasnet_get(here + (4 << 20), next, there, n);
		WANT(memcmp(a, here + (4 << 20), n) == 0);
	}
	gasnet_put_val(next, there, 0x1122334455667788, 5);
	WANT(gasnet_get_val(next, there, 5) == 0x4455667788);
	gasnet_memset(next, there + 100, 255, 100000);
	gasnet_get(b, next, there + 99, 100002);
	for (size_t i = 1; i <= 100000; i++)
		WANT(b[i] == (char)255);
	free(a);
	free(b);
	barrier();
}

static void test_nb(void)
{
	const uint64_t N = 65535 / (uint64_t)divisor;
	gasnet_handle_t *handles = malloc(N * sizeof(*handles));
	uint64_t *there = segments[next].addr, *here = segments[me].addr;
	for (uint64_t i = 0; i < N; i++) {
		uint64_t value = i * me + 1;
		handles[i] = i & 1 ? gasnet_put_nb(next, there + i, &value, 8)
				   : gasnet_put_nb_val(next, there + i, value, 8);
	}
	gasnet_wait_syncnb_all(handles, N);
	barrier();
	for (uint64_t i = 0; i < N; i++)
		WANT(here[i] == i * prev + 1);
	barrier();
	for (uint64_t i = 0; i < N + 1000; i++)
		gasnet_put_nbi_val(next, there + i % N, i, 8);
	gasnet_wait_syncnbi_all();
	gasnet_begin_nbi_accessregion();
	for (uint64_t i = 0; i < 1000; i++)
		gasnet_get_nbi(here + N + i, next, there + i, 8);
	gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
	for (uint64_t i = 0; i < 1000; i++)
		WANT(here[N + i] == i + N);
	gasnet_valget_handle_t values[100];
	for (int i = 0; i < 100; i++)
		values[i] = gasnet_get_nb_val(next, there + i, 8);
	for (int i = 99; i >= 0; i--)
		WANT(gasnet_wait_syncnb_valget(values[i]) == (uint64_t)i + N);
	free(handles);
	barrier();
}

static void test_barrier(void)
{
	for (int i = 0; i < 3000 / divisor; i++) {
		gasnet_barrier_notify(i, 0);
		if (i & 1)
			WANT(gasnet_barrier_wait(i, 0) == GASNET_OK);
		else {
			int rc;
			while ((rc = gasnet_barrier_try(i, 0)) == GASNET_ERR_NOT_READY)
				;
			WANT(rc == GASNET_OK);
		}
	}
	gasnet_barrier_notify((int)me, 0);
	int rc = gasnet_barrier_wait((int)me, 0);
	WANT(rc == (nodes == 1 ? GASNET_OK : GASNET_ERR_BARRIER_MISMATCH));
	barrier();
}

static void test_vis(void)
{
	double local[20][20], back[20][20];
	size_t there[] = {sizeof(double) * 100}, here[] = {sizeof(double) * 20};
	size_t count[] = {sizeof(double) * 10, 15};
	for (int i = 0; i < 400; i++)
		local[i / 20][i % 20] = i + me * 1000.0;
	memset(back, 0, sizeof(back));
	gasnet_puts_bulk(next, segments[next].addr, there, &local[2][3], here, count, 1);
	gasnet_gets_bulk(&back[2][3], here, next, segments[next].addr, there, count, 1);
	for (int i = 0; i < 15; i++)
		for (int j = 0; j < 10; j++)
			WANT(back[2 + i][3 + j] == local[2 + i][3 + j]);
	barrier();
}

static void test_coll(void)
{
	int flags = GASNET_COLL_LOCAL | GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC;
	int *all = malloc(nodes * sizeof(int) * 1000), mine[1000];
	gasnet_coll_init(0, 0, 0, 0, 0);
	for (gasnet_image_t root = 0; root < nodes; root++) {
		for (int i = 0; i < 1000; i++)
			mine[i] = (int)(me * 1000) + i;
		gasnet_coll_broadcast(
			GASNET_TEAM_ALL, all, root, mine, sizeof(mine), flags);
		for (int i = 0; i < 1000; i++)
			WANT(all[i] == (int)(root * 1000) + i);
	}
	gasnet_coll_gather_all(GASNET_TEAM_ALL, all, mine, sizeof(mine), flags);
	for (int i = 0; i < (int)nodes * 1000; i++)
		WANT(all[i] == i);
	free(all);
	barrier();
}

int main(int argc, char **argv)
{
	gasnet_handlerentry_t table[] = {{H_ADD, add}, {H_ADDED, added_up},
		{H_ECHO, do_echo}, {H_ECHOED, got_echo}, {H_LONG, do_long},
		{H_LONGED, got_long}};
	if (gasnet_init(&argc, &argv) != GASNET_OK)
		return 1;
	WANT(gasnet_attach(table, sizeof(table) / sizeof(*table), SEGMENT, 0) ==
		GASNET_OK);
	if (argc > 1)
		divisor = atoi(argv[1]);
	me = gasnet_mynode();
	nodes = gasnet_nodes();
	next = (me + 1) % nodes;
	prev = (me + nodes - 1) % nodes;
	WANT(gasnet_getSegmentInfo(segments, 1024) == GASNET_OK);
	test_short();
	test_medium();
	test_long();
	test_put_get();
	test_nb();
	test_barrier();
	test_vis();
	test_coll();
	if (me == 0)
		puts("smoke: all right");
	barrier();
	gasnet_exit(0);
}
