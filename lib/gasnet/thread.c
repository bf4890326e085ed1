/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread.c - the records of the program's threads and of their operations, handler-safe
 * locks, and the rules that debug builds check
 *
 * A thread gets a record at its first call, and gives it back when it ends.  Operations
 * that it leaves unfinished stay with the record.  In GASNET_SEQ there is one record.
 */
#include "internal.h"

GASNETI_TLS struct gasneti_thread *gasneti_self_word;

static gasneti_lock_t threads_lock = GASNETI_UNLOCKED;

static uint64_t op_bits(const struct gasneti_thread *self, uint32_t index, uint16_t turn)
{
	return (uint64_t)index << GASNETI_OP_SHIFT |
	       (uint64_t)self->index << GASNETI_THREAD_SHIFT |
	       (uint64_t)(turn & 0x7fff) << GASNETI_GENERATION_SHIFT;
}

/* Add a chunk of operations to a thread's free list, if its table has room. */
static void op_more(struct gasneti_thread *self)
{
	uint32_t chunk = self->ops / GASNETI_OPS_CHUNK;
	if (chunk >= GASNETI_OPS_CHUNKS)
		return;
	struct gasneti_op *ops = calloc(GASNETI_OPS_CHUNK, sizeof(*ops));
	if (!ops)
		gasneti_fatal("no memory for operations; sync some of the %u", self->ops);
	self->table[chunk] = ops;
	for (uint32_t i = GASNETI_OPS_CHUNK; i-- > 0;) {
		ops[i].thread = self;
		ops[i].bits = op_bits(self, self->ops + i, 0);
		ops[i].next = self->free;
		self->free = &ops[i];
	}
	self->ops += GASNETI_OPS_CHUNK;
}

/* Take an operation of the thread; return NULL if all are in use. */
struct gasneti_op *gasneti_op_begin(struct gasneti_thread *self)
{
	if (gasneti_unlikely(!self->free))
		op_more(self);
	struct gasneti_op *op = self->free;
	if (gasneti_likely(op != NULL)) {
		self->free = op->next;
		op->live = 1;
	}
	return op;
}

/* Give a complete operation back. */
GASNETI_HOT void gasneti_op_finish(struct gasneti_op *op)
{
	struct gasneti_thread *self = op->thread;
	uint32_t index = (uint32_t)(op->bits >> GASNETI_OP_SHIFT) & 0x1ffff;
	op->live = 0;
	op->bits = op_bits(self, index, ++op->generation);
	op->next = self->free;
	self->free = op;
}

/* Return the operation that match bits name. */
struct gasneti_op *gasneti_op_of(uint64_t bits)
{
	uint32_t thread = (uint32_t)(bits >> GASNETI_THREAD_SHIFT) & 255;
	uint32_t index = (uint32_t)(bits >> GASNETI_OP_SHIFT) & 0x1ffff;
	struct gasneti_thread *self = gasneti_acquire(&gasneti.threads[thread]);
	return &self->table[index / GASNETI_OPS_CHUNK][index % GASNETI_OPS_CHUNK];
}

/* Return a record that no thread has, or NULL. */
static struct gasneti_thread *thread_find(void)
{
	for (uint32_t i = 0; i < gasneti.set.max_threads; i++) {
		if (!gasneti.threads[i]) {
			struct gasneti_thread *self = calloc(1, sizeof(*self));
			if (!self)
				return NULL;
			self->index = i;
			self->blocking = gasneti_op_begin(self);
			self->implicit = gasneti_op_begin(self);
			self->async = gasneti_op_begin(self);
			gasneti_release(&gasneti.threads[i], self);
		}
		if (!gasneti.threads[i]->in_use)
			return gasneti.threads[i];
	}
	return NULL;
}

#if GASNETI_THREADS
static pthread_key_t thread_key;

static void thread_end(void *record)
{
	struct gasneti_thread *self = record;
	gasneti_lock(&threads_lock);
	self->in_use = 0;
	gasneti_unlock(&threads_lock);
}
#endif

void gasneti_threads_init(void)
{
	gasneti.threads =
		gasneti_alloc(gasneti.set.max_threads, sizeof(*gasneti.threads));
#if GASNETI_THREADS
	if (pthread_key_create(&thread_key, thread_end))
		gasneti_fatal("no key for the ends of threads");
#endif
	gasneti_thread_begin();
}

