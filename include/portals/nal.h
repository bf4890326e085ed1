/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks: there is one, and p3nal_tcp.h has the names of its header. */
#include "../p3nal_tcp.h"
