/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * barrier.c - the split barrier: dissemination by zero-length puts
 *
 * In step s of a phase a node tells node me + 2^s the join of all values that it knows,
 * and waits for the message of node me - 2^s.  The join is idempotent and commutative, so
 * the number of nodes need not be a power of two.  A peer is at most one phase ahead: two
 * sets of slots are enough, by the phase's parity.
 *
 * Match bits: 3..0 the descriptor, 4 the parity, 9..5 the step.  Header data: 63..32 the
 * state, 31..0 the id.  A message that the network has no room for stays pending, and
 * each poll tries again.  Nothing here waits; the calls that do are in team.c.
 *
 * The lock protects everything here.  Threads that wait read step and steps under it.
 */
#include "internal.h"

enum { ANONYMOUS, NAMED, MISMATCH };
enum { PARITY_SHIFT = 4, STEP_SHIFT = 5 };

static gasneti_lock_t bar_lock = GASNETI_UNLOCKED;
static struct {
	uint32_t phase, step, steps;
	bool notified, unsent;
	uint64_t known; /* join of the values; after a phase, of all of them */
	bool got[2][GASNETI_BARRIER_STEPS];
	uint64_t value[2][GASNETI_BARRIER_STEPS];
} bar;

static uint64_t bar_make(uint32_t state, uint32_t id)
{
	return (uint64_t)state << 32 | id;
}

/* Return the value that a node notifies. */
uint64_t gasneti_barrier_value(int id, int flags)
{
	if (flags & GASNET_BARRIERFLAG_MISMATCH)
		return bar_make(MISMATCH, 0);
	return flags & GASNET_BARRIERFLAG_ANONYMOUS ? bar_make(ANONYMOUS, 0)
						    : bar_make(NAMED, (uint32_t)id);
}

/* Join two values: anonymous < named < mismatch. */
uint64_t gasneti_barrier_join(uint64_t a, uint64_t b)
{
	uint32_t of_a = (uint32_t)(a >> 32), of_b = (uint32_t)(b >> 32);
	if (of_a == NAMED && of_b == NAMED && a != b)
		return bar_make(MISMATCH, 0);
	return of_a >= of_b ? a : b;
}

static void bar_send_step(void)
{
	uint32_t to =
		(uint32_t)((gasneti.me + ((uint64_t)1 << bar.step)) % gasneti.nodes);
	uint64_t bits = GASNETI_MD_BARRIER | (uint64_t)(bar.phase & 1) << PARITY_SHIFT |
			(uint64_t)bar.step << STEP_SHIFT;
	bool sent = gasneti_note(to, bits, bar.known);
	if (sent == bar.unsent) {
		bar.unsent = !sent;
		gasneti_add(&gasneti.unsent, sent ? UINT32_MAX : 1);
	}
}

/* Go on as far as the messages allow. */
static void bar_advance(void)
{
	if (!bar.notified)
		return;
	uint32_t parity = bar.phase & 1;
	while (bar.step < bar.steps && bar.got[parity][bar.step] && !bar.unsent) {
		bar.got[parity][bar.step] = false;
		bar.known = gasneti_barrier_join(bar.known, bar.value[parity][bar.step]);
		if (++bar.step < bar.steps)
			bar_send_step();
	}
	if (bar.step == bar.steps)
		gasneti_wake();
}

void gasneti_barrier_event(const ptl_event_t *ev)
{
	uint32_t parity = (uint32_t)(ev->match_bits >> PARITY_SHIFT) & 1;
	uint32_t step = (uint32_t)(ev->match_bits >> STEP_SHIFT) & 31;
	if (step >= GASNETI_BARRIER_STEPS)
		gasneti_fatal("a barrier message of step %u", step);
	gasneti_lock(&bar_lock);
	bar.got[parity][step] = true;
	bar.value[parity][step] = ev->hdr_data;
	bar_advance();
	gasneti_unlock(&bar_lock);
}

/* Send the message that the network had no room for. */
void gasneti_barrier_resend(void)
{
	gasneti_lock(&bar_lock);
	if (bar.unsent) {
		bar_send_step();
		bar_advance();
	}
	gasneti_unlock(&bar_lock);
}

void gasnet_barrier_notify(int id, int flags)
{
	gasneti_check_main("gasnet_barrier_notify");
	if (gasneti.state != GASNETI_ATTACHED)
		gasneti_fatal("gasnet_barrier_notify before gasnet_attach");
	if (bar.notified)
		gasneti_fatal("gasnet_barrier_notify twice without a wait between");
	gasneti_lock(&bar_lock);
	bar.step = bar.steps = 0;
	while (((uint64_t)1 << bar.steps) < gasneti.nodes)
		bar.steps++;
	bar.known = gasneti_barrier_value(id, flags);
	bar.notified = true;
	if (bar.steps)
		bar_send_step();
	bar_advance();
	gasneti_unlock(&bar_lock);
}

/* Return the outcome for this node: whether the value of its wait fits all notifies'. */
int gasneti_barrier_outcome(uint64_t known, int id, int flags)
{
	uint64_t all = gasneti_barrier_join(known, gasneti_barrier_value(id, flags));
	return all >> 32 == MISMATCH ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK;
}

/* End the phase if it is complete; otherwise return GASNET_ERR_NOT_READY. */
int gasneti_barrier_finish(int id, int flags)
{
	int rc = GASNET_ERR_NOT_READY;
	gasneti_lock(&bar_lock);
	if (bar.step == bar.steps && !bar.unsent) {
		bar.notified = false;
		bar.phase++;
		rc = gasneti_barrier_outcome(bar.known, id, flags);
	}
	gasneti_unlock(&bar_lock);
	return rc;
}

/* End the job unless this node has notified. */
void gasneti_barrier_want_notified(const char *function)
{
	gasneti_check_main(function);
	if (!bar.notified)
		gasneti_fatal("%s without gasnet_barrier_notify", function);
}

int gasnet_barrier_result(int *id)
{
	if (gasneti.state != GASNETI_ATTACHED)
		gasneti_fatal("gasnet_barrier_result before gasnet_attach");
	if (bar.notified)
		gasneti_fatal("gasnet_barrier_result between notify and wait");
	*id = bar.known >> 32 == NAMED ? (int)(uint32_t)bar.known : 0;
	return bar.known >> 32 == ANONYMOUS;
}
