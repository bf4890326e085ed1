/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring - a message goes around all nodes, many times
 *
 *	yod -sz N ring
 *
 * A request handler may send nothing but one reply, so it only notes that the ball has
 * come, and the main line sends the ball on.  GASNET_BLOCKUNTIL serves the network
 * meanwhile.
 */
#include "start.h"

#include <time.h>

enum { H_BALL = 200, ROUNDS = 1000 };

static volatile int balls; /* balls that have come to this node */
static volatile int hops;  /* of the last one */

static void ball(gasnet_token_t token, gasnet_handlerarg_t made)
{
	gasnet_node_t from;
	check(gasnet_AMGetMsgSource(token, &from), "gasnet_AMGetMsgSource");
	expect(from == (me + nodes - 1) % nodes, "the ball comes from the left");
	hops = made;
	balls++;
}

static double seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void throw(int made)
{
	check(gasnet_AMRequestShort1((me + 1) % nodes, H_BALL, made),
		"gasnet_AMRequestShort1");
}

/* Throw and catch; node 0 begins each round. */
static void play(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		if (me == 0)
			throw(round * (int)nodes + 1);
		GASNET_BLOCKUNTIL(balls == round + 1);
		expect(hops == round * (int)nodes + (me ? (int)me : (int)nodes), "hops");
		if (me != 0)
			throw(hops + 1);
	}
}

int main(int argc, char **argv)
{
	gasnet_handlerentry_t handlers[] = {{H_BALL, ball}};
	start(&argc, &argv, handlers, 1, 0);
	meet();
	double begun = seconds();
	play();
	double each = (seconds() - begun) / ROUNDS / nodes;
	if (me == 0)
		printf("%d rounds of %u nodes, %.2f microseconds a hop\n", ROUNDS, nodes,
			each * 1e6);
	meet(); /* gasnet_exit ends all nodes */
	gasnet_exit(0);
}
