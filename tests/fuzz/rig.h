/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig - one node without its NIC thread, whose peers are memory of the fuzzer
 *
 *	rig.c	the node, the fake peers, time, the final checks
 *	host.c	calls of the node's own host, on memory with guarded borders
 *	cci.c	calls of CCI of the node's own host
 *	wire.c	the peers' writes: cells, words of their segments, doorbells
 *	far.c	peers on other hosts, which send these writes in frames
 *
 * All runs on one thread, and time is the rig's: the same bytes always do the same.
 * The fake peers' segments are real ones (sealed memfds), so that p3_nic_peer_up()
 * accepts them; they are made once and cleaned after each run.  A check that fails
 * calls rig_fail(), which ends the process.
 */
#ifndef P3_TESTS_FUZZ_RIG_H
#define P3_TESTS_FUZZ_RIG_H

#include "fuzz/input.h"
#include "nic/state.h"

/* Loops over tables, which coverage-guided searches should ignore. */
#ifdef __clang__
#define RIG_UNSEEN __attribute__((no_sanitize("coverage")))
#else
#define RIG_UNSEEN
#endif

#define RIG_NODE  1u
#define RIG_FAKES 3u
#define RIG_FEW   4u
#define RIG_MANY  80u

/* A peer that consists of memory only. */
struct fake {
	struct p3_seg seg, bell;
	struct p3_seg heap; /* half of it is reserved */
	uint32_t index;     /* node number */
	uint64_t incarnation;
	uint64_t req_pos, rsp_pos; /* positions of its next cells */
	bool *dirty;               /* pages of seg that were written to */
	bool *unsent;              /* those of them that no frame has carried yet */
};

struct rig {
	struct p3_nic *nic;
	struct fake *fake; /* an array of RIG_FAKES */
	uint64_t now;
	uint64_t ni[P3_JOB_NIS]; /* handles, 0: closed */
	bool fickle;             /* offers end while the next one is read */
	uint32_t reads_allowed;  /* cross-memory reads until they are forbidden */
	bool far;                /* set before rig_start: the peers are on other hosts */
};

extern struct rig rig;

void rig_start(struct input *in);
/* End everything, and check the final conditions. */
void rig_stop(void);
void rig_fail(const char *what, uint64_t is, uint64_t not_this) __attribute__((noreturn));
void rig_passes(uint32_t n);
/* Check the conditions that hold between any two passes. */
void rig_check(void);

struct fake *rig_pick(struct input *in);
struct p3_peer *rig_peer(const struct fake *f);
/* Bring a fake peer back if it is gone, or is ignored. */
void rig_revive(struct fake *f);
void rig_peer_step(struct input *in);
void rig_node_bell(struct input *in);
/* Make a command of yod's packet about a node; note its execution. */
void rig_peer_cmd(struct p3_cmd *c, struct p3_peer_info *info, struct input *in);
void rig_peer_cmd_done(const struct p3_cmd *c, int rc);

/* Return bytes of a fake's segment, to be written now. */
void *fake_at(struct fake *f, uint64_t off, uint64_t len);
/* Return its words to the node. */
struct p3_peer_entry *fake_entry(struct fake *f);
struct p3_xfer *fake_xfer(struct fake *f, uint64_t id);

/* Return a number that often has a meaning in the present state. */
uint64_t rig_number(struct input *in, const struct fake *f);

/* ---- host.c ---- */

void host_start(struct input *in);
void host_stop(void);
void host_step(struct input *in);
/* Give away memory of freed descriptors; check the borders. */
void host_check(void);
/* Return an address of len readable bytes. */
uint64_t host_readable(uint64_t len);

/* Return a handle, mostly of this kind. */
uint64_t host_handle(struct input *in, enum p3_kind kind);
ptl_process_id_t host_target(struct input *in);
/*
 * Memory that the host side puts into a command before it posts it: for descriptors,
 * tables, rings and chunks.  host_done() gets the result of the execution.
 */
struct host_gift {
	struct p3_cmd cmd;
	uint32_t md; /* descriptor that keeps its memory, or P3_NONE */
	struct p3_peer_info info;
	uint64_t life;
	char text[512];
	ptl_md_iovec_t elements[4];
};
void host_prepare(struct host_gift *g, struct input *in);
/* Process the command as the firmware left it. */
void host_done(struct host_gift *g, int rc);

/* ---- wire.c ---- */

void wire_step(struct input *in);
/* Send a message of CCI, or an answer, mostly about something that exists. */
void wire_cci_step(struct input *in);

/* ---- far.c ---- */

/* The peers that misbehave; the last one is good. */
#define FAR_BAD (RIG_FAKES - 1)

extern const struct p3_far_conf far_conf;

/* Before the node starts, and after it has stopped. */
void far_open(void);
void far_close(void);
/* Begin a life of a pair. */
void far_up(struct fake *f);
/* Send a message, of whole cells, behind all words that the peer has written. */
void far_message(
	struct fake *f, bool request, uint64_t *w, uint64_t word0, uint32_t ncells);
/* Send the words that no frame has carried yet. */
void far_flush(void);
/* Return a key of len bytes that a peer offers, mostly. */
uint64_t far_key(struct fake *f, uint8_t how, uint64_t len);
/* Send a frame, mostly with an error, or do what the medium may do. */
void far_step(struct input *in);
/* See that the good peer is served as if it was alone. */
void far_end(void);
/* When all peers have gone: nothing is held, and no read is under way. */
void far_check_idle(void);

/* ---- cci.c ---- */

void cci_start(void);
void cci_stop(void);
void cci_step(struct input *in);

#endif
