/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpc_layer - a file server and its clients, as parallel file systems had them
 *
 * The server has a fixed address: rank 0's.  Requests are put into its request buffers,
 * which are filled one behind the other, unlink themselves, and are attached to their
 * entries again.  The server moves the bytes: it gets bytes to write from the client,
 * and puts bytes that were read; both sides describe memory in pieces (PTL_MD_IOVEC).
 * Then it puts an answer.  It waits for no client: one that is gone costs it the
 * operation's slot for a second at most.
 *
 * Access: requests through an entry for this user on this portal index; the server's puts
 * and gets through one for the server alone.
 */
#ifndef COMPAT_RPC_LAYER_H
#define COMPAT_RPC_LAYER_H

#include "job.h"

enum { RPC_PIECES = 16, RPC_MOST = 256 << 10 };
enum rpc_operation { RPC_WRITE, RPC_READ, RPC_STATUS, RPC_BYE };

/* ---- server ---- */

/* Serve files "N" of the directory until this number of clients have said bye. */
void rpc_serve(const char *directory, int clients);

struct rpc_served {
	unsigned long requests, writes, reads, lost, late;
	long dropped; /* messages dropped since it can take them */
};
struct rpc_served rpc_served(void);

/* ---- client ---- */

struct rpc_call;

/* Connect.  life is a number that no other process with this address has had.  Wait for
 * the server. */
void rpc_connect(unsigned life);
void rpc_disconnect(void);

/* Begin with bytes of a file, up to RPC_MOST, in up to RPC_PIECES pieces of memory. */
struct rpc_call *rpc_begin(enum rpc_operation, unsigned file, uint64_t offset,
	const ptl_md_iovec_t *pieces, int n);

/* Wait for the server's answer: for files the bytes moved, else -errno. */
long rpc_finish(struct rpc_call *);

/* Begin and finish. */
long rpc_call(enum rpc_operation, unsigned file, uint64_t offset,
	const ptl_md_iovec_t *pieces, int n);

/* Send a request, and a put to itself, that access control forbids.  Neither arrives. */
void rpc_trespass(void);

#endif
