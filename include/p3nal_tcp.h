/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p3nal_tcp.h - what programs take from the network's header
 *
 * In the reference implementation a program chose its network by including that
 * network's header, which said what PTL_IFACE_DEFAULT is.  Here there is one network:
 * portals3.h says it, and this header once more for programs that have undefined it.
 * p3/nal_types.h has the names of networks.
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
 *	if_str		in	not looked at; elsewhere the name of a network device
 *	nid		out	what PtlGetId says on every interface of the process: that
 *				which yod planned, or 0x7f000001 (127.0.0.1) without yod
 *
 * Programs ask this before PtlNIInit, to tell each other their ids.  Calls PtlInit, if
 * that has not been done.
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
