/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream - endpoints (endpoint.h) over TCP sockets, one connection for each pair of nodes
 *
 * This is the usual endpoint: it loads no library.
 */
#ifndef P3_NIC_FAR_STREAM_H
#define P3_NIC_FAR_STREAM_H

#include "nic/far/endpoint.h"

/* conf has address, which may be NULL: this host only; is_of_job and timeout_s. */
extern const struct p3_endpoint_ops p3_endpoint_stream;

#endif
