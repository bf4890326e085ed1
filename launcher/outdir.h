/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outdir - a folder with a file for each rank and stream: rank3.out, rank3.err
 *
 * Nodes write their files themselves, at the end of them: nothing is between, and what
 * was written before a death is there.
 */
#ifndef P3_LAUNCHER_OUTDIR_H
#define P3_LAUNCHER_OUTDIR_H

#include <stdint.h>

/*
 * Makes the folder if it is not there, and empty files for `size` ranks; a descriptor of
 * the folder (close-on-exec), or -1 when what is wrong has been said.
 */
int p3_outdir_open(const char *dir, uint32_t size);

/* Stream 0 is stdout, 1 stderr.  A descriptor or -errno. */
int p3_outdir_file(int dir_fd, uint32_t rank, int which);

#endif
