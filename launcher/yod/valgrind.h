/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * valgrind - the library for nodes that run under valgrind
 *
 * Helgrind and drd take C11 atomics for races; a second libportals, in a folder beside
 * the usual one (cmake/valgrind.cmake), announces them.  Both have the same layout: one
 * job may use both.  yod puts that folder in front of LD_LIBRARY_PATH, which comes
 * before RUNPATH and /etc/ld.so.conf.  This does not work for a program with an RPATH
 * (--disable-new-dtags) or one that is linked with libportals.a; the library then says
 * by itself that it is the wrong one (lib/job/job.c).  yod's main thread calls these
 * functions before the job starts; there is no state.
 */
#ifndef P3_LAUNCHER_VALGRIND_H
#define P3_LAUNCHER_VALGRIND_H

#include <stdbool.h>

enum p3_valgrind { P3_VALGRIND_AUTO, P3_VALGRIND_ON, P3_VALGRIND_OFF };

/*
 * Return true if valgrind is the program, or a word in a wrapper's arguments: env
 * valgrind ..., sh -c '... /usr/bin/valgrind ...'.
 */
bool p3_valgrind_is_in(char *const *argv);

/* Print a line that names the folder, and return its path in malloc()ed memory; or
 * return NULL after an error line. */
const char *p3_valgrind_folder(void);

#endif
