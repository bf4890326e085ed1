/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conf - the settings of the environment that concern the library
 *
 * shm/conf.h has the table of all settings.  Any thread may call these functions, which
 * read the environment; they have no state, except that stdout is set up once.
 */
#ifndef P3_LIB_NODE_CONF_H
#define P3_LIB_NODE_CONF_H

#include "lib/node/node.h"
#include "shm/conf.h"

struct p3_conf {
	enum p3_mode mode;
	enum p3_personality personality;
	enum p3_huge_policy huge;
	bool cma;
	bool bulk;
	bool membarrier;
	bool base_lanes_only;
	bool unswept;     /* tests: see p3_nic_conf */
	uint32_t trace;   /* records of the trace */
	bool shared_heap; /* the heap serves the program's malloc */
	uint64_t heap;    /* bytes of the shared heap, 0: none */
	uint32_t domain_nodes;
	uint32_t hold_s; /* seconds that requests for absent processes are held, 0: not
			  * at all */
};
/* Read the environment.  Return -EINVAL after one line for each wrong setting. */
int p3_conf_read(struct p3_conf *conf_out);
/* Return on which side this rank matches, and how; p3_conf_read() has checked it. */
struct p3_conf_match p3_conf_match_of(uint32_t rank);
/* Make the log obey PTL3_LOG; PtlNIInit complains of a wrong value. */
void p3_conf_log(void);
/* Call p3_fence_join() if the settings allow it.  PtlInit does so before it starts a
 * thread, because the call is cheap in a process of one thread. */
void p3_conf_join_fences(void);
/* Make stdout line-buffered if PTL3_STDOUT says so; print a line for each unknown
 * setting. */
void p3_conf_set_stdout(void);
void p3_conf_warn_unknown(void);

#endif
