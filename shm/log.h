/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log - one line to stderr, one write(2) each; errno is kept
 *
 *	p3[job 7741 nid 3 pid 18233] warn: hugepages off: need 12, free 4; fix: ...
 *
 * error: a call fails; warn: it works, but not as asked (say it once a cause).  The
 * first function that knows the cause logs it, its callers stay silent.
 */
#ifndef P3_SHM_LOG_H
#define P3_SHM_LOG_H

#include <stdint.h>

/* Who speaks; set when it is known. */
void p3_log_who(uint32_t jid, uint32_t nid);

void p3_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void p3_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
