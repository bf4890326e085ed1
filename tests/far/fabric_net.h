/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric_net - endpoints over libfabric between nodes of one process, for tests
 *
 * P3_FABRIC names a provider, with + in place of the semicolons of its name, which are
 * special to CMake.  The nodes that P3_FAR places on several hosts then have
 * endpoints of that provider at 127.0.0.1, in place of those of loop.h.  A table of this
 * process tells each one the names of the others, as a launcher does between processes.
 */
#ifndef P3_TESTS_FAR_FABRIC_NET_H
#define P3_TESTS_FAR_FABRIC_NET_H

#include "nic/nic.h"

/* If P3_FABRIC is set, make conf one of libfabric and return true. */
bool fabric_net_from_environment(struct p3_far_conf *conf);

#endif
