/* SPDX-License-Identifier: BSD-3-Clause */
/* The same header under another name. */
#include "../cnos_mpi_os.h"
