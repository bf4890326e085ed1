/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange - what a launcher carries between the ranks of a job on several hosts before
 * they can reach each other
 *
 *	hosts	which ranks share a host
 *	put	each rank publishes one card
 *	fence	wait until all ranks have published theirs
 *	get	read the card of any rank
 *
 * hosts comes first, in PtlInit.  put, fence and get follow in this order, once, in the
 * first PtlNIInit of the process.  All ranks of the job must come to the fence.  Later
 * interfaces of the process use the same cards: a card describes the process, and the
 * news of each interface go over the beacons (beacon.h).
 *
 * A card is as trustworthy as the launcher, and rank 0's has the secret of the job, by
 * which the ranks know each other from then on.  So a launcher carries it on its own
 * connections, and never in arguments, in the environment, or in files of others.
 *
 * One thread at a time calls these functions.  It holds node->call; in all but hosts and
 * end also node->life, which fence and get may release while they wait (for example by
 * pthread_cond_wait on node->changed).  The functions return 0, or -errno after an error
 * line that names the remedy.  The state is the implementation's.
 */
#ifndef P3_LIB_DOMAIN_EXCHANGE_H
#define P3_LIB_DOMAIN_EXCHANGE_H

#include <stdint.h>

struct p3_node;

#define P3_CARD_MAGIC 0x33504302u /* the low byte is the version of the format */

/* The words that a rank publishes.  Unused bytes are zero.  The ranks run one build on
 * machines of one kind, which layout proves, so words are in the order of the machine. */
struct p3_card {
	uint32_t magic;
	uint32_t size; /* ranks of the job */
	uint32_t rank;
	uint32_t leader;  /* lowest rank on the same host */
	uint64_t layout;  /* P3_LAYOUT_WORD of its library */
	uint64_t network; /* p3_beacon_network(), or 0 */
	uint32_t nid;     /* the host's */
	uint16_t family;  /* of the beacon's address: AF_INET or AF_INET6 */
	uint16_t port;
	unsigned char address[16];
	char provider[48];        /* the provider of libfabric that it uses */
	unsigned char secret[32]; /* rank 0: of the job, else zero */
};

_Static_assert(sizeof(struct p3_card) == 136, "the card is a format");

/* The wait in a fence, in seconds, after which a line tells of it, and its format: rank,
 * seconds, size of the job. */
#define P3_EXCHANGE_LATE_S 10
#define P3_EXCHANGE_LATE                                                                 \
	"PtlNIInit of rank %u waits since %d s until all %u ranks of the job have "      \
	"called it: start Portals in each rank of a job on several hosts, and end the "  \
	"job if one has ended without it"

struct p3_exchange {
	/* Write the lowest rank on the host of each rank of the job. */
	int (*hosts)(struct p3_node *node, uint32_t *leader_out);
	/* Return the name or address of a rank's host as the launcher knows it, or NULL.
	 * It stays valid until end. */
	const char *(*host_name)(struct p3_node *node, uint32_t rank);
	int (*put)(struct p3_node *node, const struct p3_card *card);
	/* After a put that failed: let the others not wait for this rank's card. */
	void (*give_up)(struct p3_node *node);
	int (*fence)(struct p3_node *node);
	/* The caller checks magic, size, rank and layout of the card. */
	int (*get)(struct p3_node *node, uint32_t rank, struct p3_card *card_out);
	/* Take leave of the launcher, at the last PtlFini, or at the end of the process
	 * if there was none.  PtlInit, hosts and the others may follow anew. */
	void (*end)(struct p3_node *node);
};

#endif
