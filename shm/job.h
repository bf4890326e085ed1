/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job - the messages between a node and the launcher
 *
 *	node  --HELLO-->  yod  --WELCOME-->  node		at PtlInit
 *	node  --JOIN (3 or 4 descriptors)-->  yod			at PtlNIInit
 *	      yod  --BORN (2 or 3 descriptors)-->  every joined node, the new one included
 *	node  --LEAVE-->  yod  --LEFT-->  every joined node, the leaver included
 *	node  --AGAIN-->  yod  --BORN-->  node		no room for a BORN,
 *	      yod  --BORN-->  the other node		or a first message to a node
 *	node  --ASK-->  yod  --TOLD-->  node		is there more to tell?
 *	node  --WATCH-->  yod  --OVER-->  node		which ranks will never join?
 *	      yod  --DIED-->  every other node			socket closed, or killed
 *	node  --DROPPED-->  yod				its state of the dead is gone
 *	node  --BARRIER-->  yod  --RELEASED-->  all		PtlXBarrier
 *	node  --CARD (1 descriptor)-->  yod  --CARDS (1 descriptor)-->  all
 *
 * One connected SOCK_SEQPACKET socket per node, inherited under the number in the
 * environment (P3_JOB_ENV).  One message is one packet; descriptors travel as
 * SCM_RIGHTS of the packet that names them.  The socket is the node's *lifeline*: its
 * end of file is the node's end (exec included, since it is close-on-exec from PtlInit
 * on), and for a node its end of file means that yod is gone.  The functions have no
 * state; any thread may send, one receives.
 *
 * Rules that both sides keep:
 *  - A node that joins gets a BORN for each joined node, itself included, then JOINED;
 *    only then PtlNIInit returns.
 *  - LEFT and DIED name the incarnation that ended.  A node that leaves gets its own
 *    LEFT as the last packet about peers: earlier packets belong to the incarnation
 *    that left and may be skipped, and no more come until the next JOIN.
 *  - LEFT is the end of an interface only: DIED says that the process is gone, too.
 *  - A node that reads slowly does not hear of incarnations that have ended: a first BORN
 *    still queued in yod and its LEFT or DIED cancel each other out.
 *  - A process that ends without LEAVE has DIED, with any status: operations that
 *    others have under way with it cannot end otherwise.
 *  - A node that has sent WATCH gets OVER for each rank whose process has ended and
 *    whose socket is closed, joined or not, until the node leaves.
 *  - Only the process that said HELLO speaks for the node while it lives: yod ignores
 *    packets that another process (a forked child) sends through the same socket.  When
 *    that process is gone, the next program of a wrapper script may say HELLO.
 *  - After DIED every joined node that is alive answers DROPPED with the same node and
 *    incarnation, once it has dropped all state of the dead node (it may do so after
 *    LEFT, too); a node in a domain, whose members hear of ends by themselves, does at
 *    once.  yod reaps the process only then (or when no node is left, or after
 *    P3_JOB_REAP_MS), so that its pid cannot name another process while a peer might
 *    still read its memory.
 *  - A node that could not take a BORN, for want of descriptors or memory, asks for it
 *    with AGAIN, as often as it has to.  yod does not repeat a BORN whose incarnation
 *    has ended.
 *  - In a large job BORN carries no descriptors but those of the node itself.  A node
 *    that has a message for another asks for them with AGAIN, and yod introduces the
 *    two: each gets the other's in a second BORN of the same incarnation.  No end
 *    cancels that BORN: it and the end both arrive, in this order.
 *  - TOLD comes behind all packets that yod had for this node when it read ASK.  A node
 *    is in yod's table before it gets JOINED: so a node that hears of another one by
 *    its messages, and asks then, gets BORN before TOLD.  The same holds for PIDS,
 *    since a node that opens another interface waits for its own PIDS from yod.
 *  - A node may LEAVE and JOIN again (PtlNIFini, PtlNIInit) any number of times, each
 *    time with a new incarnation.
 *  - BARRIER: yod sends RELEASED to all waiting nodes when every node of the job waits;
 *    if a node of the job has ended, or ends, before, the waiting nodes get RELEASED
 *    with status EPIPE.
 *  - In a job on several hosts, yod on this host is the agent of the yod that the user
 *    has started.  WELCOME has a file of the job's hosts.  A node hands over its card,
 *    and gets a file of all ranks' cards, in the order of the ranks, when each rank has
 *    handed over one; or CARDS with status EPIPE if a rank has ended without.
 *  - yod believes its own table, the kernel's word about a packet's sender
 *    (SCM_CREDENTIALS) and the socket that it came through, never a node number or uid
 *    inside a packet.
 *  - Neither side blocks on sending for ever: yod's sockets are non-blocking with an
 *    outgoing queue per node; a stopped node holds up no other.
 */
