/* SPDX-License-Identifier: BSD-3-Clause */
#include "every_function.c" /* the same source is C++, too */
