/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faults - what happens to frames on their way, by a seeded generator
 *
 *	drop	it is not put
 *	corrupt	one bit of it is another, anywhere
 *	delay	it is put some time later, when others have passed it
 *	dup	it is put twice
 *	reorder	it is put behind the next one, or a moment later if there is none
 *
 * Which frame meets which is decided by the seed and by how many were put before; when
 * frames are put is not, so two runs are not the same.
 */
#ifndef P3_NIC_FAULTS_H
#define P3_NIC_FAULTS_H

#include "nic/frame.h"
#include "nic/nic.h"

#define P3_HELD        8u
#define P3_DELAY_LEAST 10000u
#define P3_DELAY_MOST  1000000u
#define P3_REORDER_NS  200000u

struct p3_held {
	bool used;
	bool behind_next;
	uint64_t until;
	struct p3_frame f;
};

struct p3_injector {
	struct p3_faults conf;
	uint64_t state; /* of the generator */
	struct p3_held held[P3_HELD];
	uint64_t injected[P3_FAULT_KINDS];
};

void p3_faults_init(struct p3_injector *x, const struct p3_faults *conf, uint64_t stream);

/* As put(arg, f, len), but for the faults. */
bool p3_faults_put(struct p3_injector *x, const struct p3_frame *f, uint32_t len,
	uint64_t now, p3_frame_put *put, void *arg);

/* Puts what was held back until now. */
void p3_faults_release(struct p3_injector *x, uint64_t now, p3_frame_put *put, void *arg);

bool p3_faults_hold(const struct p3_injector *x); /* any frames back? */
uint64_t p3_faults_injected(const struct p3_injector *x);

#endif
