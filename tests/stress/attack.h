/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attack - what the hostile processes of hostile.c do, with the library's internals
 *
 *	attack.c	a node with a valid life, whose published segment, doorbells of
 *			others and lanes are written over
 *	lifeline.c	a process that speaks to yod by hand
 */
#ifndef P3_TESTS_ATTACK_H
#define P3_TESTS_ATTACK_H

#include <stdbool.h>
#include <stdint.h>

/* Match bits of what a hostile process may use, and must not, of honest nodes. */
enum { BAIT = 1000, FORBIDDEN };
enum { FORBIDDEN_PORTAL = 9 };

/* Random numbers: each call another. */
uint64_t attack_dice(void);
void attack_seed(uint64_t seed);
/* Often one that means something. */
uint64_t attack_number(void);

/* One life of a node, to be had in a process of its own; does not return.  The first
 * one comes to the barrier and is quiet for quiet_ms. */
_Noreturn void attack_live(bool first, unsigned quiet_ms);

/* As node rank, until then; how often. */
unsigned lifeline_attack(unsigned rank, uint64_t until_ns);

#endif
