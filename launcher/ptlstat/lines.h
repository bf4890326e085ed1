/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lines - the lines of `ptlstat why`, collected so that equal ones become one
 *
 * A text has the mark PTL_NODE in place of the node that it is about, and a PTL_TIME
 * before and behind each time.  Texts that are equal but for their times become one line,
 * with the ranks of all and the shortest times: "each of nodes 1-63 waits ... since 5.0 s
 * or more".
 *
 * ptlstat's only thread calls these functions; the state is struct ptl_lines, which
 * begins as zeros.
 */
#ifndef P3_PTLSTAT_LINES_H
#define P3_PTLSTAT_LINES_H

#include "launcher/yod/tools.h"

#include <stdbool.h>
#include <stdint.h>

#define PTL_NODE "\1"
#define PTL_TIME "\2"

struct ptl_line {
	bool conclusion;
	struct p3_ranks nodes;
	uint32_t n;   /* number of nodes */
	uint32_t pid; /* of the only node, or 0: not to be shown */
	char *text;
};

struct ptl_lines {
	struct ptl_line *line;
	uint32_t n;
	bool apart;  /* lines that are no conclusions stay apart: one a node */
	bool failed; /* memory ran out */
};

/* Add a line about a node of the job, whose process is pid (0: not to be shown). */
void ptl_lines_add(struct ptl_lines *l, bool conclusion, uint32_t node, uint32_t pid,
	const char *text);
/* Print the lines, the conclusions last, and free them. */
void ptl_lines_tell(struct ptl_lines *l,
	void (*print)(void *arg, bool conclusion, const char *text), void *arg);

#endif
