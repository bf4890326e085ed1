/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * internal - the inside of a domain, for the files that implement it (others: mesh.h)
 *
 * A mesh is this process's part in a domain: its locks, its sockets, and its list of the
 * other members.
 *
 *	mesh.c		entering, joining, leaving: the functions that other threads call;
 *			the domain's thread, and its periodic check, which looks for
 *			changes that no descriptor reports, and repeats what failed for
 *			lack of memory or descriptors
 *	remote.c	the ranks on other hosts: calls, packets, births and ends
 *	member.c	the other processes of this host: the same; descriptors, and the
 *			epoll set of the thread
 *	barrier.c	the barrier of a job that another launcher started
 *	modex.c		the cards of the ranks of a job on several hosts, and their use
 *	call.c		TCP to other hosts: addresses, sockets, authentication
 *
 * A file calls only files below it in this list.
 *
 * Only the domain's thread touches a struct p3_mesh, except the fields that its lock
 * guards; the functions for other threads touch it before the thread begins and after it
 * has ended.
 */
#ifndef P3_LIB_DOMAIN_INTERNAL_H
#define P3_LIB_DOMAIN_INTERNAL_H

#include "lib/domain/mesh.h"
#include "lib/node/node.h"
#include "nic/streams.h"
#include "shm/atomics.h"
#include "shm/domain.h"
#include "shm/fault.h"
#include "shm/fd.h"

#include <pthread.h>
#include <sys/socket.h>

/* ---- call.c: addresses and sockets ---- */

/*
 * A process listens at one address of one network, from before the exchange of cards
 * until the process ends.  While the process computes or is stopped, the kernel completes
 * connections to the listener and answers keepalives.  When the process has ended, the
 * kernel refuses connections; when the host is off or cut off, no answer comes.  So other
 * hosts learn by connections whether the process lives.
 *
 * The functions have no state; one thread at a time calls them.  The sockets do not
 * block, and are close-on-exec.
 */

#define P3_TCP_TEXT 64 /* room for an address as text */

/* Choose this host's address: by the setting P3_CONF_FABRIC_NET, or else the one from
 * which the route to another host begins (name or user@name; NULL: unknown), or, since a
 * name may be known to the remote shell alone, that by which the launcher has reached
 * this host (NULL: unknown).  Write family and address.  Return 0, -EADDRNOTAVAIL after
 * an error line, or another -errno. */
int p3_tcp_choose_address(
	const char *other_host, const char *own_address, struct p3_card *card);

/* Return a number that stands for this host and its network namespace, or 0 if the kernel
 * does not tell it. */
uint64_t p3_tcp_network(void);

/* Print the error line for a rank on another host with the address of this host. */
void p3_tcp_say_same_address(uint32_t rank, const struct p3_card *card);

/* Listen at the card's address, and write the port.  Return a descriptor, or -errno after
 * an error line. */
int p3_tcp_listen(struct p3_card *card);

/* Begin to connect from this card's address to another's.  timeout_s is the longest
 * silence of the other host, after which the kernel ends the connection; 0: for ever.
 * Return a socket, or -errno. */
int p3_tcp_dial(
	const struct p3_card *self, const struct p3_card *other, uint32_t timeout_s);

/* Accept a connection, and write the caller's family and address to from_out.  Return a
 * socket, or -errno. */
int p3_tcp_accept(int fd, uint32_t timeout_s, struct p3_card *from_out);

/* Let a connection live until its other end, or this process ends it; without that the
 * kernel does so after timeout_s. */
void p3_tcp_keep(int fd);

/* Return the milliseconds since the other host last acknowledged data or a keepalive on a
 * connection that was made with a timeout_s; it then does so each second. */
uint32_t p3_tcp_silence_ms(int fd);
/* Return true if the other host has acknowledged all bytes of a connection. */
bool p3_tcp_is_confirmed(int fd);

/* Write family, port and address to the card. */
void p3_tcp_take_address(struct p3_card *card, const struct sockaddr *from);
bool p3_tcp_is_same_host(const struct p3_card *a, const struct p3_card *b);

