/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * held - requests for processes that have yet to join
 *
 * The NIC holds them (nic.h: p3_nic_held) and says so once.  The thread that hears of
 * births, the job's life thread or the domain's, then sees to them: it ends
 * requests after their time, and tells the user when some have waited for long.
 */
#ifndef P3_LIB_HELD_H
#define P3_LIB_HELD_H

#include <stdbool.h>
#include <stdint.h>

struct p3_nic;
struct p3_node;

/* Of the thread that sees to them; anew for each life of the NIC. */
struct p3_holding {
	uint32_t limit_s; /* so long they are held */
	uint64_t at;  /* when p3_held_see_to() is due, 0: not before p3_held_begin() */
	bool said;    /* the user has been told */
	bool watches; /* yod tells of ranks that have ended without joining */
};

/* As conf.hold of the NIC (nic.h); node: a struct p3_node. */
void p3_held_begin(void *node);
/* Now, if it is due, or if p3_held_begin() woke the thread. */
void p3_held_see_to(struct p3_node *node, struct p3_nic *nic);
bool p3_held_is_due(const struct p3_node *node);
/* The sooner one of this time-out of poll() (-1: none) and that until it is due. */
int p3_held_patience(const struct p3_node *node, int ms);

#endif
