/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn - the table of connections
 *
 * A connection's memory is its endpoint's, in chunks that calls of the host bring.  Its
 * tag names it at its peer; it ends when the program closes the connection.  The memory
 * stays as long as an event or an operation names it.
 *
 * Only the lease holder calls these functions.  The state is the lists of an endpoint and
 * of a peer.
 */
#ifndef P3_NIC_CCI_CONN_H
#define P3_NIC_CCI_CONN_H

#include "nic/state.h"

/* The words of tags and tokens. */
#define P3_CCI_INDEX_BITS 10u
#define P3_CCI_CONN_BITS  16u
#define P3_CCI_GEN_SHIFT  (P3_CCI_INDEX_BITS + P3_CCI_CONN_BITS)

_Static_assert(P3_CCI_ENDPOINTS == 1u << P3_CCI_INDEX_BITS &&
		       P3_CCI_CHUNK * P3_CCI_CHUNKS == 1u << P3_CCI_CONN_BITS,
	"a tag names each");

/* Return the endpoint whose index a tag or a token has, or NULL. */
static inline struct p3_cci_endpoint *p3_cci_conn_endpoint(
	const struct p3_nic *n, uint64_t name)
{
	return n->cci.ep[name & (P3_CCI_ENDPOINTS - 1)];
}

/* Return the number of a connection or of a descriptor in a tag or a token. */
static inline uint32_t p3_cci_conn_number(uint64_t name)
{
	return (uint32_t)(name >> P3_CCI_INDEX_BITS) & ((1u << P3_CCI_CONN_BITS) - 1);
}

static inline uint64_t p3_cci_conn_new_name(
	struct p3_nic *n, const struct p3_cci_endpoint *ep, uint32_t number)
{
	uint64_t gen = ++n->cci.next_gen << P3_CCI_GEN_SHIFT;
	if (p3_unlikely(!gen)) /* a name is never 0 */
		gen = ++n->cci.next_gen << P3_CCI_GEN_SHIFT;
	return gen | (uint64_t)number << P3_CCI_INDEX_BITS | ep->index;
}

/* Return the connection that a tag names, or NULL. */
static inline struct p3_cci_conn *p3_cci_conn_named(const struct p3_nic *n, uint64_t tag)
{
	struct p3_cci_endpoint *ep = p3_cci_conn_endpoint(n, tag);
	uint32_t number = p3_cci_conn_number(tag);
	if (p3_unlikely(!ep || number / P3_CCI_CHUNK >= ep->nchunks))
		return NULL;
	struct p3_cci_conn *conn =
		&ep->chunk[number / P3_CCI_CHUNK][number % P3_CCI_CHUNK];
	return p3_likely(conn->tag == tag && tag) ? conn : NULL;
}

/* Return true if the endpoint has a free connection. */
static inline bool p3_cci_conn_is_free(const struct p3_cci_endpoint *ep)
{
	return !p3_list_empty(&ep->conns_free);
}

/* Add the memory of a chunk, zeroed.  Return false if the endpoint has the most. */
bool p3_cci_conn_add(struct p3_cci_endpoint *ep, struct p3_cci_conn *chunk);
/* Return a connection to the peer; p3_cci_conn_is_free() has returned true.  The caller
 * sets its timers up. */
struct p3_cci_conn *p3_cci_conn_new(
	struct p3_nic *n, struct p3_cci_endpoint *ep, struct p3_peer *p);
/* Count an event that names the connection, and its return. */
static inline void p3_cci_conn_ref(struct p3_cci_conn *conn)
{
	conn->refs++;
}
/* Free the connection, which is closed, if nothing names it. */
P3_RARE void p3_cci_conn_settle(struct p3_nic *n, struct p3_cci_conn *conn);
static inline void p3_cci_conn_unref(struct p3_nic *n, struct p3_cci_conn *conn)
{
	conn->refs--;
	if (p3_unlikely(conn->state == P3_CCI_CLOSED))
		p3_cci_conn_settle(n, conn);
}
/* An operation does not name the connection any more. */
static inline void p3_cci_conn_tx_over(struct p3_nic *n, struct p3_cci_conn *conn)
{
	conn->ntx--;
	if (p3_unlikely(conn->state == P3_CCI_CLOSED))
		p3_cci_conn_settle(n, conn);
}
/* Give the payload of a connect request to the next caller to free. */
void p3_cci_conn_drop_data(struct p3_cci_conn *conn);
/* Take the connection from all lists but that of its endpoint: no message of it is sent
 * or taken any more. */
void p3_cci_conn_detach(struct p3_nic *n, struct p3_cci_conn *conn);

#endif
