/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * held - care for requests to processes that have yet to join
 *
 * The NIC holds such requests (nic.h: p3_nic_held) and says so once.  The thread that
 * hears of births (the job's life thread or the domain's) then calls p3_held_see_to():
 * it fails requests after their time, and tells the user when some have waited for
 * long.  The state is struct p3_holding, which that thread owns.
 */
#ifndef P3_LIB_NODE_HELD_H
#define P3_LIB_NODE_HELD_H

#include <stdbool.h>
#include <stdint.h>

struct p3_nic;
struct p3_node;

/* State of the thread that cares for held requests; set up anew for each life of the
 * NIC. */
struct p3_holding {
	uint32_t limit_s; /* seconds that they are held */
	uint64_t at;      /* time of the next p3_held_see_to(); 0: none before
		       * p3_job_hold() */
	bool said;        /* the user has been told */
	bool watches;     /* yod reports ranks that have ended without joining */
};

/* Fail the held requests whose time is over, tell the user once if others have waited for
 * long, and set the time of the next call.  The thread that hears of births calls this
 * when p3_held_is_due() returns true, and when p3_job_hold() has woken the thread. */
void p3_held_see_to(struct p3_node *node, struct p3_nic *nic);
bool p3_held_is_due(const struct p3_node *node);
/* Return a time-out for poll(), in ms: the shorter of ms (-1: none) and the time until
 * p3_held_see_to() is due. */
int p3_held_patience(const struct p3_node *node, int ms);

#endif