#ifndef P3_SHM_JOB_H
#define P3_SHM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define P3_JOB_ENV   "PTL3_YOD_FD" /* number of the inherited socket */
#define P3_JOB_MAGIC 0x33504a0au   /* protocol; the low byte is its version */
/* descriptors of a packet at most; one less without a shared heap */
#define P3_JOB_FDS     4
#define P3_JOB_REAP_MS 1000
/* Pid of rank r when the program asks for none: P3_JOB_PID_BASE + r, and
 * P3_JOB_PID_STEP more for each interface before. */
#define P3_JOB_PID_BASE 100
#define P3_JOB_PID_STEP 16384

enum p3_job_op {
	P3_JOB_HELLO = 1, /* node: magic, layout word */
	P3_JOB_WELCOME,   /* yod: node, size, nid, jid, uid, cpus; status has the bit
			   * P3_JOB_IN_DOMAIN if nodes meet in a domain, without yod,
			   * and P3_JOB_ON_HOSTS if they are on several hosts; fd:
			   * sleepers (layout.h), for all nodes or for none, or the
			   * hosts (an array of p3_job_host) */
	P3_JOB_REFUSED,   /* yod: status is an errno, layout is the one of the job */
	P3_JOB_JOIN,      /* node: incarnation, pid[], seg_len, heap_len; fds:
			   * published, doorbell, host, and with a heap_len the shared
			   * heap */
	P3_JOB_BORN,      /* yod: node, incarnation, nid, pid[], uid, jid, os_pid,
			 * seg_len, heap_len; fds: published, doorbell, shared heap,
			 * or none */
	P3_JOB_JOINED,    /* yod: all BORN of today's nodes have been sent */
	P3_JOB_PIDS,      /* node, then yod to all nodes: its pid[] has changed */
	P3_JOB_LEAVE,     /* node: incarnation */
	P3_JOB_LEFT,      /* yod: node, incarnation */
	P3_JOB_DIED,      /* yod: node, incarnation, status: the wait status, or 0 */
	P3_JOB_DROPPED,   /* node: node and incarnation that died; between hosts: the
			   * receiver, whom the sender takes for dead */
	P3_JOB_BARRIER,   /* node; in a domain: round, status, ended */
	P3_JOB_RELEASED,  /* yod, or rank 0: status 0, or EPIPE and ended */
	P3_JOB_AGAIN,     /* node: node, incarnation of a BORN, which it requests again */
	P3_JOB_ASK,       /* node: incarnation, round: a number that the node chose */
	P3_JOB_TOLD,      /* yod: the same numbers */
	P3_JOB_WATCH,     /* node: incarnation */
	P3_JOB_OVER,      /* yod: node */
	P3_JOB_CARD,      /* node: seg_len; fd: its card, of this length */
	P3_JOB_CARDS, /* yod: node (the receiver); status 0, seg_len P3_JOB_CARD_LEN, fd:
			   * the cards of all ranks, each that long, with zeros behind
			   * it; or EPIPE and ended */
	P3_JOB_TAKEN, /* between hosts: the number in the packet (nic/streams.h) */
	P3_JOB_OPS
};

#define P3_JOB_IN_DOMAIN 1
#define P3_JOB_ON_HOSTS  2

#define P3_JOB_CARD_LEN  256u /* bytes of a card at most */

/* A host of the job, in the file that WELCOME has; its ranks are consecutive. */
struct p3_job_host {
	uint32_t first, size;
	char name[72];    /* ends with a zero byte; a longer name is cut off */
	char address[48]; /* of the host of this file, as the remote shell has used it;
			   * else empty */
};

