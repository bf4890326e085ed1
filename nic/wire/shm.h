/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm - the wire between nodes of one machine: shared memory
 *
 * The rings, words and tables of a pair are the published segments of both nodes, so
 * this wire has nothing to carry.  It owns the mapping of a peer's descriptors.  Other
 * wires of the same machine (faulty.c) begin with its functions.  The threads that
 * wire.h names call them; the state is in struct p3_peer.
 */
#ifndef P3_NIC_WIRE_SHM_H
#define P3_NIC_WIRE_SHM_H

#include "nic/wire/wire.h"

/* The functions of that wire, for others on the same machine: see struct p3_wire. */
int p3_shm_map(struct p3_nic *n, struct p3_peer_info *info);
void p3_shm_unmap(struct p3_peer_info *info);
void p3_shm_attach(struct p3_nic *n, struct p3_peer *p, const struct p3_peer_info *info,
	struct p3_lane *lane_out);
void p3_shm_kick(struct p3_nic *n, struct p3_peer *p);
uint64_t p3_shm_passes(const struct p3_nic *n, const struct p3_peer *p);

/* Read a process's memory.  Return the number of bytes, or -errno.  The program's errno
 * keeps its value. */
ssize_t p3_shm_read(uint32_t os_pid, const struct iovec *here, unsigned k,
	const struct iovec *there, unsigned l);

#endif
