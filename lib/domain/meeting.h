/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meeting - the inside of a meeting, for the files that implement it
 *
 * A meeting is this process's part in a domain (meet.h): its locks, its sockets, and its
 * list of the other members.
 *
 *	meet.c		entering, joining, leaving: the functions that other threads call
 *	thread.c	the domain's thread: connections to members and from them; the
 *			periodic check, which looks for changes that no descriptor
 *			reports, and repeats what failed for lack of memory or
 *			descriptors
 *	callers.c	connections from other hosts, until they are authenticated
 *	remote.c	the ranks on other hosts
 *	member.c	packets from members on this host; their births and ends
 *	barrier.c	the barrier of a job that another launcher started
 *	packet.c	packets to members
 *	conn.c		descriptors, and the epoll set of the thread
 *
 * A file calls only files below it in this list; of thread.c, meet.c only starts the
 * thread.
 *
 * Only the domain's thread touches a struct p3_meeting, except the fields that its lock
 * guards; meet.c touches it before the thread begins and after the thread has ended.
 */
#ifndef P3_LIB_DOMAIN_MEETING_H
#define P3_LIB_DOMAIN_MEETING_H

#include "lib/domain/meet.h"
#include "lib/domain/wireup.h"
#include "lib/node/node.h"
#include "shm/domain.h"
#include "shm/fault.h"

#include <pthread.h>

#define P3_MEET_NONE 0xffffffffu

enum p3_meet_watch {
	P3_MEET_LISTEN,
	P3_MEET_WAKE,
	P3_MEET_CONN,
	P3_MEET_LIFE, /* of a member */
	P3_MEET_RANK, /* the life of a rank that is not a member now */
	P3_MEET_BEACON,
	P3_MEET_REMOTE, /* a call to a rank on another host */
	P3_MEET_UNAUTH, /* an unauthenticated connection from another host */
	P3_MEET_STREAMS /* news of connections to other hosts */
};

/* A connection to another process of the domain on this host. */
struct p3_meet_conn {
	p3_a32 fd;       /* -1: this place is free */
	uint32_t called; /* slot that was called, or P3_MEET_NONE */
	uint32_t slot;   /* slot of the other end, or P3_MEET_NONE: still unknown */
	uint32_t os_pid;
	uint64_t incarnation;
	uint64_t since_ns;
	bool born_sent; /* this node's BORN was sent; nothing else is sent before */
	bool awaited; /* joining waits for the BORN of this member, which came earlier */
	bool owes;    /* PIDS found no room and must be sent */
};

struct p3_meet_member {
	uint64_t incarnation; /* 0: no member */
	uint32_t os_pid;
	p3_a32 life;   /* pidfd, or -1: check_all() tests the lock */
	bool missing;  /* it could not be attached yet */
	bool ending;   /* it has ended; its last messages are taken first */
	uint32_t how;  /* p3_peer_end */
	uint32_t rank; /* launched: rank in the own job, or P3_MEET_NONE */
};

/* A rank of the own job, if another launcher started it.  Its slot may be another one
 * each time that it joins. */
struct p3_meet_rank {
	uint32_t slot; /* or P3_MEET_NONE: it is no member */
	p3_a32 life;   /* pidfd of a rank that has left in order and lives, or -1 */
	bool ended;    /* its process has ended */
	uint32_t come; /* at rank 0: number of the last barrier that it has entered */
};

/* The state or result of a barrier: a status, and with EPIPE a rank that has ended. */
struct p3_meet_verdict {
	int32_t status;
	uint32_t ended; /* or P3_JOB_NO_RANK */
};

#define P3_MEET_GOOD ((struct p3_meet_verdict){0, P3_JOB_NO_RANK})

struct p3_meeting {
	struct p3_domain place;
	struct p3_node *node;
	struct p3_nic *nic; /* set while the thread runs */
	pthread_t thread;
	p3_a32 listen, ep, wake; /* descriptors */
	bool accept_paused;      /* listen is not watched: there is no room for calls */
	bool rescan;             /* a connection or a packet failed: the
				 * next regular look scans the domain */
	uint64_t checked_ns;     /* time of the last regular look */
	bool over;               /* p3_meet_part() was called: the thread must end */
	p3_a32 question;         /* (any) the NIC's last question (ASK.1) */
	uint32_t answered;       /* the last question that was answered */
	uint32_t asked;          /* the last question for which the streams looked */
	uint32_t ask_look, release_look, met_look; /* looks; 0: there is none */
	uint32_t reported_pid; /* last process that p3_meet_say_breach() reported */
	uint32_t nreported;    /* number of these lines since reported_ns */
	uint64_t reported_ns;
	struct p3_meet_verdict broken; /* with a status: all barriers fail */
	struct p3_job_msg released;    /* the last RELEASED of rank 0; round 0: none */
	/* time of the last announcement of process ids to other hosts, while not all have
	 * acknowledged it, or 0 */
	uint64_t pids_sent_ns;
	uint32_t barrier_sent;    /* round of the last BARRIER sent to rank 0 */
	int32_t barrier_sent_how; /* status in that BARRIER */
	pthread_mutex_t lock;     /* guards the members below, and the node's
				        * barriers */
	pthread_cond_t changed;
	bool stop;                /* p3_meet_part() was called */
	bool new_pids;            /* PIDS must be sent; p3_meet_pids() waits for that */
	bool fds_lost;            /* the program has closed descriptors of the meeting */
	bool current;             /* what other hosts sent before was processed */
	bool met;                 /* all earlier members have introduced themselves */
	bool refused;             /* an earlier member does not fit: joining fails */
	uint32_t entered, inside; /* number of the last barrier, and of the threads
				   * that wait */
	uint32_t nconn, nmember, nrank;
	struct p3_meet_conn *conn;
	struct p3_meet_member *member; /* by slot */
	struct p3_meet_rank *rank;
};

