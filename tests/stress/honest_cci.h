/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * honest_cci - messages of CCI between the honest nodes of hostile.c
 *
 * Each honest rank has an endpoint with a number that all know, so that hostile ranks can
 * send requests to it, and a thread: it sends numbered messages, reliably and in order,
 * to the next honest rank, and checks those of the one before.  A request without the
 * honest ranks' payload is rejected.
 */
#ifndef P3_TESTS_HONEST_CCI_H
#define P3_TESTS_HONEST_CCI_H

#include <stdbool.h>
#include <stdint.h>

enum { HONEST_CCI_SERVICE = 77 };

/* Open the endpoint; all ranks do so before the first one starts. */
void honest_cci_open(void);
/* Start the thread, which sends to rank next. */
void honest_cci_start(unsigned next);
/* End it in order: all messages of the rank before have come.  Return their number. */
uint64_t honest_cci_stop(void);

#endif
