/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mesh - this node as a member of a domain, in which nodes find each other, and as a rank
 * of a job on several hosts
 *
 *	enter	take a node index and ids that no other process has (shm/domain.h)
 *	join	start a thread that listens, calls the other members, and introduces
 *		this node
 *	part	send LEAVE to all members, and end the thread
 *	exit	give index and ids back
 *
 * Any two members exchange packets of shm/job.h on a connection of their own:
 *
 *	--BORN (2 or 3 descriptors)-->	the first packet: introduces the sender.  The
 *					called member answers with its own BORN before it
 *					maps the caller
 *	--PIDS-->			the sender's process ids have changed: sent before
 *					its PtlNIInit returns
 *	--AGAIN-->			there was no room for the BORN: send it once more
 *	--LEAVE-->			the sender closes its last interface
 *	--BARRIER-->  rank 0  --RELEASED-->	of a job that another launcher started
 *
 * A connection belongs to one incarnation; a BORN of another incarnation ends it.
 *
 * Of two members the one that joins later calls the other.  If both join at once, both
 * may call, and the second BORN of one incarnation is ignored.  An incarnation has ended
 * when its connection is at the end of file; when its process has ended (pidfd: forked
 * children may hold copies of its sockets); or when the lock of its slot is free or held
 * by another process (its process has executed another program, and forked children hold
 * its sockets).  If no LEAVE came before, the member counts as dead: exit statuses are
 * unknown here.
 *
 * This node closes the connection of a caller that does not introduce itself, after
 * SILENT_NS or when it needs the connection for another caller.  Such a caller has got
 * no packet yet; if it lives, it sees the end of file and calls again.  This node also
 * closes the connection of a process that breaks these rules or has another version, and
 * prints a line.
 *
 * The domain's thread does all this.  It runs between join and part, so as long as the
 * NIC; other threads leave it work and wake it.  It never blocks: sockets do not block,
 * and actions that find no room (descriptors, memory) are tried again.  A stopped member
 * is not dead; it delays a joining node by P3_SETTLE_NS at most, once.
 *
 * The callers of the functions below hold the lock node->life, except those of
 * p3_mesh_barrier and p3_mesh_wake (any thread, without it) and
 * p3_mesh_forget (the only thread of a forked child).  The state is in struct p3_mesh
 * (internal.h).
 *
 * Rank 0 leads the barriers of a job that another launcher started.  A rank sends it
 * BARRIER with the number of the barrier that it has entered, and with whether it has
 * met all other ranks, since messages sent after the barrier must reach them.  A BARRIER
 * goes through all connections between the two, so that no LEAVE overtakes it, and the
 * periodic check repeats it.  Rank 0 releases all ranks when all have entered.  When a
 * process of the job has ended, rank 0 fails this barrier and all later ones, since a
 * later process in that place is not of this job.  A rank that has left in order and
 * whose process lives may join again.
 */
#ifndef P3_LIB_DOMAIN_MESH_H
#define P3_LIB_DOMAIN_MESH_H

#include "nic/nic.h"
#include "shm/job.h"

#include <stdbool.h>
#include <stdint.h>

struct p3_node;
struct p3_mesh;
struct p3_modex;

/* The remedy in messages about two processes of one rank. */
#define P3_LAUNCHED_ONE                                                                  \
	"start one process of a rank at a time, or set PTL3_LAUNCHED=off for those "     \
	"that are none of the ranks"

/* Enter the domain, as above.  Return 0, or -errno after an error line. */
int p3_mesh_enter(struct p3_node *node);
/* Lock *pid for this process; if it is PTL_PID_ANY, lock and return a free pid from base
 * on.  Return PTL_OK, or after an error line PTL_PID_INVALID (another interface or
 * process has the pid), PTL_NO_SPACE or PTL_IFACE_INVALID (it cannot be locked). */
int p3_mesh_claim(struct p3_node *node, ptl_pid_t base, ptl_pid_t *pid);
/* Return the number of nodes to expect on this host: those in the domain now, but at
 * least 2, and at least the ranks of the job on this host. */
uint32_t p3_mesh_crew(const struct p3_node *node);
/* Join, and wait until the earlier members have introduced themselves, P3_SETTLE_NS at
 * most.  Return 0, or -errno after an error line. */
int p3_mesh_join(struct p3_node *node, struct p3_nic *nic);
/* (any thread) Make the domain's thread look for work. */
void p3_mesh_wake(struct p3_mesh *m);
/* Announce new process ids.  When the function returns, the packets are in the sockets of
 * the members, so that a member that has heard of an id by any other way finds it there
 * when its NIC asks. */
void p3_mesh_pids(struct p3_node *node);
/* Wait in the barrier of a job that mpirun or another such launcher started.  Return 0,
 * or -EPIPE if a rank has ended (set *ended_out), if this node has no interface (after
 * an error line), or if this node leaves. */
int p3_mesh_barrier(struct p3_node *node, uint32_t *ended_out);
/* Leave the other members: send LEAVE, and end the domain's thread. */
void p3_mesh_part(struct p3_node *node);
/* Give back what p3_mesh_enter() has taken. */
void p3_mesh_exit(struct p3_node *node);
/* Forget the domain in a forked child, which is not in it. */
void p3_mesh_forget(struct p3_node *node);

/* ---- jobs on several hosts ---- */

