/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jobs - ptlstat's list of jobs and domains, and the choice of one if none is named
 *
 * ptlstat's only thread calls these functions; there is no state.
 */
#ifndef P3_PTLSTAT_JOBS_H
#define P3_PTLSTAT_JOBS_H

#include "launcher/look/look.h"
#include "shm/domain.h"

#include <time.h>

#define PTL_PROGRAM_LEN 100

struct ptl_origin {
	char program[PTL_PROGRAM_LEN]; /* names of the programs, "" if none is known */
	time_t started;                /* of yod, or of the oldest member; 0: not known */
	uint32_t joined;               /* nodes that have joined */
};

void ptl_origin_of(const struct p3_look *look, struct ptl_origin *origin_out);

/* Print the jobs and domains that this user may look at. */
void ptl_list_jobs(void);

/* Return the job of this user whose yod started last, and the number of the user's jobs.
 * If the user has none, root gets the newest job of all.  0: there is none. */
uint32_t ptl_newest_job(uint32_t *jobs_out);

/* Return true, with its name, if this user has one domain. */
bool ptl_only_domain(char name[P3_DOMAIN_NAMES + 1]);

#endif
