/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wireup - this process among the ranks of a job on several hosts
 *
 *	place	PtlInit: which ranks share a host, and the hosts' node ids
 *	enter	the first PtlNIInit: listen, exchange cards (exchange.h), check them
 *	leave	the last PtlFini: take leave of the launcher
 *
 * The index of a rank is its rank, on all hosts.  Ranks on this host meet in a domain, as
 * in a job on one host.  Those on other hosts are called by TCP (beacon.h, call.h), a
 * connection for each pair of processes: the process with the higher rank calls.  The
 * connection carries packets and frames (nic/streams.h), and stays for the life of both
 * processes, through any number of interfaces.  If it breaks, the same process calls
 * again, and nothing is lost; a call that is refused shows that the other process has
 * ended, which is final.  The domain's thread makes the connections while there is an
 * interface (lib/domain/remote.c).
 *
 * The state is in struct p3_wireup, which stays until the process ends.  place, enter and
 * leave hold node->call; the domain's thread alone uses the remotes and the
 * unauthenticated connections while it runs.
 */
#ifndef P3_LIB_DOMAIN_WIREUP_H
#define P3_LIB_DOMAIN_WIREUP_H

#include "lib/domain/beacon.h"
#include "lib/domain/call.h"

#define P3_UNAUTH_MOST 64u                  /* unauthenticated connections at a time, */
#define P3_AUTH_NS     UINT64_C(5000000000) /* and the time of each */

struct p3_remote {
	struct p3_call call;       /* that is being made */
	struct p3_connection up;   /* that the streams have */
	struct p3_connection next; /* to give when they have left that */
	uint64_t up_ns;            /* time when it was given */
	bool leaves;               /* they are to leave it */
	bool is_quiet;             /* its host acknowledges nothing on it */
	bool begun;                /* there was a connection */
	bool ended;                /* its process has ended, or is treated so for good */
	bool is_born;              /* it has an interface: born is its last BORN */
	bool state_known;          /* a BORN or LEAVE of it has come */
	bool owes_born;            /* this node's BORN found no room, and must be sent */
	bool said_host;         /* of a leader: a line has told of its host's silence */
	bool said_unanswered;   /* a line has told of a call that it does not answer */
	bool is_probe;          /* call is a probe (remote.c) */
	uint32_t pids_acked;    /* last pids_sent that it has acknowledged by TOLD */
	uint64_t await_call_ns; /* time since which its call is awaited */
	uint64_t alive_ns;      /* without a connection: last time it was seen alive */
	uint64_t pause_ns;      /* last pause before a call; 0 after a packet has come */
	uint64_t retry_ns;      /* no call before this time */
	struct p3_packet born;
};

/* A connection from another host that has not proven yet that its caller knows the
 * secret of the job. */
struct p3_unauth {
	struct p3_call call;
	struct p3_card from; /* address of the caller */
};

struct p3_wireup {
	const struct p3_exchange *exchange;
	uint32_t rank, size;
	uint32_t hosts;       /* number of hosts */
	uint32_t here;        /* number of ranks on this host */
	uint32_t nid;         /* node id of the first host */
	uint32_t *leader;     /* by rank: the lowest rank on its host */
	uint32_t timeout_s;   /* 0: never */
	bool is_over;         /* the exchange of cards has succeeded */
	int failed;           /* or has failed with this -errno */
	struct p3_card *card; /* by rank */
	struct p3_mac_key secret;
	struct p3_far_conf far;
	char address[P3_BEACON_TEXT]; /* of this host, without a port */
	p3_a32 beacon;                /* descriptor that listens, or -1 */
	p3_fd_id beacon_file;
	struct p3_endpoint *streams;
	struct p3_remote *remote; /* by rank */
	struct p3_unauth unauth[P3_UNAUTH_MOST];
	uint64_t looked_ns;   /* time of the last check of all remotes */
	uint64_t begun_ns;    /* time since which their first connections are awaited */
	uint32_t pids_sent;   /* number of the last process ids sent to all remotes */
	bool said_not_of_job; /* a line has told of a caller that is not of the job, */
	bool said_mute;       /* of one that says nothing, */
	bool said_crowd;      /* and of more than P3_UNAUTH_MOST at a time */
	bool accept_paused;   /* the beacon is not watched: there is no room for calls */
	bool said_no_fds;     /* a line has told that there are no descriptors */
	bool said_late;       /* a line has told which ranks are waited for */
};

/* Return true if the rank is on another host than this process. */
static inline bool p3_wireup_is_far(const struct p3_wireup *w, uint32_t rank)
{
	return w && rank < w->size && w->leader[rank] != w->leader[w->rank];
}

/* (any) Return true if the address of a caller is that of a rank. */
bool p3_wireup_is_of_job(const struct p3_wireup *w, const struct p3_card *from);

/* Ask the launcher for the hosts of the job.  Return 0 or -errno. */
int p3_wireup_place(struct p3_node *node);

/* Return the node id of the host of a rank, for launchers that give ranks none. */
uint32_t p3_wireup_nid(const struct p3_wireup *w, uint32_t rank);

/* Exchange cards with all ranks, unless that is over.  Return 0, or -errno after an error
 * line. */
int p3_wireup_enter(struct p3_node *node);

/* At the last PtlFini: take leave of the launcher, unless a later PtlNIInit is to
 * exchange cards. */
void p3_wireup_leave(struct p3_node *node);
/* At the end of the process: take leave of the launcher, unless that is done. */
void p3_wireup_exit(struct p3_node *node);

/* Say that this process ends although a rank on another host has not confirmed all
 * messages; rank is the job's size if none is known. */
void p3_wireup_say_late(const struct p3_node *node, uint32_t rank);

/* Close the connections with a remote process, or that are being made. */
void p3_wireup_close(struct p3_remote *r);
/* In a forked child: close the parent's sockets. */
void p3_wireup_forget(struct p3_node *node);

#endif
