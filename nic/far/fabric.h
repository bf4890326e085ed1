/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric - endpoints (endpoint.h) over libfabric
 *
 * The provider must have connections (FI_EP_MSG) or reliable datagrams (FI_EP_RDM), and a
 * descriptor to wait for, and must not ask for registered buffers.  tcp is the usual one,
 * tcp;ofi_rxm is tested, too.  The far wire does not rely on the provider's
 * reliability: a connection that breaks loses messages that were reported as sent.
 *
 * libfabric is loaded when the first endpoint opens, and stays: programs without other
 * hosts neither link nor load it.  fabric.c and connections.c alone know it.
 */
#ifndef P3_NIC_FAR_FABRIC_H
#define P3_NIC_FAR_FABRIC_H

#include "nic/far/endpoint.h"

/* conf has provider, and address, which may be NULL: the provider chooses. */
extern const struct p3_endpoint_ops p3_endpoint_fabric;

#endif