/*
 * The modex: what a launcher carries between the ranks of a job on several hosts before
 * they can reach each other.
 *
 *	hosts	which ranks share a host
 *	put	each rank publishes one card
 *	fence	wait until all ranks have published theirs
 *	get	read the card of any rank
 *
 * hosts comes first, in PtlInit.  put, fence and get follow in this order, once, in the
 * first PtlNIInit of the process.  All ranks of the job must come to the fence.  Later
 * interfaces of the process use the same cards: a card describes the process, and changes
 * of its interfaces travel over connections to the listeners.
 *
 * The ranks trust a card as they trust the launcher.  The card of rank 0 has the secret
 * of the job, by which the ranks authenticate each other from then on.  So a launcher
 * carries cards over its own connections, and never in arguments, in the environment, or
 * in files that other users can read.
 *
 * One thread at a time calls these functions.  It holds node->call; in all but hosts and
 * end also node->life, which fence and get may release while they wait (for example by
 * pthread_cond_wait on node->changed).  The functions return 0, or -errno after an error
 * line that names the remedy.  The state is the implementation's.
 */
#define P3_CARD_MAGIC 0x33504304u /* the low byte is the version of the format */

/* The words that a rank publishes.  Unused bytes are zero.  The ranks run one build on
 * machines of one kind, as layout shows, so words have the byte order of the machine. */
struct p3_card {
	uint32_t magic;
	uint32_t size; /* ranks of the job */
	uint32_t rank;
	uint32_t leader;  /* lowest rank on the same host */
	uint64_t layout;  /* P3_LAYOUT_WORD of the rank's library */
	uint64_t network; /* p3_tcp_network(), or 0 */
	uint32_t nid;     /* node id of the host */
	uint16_t family;  /* of the listener's address: AF_INET or AF_INET6 */
	uint16_t port;    /* of the listener */
	unsigned char address[16];
	char provider[47];        /* of libfabric, that the rank uses; or auto */
	unsigned char has_aes;    /* p3_mac_has_aes() */
	unsigned char secret[32]; /* rank 0: the secret of the job; else zeros */
};

_Static_assert(sizeof(struct p3_card) == 136, "the card is a format");

/* A line tells of a fence that lasts this number of seconds.  Its format takes the rank,
 * the seconds, and the size of the job. */
#define P3_MODEX_LATE_S 10
#define P3_MODEX_LATE                                                                    \
	"PtlNIInit of rank %u waits since %d s until all %u ranks of the job have "      \
	"called it: start Portals in each rank of a job on several hosts, and end the "  \
	"job if one has ended without it"

struct p3_modex_ops {
	/* Write the lowest rank on the host of each rank of the job. */
	int (*hosts)(struct p3_node *node, uint32_t *leader_out);
	/* Return the name or address of a rank's host as the launcher knows it, or NULL.
	 * It stays valid until end. */
	const char *(*host_name)(struct p3_node *node, uint32_t rank);
	/* Return the address by which the launcher has reached this host, or NULL.  The
	 * function may be missing.  The address stays valid until end. */
	const char *(*own_address)(struct p3_node *node);
	/* If the card cannot be published, publish in its place that this rank gives up,
	 * which needs less: the others must not wait for it. */
	int (*put)(struct p3_node *node, const struct p3_card *card);
	int (*fence)(struct p3_node *node);
	/* The caller checks magic, size, rank and layout of the card. */
	int (*get)(struct p3_node *node, uint32_t rank, struct p3_card *card_out);
	/* Take leave of the launcher, for good: at the last PtlFini after the exchange,
	 * or at the end of the process.  It may be called again. */
	void (*end)(struct p3_node *node);
};

/*
 * This process among these ranks.
 *
 *	place	PtlInit: which ranks share a host, and the hosts' node ids
 *	enter	the first PtlNIInit: listen, exchange cards, check them
 *	leave	the last PtlFini: take leave of the launcher
 *
 * The index of a rank is its rank, on all hosts.  Ranks on this host meet in a domain, as
 * in a job on one host.  Those on other hosts are called by TCP (internal.h), a
 * connection for each pair of processes: the process with the higher rank calls.  The
 * connection carries packets and frames (nic/streams.h), and stays for the life of both
 * processes, through any number of interfaces.  If it breaks, the same process calls
 * again, and nothing is lost; a call that is refused shows that the other process has
 * ended, which is final.  The domain's thread makes the connections while there is an
 * interface (remote.c).
 *
 * The state is in struct p3_modex, which stays until the process ends.  place, enter and
 * leave hold node->call.
 */

/* Ask the launcher for the hosts of the job.  Return 0 or -errno. */
int p3_modex_place(struct p3_node *node);
/* Return the number of hosts of the job. */
uint32_t p3_modex_hosts(const struct p3_modex *w);
/* Return the node id of the host of a rank, for launchers that give ranks none. */
uint32_t p3_modex_nid(const struct p3_modex *w, uint32_t rank);
/* Return true if the rank is on another host than this process; w may be NULL. */
bool p3_modex_is_far(const struct p3_modex *w, uint32_t rank);
/* Exchange cards with all ranks, unless that is over.  Return 0, or -errno after an error
 * line. */
int p3_modex_enter(struct p3_node *node);
/* At the last PtlFini: take leave of the launcher, unless a later PtlNIInit is to
 * exchange cards. */
void p3_modex_leave(struct p3_node *node);
/* At the end of the process: take leave of the launcher, unless that is done. */
void p3_modex_exit(struct p3_node *node);
/* Say that this process ends although a rank on another host has not confirmed all
 * messages; rank is the job's size if none is known. */
void p3_modex_say_late(const struct p3_node *node, uint32_t rank);
/* In a forked child: close the parent's sockets. */
void p3_modex_forget(struct p3_node *node);

#endif
