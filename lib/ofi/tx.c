/* SPDX-License-Identifier: BSD-3-Clause */
/* tx.c - sending messages */
#include "prov.h"

struct fi_ops_msg ofi_msg_ops = {.size = 0};
struct fi_ops_tagged ofi_tagged_ops = {.size = 0};
