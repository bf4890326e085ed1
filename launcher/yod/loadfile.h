/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loadfile - the text of a load file (-F), one line for each program
 *
 * yod's main thread calls this function before it starts threads; there is no state.
 */
#ifndef P3_LAUNCHER_LOADFILE_H
#define P3_LAUNCHER_LOADFILE_H

/* Return the text of the file, ended by a zero byte, or NULL after an error line. */
char *p3_loadfile_read(const char *name);

#endif
