/* SPDX-License-Identifier: BSD-3-Clause */
/* tools.c - the functions of gasnet_tools.h */
#include "internal.h"