static inline int p3_meet_fd(const p3_a32 *fd)
{
	return (int)p3_get(fd);
}

/* Return true if the slot is that of a rank on another host. */
static inline bool p3_meet_is_far(const struct p3_meeting *m, uint32_t slot)
{
	return p3_wireup_is_far(m->node->wireup, slot);
}

/* Return true if rank 0 decides about this node's barriers: another launcher started the
 * job, and this node is not rank 0. */
static inline bool p3_meet_follows(const struct p3_meeting *m)
{
	return m->node->launched && m->node->rank != 0;
}

/* Return true if the connection is open and this node has introduced itself. */
static inline bool p3_meet_talks(const struct p3_meet_conn *c)
{
	return p3_meet_fd(&c->fd) >= 0 && c->born_sent;
}

/* ---- conn.c ---- */

/* Forget a descriptor's number, then close it.  A child that is forked between these two
 * steps leaks the descriptor; in the other order, it could later close a descriptor of
 * the program that has the same number. */
void p3_meet_close(p3_a32 *fd);
/* op is EPOLL_CTL_...; return 0 or -errno. */
int p3_meet_watch(
	struct p3_meeting *m, int op, int fd, enum p3_meet_watch what, uint32_t which);
/* Return true if fd and the epoll descriptor still name the library's files, and epoll
 * watches the file of fd: the program may have closed either descriptor. */
bool p3_meet_watches(
	struct p3_meeting *m, const p3_a32 *fd, enum p3_meet_watch what, uint32_t which);
/* Return true if the program has closed a descriptor that epoll watched, or given its
 * number to another file; false if there is no descriptor. */
bool p3_meet_has_lost(
	struct p3_meeting *m, const p3_a32 *fd, enum p3_meet_watch what, uint32_t which);
/* Close fd if p3_meet_watches() is true for it, and forget its number in any case.  The
 * epoll set stays as it is: a forked child shares the set with its parent. */
void p3_meet_drop(
	struct p3_meeting *m, p3_a32 *fd, enum p3_meet_watch what, uint32_t which);
/*
 * Take a descriptor out of the epoll set, close it, and forget its number.  A forked
 * child may keep its file open, and epoll would report that for ever.  If epoll does not
 * watch it, the program may have given the number to another file: leave that file open.
 */
void p3_meet_unwatch(struct p3_meeting *m, p3_a32 *fd);
void p3_meet_hang_up(struct p3_meeting *m, struct p3_meet_conn *c);

/* Add a call to the epoll set; change what is waited for, after its state has changed;
 * take it out of the set, and take its connection, or close it. */
void p3_meet_add_call(
	struct p3_meeting *m, struct p3_call *c, enum p3_meet_watch what, uint32_t which);
void p3_meet_watch_call(
	struct p3_meeting *m, struct p3_call *c, enum p3_meet_watch what, uint32_t which);
struct p3_connection p3_meet_take_call(struct p3_meeting *m, struct p3_call *c);
void p3_meet_close_call(struct p3_meeting *m, struct p3_call *c);

/* ---- packet.c ---- */

struct p3_job_msg p3_meet_message(const struct p3_meeting *m, enum p3_job_op op);
struct p3_peer_info p3_meet_info(
	const struct p3_meeting *m, const struct p3_job_msg *msg);
/* Print a line about a process that breaks the rules, whose connection is closed.  The
 * number of these lines is limited (packet.c). */
void p3_meet_say_breach(
	struct p3_meeting *m, const struct p3_meet_conn *c, const char *what);
/* Send BORN.  Return 0 or -errno. */
int p3_meet_send_born(struct p3_meeting *m, struct p3_meet_conn *c);
void p3_meet_send_pids(struct p3_meeting *m, struct p3_meet_conn *c);
/* Send a packet to the member of a slot, through all connections with it, since the
 * member may close any of them before it reads.  Return false if one did not take it. */
bool p3_meet_send(struct p3_meeting *m, uint32_t slot, const struct p3_job_msg *msg);

