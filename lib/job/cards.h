/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cards - the exchange (lib/domain/exchange.h) by yod and its agents
 *
 *	hosts	read the file of hosts that came with WELCOME
 *	put	send CARD with a file that contains the card; after a failure send
 *		CARD with a status, which stands for a card of zeros
 *	fence	wait for CARDS
 *	get	read the file that came with CARDS
 *
 * The files are memfds.  The life thread takes CARDS; put, fence and get are
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

/* Process CARDS of yod.  fd is its file or -1, and stays the caller's. */
void p3_cards_take(struct p3_node *node, const struct p3_job_msg *m, int fd);

#endif
