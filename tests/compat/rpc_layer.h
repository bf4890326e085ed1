/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpc_layer - a file server and its clients, as parallel file systems had them
 *
 * The server has a fixed address: rank 0's.  Requests are put into its request buffers,
 * which are filled one behind the other, unlink themselves, and are attached to their
 * entries again.  The bytes are moved by the server: it gets what is to be written from
 * the client, and puts what was read; both sides describe memory in pieces
 * (PTL_MD_IOVEC).  Then it puts an answer.  It waits for nobody: a client that is gone
 * costs it the operation's slot for a second at most.
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

/* Serves files "N" of the directory until so many clients have said bye. */
void rpc_serve(const char *directory, int clients);

struct rpc_served {
	unsigned long requests, writes, reads, lost, late;
};
struct rpc_served rpc_served(void);

/* ---- client ---- */

struct rpc_call;

/* Life: a number that no other process with this address has had.  Waits for the
 * server. */
void rpc_connect(unsigned life);
void rpc_disconnect(void);

/* Bytes of a file, up to RPC_MOST, in up to RPC_PIECES pieces of memory. */
struct rpc_call *rpc_begin(enum rpc_operation, unsigned file, uint64_t offset,
	const ptl_md_iovec_t *pieces, int n);

/* Waits: returns what the server says, for files the bytes moved, else -errno. */
long rpc_finish(struct rpc_call *);

/* The same, and waits. */
long rpc_call(enum rpc_operation, unsigned file, uint64_t offset,
	const ptl_md_iovec_t *pieces, int n);

/* A request, and a put to itself, that access control forbids.  Neither arrives. */
void rpc_trespass(void);

#endif
