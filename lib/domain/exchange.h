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
 * interfaces of the process use the same cards: a card describes the process, and changes
 * of its interfaces travel over connections to the beacons (beacon.h).
 *
 * The ranks trust a card as they trust the launcher.  The card of rank 0 has the secret
 * of the job, by which the ranks authenticate each other from then on.  So a launcher
 * carries cards over its own connections, and never in arguments, in the environment, or
 * in files that other users can read.
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

#define P3_CARD_MAGIC 0x33504304u /* the low byte is the version of the format */

/* The words that a rank publishes.  Unused bytes are zero.  The ranks run one build on
 * machines of one kind, as layout shows, so words have the byte order of the machine. */
struct p3_card {
	uint32_t magic;
	uint32_t size; /* ranks of the job */
	uint32_t rank;
	uint32_t leader;  /* lowest rank on the same host */
	uint64_t layout;  /* P3_LAYOUT_WORD of the rank's library */
	uint64_t network; /* p3_beacon_network(), or 0 */
	uint32_t nid;     /* node id of the host */
	uint16_t family;  /* of the beacon's address: AF_INET or AF_INET6 */
	uint16_t port;    /* of the beacon */
	unsigned char address[16];
	char provider[47];        /* of libfabric, that the rank uses; or auto */
	unsigned char has_aes;    /* p3_mac_has_aes() */
	unsigned char secret[32]; /* rank 0: the secret of the job; else zeros */
};

_Static_assert(sizeof(struct p3_card) == 136, "the card is a format");

/* A line tells of a fence that lasts this number of seconds.  Its format takes the rank,
 * the seconds, and the size of the job. */
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
	/* Return the address by which the launcher has reached this host, or NULL.  The
	 * function may be missing.  The address stays valid until end. */
	const char *(*own_address)(struct p3_node *node);
	int (*put)(struct p3_node *node, const struct p3_card *card);
	/* After a put that failed: let the others wait for this rank's card no longer. */
	void (*give_up)(struct p3_node *node);
	int (*fence)(struct p3_node *node);
	/* The caller checks magic, size, rank and layout of the card. */
	int (*get)(struct p3_node *node, uint32_t rank, struct p3_card *card_out);
	/* Take leave of the launcher, for good: at the last PtlFini after the exchange,
	 * or at the end of the process.  It may be called again. */
	void (*end)(struct p3_node *node);
};

#endif
