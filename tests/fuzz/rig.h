/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig - one node without its NIC thread, whose peers are memory of the fuzzer
 *
 *	rig.c	the node, the fake peers, time, what must hold in the end
 *	host.c	calls of the node's own host, on memory with guarded borders
 *	wire.c	what peers write: cells, words of their segments, doorbells
 *
 * All runs on one thread, and time is the rig's: the same bytes always do the same.  The
 * fake peers' segments are real ones (sealed memfds), so that p3_nic_peer_up() accepts
 * them; they are made once and cleaned after each run.  What the rig promises to check is
 * told by rig_fail(), which ends the process.
 */
#ifndef P3_TESTS_FUZZ_RIG_H
#define P3_TESTS_FUZZ_RIG_H

#include "fuzz/input.h"
#include "nic/fw.h"

/* Loops over tables, of no interest to who looks for new ways through the code. */
#ifdef __clang__
#define RIG_UNSEEN __attribute__((no_sanitize("coverage")))
#else
#define RIG_UNSEEN
#endif

#define RIG_NODE  1u
#define RIG_FAKES 3u
#define RIG_FEW   4u
#define RIG_MANY  80u

/* A peer that is nothing but memory. */
struct fake {
	struct p3_seg seg, bell;
	struct p3_seg heap; /* half of it reserved */
	uint32_t index;     /* node number */
	uint64_t incarnation;
	uint64_t req_pos, rsp_pos; /* where its next cells go */
	bool *dirty;               /* pages of seg that were written to */
};

struct rig {
	struct p3_nic *nic;
	struct fake *fake; /* RIG_FAKES */
	uint64_t now;
	uint64_t ni[P3_JOB_NIS]; /* handles, 0 closed */
	bool fickle;             /* offers end while the next one is read */
	uint32_t reads_allowed;  /* cross-memory reads, before they are forbidden */
};

extern struct rig rig;

void rig_start(struct input *in);
/* Everything ends; checks what must hold then. */
void rig_stop(void);
void rig_fail(const char *what, uint64_t is, uint64_t not_this) __attribute__((noreturn));
void rig_passes(uint32_t n);
/* What must hold between any two passes. */
void rig_check(void);

struct fake *rig_pick(struct input *in);
struct p3_peer *rig_peer(const struct fake *f);
/* It comes, if it is not there (or is not listened to any more). */
void rig_revive(struct fake *f);
void rig_peer_step(struct input *in);
void rig_node_bell(struct input *in);
/* What yod says of a node, as a command; and when it was executed. */
void rig_peer_cmd(struct p3_cmd *c, struct p3_peer_info *info, struct input *in);
void rig_peer_cmd_done(const struct p3_cmd *c, int rc);

/* Bytes of a fake's segment, to be written now. */
void *fake_at(struct fake *f, uint64_t off, uint64_t len);
/* What it says to the node. */
struct p3_peer_entry *fake_entry(struct fake *f);
struct p3_xfer *fake_xfer(struct fake *f, uint64_t id);

/* A number: often one that means something in this moment. */
uint64_t rig_number(struct input *in, const struct fake *f);

/* ---- host.c ---- */

void host_start(struct input *in);
void host_stop(void);
void host_step(struct input *in);
/* Memory of descriptors that are no more is given away; borders are looked at. */
void host_check(void);
/* An address that may be read, of len bytes. */
uint64_t host_readable(uint64_t len);

/* A handle, of this kind for the most part. */
uint64_t host_handle(struct input *in, enum p3_kind kind);
ptl_process_id_t host_target(struct input *in);
/*
 * What the host side puts into a command before it posts it: memory for descriptors,
 * tables, rings and chunks.  It is told what became of it when it was executed.
 */
struct host_gift {
	struct p3_cmd cmd;
	uint32_t md; /* where its memory is kept, P3_NONE none */
	struct p3_peer_info info;
	uint64_t life;
	char text[512];
	ptl_md_iovec_t elements[4];
};
void host_prepare(struct host_gift *g, struct input *in);
/* cmd as the firmware left it. */
void host_done(struct host_gift *g, int rc);

/* ---- wire.c ---- */

void wire_step(struct input *in);

#endif