/* Give the calling thread its record. */
GASNETI_RARE struct gasneti_thread *gasneti_thread_begin(void)
{
	if (gasneti.state == GASNETI_FRESH)
		gasneti_fatal("a call before gasnet_init");
	gasneti_lock(&threads_lock);
	struct gasneti_thread *self = thread_find();
	if (self) {
		self->in_use = 1;
		self->current =
			self->implicit; /* the last thread may have left a region */
		self->held = NULL;
		self->in_handler = self->in_hold = 0;
	}
	gasneti_unlock(&threads_lock);
	if (!self)
		gasneti_fatal("more than %u threads use GASNet; raise GASNET_MAX_THREADS "
			      "(%u at most)",
			gasneti.set.max_threads, GASNETI_MAX_THREADS);
#if GASNETI_THREADS
	pthread_setspecific(thread_key, self);
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
	if (nbytes && !gasneti_segment_has(peer->base, peer->size, addr, nbytes))
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

/* Tell all waiting threads to look at their conditions (poll.c). */
GASNETI_HOT void gasneti_wake(void)
{
	if (!GASNETI_THREADS)
		return;
	gasneti_seq_add(&gasneti.generation, 1);
	if (gasneti_unlikely(gasneti_seq_get(&gasneti.sleepers)))
		gasneti_futex_wake(&gasneti.generation);
}

/* ---- handler-safe locks and no-interrupt sections ---- */

/*
 * Handlers run only on threads that are inside the library, so a no-interrupt section,
 * and holding a lock, need no action: the calls that are legal in them run no handler.
 * With one thread (GASNET_SEQ) a lock excludes none; with several it is a mutex.  Debug
 * builds keep the locks of each thread in a list and check the rules.
 */
#ifdef GASNET_DEBUG

static void hsl_want_live(const gasnet_hsl_t *hsl, const char *function)
{
	if (hsl->state != GASNETI_HSL_LIVE)
		gasneti_fatal("%s: the lock is not initialized, or destroyed", function);
}

static void hsl_want_free(const gasnet_hsl_t *hsl, const char *function)
{
	hsl_want_live(hsl, function);
	if (hsl->holder == gasneti_self())
		gasneti_fatal("%s: the thread holds the lock already", function);
}

static void hsl_held(gasnet_hsl_t *hsl)
{
	struct gasneti_thread *self = gasneti_self();
	hsl->holder = self;
	hsl->below = self->held;
	self->held = hsl;
}

static void hsl_released(gasnet_hsl_t *hsl)
{
	struct gasneti_thread *self = gasneti_self();
	hsl_want_live(hsl, "gasnet_hsl_unlock");
	if (hsl->holder != self)
		gasneti_fatal("gasnet_hsl_unlock: the thread does not hold the lock");
	if (self->held != hsl)
		gasneti_fatal("gasnet_hsl_unlock: not in the reverse order of locking");
	self->held = hsl->below;
	hsl->holder = NULL;
	hsl->below = NULL;
}

/* Begin or end a no-interrupt section; no effect with a lock held, or in a handler. */
static void hold_set(uint8_t in, const char *wrong)
{
	struct gasneti_thread *self = gasneti_self();
	if (self->held || self->in_handler)
		return;
	if (self->in_hold == in)
		gasneti_fatal("%s", wrong);
	self->in_hold = in;
}

#else
#define hsl_want_live(hsl, function) ((void)0)
#define hsl_want_free(hsl, function) ((void)0)
#define hsl_held(hsl)                ((void)0)
#define hsl_released(hsl)            ((void)0)
#define hold_set(in, wrong)          ((void)0)
#endif

void gasnet_hold_interrupts(void)
{
	hold_set(1, "gasnet_hold_interrupts: the section is nested");
}

void gasnet_resume_interrupts(void)
{
	hold_set(0, "gasnet_resume_interrupts without gasnet_hold_interrupts");
}

void gasnet_hsl_init(gasnet_hsl_t *hsl)
{
	static const gasnet_hsl_t fresh = GASNET_HSL_INITIALIZER;
#ifdef GASNET_DEBUG
	if (hsl->state == GASNETI_HSL_LIVE)
		gasneti_fatal("gasnet_hsl_init: the lock is initialized already");
#endif
	*hsl = fresh;
}

void gasnet_hsl_destroy(gasnet_hsl_t *hsl)
{
	hsl_want_live(hsl, "gasnet_hsl_destroy");
	if (hsl->holder || (GASNETI_THREADS && pthread_mutex_destroy(&hsl->mutex)))
		gasneti_fatal("gasnet_hsl_destroy: the lock is held");
	hsl->state = 0;
}

void gasnet_hsl_lock(gasnet_hsl_t *hsl)
{
	hsl_want_free(hsl, "gasnet_hsl_lock");
	if (GASNETI_THREADS)
		pthread_mutex_lock(&hsl->mutex);
	hsl_held(hsl);
}

int gasnet_hsl_trylock(gasnet_hsl_t *hsl)
{
	hsl_want_free(hsl, "gasnet_hsl_trylock");
	if (GASNETI_THREADS && pthread_mutex_trylock(&hsl->mutex))
		return GASNET_ERR_NOT_READY;
	hsl_held(hsl);
	return GASNET_OK;
}

void gasnet_hsl_unlock(gasnet_hsl_t *hsl)
{
	hsl_released(hsl);
	if (GASNETI_THREADS)
		pthread_mutex_unlock(&hsl->mutex);
}
