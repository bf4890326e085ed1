/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hsl.c - handler-safe locks and no-interrupt sections
 *
 * Handlers run only on threads that are inside the library, so a no-interrupt section,
 * and holding a lock, need no action: the calls that are legal in them run no handler.
 * With one thread (GASNET_SEQ) a lock excludes none; with several it is a mutex.  Debug
 * builds keep the locks of each thread in a list and check the rules.
 */
#include "internal.h"

#ifdef GASNET_DEBUG

static void want_live(const gasnet_hsl_t *hsl, const char *function)
{
	if (hsl->state != GASNETI_HSL_LIVE)
		gasneti_fatal("%s: the lock is not initialized, or destroyed", function);
}

static void want_free(const gasnet_hsl_t *hsl, const char *function)
{
	want_live(hsl, function);
	if (hsl->holder == gasneti_self())
		gasneti_fatal("%s: the thread holds the lock already", function);
}

static void held(gasnet_hsl_t *hsl)
{
	struct gasneti_thread *self = gasneti_self();
	hsl->holder = self;
	hsl->below = self->held;
	self->held = hsl;
}

static void released(gasnet_hsl_t *hsl)
{
	struct gasneti_thread *self = gasneti_self();
	want_live(hsl, "gasnet_hsl_unlock");
	if (hsl->holder != self)
		gasneti_fatal("gasnet_hsl_unlock: the thread does not hold the lock");
	if (self->held != hsl)
		gasneti_fatal("gasnet_hsl_unlock: not in the reverse order of locking");
	self->held = hsl->below;
	hsl->holder = NULL;
	hsl->below = NULL;
}

/* With a lock held, or in a handler, these have no effect. */
static bool ignored(const struct gasneti_thread *self)
{
	return self->held || self->in_handler;
}

void gasnet_hold_interrupts(void)
{
	struct gasneti_thread *self = gasneti_self();
	if (ignored(self))
		return;
	if (self->in_hold)
		gasneti_fatal("gasnet_hold_interrupts: the section is nested");
	self->in_hold = 1;
}

void gasnet_resume_interrupts(void)
{
	struct gasneti_thread *self = gasneti_self();
	if (ignored(self))
		return;
	if (!self->in_hold)
		gasneti_fatal("gasnet_resume_interrupts without gasnet_hold_interrupts");
	self->in_hold = 0;
}

#else

static void want_live(const gasnet_hsl_t *hsl, const char *function)
{
	(void)hsl, (void)function;
}

static void want_free(const gasnet_hsl_t *hsl, const char *function)
{
	(void)hsl, (void)function;
}

static void held(gasnet_hsl_t *hsl)
{
	(void)hsl;
}

static void released(gasnet_hsl_t *hsl)
{
	(void)hsl;
}

void gasnet_hold_interrupts(void)
{
}

void gasnet_resume_interrupts(void)
{
}

#endif

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
	want_live(hsl, "gasnet_hsl_destroy");
	if (GASNETI_THREADS && pthread_mutex_destroy(&hsl->mutex))
		gasneti_fatal("gasnet_hsl_destroy: the lock is held");
#ifdef GASNET_DEBUG
	if (hsl->holder)
		gasneti_fatal("gasnet_hsl_destroy: the lock is held");
#endif
	hsl->state = 0;
}

void gasnet_hsl_lock(gasnet_hsl_t *hsl)
{
	want_free(hsl, "gasnet_hsl_lock");
	if (GASNETI_THREADS)
		pthread_mutex_lock(&hsl->mutex);
	held(hsl);
}

int gasnet_hsl_trylock(gasnet_hsl_t *hsl)
{
	want_free(hsl, "gasnet_hsl_trylock");
	if (GASNETI_THREADS && pthread_mutex_trylock(&hsl->mutex))
		return GASNET_ERR_NOT_READY;
	held(hsl);
	return GASNET_OK;
}

void gasnet_hsl_unlock(gasnet_hsl_t *hsl)
{
	released(hsl);
	if (GASNETI_THREADS)
		pthread_mutex_unlock(&hsl->mutex);
}
