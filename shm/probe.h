/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe - places that perf, bpftrace and systemtap can watch in a production build
 *
 * A probe is one no-operation instruction, and a note in the library that says where it
 * is and where its arguments lie.  Provider: libportals.  Any thread may pass a probe;
 * there is no state.
 *
 *	command	 opcode, node	    a call's command is about to be executed or posted
 *	match	 bits, length, hit  a request was looked up; hit: one accepts it
 *	deliver	 kind, length	    a request is done with, or handed to a mover
 *	event	 kind, sequence	    an event was posted
 *	park	 node		    a thread goes to sleep,
 *	wake	 node		    and has come back
 *
 *	perf buildid-cache --add libportals.so; perf list sdt
 */
#ifndef P3_SHM_PROBE_H
#define P3_SHM_PROBE_H

#include <sys/sdt.h>

#define P3_PROBE1(name, a)       DTRACE_PROBE1(libportals, name, a)
#define P3_PROBE2(name, a, b)    DTRACE_PROBE2(libportals, name, a, b)
#define P3_PROBE3(name, a, b, c) DTRACE_PROBE3(libportals, name, a, b, c)

#endif
