/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cci_node - CCI messages and RMA between two ranks, for cciperf
 *
 * Ranks 0 and 1 have an endpoint each, and a connection of each attribute; a second
 * pair of endpoints has OS handles.  The content of messages is that of perf.h:
 * the loops of both stamp and check the same words.
 */
#ifndef BENCH_CCI_NODE_H
#define BENCH_CCI_NODE_H

#include "perf.h"

#include <cci.h>

enum cci_way { CCI_WAY_UU, CCI_WAY_RO, CCI_WAY_RU, CCI_WAYS };

enum { CCI_URI_BYTES = 128, CCI_IDLE = 99 };

struct cci_end {
	cci_endpoint_t *ep;
	cci_os_handle_t fd; /* -1: none */
	cci_connection_t *conn[CCI_WAYS];
	uint64_t sent, got; /* events since the loop began */
	uint32_t last_len;  /* of the last message */
};

struct cci_node {
	struct perf_node *p; /* a copy of the node, which counts messages of CCI */
	bool yields;
	struct cci_end polled, blocking;
	cci_rma_handle_t *tx, *rx; /* this rank's memory */
	struct cci_rma_handle peer_rx;
};

/* Ranks 0 and 1, between perf_begin and perf_end: make endpoints and connections. */
void cci_node_open(struct cci_node *n);
void cci_node_close(struct cci_node *n);
/* The same between them, before or after that: CCI_IDLE connections that are not used. */
void cci_idle_open(struct perf_node *p);
void cci_idle_close(void);
void cci_check(int status, const char *what);

/* The timed loops.  Both ranks call them, with the same arguments; each runs count
 * rounds. */
/* Over polled, or over blocking: its endpoints have OS handles, on which both ranks
 * sleep. */
void cci_ping_pong(
	struct cci_node *n, struct cci_end *e, enum cci_way way, uint64_t count);
/* The first rank sends a message and waits for its SEND event. */
void cci_complete(struct cci_node *n, enum cci_way way, uint64_t count);
/* Windows of messages one way; a message of 0 bytes comes back for each. */
void cci_windows(struct cci_node *n, enum cci_way way, uint64_t count);
/* The first rank writes to, or reads from, the other's memory, one RMA at a time; flag
 * is CCI_FLAG_WRITE or CCI_FLAG_READ. */
void cci_rma_rounds(struct cci_node *n, int flag, uint64_t count);
/* Windows of WRITEs; the last one brings a message, and a message comes back. */
void cci_rma_windows(struct cci_node *n, uint64_t count);

#endif
