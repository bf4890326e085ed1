/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meetin - what a meeting is inside, for the files that make it (lib/meet.h)
 *
 *	meet.c		coming in, joining, leaving: what other threads ask
 *	meetloop.c	the domain's thread: descriptors, connections, the belt
 *	meetpeer.c	what members say to each other, and the birth and end of them
 *	meetbarrier.c	the barrier of a job that another launcher started
 *
 * All is the domain's thread's but what its lock guards, and what meet.c does before the
 * thread begins and after it ended.
 */
#ifndef P3_LIB_MEETIN_H
#define P3_LIB_MEETIN_H

#include "lib/lib.h"
#include "lib/meet.h"
#include "shm/domain.h"
#include "shm/fault.h"

#include <pthread.h>

#define P3_MEET_NONE 0xffffffffu

enum p3_meet_watch { P3_MEET_LISTEN, P3_MEET_WAKE, P3_MEET_CONN, P3_MEET_LIFE };

/* A connection, from its first day on. */
struct p3_meet_conn {
	p3_a32 fd;       /* -1: a free place */
	uint32_t called; /* the slot that was called, or P3_MEET_NONE */
	uint32_t slot;   /* whose it is, or P3_MEET_NONE: it has not said */
	uint32_t os_pid;
	uint64_t incarnation;
	uint64_t since_ns;
	bool told;    /* who we are: nothing else is said before */
	bool awaited; /* by who joins: it was there before */
	bool owes;    /* PIDS found no room */
};

struct p3_meet_member {
	uint64_t incarnation; /* 0: nobody */
	uint32_t os_pid;
	p3_a32 life;   /* pidfd, -1: the belt must do */
	bool missing;  /* it could not be mapped yet */
	bool parting;  /* it has ended: its last messages are taken first, */
	uint32_t how;  /* p3_peer_end */
	bool ended;    /* launched: it was a process that is over */
	uint32_t come; /* at rank 0: the last barrier that it has entered */
};

/* How a barrier ends or stands: a status, and with EPIPE a rank that has ended. */
struct p3_meet_verdict {
	int32_t status;
	uint32_t ended; /* P3_JOB_NO_RANK: none is known */
};

#define P3_MEET_GOOD ((struct p3_meet_verdict){0, P3_JOB_NO_RANK})

struct p3_meeting {
	struct p3_domain place;
	struct p3_node *node;
	struct p3_nic *nic; /* while the thread lives */
	pthread_t thread;
	p3_a32 listen, ep, wake; /* descriptors */
	bool deaf;               /* no descriptors left for who calls */
	bool unmet;              /* somebody could not be called */
	uint64_t belt_ns;
	bool over;         /* part has been asked for */
	uint32_t scolded;  /* the last process that had a line for its manners, */
	uint32_t nscolded; /* and how many had in the second that began then: */
	uint64_t scolded_ns;
	struct p3_meet_verdict broken; /* with a status, of rank 0: all barriers fail */
	struct p3_job_msg released;    /* by rank 0; round 0: not heard of */
	uint32_t told;                 /* rank 0, of this barrier, */
	int32_t told_how;              /* and how it looked */
	pthread_mutex_t lock;          /* guards those below, and the node's barriers */
	pthread_cond_t changed;
	bool stop, new_pids;
	bool met;                 /* those who were there before, */
	bool refused;             /* or one of them is of another kind */
	uint32_t entered, inside; /* the last barrier, and how many threads wait */
	uint32_t nconn;
	struct p3_meet_conn *conn;
	struct p3_meet_member member[];
};

static inline int p3_meet_fd(const p3_a32 *fd)
{
	return (int)p3_get(fd);
}

/* It is there, and may be told anything. */
static inline bool p3_meet_talks(const struct p3_meet_conn *c)
{
	return p3_meet_fd(&c->fd) >= 0 && c->told;
}

/* meetloop.c */

/* A child that is forked between the two steps loses a descriptor, and closes none that
 * is not ours. */
void p3_meet_close(p3_a32 *fd);
/* op: EPOLL_CTL_...; 0 or -errno. */
int p3_meet_watch(
	struct p3_meeting *m, int op, int fd, enum p3_meet_watch what, uint32_t which);
/* A forked child may keep what is behind it open, and it would be reported for ever. */
void p3_meet_unwatch(struct p3_meeting *m, p3_a32 *fd);
void p3_meet_hang_up(struct p3_meeting *m, struct p3_meet_conn *c);
void *p3_meet_thread(void *meeting);

/* meetpeer.c */

struct p3_job_msg p3_meet_message(const struct p3_meeting *m, enum p3_job_op op);
struct p3_peer_info p3_meet_info(const struct p3_job_msg *msg);
/* Once a process, and not for ever: what it does, and that its connection is given up. */
void p3_meet_scold(struct p3_meeting *m, const struct p3_meet_conn *c, const char *what);
/* Who we are.  0 or -errno. */
int p3_meet_tell(struct p3_meeting *m, struct p3_meet_conn *c);
void p3_meet_tell_pids(struct p3_meeting *m, struct p3_meet_conn *c);
/* What has come through a connection. */
void p3_meet_hear(struct p3_meeting *m, struct p3_meet_conn *c);
/* It is gone: what it had said counts, its LEAVE above all. */
void p3_meet_lose(struct p3_meeting *m, uint32_t slot);
/* A member that has ended is dropped, if all that it had sent is taken, or now. */
void p3_meet_part_with(struct p3_meeting *m, uint32_t slot, bool now);
/* A process of the job that had left in order. */
void p3_meet_bury(struct p3_meeting *m, uint32_t slot);

/* meetbarrier.c */

void p3_meet_see_to_barrier(struct p3_meeting *m);
void p3_meet_on_barrier(struct p3_meeting *m, const struct p3_job_msg *msg);
void p3_meet_on_released(struct p3_meeting *m, const struct p3_job_msg *msg);
#endif
