/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loadfile - the text of a load file (-F), one line for each program
 */
#ifndef P3_LAUNCHER_LOADFILE_H
#define P3_LAUNCHER_LOADFILE_H

/* All of the file, with 0 behind it; NULL: it has been said. */
char *p3_loadfile_read(const char *name);

#endif
