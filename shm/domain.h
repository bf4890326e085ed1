/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * domain - the meeting place of one user's processes that no launcher introduces
 *
 *	/dev/shm/ptl3-UID/		mode 0700, owned by the user
 *	/dev/shm/ptl3-UID/NAME/		one domain, likewise
 *		locks			empty; its bytes are locked, never written
 *		SLOT.sock		where the member of that slot listens
 *		room			of a family of jobs: a link whose text is the
 *					capacity of the domain
 *
 * There is no daemon and no file to repair: members agree by POSIX record locks, which
 * the kernel takes back when a process ends or executes another program.  The bytes of
 * the file "locks" mean:
 *
 *	0 .. P3_MAX_NODES - 1	slot: the lock holder is alive and has this node index
 *	PRESENT			shared by all processes in the domain
 *	NIDS + nid		exclusive: a launcher; shared: processes started by hand
 *	IDS + nid, pid		the lock holder has that process id
 *	RANKS + job, rank	the lock holder is that rank of a launcher's job
 *
 * Rules:
 *  - A process opens "locks" once and closes it when it leaves: closing any other
 *    descriptor of the file would release all its locks.  A forked child has none of
 *    its parent's locks, and the child's closing releases none.
 *  - A process that has opened the file takes PRESENT, then checks whether the path
 *    still names that file.  If it does not, or if another process has the lock (to
 *    remove the file), it begins anew.
 *  - A process that leaves releases all its locks.  If it can then lock PRESENT
 *    exclusively, it was the last member, and it removes the files and the directory.
 *  - Only the holder of a slot unlinks its SLOT.sock: the owner, or a reaper, which can
 *    take the lock only because the owner is dead.
 *  - The first member of a family makes the link, which fails for all others.
 *    A process that finds itself alone, by locking PRESENT exclusively, removes a link
 *    that dead members have left, and makes its own before it shares PRESENT again.
 *  - A process that takes a slot listens before it looks for others.  So of any two
 *    members the later one finds the earlier one.
 *
 * One thread of a process may call these functions at a time.  Two of them wait:
 * p3_domain_open for a process that is just making or removing the directory (a second
 * at most), and p3_domain_take_slot for a process that is reaping the only free slot
 * (50 ms at most).  The state of a member is struct p3_domain.
 */
#ifndef P3_SHM_DOMAIN_H
#define P3_SHM_DOMAIN_H

#include "shm/fd.h"
#include "shm/layout.h"

#include <stdbool.h>
#include <stdint.h>

#define P3_DOMAIN_BASE  "/dev/shm"
#define P3_DOMAIN_NONE  "none" /* name for no domain: the process reaches no other */
#define P3_DOMAIN_NAMES 40     /* letters of a name at most */
/* 127.0.0.1: the node id of a process that is given none */
#define P3_DOMAIN_NID  0x7f000001u
#define P3_DOMAIN_PIDS 65535u /* process ids are below this */

struct p3_domain {
	p3_a32 dir, locks; /* descriptors, or -1 */
	p3_fd_id dir_file, locks_file;
	uint32_t slot; /* or P3_DOMAIN_NO_SLOT */
	char path[108];
};

#define P3_DOMAIN_NO_SLOT 0xffffffffu

/* An error message for people: the thing, its value, the expectation, the remedy. */
struct p3_domain_why {
	char text[320];
};

/* Return true if the name has 1 to P3_DOMAIN_NAMES letters, digits, '-', '_' and '.',
 * and does not begin with a dot. */
bool p3_domain_is_name(const char *name);

/*
 * Enter a domain: create the directories and files that are missing, and remove other
 * domains whose members are all dead.  base is P3_DOMAIN_BASE except in tests.  Return
 * 0, or -errno and a message in why: -EPERM if a directory is not a directory or not
 * the user's alone, -EBUSY, -EINVAL.
 */
int p3_domain_open(struct p3_domain *d, const char *base, const char *name,
	struct p3_domain_why *why);

/*
 * For tools: open an existing domain of the user uid without becoming a member.  The
 * caller ends with p3_domain_forget().  Return 0, -EPERM if other users may access the
 * directory, or another -errno if the domain does not exist or cannot be opened.
 */
