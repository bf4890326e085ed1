/* SPDX-License-Identifier: BSD-3-Clause */
/* Another network of the reference implementation: here the same as p3nal_tcp.h. */
#include "p3nal_tcp.h"