_Static_assert(sizeof(struct p3_job_host) == 128, "the entry is a format");

#define P3_JOB_NIS     2           /* interfaces of one node */
#define P3_JOB_NO_PID  0xffffffffu /* the interface is not initialized */
#define P3_JOB_NO_RANK 0xffffffffu

/* One packet.  Unused members are zero. */
struct p3_job_msg {
	uint32_t magic;
	uint32_t op;
	uint32_t node; /* rank: which node this packet is about */
	uint32_t size; /* nodes of the job */
	union {
		uint32_t nid;
		uint32_t ended; /* BARRIER, RELEASED, CARDS with EPIPE: a rank that has
				 * ended */
	};
	uint32_t pid[P3_JOB_NIS]; /* Portals pids by interface */
	uint32_t uid;
	uint32_t jid;
	uint32_t os_pid; /* process id, for cross-memory reads */
	union {
		uint32_t cpus;  /* CPUs that the job may use (affinity, cgroup quota) */
		uint32_t rank;  /* BORN and PIDS in a domain: rank in a job that another
				 * launcher started, or P3_JOB_NO_RANK */
		uint32_t round; /* number of an ASK or TOLD; in a domain, of a BARRIER or
				 * RELEASED */
	};
	int32_t status;
	uint64_t incarnation; /* never 0, and different for every JOIN of this job */
	uint64_t layout;      /* P3_LAYOUT_WORD of the sender's library */
	uint64_t seg_len;     /* bytes of the published segment */
	uint64_t heap_len;    /* bytes of the shared heap, 0: none */
};

_Static_assert(sizeof(struct p3_job_msg) == 80, "the packet is a format");

static inline uint32_t p3_job_version(uint32_t magic)
{
	return magic & 0xff;
}

/*
 * Send one packet, of this protocol or of any bytes, with nfds (0..P3_JOB_FDS)
 * descriptors, again after EINTR.  flags may be MSG_DONTWAIT.  Return 0, -EAGAIN if a
 * non-blocking socket is full, -EPIPE if the other side is gone (no signal is raised), or
 * another -errno.  The descriptors stay the caller's.
 */
int p3_packet_send(int sock, int flags, const void *bytes, size_t len, const int *fds,
	unsigned nfds);
int p3_job_send(int sock, const struct p3_job_msg *msg, const int *fds, unsigned nfds);

/* A packet that was received. */
struct p3_job_packet {
	struct p3_job_msg msg;
	int fds[P3_JOB_FDS]; /* its descriptors (close-on-exec), else -1 */
	unsigned nfds;
	int lacks; /* of p3_packet_recv() */
	struct {   /* the sender as the kernel reports it; os_pid is 0 if it does not */
		uint32_t os_pid, uid;
	} from;
};

/*
 * Receive one packet; flags may be MSG_DONTWAIT, else the call blocks if the socket does.
 * Return 0, and the descriptors become the caller's; -EAGAIN if there is no packet;
 * -EPIPE at end of file; -EPROTO for a packet of wrong size or magic, or with too many
 * descriptors, all of which are closed then; or another -errno.  The sender is known if
 * the socket had SO_PASSCRED when the packet was sent: SO_PEERCRED of a socketpair names
 * the maker of the pair, which is yod.
 *
 * -EMFILE: the packet is there, but this process could not have all its descriptors, and
 * has none of them.
 * -EPROTONOSUPPORT: the packet is of another version, p3_job_version(msg.magic), and
 * nothing else of it is valid.
 */
int p3_job_recv(int sock, int flags, struct p3_job_packet *packet_out);
/* The same for a packet of any bytes, which may be those of packet_out->msg: return the
 * number of them, 0 at end of file, or -errno.  packet_out->lacks is -EMFILE or -EPROTO
 * if it has not all bytes or descriptors. */
ssize_t p3_packet_recv(
	int sock, int flags, void *bytes, size_t len, struct p3_job_packet *packet_out);

/* Close the descriptors that the packet still has. */
void p3_job_close(struct p3_job_packet *packet);

/* Return true if this -errno is a lack of descriptors, memory or buffers, which may pass:
 * the caller may send the packet, or attach the peer, later. */
bool p3_job_passes(int rc);

#endif
