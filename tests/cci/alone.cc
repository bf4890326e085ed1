/* SPDX-License-Identifier: BSD-3-Clause */
/* The header by itself, in C++17. */
#include <cci.h>
#include "layout.h"

struct iovec alone_iovec;
struct timeval alone_time;

const char *alone(cci_event_type_t type)
{
	return cci_event_type_str(type);
}

int (*alone_send)(
	cci_connection_t *, const void *, uint32_t, const void *, int) = cci_send;
