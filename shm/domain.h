/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * domain - where processes of one user meet that nobody introduces to each other
 *
 *	/dev/shm/ptl3-UID/		mode 0700, of the user
 *	/dev/shm/ptl3-UID/NAME/		the same: one domain
 *		locks			empty; its bytes are locked, never written
 *		SLOT.sock		where the member of that slot listens
 *
 * No daemon, no writer, no file to repair: all there is to agree on are POSIX record
 * locks, which the kernel takes back when a process ends or becomes another program.
 * Which byte of locks means what:
 *
 *	0 .. P3_MAX_NODES - 1	slot: this node index is its holder's, who lives
 *	PRESENT			shared by all that are in the domain
 *	NIDS + nid		a launcher's alone, or shared by processes started by hand
 *	IDS + nid, pid		that process id is its holder's
 *
 * Rules:
 *  - locks is opened once by a process, and closed when it leaves: closing it anywhere
 *    else would give all its locks back.  A forked child has none of its parent's locks,
 *    and its closing takes none away.
 *  - Who has opened it takes PRESENT, then looks whether the path still names that
 *    file; if not, or if the lock is another's (who is removing the file), begins anew.
 *  - Who leaves gives all back; who then gets PRESENT alone was the last, and removes the
 *    files and the directory.
 *  - A SLOT.sock is unlinked by who holds the slot: its owner, or a reaper, who could
 *    take the lock only because its owner is dead.
 *  - Who takes a slot listens before it looks for others.  So of any two the later one
 *    finds the earlier one.
 *
 * One thread of a process at a time; nothing here waits, but p3_domain_open for somebody
 * who is just removing the directory (a second at most), and p3_domain_take_slot for who
 * is reaping the only free slot (50 ms at most).
 */
#ifndef P3_SHM_DOMAIN_H
#define P3_SHM_DOMAIN_H

#include "shm/layout.h"

#include <stdbool.h>
#include <stdint.h>

#define P3_DOMAIN_BASE  "/dev/shm"
#define P3_DOMAIN_NONE  "none"      /* no name of a domain: reach nobody */
#define P3_DOMAIN_NAMES 40          /* letters of a name */
#define P3_DOMAIN_NID   0x7f000001u /* 127.0.0.1: of who is told nothing else */
#define P3_DOMAIN_PIDS  65535u      /* process ids are below */

struct p3_domain {
	p3_a32 dir, locks; /* descriptors, -1: none */
	uint32_t slot;     /* P3_DOMAIN_NO_SLOT: none */
	char path[108];
};

#define P3_DOMAIN_NO_SLOT 0xffffffffu

/* What is wrong, for people: the thing, its value, what was expected, the remedy. */
struct p3_domain_why {
	char text[320];
};

/* Letters, digits, '-', '_' and '.', not first; P3_DOMAIN_NAMES at most. */
bool p3_domain_is_name(const char *name);

/*
 * Go in, making what is not there, and removing other domains in which all are dead; base
 * is P3_DOMAIN_BASE but in tests.  0, or -errno and why: -EPERM: a directory is not ours
 * alone, or no directory; -EBUSY; -EINVAL.
 */
int p3_domain_open(struct p3_domain *d, const char *base, const char *name,
	struct p3_domain_why *why);

/* In none: leaving is nothing then. */
void p3_domain_none(struct p3_domain *d);

/* Give all back; who is the last removes the directory. */
void p3_domain_leave(struct p3_domain *d);

/* A forked child: the descriptors are its own, all else is its parent's. */
void p3_domain_forget(struct p3_domain *d);

/* The first free slot below n; -EUSERS: there is none.  Its socket listens. */
int p3_domain_take_slot(struct p3_domain *d, uint32_t n, int *listen_out);

/* -EADDRINUSE: it is another process's, whose number is in *os_pid_out. */
int p3_domain_take_this_slot(
	struct p3_domain *d, uint32_t slot, int *listen_out, uint32_t *os_pid_out);
int p3_domain_take_id(
	struct p3_domain *d, uint32_t nid, uint32_t pid, uint32_t *os_pid_out);
int p3_domain_take_nid(struct p3_domain *d, uint32_t nid, uint32_t *os_pid_out);
/* For a launcher: n node ids in a row, from least on, that nobody uses. */
int p3_domain_take_nids(
	struct p3_domain *d, uint32_t least, uint32_t n, uint32_t *first_out);

/* Bits of slots where a socket lies.  -errno: the directory cannot be read now. */
int p3_domain_list(const struct p3_domain *d, uint64_t slots_out[P3_MAX_NODES / 64]);
/* True: the owner was dead, and its socket is unlinked. */
bool p3_domain_reap(struct p3_domain *d, uint32_t slot);
/* A connected socket, which does not block; or -errno. */
int p3_domain_call(const struct p3_domain *d, uint32_t slot);
/* True only if it is certain that this process does not hold the slot any more. */
bool p3_domain_is_over(const struct p3_domain *d, uint32_t slot, uint32_t os_pid);
/* True only if another process than os_pid holds the slot, or the id, now. */
bool p3_domain_is_anothers(const struct p3_domain *d, uint32_t slot, uint32_t os_pid);
bool p3_domain_is_anothers_id(
	const struct p3_domain *d, uint32_t nid, uint32_t pid, uint32_t os_pid);
/* False only if it is certain that these ids are not that process's, which is another. */
bool p3_domain_has_id(
	const struct p3_domain *d, uint32_t nid, uint32_t pid, uint32_t os_pid);

#endif
