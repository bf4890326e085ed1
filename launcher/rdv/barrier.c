/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier of all ranks, and their cards in a job on several hosts. */
#include "launcher/rdv/table.h"
#include "shm/fault.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

void p3_rdv_tell_news(struct p3_rdv *r, enum p3_rdv_news what, uint32_t i)
{
	r->conf.news(r->conf.news_arg, what, i, NULL, 0);
}

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
	if (p3_rdv_is_part(r)) {
		bool all = r->waits_n == r->conf.here && !r->told;
		r->told |= all;
		if (all)
			p3_rdv_tell_news(r, P3_RDV_ALL_WAIT, P3_JOB_NO_RANK);
	} else if (r->waits_n == r->conf.size) {
		p3_rdv_barrier_release(r, 0, P3_JOB_NO_RANK);
	}
}

void p3_rdv_release(struct p3_rdv *r, int status, uint32_t ended)
{
	r->told = false;
	p3_rdv_barrier_release(r, status, ended);
}

/* ---- cards ---- */

static int make_file(const void *bytes, size_t len)
{
	int fd = memfd_create("p3-cards", MFD_CLOEXEC);
	if (fd < 0 || write(fd, bytes, len) == (ssize_t)len)
		return fd;
	close(fd);
	return -1;
}

void p3_rdv_cards(struct p3_rdv *r, int status, uint32_t ended, const void *cards,
	size_t len, size_t each)
{
	p3_rdv_close_fds(&r->cards, 1);
	r->cards = status ? -1 : make_file(cards, len);
	for (uint32_t i = 0; i < r->conf.size; i++) {
		struct p3_job_msg m = p3_rdv_message(r, P3_JOB_CARDS, i);
		if (!r->node[i].awaits_cards)
			continue;
		r->node[i].awaits_cards = false;
		m.status = r->cards < 0 ? (status ? status : ENOMEM) : 0;
		m.ended = ended;
		m.seg_len = each;
		p3_rdv_post(r, i, &m);
	}
}
