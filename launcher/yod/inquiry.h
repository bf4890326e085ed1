/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inquiry - questions to all agents of a job: of ptlstat --hosts, and of yod itself
 *
 *	ptlstat  --connect-->  abstract socket "portals3-hosts/UID/JOB"	SOCK_STREAM
 *		 --ASK-->  yod  --ASK-->  all agents (asks.h)
 *		 <--REPORT of each host--
 *
 * A REPORT to ptlstat has in node the host's index, in number the number of reports, in
 * value 0 or an errno, and as bytes the host's name with its zero byte, and the text.  A
 * host that is lost or does not answer in time has a report with an errno.
 *
 * Only yod's own user and root are served.  yod prints the reports to its own question on
 * its standard error.  Memory is bounded: there are at most P3_INQUIRY_MOST questions,
 * and agents bound their reports.  yod's main thread calls these functions from the loop
 * of agents.c; none of them blocks.  The state is struct p3_inquiry.
 */
#ifndef P3_LAUNCHER_INQUIRY_H
#define P3_LAUNCHER_INQUIRY_H

#include "launcher/yod/frames.h"

#define P3_INQUIRY_MOST    8u
#define P3_INQUIRY_MS      10000 /* time for all answers, besides that of the rates */
#define P3_INQUIRY_RATE_MS 60000 /* that rates are measured over, at most */

struct p3_agents;
struct p3_inquiry;

/* Open the service.  Return 0 or -errno. */
int p3_inquiry_create(struct p3_agents *agents, struct p3_inquiry **inquiry_out);
void p3_inquiry_destroy(struct p3_inquiry *inquiry);
/* Return a descriptor that is readable when p3_inquiry_step() has work. */
int p3_inquiry_fd(const struct p3_inquiry *inquiry);
void p3_inquiry_step(struct p3_inquiry *inquiry);

/* Ask what the job waits for, and print the answers. */
void p3_inquiry_begin_own(struct p3_inquiry *inquiry);
/* Return true while answers are yet to come. */
bool p3_inquiry_has_own(const struct p3_inquiry *inquiry);

/* Take the report of a host; note that there will be none. */
void p3_inquiry_take(struct p3_inquiry *inquiry, uint32_t host, const struct p3_frame *f,
	const char *bytes);
void p3_inquiry_lose(struct p3_inquiry *inquiry, uint32_t host);

#endif
