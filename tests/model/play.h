/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * play - carry a program out by the library and by the model, and compare
 *
 * A program is an array of operations.  One that would make an object in a slot that is
 * taken is left out, so every subset of a program is a program, too.
 */
#ifndef P3_TESTS_MODEL_PLAY_H
#define P3_TESTS_MODEL_PLAY_H

#include "model/model.h"
#include "model/net.h"

#define PLAY_OPS   4096u
#define PLAY_LINKS 64u
#define PLAY_TEXT  8192u

struct play_queue {
	ptl_handle_eq_t handle;
	bool based; /* the number of its first event is known */
	ptl_seq_t base;
	unsigned nlinks;
	struct {
		uint32_t class;
		ptl_seq_t link;
	} link[PLAY_LINKS]; /* the last ones, in a ring */
};

struct play {
	struct net net;
	struct model *model;
	unsigned char *memory[M_NODES][2]; /* the library's, the model's */
	struct play_queue queue[M_NODES][M_EQS];
	ptl_handle_me_t me[M_NODES][M_MES];
	ptl_handle_md_t md[M_NODES][M_MDS];
	ptl_handle_md_t md_of[2 * PLAY_OPS]; /* by number */
	uint64_t drops[M_NODES];
	unsigned out; /* nodes with something under way */
	unsigned out_from, out_to;
	bool undefined; /* the last call read and wrote the same bytes */
	uint64_t calls; /* of the library */
	uint64_t events, lost, unlinks, accepted, dropped, longs, bursts;
	uint64_t ok[M_KINDS], failed[M_KINDS];
	bool up;
	/* The first disagreement. */
	bool differs;
	char text[PLAY_TEXT];
	size_t at;
};

void play_init(struct play *p);
void play_fini(struct play *p);
/* Fresh nodes before the next program. */
void play_renew(struct play *p);

void play_begin(struct play *p, unsigned nodes);
/* False at the first disagreement. */
bool play_op(struct play *p, struct m_op *op);
/* All unread events, all memory; removes all objects. */
bool play_end(struct play *p);

/*
 * The two halves of play_op, for races.  The library's may be called by several threads
 * at a time, for operations of different slots; ev: of M_EQ_GET, which takes one event.
 */
int play_library(struct play *p, struct m_op *op, ptl_event_t *ev);
/* Could this be what the library answered?  Else p->differs. */
void play_model(struct play *p, const struct m_op *op, int rc, const ptl_event_t *ev);
/* The model and what is known of the library's answers begin anew. */
void play_restart(struct play *p);

#endif
