/* SPDX-License-Identifier: BSD-3-Clause */
/* starter - the launcher's side of nodes that live in this process: a thread that serves
 * the rendezvous */
#ifndef P3_TESTS_STARTER_H
#define P3_TESTS_STARTER_H

#include <stdbool.h>
#include <stdint.h>

/* Serve n nodes, which are told this number of CPUs; sock[i] becomes the socket of node
 * i.  apart: nodes are introduced to each other when they first talk.  Abort if that is
 * impossible. */
struct starter *starter_new(uint32_t n, uint32_t cpus, bool apart, int *sock);
void starter_end(struct starter *s);

#endif