/* Send a packet to a remote node.  Return false if there is no room for it. */
bool p3_meet_send_to_remote(
	struct p3_meeting *m, uint32_t rank, const struct p3_job_msg *msg);

/* ---- member.c ---- */

/* Receive and process the packets of a connection. */
void p3_meet_receive(struct p3_meeting *m, struct p3_meet_conn *c);
/* Process the end of a member's process.  First process the packets that it has sent: a
 * LEAVE among them says that it left in order. */
void p3_meet_on_process_end(struct p3_meeting *m, uint32_t slot);
/* Mark a member as ending, and remove it if all its messages are taken. */
void p3_meet_end(struct p3_meeting *m, uint32_t slot, enum p3_peer_end how);
/* Process the failure why to attach a member: try again later if it may pass, else treat
 * the member as dead. */
void p3_meet_on_attach_error(struct p3_meeting *m, struct p3_peer_info *info, int why);
/* Remove an ending member, if all its messages are taken or if now is true. */
void p3_meet_remove(struct p3_meeting *m, uint32_t slot, bool now);
/* Note the end of the process of a rank that had left in order. */
void p3_meet_on_rank_end(struct p3_meeting *m, uint32_t rank);

/* ---- remote.c: all do nothing in a job on one host ---- */

void p3_meet_begin_remotes(struct p3_meeting *m);
/* Process an event of a call to a rank, or of the streams. */
void p3_meet_on_remote(struct p3_meeting *m, enum p3_meet_watch what, uint32_t which);
/* Return true if all packets that remote nodes had sent when *look was 0 are among the
 * news, and set it to 0 again; else come again. */
bool p3_meet_has_news_of(struct p3_meeting *m, uint32_t *look);
/* Process all news of the streams, and go on with all calls. */
void p3_meet_receive_remotes(struct p3_meeting *m);
/* Do the work that no descriptor reports: call again, notice silence, repeat packets. */
void p3_meet_check_remotes(struct p3_meeting *m);
/* Return true if the rank is on another host, and there is no connection to it now. */
bool p3_meet_is_disconnected(const struct p3_meeting *m, uint32_t rank);
/* Return true if an action must be repeated soon. */
bool p3_meet_remotes_need_retry(const struct p3_meeting *m);
/* Return true if all remote ranks that live have told their state. */
bool p3_meet_has_met_remotes(const struct p3_meeting *m);
/* Send the process ids to all remote nodes. */
void p3_meet_send_pids_to_remotes(struct p3_meeting *m);
/* Return true if all remote nodes have acknowledged the process ids. */
bool p3_meet_remotes_know_pids(const struct p3_meeting *m);
/* Send LEAVE to all remote nodes. */
void p3_meet_send_leave_to_remotes(struct p3_meeting *m);
/* Return true if a process with an interface has not confirmed all packets. */
bool p3_meet_remotes_owe_confirmations(const struct p3_meeting *m);
/* Use an authenticated connection for the rank of its caller, in place of an earlier one:
 * a rank calls anew when that has broken, which this node may not have noticed. */
void p3_meet_adopt(struct p3_meeting *m, struct p3_unauth *s);
/* Return true if the program has closed the beacon, or a connection to a remote rank. */
bool p3_meet_has_lost_remotes(const struct p3_meeting *m);
/* Close all connections to remote ranks, and treat these as ended. */
void p3_meet_end_remotes(struct p3_meeting *m);

/* ---- callers.c: all but the first and the last do nothing in a job on one host ---- */

/* Process an event of the beacon, or of an unauthenticated connection, whose index in
 * wireup->unauth is which. */
void p3_meet_on_caller(struct p3_meeting *m, enum p3_meet_watch what, uint32_t which);
void p3_meet_begin_callers(struct p3_meeting *m);
/* Close slow connections, and accept again. */
void p3_meet_check_callers(struct p3_meeting *m);
/* Return true if callers wait for room. */
bool p3_meet_callers_wait(const struct p3_meeting *m);
/* Accept all callers, and go on with their calls. */
void p3_meet_answer_callers(struct p3_meeting *m);

/* ---- barrier.c ---- */

/* Send and release in the barrier of the job, as far as it can go now. */
void p3_meet_advance_barrier(struct p3_meeting *m);
/* Process a BARRIER that has come to rank 0, and a RELEASED that rank 0 has sent. */
void p3_meet_on_barrier(struct p3_meeting *m, const struct p3_job_msg *msg);
void p3_meet_on_released(struct p3_meeting *m, const struct p3_job_msg *msg);
/* Let the threads of this node leave the barrier that this RELEASED is about.  The caller
 * has processed all packets that came before it. */
void p3_meet_leave_barrier(struct p3_meeting *m, const struct p3_job_msg *released);

/* ---- thread.c ---- */

/* Run as the domain's thread, until p3_meet_part(). */
void *p3_meet_thread(void *meeting);

#endif
