/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * play - carry a program out by the library and by the model, and compare
 *
 * A program is an array of operations.  An operation that would make an object in a
 * used slot is left out, so every subset of a program is a program, too.
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
	} link[PLAY_LINKS]; /* the most recent ones, in a ring */
};

struct play {
	struct net net;
	struct model *model;
	unsigned char *memory[M_NODES][2]; /* the library's and the model's */
	struct play_queue queue[M_NODES][M_EQS];
	ptl_handle_me_t me[M_NODES][M_MES];
	ptl_handle_md_t md[M_NODES][M_MDS];
	ptl_handle_md_t md_of[2 * PLAY_OPS]; /* indexed by number */
	uint64_t drops[M_NODES];
	unsigned out; /* nodes with operations under way */
	unsigned out_from, out_to;
	bool undefined; /* the last call read and wrote the same bytes */
	uint64_t calls; /* calls of the library */
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
/* Prepare fresh nodes for the next program. */
void play_renew(struct play *p);

void play_begin(struct play *p, unsigned nodes);
/* Carry out an operation.  Return false at the first disagreement. */
bool play_op(struct play *p, struct m_op *op);
/* Compare all unread events and all memory; remove all objects. */
bool play_end(struct play *p);

/*
 * The two halves of play_op, for races.  Several threads may call the library's half at
 * a time, for operations on different slots; ev is for M_EQ_GET, which takes one event.
 */
int play_library(struct play *p, struct m_op *op, ptl_event_t *ev);
/* Check that the library's answer is possible; else set p->differs. */
void play_model(struct play *p, const struct m_op *op, int rc, const ptl_event_t *ev);
/* Restart the model and the record of the library's answers. */
void play_restart(struct play *p);

/* shrink.c: finds the smallest part of a program that still shows a disagreement */
struct shrink {
	struct play *play;
	unsigned nodes;
	bool fresh; /* use new nodes each time */
};

/* Carry out a whole program; return true if library and model agree. */
bool replay(const struct shrink *s, const struct m_op *ops, unsigned n);
/* Drop operations in place; return the number of the remaining ones. */
unsigned shrink(const struct shrink *s, struct m_op *ops, unsigned n);

/*
 * race.c: short scenes in which threads and nodes meet, again and again
 *
 * More than one outcome is right.  Each scene enumerates the orders in which the atomic
 * steps may have taken place, keeping the order of each pair of nodes, and the
 * library's result must be the outcome of one of them.
 */
/* Run every scene this number of times, at most ns altogether.  Return false if one
 * failed. */
bool race(uint64_t seed, unsigned rounds, uint64_t ns);

#endif
