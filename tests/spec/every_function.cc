/* SPDX-License-Identifier: BSD-3-Clause */
#include "every_function.c" /* that it is C++ as well */
