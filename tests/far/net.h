/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net - endpoints over sockets, or over libfabric, between nodes of one process
 *
 * A node has no name until its endpoint is open, so here resolve finds the name that
 * the other node's open has written.  Frames to a node that has none wait.
 */
#ifndef P3_TESTS_FAR_NET_H
#define P3_TESTS_FAR_NET_H

#include "nic/far/endpoint.h"

/* Return the endpoints that P3_FABRIC names: stream, or a provider of libfabric, with +
 * for each semicolon, which is in *provider_out then.  Return NULL if it is not set. */
const struct p3_endpoint_ops *net_wished(const char **provider_out);

/* Set the endpoints that P3_FABRIC names, at 127.0.0.1.  Return false if it is not
 * set. */
bool net_from_environment(struct p3_far_conf *conf);

#endif
