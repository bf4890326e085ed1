/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread.c - the records of the program's threads, and the rules that debug builds check
 *
 * A thread gets a record at its first call, and gives it back when it ends.  Operations
 * that it leaves unfinished stay with the record.  In GASNET_SEQ there is one record.
 */
#include "internal.h"

GASNETI_TLS struct gasneti_thread *gasneti_self_word;

static gasneti_lock_t table_lock = GASNETI_UNLOCKED;

static uint64_t op_bits(const struct gasneti_thread *self, uint32_t index, uint16_t turn)
{
	return (uint64_t)index << GASNETI_OP_SHIFT |
	       (uint64_t)self->index << GASNETI_THREAD_SHIFT |
	       (uint64_t)(turn & 0x7fff) << GASNETI_GENERATION_SHIFT;
}

static void op_init(struct gasneti_thread *self, struct gasneti_op *op, uint32_t index)
{
	op->thread = self;
	op->bits = op_bits(self, index, 0);
	op->next = self->free;
	self->free = op;
}

/* Add a chunk of operations to a thread's free list, if its table has room. */
void gasneti_op_more(struct gasneti_thread *self)
{
	uint32_t chunk = self->ops / GASNETI_OPS_CHUNK;
	if (chunk >= GASNETI_OPS_CHUNKS)
		return;
	struct gasneti_op *ops = calloc(GASNETI_OPS_CHUNK, sizeof(*ops));
	if (!ops)
		gasneti_fatal("no memory for operations; sync some of the %u", self->ops);
	self->table[chunk] = ops;
	for (uint32_t i = GASNETI_OPS_CHUNK; i-- > 0;)
		op_init(self, &ops[i], self->ops + i);
	self->ops += GASNETI_OPS_CHUNK;
}

/* Take an operation of the thread; return NULL if all are in use. */
struct gasneti_op *gasneti_op_begin(struct gasneti_thread *self)
{
	if (gasneti_unlikely(!self->free))
		gasneti_op_more(self);
	struct gasneti_op *op = self->free;
	if (gasneti_likely(op != NULL)) {
		self->free = op->next;
		op->live = 1;
	}
	return op;
}

/* Give a complete operation back. */
void gasneti_op_finish(struct gasneti_op *op)
{
	struct gasneti_thread *self = op->thread;
	uint32_t index = (uint32_t)(op->bits >> GASNETI_OP_SHIFT) & 0x1ffff;
	op->live = 0;
	op->bits = op_bits(self, index, ++op->generation);
	op->next = self->free;
	self->free = op;
}

static void thread_init(struct gasneti_thread *self, uint32_t index)
{
	self->index = index;
	self->blocking = gasneti_op_begin(self);
	self->implicit = gasneti_op_begin(self);
	self->async = gasneti_op_begin(self);
	self->current = self->implicit;
}

/* Return a record that no thread has, or NULL. */
static struct gasneti_thread *find_record(void)
{
	for (uint32_t i = 0; i < gasneti.set.max_threads; i++) {
		if (!gasneti.threads[i]) {
			struct gasneti_thread *self = calloc(1, sizeof(*self));
			if (!self)
				return NULL;
			thread_init(self, i);
			gasneti_release(&gasneti.threads[i], self);
		}
		if (!gasneti.threads[i]->in_use)
			return gasneti.threads[i];
	}
	return NULL;
}

#if GASNETI_THREADS
static pthread_key_t ended;

static void thread_end(void *record)
{
	struct gasneti_thread *self = record;
	gasneti_lock(&table_lock);
	self->in_use = 0;
	gasneti_unlock(&table_lock);
}
#endif

void gasneti_threads_init(void)
{
	gasneti.threads = calloc(gasneti.set.max_threads, sizeof(*gasneti.threads));
	if (!gasneti.threads)
		gasneti_fatal("no memory for the table of threads");
#if GASNETI_THREADS
	if (pthread_key_create(&ended, thread_end))
		gasneti_fatal("no key for the ends of threads");
#endif
	gasneti_thread_begin();
}

/* Give the calling thread its record. */
GASNETI_RARE struct gasneti_thread *gasneti_thread_begin(void)
{
	if (gasneti.state == GASNETI_FRESH)
		gasneti_fatal("a call before gasnet_init");
	gasneti_lock(&table_lock);
	struct gasneti_thread *self = find_record();
	if (self) {
		self->in_use = 1;
		self->current =
			self->implicit; /* the last thread may have left a region */
		self->held = NULL;
		self->in_handler = self->in_hold = 0;
	}
	gasneti_unlock(&table_lock);
	if (!self)
		gasneti_fatal("more than %u threads use GASNet; raise GASNET_MAX_THREADS "
			      "(%u at most)",
			gasneti.set.max_threads, GASNETI_MAX_THREADS);
#if GASNETI_THREADS
	pthread_setspecific(ended, self);
#endif
	gasneti_self_word = self;
	return self;
}

gasnet_threadinfo_t gasneti_threadinfo(void)
{
	return gasneti_self();
}

#ifdef GASNET_DEBUG
void gasneti_check_main(const char *function)
{
	if (gasneti.state != GASNETI_ATTACHED)
		gasneti_fatal("%s before gasnet_attach", function);
	const struct gasneti_thread *self = gasneti_self();
	if (self->in_handler)
		gasneti_fatal("%s in a handler", function);
	if (self->held)
		gasneti_fatal("%s with a handler-safe lock held", function);
	if (self->in_hold)
		gasneti_fatal("%s in a no-interrupt section", function);
}

void gasneti_check_remote(
	const char *function, uint32_t node, const void *addr, size_t nbytes)
{
	gasneti_check_main(function);
	if (node >= gasneti.nodes)
		gasneti_fatal("%s: there is no node %u", function, node);
	const struct gasneti_peer *peer = &gasneti.peers[node];
	uintptr_t offset = (uintptr_t)addr - peer->base;
	if (nbytes && (offset >= peer->size || peer->size - offset < nbytes))
		gasneti_fatal("%s: %zu bytes at %p are outside of the segment of node %u",
			function, nbytes, addr, node);
}

void gasneti_check_value(const char *function, size_t nbytes)
{
	if (nbytes < 1 || nbytes > SIZEOF_GASNET_REGISTER_VALUE_T)
		gasneti_fatal("%s: nbytes is %zu, not 1 to %d", function, nbytes,
			SIZEOF_GASNET_REGISTER_VALUE_T);
}
#endif
