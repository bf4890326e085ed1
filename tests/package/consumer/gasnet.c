/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of GASNet only, in C99 and in C++17, for each mode: each node sends a message
 * to the next one, puts a number into its segment, and compares.
 */
#include <gasnet.h>
#include <gasnet_tools.h>

enum { H_REQUEST = 200, H_REPLY = 201, KEY = 1000 };

static gasnett_atomic_t replies = gasnett_atomic_init(0);
static int wrong;

static void check(int good, const char *what)
{
	if (!good) {
		fprintf(stderr, "node %u: wrong: %s\n", gasnet_mynode(), what);
		wrong = 1;
	}
}

static void request(gasnet_token_t token, void *text, size_t bytes, gasnet_handlerarg_t a)
{
	gasnet_node_t from = 0;
	check(gasnet_AMGetMsgSource(token, &from) == GASNET_OK, "gasnet_AMGetMsgSource");
	check(a == (gasnet_handlerarg_t)from, "argument of the request");
	check(bytes == 6 && !strcmp((const char *)text, "hello"), "payload");
	check(gasnet_AMReplyShort1(token, H_REPLY, a + 1) == GASNET_OK, "reply");
}

static void reply(gasnet_token_t token, gasnet_handlerarg_t a)
{
	(void)token;
	check(a == (gasnet_handlerarg_t)gasnet_mynode() + 1, "argument of the reply");
	gasnett_atomic_increment(&replies, 0);
}

static void meet(void)
{
	gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
	check(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK,
		"barrier");
}

/* Put a number to the next node, and compare the one that the node before has put. */
static void put(gasnet_node_t me, gasnet_node_t nodes, gasnet_node_t next)
{
	gasnet_seginfo_t segment[GASNET_MAXNODES];
	int mine = KEY + (int)me, before = KEY + (int)((me + nodes - 1) % nodes);
	check(gasnet_getSegmentInfo(segment, (int)nodes) == GASNET_OK, "segments");
	gasnet_handle_t handle =
		gasnet_put_nb_bulk(next, segment[next].addr, &mine, sizeof mine);
	gasnet_wait_syncnb(handle);
	meet();
	check(*(int *)segment[me].addr == before, "the number in the segment");
}

int main(int argc, char **argv)
{
	gasnet_handlerentry_t handlers[] = {
		{H_REQUEST, (void (*)())request}, {H_REPLY, (void (*)())reply}};
	char hello[] = "hello";
	if (gasnet_init(&argc, &argv) != GASNET_OK ||
		gasnet_attach(handlers, 2, GASNET_PAGESIZE, 0) != GASNET_OK)
		return 1;
	gasnet_node_t me = gasnet_mynode(), nodes = gasnet_nodes();
	gasnet_node_t next = (me + 1) % nodes;
	check(gasnet_AMRequestMedium1(next, H_REQUEST, hello, 6, me) == GASNET_OK,
		"request");
	GASNET_BLOCKUNTIL(gasnett_atomic_read(&replies, 0) == 1);
	put(me, nodes, next);
	if (me == 0 && !wrong)
		printf("gasnet works: %u nodes\n", nodes);
	meet(); /* gasnet_exit ends all nodes */
	gasnet_exit(wrong);
	return 0;
}
