/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream - endpoints (endpoint.h) over the streams of the process (nic/streams.h)
 *
 * This is the usual endpoint: it loads no library.
 */
#ifndef P3_NIC_FAR_STREAM_H
#define P3_NIC_FAR_STREAM_H

#include "nic/far/endpoint.h"
#include "nic/streams.h"

extern const struct p3_endpoint_ops p3_endpoint_stream;

#endif
