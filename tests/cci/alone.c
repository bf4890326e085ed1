/* SPDX-License-Identifier: BSD-3-Clause */
/* The header by itself, in C99 and C11; -pedantic-errors refuses extensions. */
#include <cci.h>
#if __STDC_VERSION__ >= 201112L
#include "layout.h"
#endif

/* Names that the header brings along. */
struct iovec alone_iovec;
struct timeval alone_time;
uint64_t alone_number;
FILE *alone_file;
int alone_errno(void);
int alone_errno(void)
{
	return errno;
}

const char *alone(enum cci_event_type type);
const char *alone(enum cci_event_type type)
{
	return cci_event_type_str(type);
}
