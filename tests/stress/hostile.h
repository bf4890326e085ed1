/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile - the hostile processes of hostile.c, which use the library's internals
 *
 *	attack.c	a node with a valid life, whose published segment, doorbells of
 *			others and lanes are written over
 *	lifeline.c	a process that speaks to yod by hand
 */
#ifndef P3_TESTS_HOSTILE_H
#define P3_TESTS_HOSTILE_H

#include <stdbool.h>
#include <stdint.h>

/* Match bits at honest nodes that a hostile process may use, and must not use. */
enum { BAIT = 1000, FORBIDDEN };
enum { FORBIDDEN_PORTAL = 9 };

/* Return a random number; each call returns another one. */
uint64_t attack_dice(void);
void attack_seed(uint64_t seed);
/* Return a random number that often has a meaning. */
uint64_t attack_number(void);

/* Live one life of a node in its own process; this does not return.  The first life is
 * quiet between two barriers. */
_Noreturn void attack_live(bool first);

/* Be quiet between two barriers, then attack yod as node rank for this time; return the
 * number of attacks. */
unsigned lifeline_attack(unsigned rank, uint64_t ns);

/*
 * honest_cci - messages of CCI between the honest nodes of hostile.c
 *
 * Each honest rank has an endpoint with a number that all know, so that hostile ranks can
 * send requests to it, and a thread: it sends numbered messages, reliably and in order,
 * to the next honest rank, and checks those of the one before.  A request without the
 * honest ranks' payload is rejected.
 */

enum { HONEST_CCI_SERVICE = 77 };

/* Open the endpoint; all ranks do so before the first one starts. */
void honest_cci_open(void);
/* Start the thread, which sends to rank next. */
void honest_cci_start(unsigned next);
/* End it in order: all messages of the rank before have come.  Return their number. */
uint64_t honest_cci_stop(void);

#endif
