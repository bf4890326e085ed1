/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cards - the exchange (lib/domain/exchange.h) by yod and its agents
 *
 *	hosts	the file that WELCOME has
 *	put	CARD, with a file that contains the card, or after a failure CARD
 *		with a status, which is a card of zeros
 *	fence	wait for CARDS
 *	get	read the file that CARDS has
 *
 * The files are on no file system.  The life thread takes CARDS; put, fence and get are
 * called by the thread in PtlNIInit.  Both hold node->life; the state is struct p3_cards.
 */
#ifndef P3_LIB_JOB_CARDS_H
#define P3_LIB_JOB_CARDS_H

#include "lib/domain/exchange.h"
#include "shm/job.h"

struct p3_cards;

extern const struct p3_exchange *const p3_yod;

/* Read the file of hosts, which stays the caller's; node->size is set.  Return 0 or
 * -errno. */
int p3_cards_begin(struct p3_node *node, int hosts);

/* Take CARDS of yod, with its descriptor or -1, which stays the caller's. */
void p3_cards_take(struct p3_node *node, const struct p3_job_msg *m, int fd);

#endif
