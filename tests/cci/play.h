/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * play - a process of a model run: it carries out its steps and compares what comes
 *
 * model_test.c starts these processes, and starts one anew that has died.  They share a
 * room, which is no part of the library under test.
 */
#ifndef P3_TESTS_CCI_PLAY_H
#define P3_TESTS_CCI_PLAY_H

#include "model.h"

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
