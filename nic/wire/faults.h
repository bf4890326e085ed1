/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faults - a seeded generator that damages frames on their way, for tests
 *
 *	drop	the frame is lost
 *	corrupt	one bit of it is flipped, anywhere
 *	delay	it is put on the medium some time later, when others have passed it
 *	dup	it is put twice
 *	reorder	it is put behind the next frame, or a moment later if there is none
 *
 * The seed and the number of frames before decide which frame suffers which fault.  The
 * times at which frames are put do not follow from the seed, so two runs differ.  Only
 * the lease holder calls these functions; the state is in struct p3_injector.
 */
#ifndef P3_NIC_FAULTS_H
#define P3_NIC_FAULTS_H

#include "nic/wire/frame.h"
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
	uint64_t state; /* state of the random generator */
	struct p3_held held[P3_HELD];
	uint64_t injected[P3_FAULT_KINDS];
};

void p3_faults_init(struct p3_injector *x, const struct p3_faults *conf, uint64_t stream);

/* Send a frame by put(arg, f, len), or, if a fault strikes it, drop it, hold it back,
 * change it or send it twice.  Return false if put() had no room. */
bool p3_faults_put(struct p3_injector *x, const struct p3_frame *f, uint32_t len,
	uint64_t now, p3_frame_put *put, void *arg);

/* Put the frames that were held back until now. */
void p3_faults_release(struct p3_injector *x, uint64_t now, p3_frame_put *put, void *arg);

/* Return the time until which the first of the frames that are held back waits, or
 * UINT64_MAX if there are none. */
uint64_t p3_faults_due(const struct p3_injector *x);
uint64_t p3_faults_injected(const struct p3_injector *x);

#endif
