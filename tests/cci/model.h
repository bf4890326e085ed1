/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model - random programs of CCI and the sequential model of them
 *
 *	program	steps in rounds, made from a seed alone
 *	model	says for each round which steps are possible, and their outcomes
 *
 * All processes of a run have the same program and the same model, so each of them knows
 * what all others do.  Steps of a round run at the same time; between rounds all
 * processes meet.  A step that is not possible (a send on a connection that does not
 * exist) is left out by all of them, so a program stays one when steps are taken out.
 *
 * The model has no calls of the library; play.c carries the steps out and compares.
 */
#ifndef P3_TESTS_CCI_MODEL_H
#define P3_TESTS_CCI_MODEL_H

#include "../support/random.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	PROCESSES = 3,
	ENDPOINTS = 2, /* of a process; the second one has few receive buffers */
	SLOTS = 8,     /* connections */
	ROUND = 40,    /* steps of a round */
	STEPS = 4096,  /* most steps of a program */
	FEW = 16,      /* receive buffers of an endpoint that has few */
	MOST = 4096,   /* bytes of a message */
};

/* Regions of each endpoint. */
enum { OPEN, READABLE, WRITABLE, STALE, REGIONS };
enum { REGION = 32768 };

enum kind {
	CONNECT, /* slot, from endpoint a to endpoint b; accepted or rejected */
	SEND,
	RMA,
	DISCONNECT,
	GIVE_BACK, /* return a part of the lent events */
	DIE,       /* process a ends; it is there again in the next round */
	KINDS
};

struct step {
	enum kind kind;
	unsigned slot, a, b; /* a, b: endpoints, counted through all processes */
	bool server;         /* the server's side of the connection acts */
	bool accepted;
	unsigned attribute;
	unsigned length, pieces; /* pieces > 0: by cci_sendv */
	int flags;
	bool read, with_message;
	unsigned region, local, remote; /* offsets */
	bool dropped;                   /* taken out by shrinking */
};

/* Sides of a connection: 0 the client, 1 the server. */
struct slot {
	bool used, open[2];
	bool ending; /* closed by one side in this round: outcomes are open */
	unsigned end[2], attribute;
	unsigned made; /* the step that made it */
};

/* The outcome of a step. */
enum fate {
	LEFT_OUT,
	SURE,      /* it succeeds */
	OPEN_FATE, /* success or CCI_ERR_DISCONNECTED */
	CLOSED,    /* CCI_ERR_DISCONNECTED; on UU a success, and nothing arrives */
	HANDLE,    /* CCI_ERR_RMA_HANDLE */
};

struct memory {
	unsigned char bytes[REGION];
	unsigned char known[REGION];
};

struct model {
	struct slot slot[SLOTS];
	struct memory memory[PROCESSES * ENDPOINTS][REGIONS];
	bool dies[PROCESSES];  /* in this round */
	enum fate fate[STEPS]; /* of the steps until now */
	unsigned life[PROCESSES];
};

struct program {
	uint64_t seed;
	unsigned steps;
	struct step step[STEPS];
};

void program_make(struct program *p, uint64_t seed, unsigned steps);
void step_show(char *text, unsigned long n, unsigned number, const struct step *s);

void model_begin(struct model *m);
/* Decide the fates of a round's steps, and do all that they do for certain. */
void model_round(struct model *m, const struct program *p, unsigned from, unsigned to);
/* Close what ended in the round, and forget it. */
void model_end_round(struct model *m);

/* REGION bytes, from which all messages and all writes are cut. */
const unsigned char *model_source(void);

static inline unsigned process_of(unsigned endpoint)
{
	return endpoint / ENDPOINTS;
}

static inline bool has_few_buffers(unsigned endpoint)
{
	return endpoint % ENDPOINTS == 1;
}

/*
 * play - a process of a model run: it carries out its steps and compares what comes
 *
 * model_test.c starts these processes, and starts one anew that has died.  They share a
 * room, which is no part of the library under test.
 */

enum { DIED = 42 }; /* exit status of a process that dies as the program says */

struct play_room {
	char uri[PROCESSES * ENDPOINTS][128];
	uint64_t handle[PROCESSES * ENDPOINTS][REGIONS][4];
	_Atomic uint32_t met[STEPS / ROUND + 2][3];
	_Atomic unsigned char outcome[STEPS]; /* 1: a success, 2: a failure */
	_Atomic uint32_t failed;
	_Atomic uint32_t round_of_death[PROCESSES]; /* plus 1; 0: alive */
	_Atomic uint64_t events, steps;
	char why[400];
};

/* Live from a round on, and exit. */
_Noreturn void play(struct play_room *room, const struct program *p, unsigned me,
	unsigned from_round);

#endif