/* Write the address of a card, with the port if it has one. */
void p3_tcp_print_address(const struct p3_card *card, char text[P3_TCP_TEXT]);

/* ---- call.c: calls ---- */

/*
 * A call is a TCP connection to a process of another host, until both ends are
 * authenticated:
 *
 *	caller	--HELLO {ranks, nonce}-->	called
 *		<--ANSWER {nonce, proof}--
 *		--PROOF {proof}-->
 *
 * Each greeting has the size of struct p3_greeting, and no byte behind the next one is
 * read.  Both ends prove that they know the job's secret: a proof is a keyed hash of
 * both nonces, both ranks and the end that proves.  So a recorded proof is void in every
 * later call, a HELLO that is repeated gets an ANSWER only, and no end can be made to
 * prove what another call needs.  The keys of what follows are made of the same words,
 * one for each direction.  The connection then goes to the streams (nic/streams.h).
 *
 * Nothing is encrypted, and a program that controls the network can break connections.
 *
 * The sockets do not block.  One thread at a time uses a call; its state is in struct
 * p3_call, and no memory is allocated.
 */
struct p3_greeting {
	uint32_t magic, op;
	uint32_t from, to; /* ranks of the caller and of the called, in all three kinds */
	unsigned char nonce[16];
	struct p3_mac_key proof;
};

enum p3_call_state {
	P3_CALL_NONE,
	P3_CALL_DIALING,  /* caller: the socket is being connected */
	P3_CALL_CALLING,  /* caller: HELLO was sent, ANSWER is awaited */
	P3_CALL_CALLED,   /* called: HELLO is awaited */
	P3_CALL_ANSWERED, /* called: ANSWER was sent, PROOF is awaited */
	P3_CALL_OPEN      /* both ends are authenticated */
};

struct p3_call {
	p3_a32 fd;
	p3_fd_id file;
	enum p3_call_state state;
	uint32_t from, to; /* ranks of caller and called */
	bool calls;        /* this end is the caller */
	uint32_t got;      /* bytes that in has */
	uint64_t since_ns; /* time of its beginning */
	const struct p3_mac_key *secret;
	unsigned char nonce[2][16]; /* of the caller, of the called */
	struct p3_greeting in;
};

void p3_call_init(struct p3_call *c);

/* Begin on a socket that is being connected, or that was accepted.  The descriptor
 * becomes the call's. */
void p3_call_dial(struct p3_call *c, int fd, const struct p3_mac_key *secret,
	uint32_t self, uint32_t other);
void p3_call_accept(
	struct p3_call *c, int fd, const struct p3_mac_key *secret, uint32_t self);

/* Return the rank of the other end; it is authenticated once the call is open. */
static inline uint32_t p3_call_other(const struct p3_call *c)
{
	return c->calls ? c->to : c->from;
}

/* Go on.  Return 0 if the call is open; -EAGAIN if it needs more of the other end;
 * -EACCES if that is not of the job; -EPIPE at the end of file; or another -errno: the
 * connection is broken. */
int p3_call_go_on(struct p3_call *c);

/* Return the connection of an open call; take it: the call is over then. */
struct p3_connection p3_call_connection(const struct p3_call *c);
struct p3_connection p3_call_take(struct p3_call *c);

/* Return true if the program has closed the descriptor. */
bool p3_call_is_lost(const struct p3_call *c);

/* Close the descriptor, unless the program has. */
void p3_call_close(struct p3_call *c);

/* ---- modex.c, and the remote ranks ---- */

#define P3_UNAUTH_MOST 64u                  /* unauthenticated connections at a time, */
#define P3_AUTH_NS     UINT64_C(5000000000) /* and the time of each */

