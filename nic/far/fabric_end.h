/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric_end - an endpoint over libfabric, as fabric.c and connections.c share it
 *
 * A provider of datagrams (FI_EP_RDM) has one endpoint for all peers.  A provider of
 * connections (FI_EP_MSG) has one for each connection, and connections.c opens them.
 */
#ifndef P3_NIC_FAR_FABRIC_END_H
#define P3_NIC_FAR_FABRIC_END_H

#include "nic/far/endpoint.h"

#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

struct p3_connections;

struct p3_endpoint {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;            /* datagrams only */
	struct fid_ep *ep;            /* datagrams only */
	struct fid_ep *rx;            /* it, or what all connections share */
	struct p3_connections *conns; /* NULL: datagrams */
	int news;      /* descriptor that is readable when poll may have events */
	uint32_t node; /* index of this node */
	uint32_t name_len;
	unsigned char name[P3_FAR_NAME];
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
};

/* Listen, and prepare to receive.  Return 0 or a negative number of libfabric's errors;
 * close frees what there is, before the endpoint's other objects. */
int p3_conns_open(struct p3_endpoint *e, uint32_t nnodes);
void p3_conns_close(struct p3_endpoint *e);

/* Return what p3_endpoint_ops says of a failed call of libfabric. */
static inline int p3_fabric_error(ssize_t rc)
{
	return rc == -FI_EAGAIN ? -EAGAIN : rc ? -EIO : 0;
}

/* These are the functions of struct p3_endpoint_ops with the same names. */
int p3_conns_resolve(struct p3_endpoint *e, uint32_t node, const unsigned char *name,
	uint32_t len, uint64_t *to_out);
int p3_conns_send(
	struct p3_endpoint *e, uint64_t to, struct p3_far_buffer *b, uint32_t len);
int p3_conns_read(struct p3_endpoint *e, uint64_t to, struct p3_far_read *r);
void p3_conns_cut(struct p3_endpoint *e, uint64_t to);
int p3_conns_arm(struct p3_endpoint *e);

/* Accept and close connections as peers ask for it.  Call this in each poll. */
void p3_conns_look(struct p3_endpoint *e);

#endif
