/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data of generic/: the generic event queue, and the interrupt.
 *
 * Only the lease holder touches this data, except the members that are marked (any).
 */
#ifndef P3_NIC_GENERIC_STATE_H
#define P3_NIC_GENERIC_STATE_H

#include "nic/obj/state.h"
#include "shm/conf.h"
#include "shm/evq.h"

#include <pthread.h>

/* The kinds of entries of the generic event queue. */
enum p3_generic_kind {
	P3_GENERIC_HEADER, /* a request of a peer is to be matched */
	P3_GENERIC_REPLY,  /* a reply of a peer is to be received */
	P3_GENERIC_EVENT   /* an operation is complete: post this event of Portals */
};

struct p3_upper;

struct p3_generic_event {
	struct p3_event_record record; /* EVENT */
	struct p3_eq *eq;              /* EVENT: the program's queue */
	uint32_t event;                /* EVENT: ptl_event_kind_t */
	uint32_t peer;                 /* HEADER, REPLY */
	enum p3_generic_kind kind;
};

struct p3_generic {
	struct p3_generic_event *entry; /* a ring of mask + 1 entries */
	uint32_t mask;
	uint32_t head, tail;
	uint32_t inlined;       /* most bytes that go with a header */
	uint32_t later;         /* upper pendings in state LATER */
	struct p3_upper *upper; /* one for each peer */
	uint32_t nupper;
	/* the interrupt (any) */
	enum p3_interrupt how;
	pthread_t thread;
	p3_a32 tid;
	_Alignas(P3_LINE) p3_a64 staged; /* entries that the firmware has written, */
	p3_a64 handled;                  /* and that the host has handled */
	p3_a32 asleep;                   /* the host's thread sleeps until an interrupt */
	p3_a32 wants;                    /* it waits for the lease */
	p3_a32 stop;
};

#endif