struct p3_remote {
	uint32_t rank;
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
	bool in_vain;           /* it has answered no call for DIAL_NS */
	bool took_call;         /* since the last connection: its host took a call, */
	bool has_called;        /* and a call of it has come */
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

struct p3_modex {
	const struct p3_modex_ops *ops;
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
	char address[P3_TCP_TEXT]; /* of this host, without a port */
	p3_a32 listener;           /* descriptor that listens, or -1 */
	p3_fd_id listener_file;
	struct p3_endpoint *streams;
	struct p3_remote *remote; /* by rank */
	struct p3_unauth unauth[P3_UNAUTH_MOST];
	uint64_t looked_ns;   /* time of the last check of all remotes */
	uint64_t begun_ns;    /* time since which their first connections are awaited */
	uint32_t pids_sent;   /* number of the last process ids sent to all remotes */
	bool said_not_of_job; /* a line has told of a caller that is not of the job, */
	bool said_mute;       /* of one that says nothing, */
	bool said_crowd;      /* of more than P3_UNAUTH_MOST at a time, */
	bool said_forged;     /* and of bytes that a connection's rank has not sent */
	bool accept_paused; /* the listener is not watched: there is no room for calls */
	bool said_no_fds;   /* a line has told that there are no descriptors, */
	bool said_no_watches; /* or no watches of epoll */
	bool said_late;       /* a line has told which ranks are waited for */
};

/* Say once, when first connections take long, which ranks this one waits for. */
void p3_modex_say_unmet(struct p3_modex *w, uint64_t now);
/* Print a line, once for a rank, about a call that its host has completed, and that the
 * rank does not answer: it is stopped, or has ended, and another program has its port. */
void p3_remote_say_unanswered(const struct p3_modex *w, struct p3_remote *r);
/* Print a line, once for a process, about a connection that a wrong record has ended. */
void p3_remote_say_forged(struct p3_modex *w, const struct p3_remote *r);
/* Print a line if a process is treated as ended for another reason than its end: once for
 * a host, about its silence or a refused first call (the process may have ended, or a
 * firewall may refuse calls). */
void p3_remote_say_why_ended(
	const struct p3_modex *w, const struct p3_remote *r, int why);
/* Close a connection's descriptor, if there is one, unless the program has closed it. */
void p3_remote_close_connection(struct p3_connection *c);
/* Close the connections with a remote process, or that are being made. */
void p3_remote_close(struct p3_remote *r);

/* ---- the mesh ---- */

#define P3_MESH_NONE 0xffffffffu

enum p3_mesh_watch {
	P3_MESH_LISTEN,
	P3_MESH_WAKE,
	P3_MESH_CONN, /* mesh.c goes from here to P3_MESH_RANK */
	P3_MESH_LIFE, /* of a member */
	P3_MESH_RANK, /* the life of a rank that is not a member now */
	P3_MESH_TCP_LISTEN,
	P3_MESH_REMOTE, /* a call to a rank on another host */
	P3_MESH_UNAUTH, /* an unauthenticated connection from another host */
	P3_MESH_STREAMS /* news of connections to other hosts */
};

/* A connection to another process of the domain on this host. */
struct p3_mesh_conn {
	p3_a32 fd;       /* -1: this place is free */
	uint32_t called; /* slot that was called, or P3_MESH_NONE */
	uint32_t slot;   /* slot of the other end, or P3_MESH_NONE: still unknown */
	uint32_t os_pid;
	uint64_t incarnation;
	uint64_t since_ns;
	bool born_sent; /* this node's BORN was sent; nothing else is sent before */
	bool awaited; /* joining waits for the BORN of this member, which came earlier */
	bool owes;    /* PIDS found no room and must be sent */
};

/* A rank of the own job, if another launcher started it.  Its slot may be another one
 * each time that it joins. */
struct p3_mesh_rank {
	uint32_t slot; /* or P3_MESH_NONE: it is no member */
	p3_a32 life;   /* pidfd of a rank that has left in order and lives, or -1 */
	bool ended;    /* its process has ended */
	uint32_t come; /* at rank 0: number of the last barrier that it has entered */
};

/* The state or result of a barrier: a status, and with EPIPE a rank that has ended. */
struct p3_mesh_verdict {
	int32_t status;
	uint32_t ended; /* or P3_JOB_NO_RANK */
};

#define P3_MESH_GOOD ((struct p3_mesh_verdict){0, P3_JOB_NO_RANK})

struct p3_mesh {
	struct p3_domain place;
	struct p3_node *node;
	struct p3_nic *nic; /* set while the thread runs */
	pthread_t thread;
	p3_a32 listen, ep, wake; /* descriptors */
	bool accept_paused;      /* listen is not watched: there is no room for calls */
	bool rescan;             /* a connection or a packet failed: the
				 * next regular look scans the domain */
	uint64_t checked_ns;     /* time of the last regular look */
	bool over;               /* p3_mesh_part() was called: the thread must end */
	uint32_t answered;       /* the last question that was answered */
	uint32_t asked;          /* the last question for which the streams looked */
	uint32_t ask_look, release_look, met_look; /* looks; 0: there is none */
	uint32_t reported_pid; /* last process that a line was about */
	uint32_t nreported;    /* number of these lines since reported_ns */
	uint64_t reported_ns;
	struct p3_mesh_verdict broken; /* with a status: all barriers fail */
	struct p3_job_msg released;    /* the last RELEASED of rank 0; round 0: none */
	/* time of the last announcement of process ids to other hosts, while not all have
	 * acknowledged it, or 0 */
	uint64_t pids_sent_ns;
	uint32_t barrier_sent;    /* round of the last BARRIER sent to rank 0 */
	int32_t barrier_sent_how; /* status in that BARRIER */
	pthread_mutex_t lock;     /* guards the members below, and the node's
				        * barriers */
	pthread_cond_t changed;
	bool stop;                /* p3_mesh_part() was called */
	bool new_pids;            /* PIDS must be sent; p3_mesh_pids() waits for that */
	bool fds_lost;            /* the program has closed descriptors of the mesh */
	bool current;             /* what other hosts sent before was processed */
	bool met;                 /* all earlier members have introduced themselves */
	bool refused;             /* an earlier member does not fit: joining fails */
	uint32_t entered, inside; /* number of the last barrier, and of the threads
				   * that wait */
	uint32_t nconn, nrank;
	struct p3_mesh_conn *conn;
	struct p3_mesh_rank *rank;
};

static inline int p3_mesh_fd(const p3_a32 *fd)
{
	return (int)p3_get(fd);
}

/* Return true if the slot is that of a rank on another host. */
static inline bool p3_mesh_is_far(const struct p3_mesh *m, uint32_t slot)
{
	return p3_modex_is_far(m->node->modex, slot);
}

/* Return true if rank 0 decides about this node's barriers: another launcher started the
 * job, and this node is not rank 0. */
static inline bool p3_mesh_follows(const struct p3_mesh *m)
{
	return m->node->launched && m->node->rank != 0;
}

/* Return true if the connection is open and this node has introduced itself. */
static inline bool p3_mesh_talks(const struct p3_mesh_conn *c)
{
	return p3_mesh_fd(&c->fd) >= 0 && c->born_sent;
}

/* ---- member.c ---- */

/* Forget a descriptor's number, then close it.  A child that is forked between these two
 * steps leaks the descriptor; in the other order, it could later close a descriptor of
 * the program that has the same number. */
void p3_mesh_close(p3_a32 *fd);
/* op is EPOLL_CTL_...; return 0 or -errno. */
int p3_mesh_watch(
	struct p3_mesh *m, int op, int fd, enum p3_mesh_watch what, uint32_t which);
/* Return true if fd and the epoll descriptor still name the library's files, and epoll
 * watches the file of fd: the program may have closed either descriptor. */
bool p3_mesh_watches(
	struct p3_mesh *m, const p3_a32 *fd, enum p3_mesh_watch what, uint32_t which);
/*
 * Take a descriptor out of the epoll set, close it, and forget its number.  A forked
 * child may keep its file open, and epoll would report that for ever.  If epoll does not
 * watch it, the program may have given the number to another file: leave that file open.
 */
void p3_mesh_unwatch(struct p3_mesh *m, p3_a32 *fd);
void p3_mesh_hang_up(struct p3_mesh *m, struct p3_mesh_conn *c);

/* Stop watching a socket for calls, since epoll would report those without room all the
 * time: they wait in the kernel until the next check resumes. */
void p3_mesh_pause(
	struct p3_mesh *m, bool *paused, const p3_a32 *fd, enum p3_mesh_watch what);
void p3_mesh_resume(
	struct p3_mesh *m, bool *paused, const p3_a32 *fd, enum p3_mesh_watch what);
/* Send BORN.  Return 0 or -errno. */
int p3_mesh_send_born(struct p3_mesh *m, struct p3_mesh_conn *c);
/* Accept all calls of processes of this host. */
void p3_mesh_accept(struct p3_mesh *m);
/* Call all members that this node has not met. */
void p3_mesh_scan(struct p3_mesh *m);
/* Hang up a connection whose process has not introduced itself for too long.  Return
 * false if it is no such connection. */
bool p3_mesh_close_mute(struct p3_mesh *m, struct p3_mesh_conn *c);
/* Receive and process the packets of a connection. */
void p3_mesh_receive(struct p3_mesh *m, struct p3_mesh_conn *c);
/* Process the end of a member's process.  First process the packets that it has sent: a
 * LEAVE among them says that it left in order. */
void p3_mesh_on_process_end(struct p3_mesh *m, uint32_t slot);
/* Mark a member as ending, and remove it if all its messages are taken. */
void p3_mesh_end(struct p3_mesh *m, uint32_t slot, enum p3_peer_end how);
/* Remove an ending member, if all its messages are taken or if now is true. */
void p3_mesh_remove(struct p3_mesh *m, uint32_t slot, bool now);

/* ---- remote.c: all do nothing in a job on one host ---- */

void p3_mesh_begin_remotes(struct p3_mesh *m);
/* Process an event of a call to a rank, of the listener, of an unauthenticated
 * connection, whose index in modex->unauth is which, or of the streams. */
void p3_mesh_on_remote(struct p3_mesh *m, enum p3_mesh_watch what, uint32_t which);
/* Return true if all packets that remote nodes had sent when *look was 0 are among the
 * news, and set it to 0 again; else come again. */
bool p3_mesh_has_news_of(struct p3_mesh *m, uint32_t *look);
/* Process all news of the streams, and go on with all calls. */
void p3_mesh_receive_remotes(struct p3_mesh *m);
/* Do the work that no descriptor reports: call again, notice silence, repeat packets,
 * close slow connections, and accept again. */
void p3_mesh_check_remotes(struct p3_mesh *m);
/* Return true if the rank is on another host, and there is no connection to it now. */
bool p3_mesh_is_disconnected(const struct p3_mesh *m, uint32_t rank);
struct p3_remotes {
	bool need_retry; /* an action must be repeated soon */
	bool met;        /* all that live have told their state */
	bool know_pids;  /* all have acknowledged this node's process ids */
};
struct p3_remotes p3_mesh_sum_remotes(const struct p3_mesh *m);
/* Send the process ids to all remote nodes. */
void p3_mesh_send_pids_to_remotes(struct p3_mesh *m);
/* Send LEAVE to all remote nodes, and wait until they have confirmed all packets. */
void p3_mesh_leave_remotes(struct p3_mesh *m);
/* Return true if the program has closed the listener, or a connection to a remote rank.
 * */
bool p3_mesh_has_lost_remotes(const struct p3_mesh *m);
/* Close all connections to remote ranks, and treat these as ended. */
void p3_mesh_end_remotes(struct p3_mesh *m);

/* ---- barrier.c ---- */

/* Send and release in the barrier of the job, as far as it can go now. */
void p3_mesh_advance_barrier(struct p3_mesh *m);
/* Process a BARRIER or RELEASED from a rank of the own job, or from another member (rank
 * is P3_MESH_NONE). */
void p3_mesh_on_barrier_packet(
	struct p3_mesh *m, uint32_t rank, const struct p3_job_msg *msg);
/* Let the threads of this node leave the barrier that this RELEASED is about.  The caller
 * has processed all packets that came before it. */
void p3_mesh_leave_barrier(struct p3_mesh *m, const struct p3_job_msg *released);

#endif
