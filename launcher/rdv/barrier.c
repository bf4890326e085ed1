/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier of all ranks. */
#include "launcher/rdv/table.h"
#include "shm/fault.h"

#include <errno.h>

void p3_rdv_barrier_release(struct p3_rdv *r, int status, uint32_t ended)
{
	p3_rdv_tell_births(r);
	if (ended < r->conf.size && r->conf.ends_job && r->node[ended].status)
		ended = P3_JOB_NO_RANK;
	for (uint32_t i = 0; i < r->conf.size; i++) {
		if (!r->node[i].waits)
			continue;
		struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
			.op = P3_JOB_RELEASED,
			.status = status,
			.ended = ended};
		r->node[i].waits = false;
		p3_rdv_post(r, i, &m);
		FAULT_POINT("yod.barrier_half");
	}
	r->waits_n = 0;
}

void p3_rdv_barrier_look(struct p3_rdv *r)
{
	if (r->waits_n && r->gone_n)
		p3_rdv_barrier_release(r, EPIPE, r->first_gone);
	if (r->waits_n == r->conf.size)
		p3_rdv_barrier_release(r, 0, P3_JOB_NO_RANK);
}
