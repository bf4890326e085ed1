/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remains - what lookers may want of a node that is over: counters and trace
 *
 * A copy of its published segment as far as tools read it (header, counters, waits,
 * queues; the trace), as long as the original and with holes for the rest, in ordinary
 * pages: what the node had carved, and its hugepages, are free again.  Some 3 KiB, and
 * the length of the trace.
 */
#ifndef P3_LAUNCHER_REMAINS_H
#define P3_LAUNCHER_REMAINS_H

#include <stdint.h>

/* A descriptor, sealed as the original is; or -errno. */
int p3_remains_make(int published);

#endif
