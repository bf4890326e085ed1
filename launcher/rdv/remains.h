/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remains - the part of an ended node that lookers may need: counters and trace
 *
 * It is a copy of the parts of its published segment that tools read (header, counters,
 * waits, queues; the trace), as long as the original and with holes for the rest, in
 * ordinary pages: the node's carved arena and its hugepages are free again.  A copy
 * takes 4 KiB and the length of the trace.  Only yod's main thread makes one; there is
 * no state.  A trace of more than 8 MiB is not copied, since yod serves no node while it
 * copies: then the original segment stays until the rank's next program has ended.
 */
#ifndef P3_LAUNCHER_REMAINS_H
#define P3_LAUNCHER_REMAINS_H

#include <stdint.h>

/* Make a copy, or keep the original.  Return a new descriptor, sealed as the original is,
 * or -errno. */
int p3_remains_make(int published);

#endif