int p3_domain_peek(struct p3_domain *d, const char *base, uint32_t uid, const char *name);
/* Find the first slot from *slot on that a process holds.  *os_pid_out is that process,
 * or 0 if the kernel does not name it.  Return false if there is none. */
bool p3_domain_next_slot(const struct p3_domain *d, uint32_t *slot, uint32_t *os_pid_out);
/* Call found for each process id that is taken, in any order. */
void p3_domain_ids(const struct p3_domain *d,
	void (*found)(void *arg, uint32_t nid, uint32_t pid, uint32_t os_pid), void *arg);

/* Set up d as a member of no domain; p3_domain_leave() then does nothing. */
void p3_domain_none(struct p3_domain *d);

/* Release all locks; the last member removes the directory. */
void p3_domain_leave(struct p3_domain *d);

/* Return false if the program has closed a descriptor of the domain.  Then the locks may
 * be lost, and no call uses the numbers any more, since they may name other files. */
bool p3_domain_holds(const struct p3_domain *d);

/* Close the descriptors in a forked child and leave its parent's membership as it is. */
void p3_domain_forget(struct p3_domain *d);

/* Take the first free slot below n, as d->slot, and listen on its socket.  Return 0, or
 * -EUSERS if no slot is free. */
int p3_domain_take_slot(struct p3_domain *d, uint32_t n, int *listen_out);

/* Take one slot, process id or node id.  Return -EADDRINUSE if another process has it;
 * its process number is in *os_pid_out. */
int p3_domain_take_this_slot(
	struct p3_domain *d, uint32_t slot, int *listen_out, uint32_t *os_pid_out);
int p3_domain_take_id(
	struct p3_domain *d, uint32_t nid, uint32_t pid, uint32_t *os_pid_out);
int p3_domain_take_nid(struct p3_domain *d, uint32_t nid, uint32_t *os_pid_out);
/* Take a rank of a job of a family (docs/design/families.md).  Return -EADDRINUSE if
 * another process has it; its process number is in *os_pid_out. */
int p3_domain_take_rank(
	struct p3_domain *d, uint32_t job, uint32_t rank, uint32_t *os_pid_out);
/* Return true if a process other than this one has the rank, with its process number, or
 * 0 if the kernel does not name it. */
bool p3_domain_has_rank(
	const struct p3_domain *d, uint32_t job, uint32_t rank, uint32_t *os_pid_out);
/* Count the slots below n that other processes have. */
uint32_t p3_domain_count(const struct p3_domain *d, uint32_t n);
/* Agree with the other members on the capacity of the domain: theirs, or if there are
 * none, wish.  Return 0 or -errno. */
int p3_domain_take_room(struct p3_domain *d, uint32_t wish, uint32_t *capacity_out);
/* Take n consecutive node ids from least on that no process uses, for a launcher. */
int p3_domain_take_nids(
	struct p3_domain *d, uint32_t least, uint32_t n, uint32_t *first_out);

/* Set the bit of each slot that has a socket.  Return -errno if the directory cannot be
 * read now. */
int p3_domain_list(const struct p3_domain *d, uint64_t slots_out[P3_MAX_NODES / 64]);
/* Unlink the socket of a dead owner.  Return false if the owner was not dead. */
bool p3_domain_reap(struct p3_domain *d, uint32_t slot);
/* Connect to the member of a slot.  Return a non-blocking socket, or -errno. */
int p3_domain_call(const struct p3_domain *d, uint32_t slot);
/* Return true only if it is certain that this process no longer holds the slot. */
bool p3_domain_is_over(const struct p3_domain *d, uint32_t slot, uint32_t os_pid);
/* Return true only if a process other than os_pid holds the slot, or the id, now, or if
 * the id is not valid. */
bool p3_domain_is_anothers(const struct p3_domain *d, uint32_t slot, uint32_t os_pid);
bool p3_domain_is_anothers_id(
	const struct p3_domain *d, uint32_t nid, uint32_t pid, uint32_t os_pid);
/* Return false only if it is certain that these ids belong to a process other than
 * os_pid. */
bool p3_domain_has_id(
	const struct p3_domain *d, uint32_t nid, uint32_t pid, uint32_t os_pid);

#endif
