/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table - a hash table whose buckets are spread over the nodes
 *
 *	yod -sz N table
 *
 * A key belongs to the node hash(key) % N.  Adding to a key is a request to that node,
 * whose handler changes the table under a handler-safe lock: the main line of the node
 * reads the table at the same time.  Looking a key up is a request with a reply, which
 * carries the address of the answer.
 */
#include "start.h"

enum { H_ADD = 200, H_ADDED, H_FIND, H_FOUND, SLOTS = 4096, KEYS = 1000, ROUNDS = 20 };

static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
static struct {
	uint32_t key; /* 0: the slot is free */
	int32_t sum;
} table[SLOTS];
static volatile int answers;

struct answer {
	volatile int come;
	int32_t sum;
};

static uint32_t hash(uint32_t key)
{
	return key * 0x9e3779b1u >> 8;
}

static gasnet_node_t owner(uint32_t key)
{
	return hash(key) % nodes;
}

/* Return the key's slot; the caller holds the lock. */
static uint32_t slot_of(uint32_t key)
{
	uint32_t slot = hash(key) / nodes % SLOTS;
	while (table[slot].key && table[slot].key != key)
		slot = (slot + 1) % SLOTS;
	return slot;
}

static void add(gasnet_token_t token, gasnet_handlerarg_t key, gasnet_handlerarg_t n)
{
	gasnet_hsl_lock(&lock);
	uint32_t slot = slot_of((uint32_t)key);
	table[slot].key = (uint32_t)key;
	table[slot].sum += n;
	gasnet_hsl_unlock(&lock);
	gasnet_AMReplyShort0(token, H_ADDED);
}

static void added(gasnet_token_t token)
{
	(void)token;
	answers++;
}

static void find(gasnet_token_t token, gasnet_handlerarg_t key, gasnet_handlerarg_t hi,
	gasnet_handlerarg_t lo)
{
	gasnet_hsl_lock(&lock);
	uint32_t slot = slot_of((uint32_t)key);
	int32_t sum = table[slot].key ? table[slot].sum : 0;
	gasnet_hsl_unlock(&lock);
	gasnet_AMReplyShort3(token, H_FOUND, sum, hi, lo);
}

static void found(gasnet_token_t token, gasnet_handlerarg_t sum, gasnet_handlerarg_t hi,
	gasnet_handlerarg_t lo)
{
	struct answer *answer =
		(struct answer *)((uintptr_t)(uint32_t)hi << 32 | (uint32_t)lo);
	(void)token;
	answer->sum = sum;
	answer->come = 1;
}

/* Return the sum of a key, wherever it is. */
static int32_t look_up(uint32_t key)
{
	struct answer answer = {0, 0};
	uintptr_t at = (uintptr_t)&answer;
	check(gasnet_AMRequestShort3(owner(key), H_FIND, key, at >> 32, at),
		"gasnet_AMRequestShort3");
	GASNET_BLOCKUNTIL(answer.come);
	return answer.sum;
}

/* Add up this node's part of the table. */
static long my_total(void)
{
	long total = 0;
	gasnet_hsl_lock(&lock);
	for (int i = 0; i < SLOTS; i++)
		total += table[i].sum;
	gasnet_hsl_unlock(&lock);
	return total;
}

static void fill(void)
{
	int sent = 0;
	for (int round = 1; round <= ROUNDS; round++)
		for (uint32_t key = 1; key <= KEYS; key++, sent++)
			check(gasnet_AMRequestShort2(owner(key), H_ADD, key, round),
				"gasnet_AMRequestShort2");
	GASNET_BLOCKUNTIL(answers == sent);
}

int main(int argc, char **argv)
{
	gasnet_handlerentry_t handlers[] = {
		{H_ADD, add}, {H_ADDED, added}, {H_FIND, find}, {H_FOUND, found}};
	start(&argc, &argv, handlers, 4, 0);
	fill();
	meet();
	int32_t want = (int32_t)nodes * ROUNDS * (ROUNDS + 1) / 2;
	for (uint32_t key = 1; key <= KEYS; key++)
		expect(look_up(key) == want, "the sum of a key");
	expect(look_up(KEYS + 1) == 0, "a key that is not there");
	expect(my_total() % want == 0, "the sum of this node's keys");
	if (me == 0)
		printf("%d keys on %u nodes, each with the sum %d\n", KEYS, nodes, want);
	meet(); /* gasnet_exit ends all nodes */
	gasnet_exit(0);
}
