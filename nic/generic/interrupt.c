/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interrupt.
 *
 * Memory ordering:
 *	IRQ.1	Dekker: the firmware stores staged (GEN.1), fences, and looks at asleep;
 *		the host's thread stores asleep, fences, and looks at staged.  Without the
 *		fences the thread sleeps while an entry waits for it.
 */
#include "nic/generic/interrupt.h"

#include "shm/fault.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The signal of PTL3_INTERRUPT=signal, the last real-time signal.  It is sent to the
 * host's thread alone, which blocks all signals and takes this one by sigtimedwait(), so
 * no handler of the program runs. */
static int line_signal(void)
{
	return SIGRTMAX;
}

static bool has_news(const struct p3_generic *g)
{
	return p3_acquire(&g->staged) != p3_get(&g->handled) ||
	       p3_get(&g->stop); /* GEN.1 */
}

static void wake(struct p3_generic *g)
{
	if (g->how == P3_INTERRUPT_SIGNAL)
		(void)syscall(SYS_tgkill, getpid(), p3_get(&g->tid), line_signal());
	else
		p3_futex_wake(&g->asleep, ~0u, false);
}

void p3_interrupt_raise(struct p3_nic *n)
{
	struct p3_generic *g = n->generic;
	p3_fence(); /* IRQ.1 */
	if (!p3_get(&g->asleep) || !has_news(g) || !p3_exchange32(&g->asleep, 0))
		return;
	p3_count(&n->count[P3_C_INTERRUPTS], 1);
	FAULT_POINT("interrupt.raised");
	wake(g);
}

static void sleep_until_signal(struct p3_generic *g, uint64_t ns)
{
	const struct timespec most = {.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u)};
	sigset_t line;
	sigemptyset(&line);
	sigaddset(&line, line_signal());
	while (p3_get(&g->asleep) && sigtimedwait(&line, NULL, &most) > 0)
		; /* else a signal of an earlier interrupt */
}

static void sleep_until_raised(struct p3_generic *g)
{
	p3_set(&g->asleep, 1);
	p3_fence(); /* IRQ.1 */
	FAULT_POINT("interrupt.enabled");
	if (has_news(g))
		(void)0;
	else if (g->how == P3_INTERRUPT_SIGNAL)
		sleep_until_signal(g, P3_SAFETY_NS);
	else
		(void)p3_futex_wait(&g->asleep, 1, P3_SAFETY_NS, ~0u, false);
	p3_set(&g->asleep, 0);
}

/* Look at the queue for a while.  Return true if there is an entry. */
static bool poll(struct p3_nic *n)
{
	const struct p3_idle_policy policy = {P3_SPIN_NS, P3_YIELD_NS};
	struct p3_waiter idle = {0};
	for (;;) {
		if (has_news(n->generic))
			return true;
		switch (p3_waiter_turn(&idle, &policy)) {
		case P3_IDLE_SPIN:
			p3_relax();
			break;
		case P3_IDLE_YIELD:
			p3_waiter_yield(&idle);
			break;
		default:
			return false;
		}
	}
}

void p3_interrupt_await(struct p3_nic *n)
{
	struct p3_generic *g = n->generic;
	if (g->how != P3_INTERRUPT_POLL || !poll(n))
		sleep_until_raised(g);
}

void p3_interrupt_stop(struct p3_generic *g)
{
	p3_set(&g->stop, 1);
	p3_fence(); /* IRQ.1 */
	p3_set(&g->asleep, 0);
	wake(g);
}
