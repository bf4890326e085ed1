/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm - the wire between nodes of one machine: shared memory
 *
 * The rings, words and tables of a pair are the published segments of both nodes, so
 * this wire has nothing to carry.  It owns the mapping of a peer's descriptors.  The
 * threads that wire.h names call its functions; the state is in struct p3_peer.
 */
#ifndef P3_NIC_WIRE_SHM_H
#define P3_NIC_WIRE_SHM_H

#include "nic/wire/wire.h"

/* Read a process's memory.  Return the number of bytes, or -errno.  The program's errno
 * keeps its value. */
ssize_t p3_shm_read(uint32_t os_pid, const struct iovec *here, unsigned k,
	const struct iovec *there, unsigned l);

#endif
