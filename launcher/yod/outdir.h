/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outdir - a folder with a file for each rank and stream: rank3.out, rank3.err
 *
 * Nodes write to their files directly, in append mode, so a file holds all that its
 * node wrote before it died.  yod's main thread calls these functions; there is no
 * state.
 */
#ifndef P3_LAUNCHER_OUTDIR_H
#define P3_LAUNCHER_OUTDIR_H

#include <stdint.h>

/*
 * Make the folder if it does not exist, and empty files for `size` ranks.  Return a
 * descriptor of the folder (close-on-exec), or -1 after an error line.
 */
int p3_outdir_open(const char *dir, uint32_t size);

/* Print that a file of the folder lacks bytes of its rank, which goes on. */
void p3_outdir_say_lost(const char *dir, uint32_t rank, int which, int err);

/* Open a rank's file; which is 0 for stdout, 1 for stderr.  Return a descriptor or
 * -errno. */
int p3_outdir_file(int dir_fd, uint32_t rank, int which);

#endif
