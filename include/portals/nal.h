/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks: here one, of which p3nal_tcp.h has what programs take from its header. */
#include "../p3nal_tcp.h"
