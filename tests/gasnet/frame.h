/* SPDX-License-Identifier: BSD-3-Clause */
/* frame - calls between the files of the frame (gn.c, driver.c); not for statements */
#ifndef P3_TESTS_GASNET_FRAME_H
#define P3_TESTS_GASNET_FRAME_H

#include "gn.h"

void gn_know_nodes(void);
void gn_attach(uintptr_t segment);
void gn_driver_init(void);
/* End the job that a failed test has left behind. */
void gn_driver_reset(void);
/* Run the scene that the arguments name, as a node of a driver's job. */
_Noreturn void gn_run_scene(int argc, char **argv);

#endif
