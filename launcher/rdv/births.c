/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets about nodes that join, about their descriptors, and about their pids. */
#include "launcher/rdv/table.h"
#include "launcher/clock.h"
#include "shm/fault.h"

#include <string.h>
#include <unistd.h>

/* births in a job of n nodes are told after this time, several at once */
#define TELL_MS(n) ((n) < 1000 ? (n) / 10 : 100)

struct p3_job_msg p3_rdv_message_born(const struct p3_rdv *r, uint32_t i)
{
	const struct p3_rdv_node *n = &r->node[i];
	struct p3_job_msg m = p3_rdv_message(r, P3_JOB_BORN, i);
	m.size = r->conf.size;
	m.nid = r->conf.nid_base + i;
	m.uid = getuid();
	m.jid = r->conf.jid;
	m.os_pid = n->owner;
	m.seg_len = n->seg_len;
	m.heap_len = n->heap_len;
	memcpy(m.pid, n->pid, sizeof m.pid);
	return m;
}

void p3_rdv_post_born(struct p3_rdv *r, uint32_t to, uint32_t about)
{
	struct p3_job_msg m = p3_rdv_message_born(r, about);
	p3_rdv_post(r, to, &m);
}

void p3_rdv_post_introduction(struct p3_rdv *r, uint32_t to, uint32_t about)
{
	struct p3_job_msg m = p3_rdv_message_born(r, about);
	p3_rdv_set_met(&r->node[to], about, true);
	struct p3_out *o = p3_outq_find(&r->node[to].out, P3_JOB_BORN, &m);
	if (o) { /* the queued birth carries the descriptors now */
		o->news |= !o->again;
		o->again = true;
		return;
	}
	p3_rdv_post(r, to, &m);
	o = p3_outq_find(&r->node[to].out, P3_JOB_BORN, &m);
	if (o)
		o->again = true;
}

void p3_rdv_post_pids(struct p3_rdv *r, uint32_t to, const struct p3_job_msg *m)
{
	struct p3_out *o = p3_outq_find(&r->node[to].out, P3_JOB_BORN, m);
	if (!o)
		o = p3_outq_find(&r->node[to].out, P3_JOB_PIDS, m);
	if (!o) {
		p3_rdv_post(r, to, m);
		return;
	}
	/* A closed interface keeps its pid for its earlier messages. */
	for (int k = 0; k < P3_JOB_NIS; k++)
		if (m->pid[k] != P3_JOB_NO_PID)
			o->msg.pid[k] = m->pid[k];
}

void p3_rdv_tell_births(struct p3_rdv *r)
{
	uint32_t n = r->untold_n;
	r->untold_n = 0;
	r->tell_at = P3_NEVER;
	for (uint32_t to = 0; n && to < r->conf.size; to++)
		for (uint32_t k = 0; k < n && p3_rdv_listens(&r->node[to]); k++) {
			const struct p3_rdv_node *born = &r->node[r->untold[k]];
			if (born->joined_as > r->node[to].joined_as)
				p3_rdv_post_born(r, to, r->untold[k]);
			FAULT_POINT("yod.births_half");
		}
}

void p3_rdv_tell_birth_later(struct p3_rdv *r, uint32_t i)
{
	int64_t ms = r->conf.apart ? TELL_MS(r->conf.size) : 0;
	if (!r->untold_n)
		r->tell_at = p3_now_ms() + ms;
	r->untold[r->untold_n++] = i;
	if (ms)
		p3_rdv_timer_arm(r, r->tell_at);
	else
		p3_rdv_tell_births(r);
}
