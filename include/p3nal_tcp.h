/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p3nal_tcp.h - the header of a network, which programs of other Portals include
 *
 * In the reference implementation a program chose its network by including that
 * network's header, which defined PTL_IFACE_DEFAULT.  Here there is one network:
 * portals3.h defines PTL_IFACE_DEFAULT, and this header defines it again for programs
 * that have undefined it.  p3/nal_types.h has the names of networks.
 */
#ifndef P3NAL_TCP_H
#define P3NAL_TCP_H

#include "p3/nal_types.h"

#ifndef PTL_IFACE_DEFAULT
#define PTL_IFACE_DEFAULT 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * p3tcp_my_nid - the node id of this process
 *
 *	if_str		in	ignored; elsewhere the name of a network device
 *	nid		out	the node id that PtlGetId returns on every interface of
 *				the process: the id that yod planned, or 0x7f000001
 *				(127.0.0.1) without yod, unless PTL3_NID is set
 *
 * Programs call it before PtlNIInit, to tell each other their ids.  Calls PtlInit, if the
 * program has not done so.
 *
 * PTL_OK	success
 * PTL_SEGV	nid is NULL
 * PTL_FAIL	the library cannot start, a PTL3_ variable has a wrong value, or this is a
 *		forked child
 *
 * Any thread; does not block.
 */
int p3tcp_my_nid(const char *if_str, unsigned int *nid);

#ifdef __cplusplus
}
#endif

#endif
