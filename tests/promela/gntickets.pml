/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What nodes of GASNet wait for (lib/gasnet/am.c, am_send.c): each of NODES sends
 * requests to each other one; a request takes a credit of its target and a chunk, which
 * its reply brings back, and a reply takes a chunk, which its SEND_END brings back.  The
 * polls of a node that waits for these also advance its collectives: node 0 has a block
 * to send, by a request to the same node, and the request that waits goes on when that is
 * sent.
 *
 * Checked: no deadlock; each node gets all its replies; no request handler begins inside
 * of another one; the queues have room for all events.
 *
 * Bounds: one credit for each peer, one chunk for requests, one for replies, and EACH
 * requests from each node to each other one.  The wire delivers at any time.
 */
#ifndef NODES
#define NODES 3
#endif
#define CREDITS 1
#define CHUNKS  1 /* of requests */
#define REPLIES 1 /* chunks of replies */
#define OTHERS  (NODES - 1)

#ifndef WITHOUT
#define WITHOUT 0
#endif
#define TICKET_1_request_begin 1 /* serve requests while credits lack */
#define TICKET_2_reply_chunk   2 /* serve no requests while a reply waits */
#define TICKET_3_make_queues   3 /* a queue of its own for requests */
#define TICKET_4_request_try   4 /* take the credit and the chunk, or neither */

#ifdef LARGE
#define EACH 2
#else /* one mistake shows with two */
#define EACH (WITHOUT == TICKET_3_make_queues -> 2 : 1)
#endif

#define BLOCKS (me == 0)

#define REQUEST 0
#define REPLY   1
#define SENT    2 /* SEND_END of a reply */

#define SAFE_ROOM (3 * CHUNKS + REPLIES)
#define AM_ROOM   (OTHERS * CREDITS)
#define ROOM      (SAFE_ROOM + AM_ROOM)

chan safe[NODES] = [ROOM] of { byte, byte }; /* kind, node */
chan am[NODES] = [ROOM] of { byte, byte };

byte credit[NODES * NODES] = CREDITS;
byte chunks[NODES] = CHUNKS, replies[NODES] = REPLIES;
byte answered[NODES]; /* replies that have come */
byte sent[NODES];     /* SEND_ENDs on their way */
byte done;

/* The queue of an event: one queue for all is the mistake. */
inline post(to, kind, from)
{
	if
	:: kind == REQUEST || WITHOUT == TICKET_3_make_queues ->
		assert(nfull(am[to]));
		am[to]!kind, from;
		assert(len(am[to]) <= AM_ROOM || WITHOUT == TICKET_3_make_queues)
	:: else ->
		safe[to]!kind, from;
		assert(len(safe[to]) <= SAFE_ROOM)
	fi
}

/* Handle an event of class 1: it needs nothing. */
inline safe_event(kind, from)
{
	if
	:: kind == REPLY ->
		credit[me * NODES + from]++;
		chunks[me]++;
		answered[me]++
	:: kind == SENT -> replies[me]++
	fi;
	kind = 0;
	node = 0
}

/* Run a request's handler, whose reply waits for a chunk with SAFE polls alone. */
inline serve(from)
{
	assert(!in_handler);
	in_handler = true;
	asker = from;
	kind = 0;
	node = 0;
	do
	:: atomic { replies[me] -> replies[me]--; sent[me]++; break }
	:: atomic { safe[me]?kind, node -> safe_event(kind, node) }
	:: atomic {
		WITHOUT == TICKET_3_make_queues && am[me]?[REPLY, node] ->
		am[me]?kind, node; safe_event(kind, node)
	}
	:: atomic {
		WITHOUT == TICKET_3_make_queues && am[me]?[SENT, node] ->
		am[me]?kind, node; safe_event(kind, node)
	}
	:: atomic {
		WITHOUT == TICKET_2_reply_chunk && am[me]?[REQUEST, node] ->
		assert(!in_handler)
	}
	od;
	atomic { post(asker, REPLY, me); in_handler = false; asker = 0 }
}

proctype program(byte me)
{
	byte to, count, blocks, kind, node, asker;
	bool in_handler, in_collective, held;
	to = (me + 1) % NODES;
	blocks = BLOCKS;
	do
	/* Send a request when its credit and its chunk are there. */
	:: atomic {
		!in_collective && count < EACH * OTHERS && chunks[me] &&
		(held || credit[me * NODES + to]) ->
		if :: held -> held = false :: else -> credit[me * NODES + to]-- fi;
		chunks[me]--;
		post(to, REQUEST, me);
		count++;
		to = (to + 1) % NODES;
		if :: to == me -> to = (to + 1) % NODES :: else fi
	}
	:: atomic {
		WITHOUT == TICKET_4_request_try && !in_collective && !held &&
		count < EACH * OTHERS && credit[me * NODES + to] ->
		credit[me * NODES + to]--;
		held = true
	}
	/* Send the block of a collective, from within a poll. */
	:: atomic { blocks && !in_collective -> in_collective = true; blocks-- }
	:: atomic {
		in_collective && credit[me * NODES + to] && chunks[me] ->
		credit[me * NODES + to]--;
		chunks[me]--;
		post(to, REQUEST, me);
		in_collective = false
	}
	/* Poll. */
	:: atomic { safe[me]?kind, node -> safe_event(kind, node) }
	:: atomic {
		am[me]?[kind, node] &&
		!(WITHOUT == TICKET_1_request_begin && count < EACH * OTHERS) ->
		am[me]?kind, node
	};
		if
		:: kind == REQUEST -> serve(node)
		:: else -> atomic { safe_event(kind, node) }
		fi
	:: answered[me] == EACH * OTHERS + BLOCKS -> break
	od;
	/* All replies are there: this node polls until all nodes have theirs. */
	done++;
	do
	:: atomic { safe[me]?kind, node -> safe_event(kind, node) }
	:: atomic { am[me]?kind, node };
		if
		:: kind == REQUEST -> serve(node)
		:: else -> atomic { safe_event(kind, node) }
		fi
	:: done == NODES -> break
	od
}

/* The wire tells a node that a reply has left its chunk. */
proctype wire(byte me)
{
end:	do
	:: atomic { sent[me] -> sent[me]--; post(me, SENT, me) }
	od
}

init {
	byte i;
	atomic {
		do
		:: i < NODES -> run program(i); run wire(i); i++
		:: else -> break
		od
	}
}
