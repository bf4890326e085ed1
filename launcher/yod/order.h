/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order - everything that an agent needs to run its part of a job, as bytes
 *
 * It has the programs of all ranks, their arguments and environments, yod's own
 * environment, directory and umask, the options that the agent obeys, and the hosts.  An
 * order travels on the standard input of the agent, never in arguments or an
 * environment, which other users could see.  yod's main thread packs an order for each
 * agent, and the agent's main thread unpacks one.  There is no state.
 */
#ifndef P3_LAUNCHER_ORDER_H
#define P3_LAUNCHER_ORDER_H

#include "launcher/yod/hosts.h"
#include "launcher/yod/opt.h"

#include <stddef.h>

struct p3_order {
	uint32_t jid;
	uint32_t host;   /* which of opt's hosts the agent is on */
	const char *dir; /* yod's working directory */
	uint32_t mask;   /* yod's umask */
	char **env;      /* yod's environment, ends with NULL */
	const char *tag; /* a word that no other job of this user has */
	struct p3_opt opt;
};

/* Return the bytes, which the caller frees, or NULL if out of memory. */
char *p3_order_pack(const struct p3_order *order, size_t *len_out);

/* Unpack an order, which keeps pointers into the bytes.  Return false if they are no
 * order, or out of memory. */
bool p3_order_unpack(const char *bytes, size_t len, struct p3_order *order_out);

#endif
