/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p3/nal_types.h - names of networks
 *
 * In the reference implementation each stands for a network, or for one more device of a
 * network.  Here all are names of the only network, PTL_IFACE_DEFAULT of portals3.h.
 */
#ifndef P3NAL_TYPES_H
#define P3NAL_TYPES_H

#include "../portals3.h"

#define PTL_IFACE_UTCP  0
#define PTL_IFACE_UTCP0 PTL_IFACE_UTCP
#define PTL_IFACE_UTCP1 PTL_IFACE_UTCP
#define PTL_IFACE_UTCP2 PTL_IFACE_UTCP
#define PTL_IFACE_UTCP3 PTL_IFACE_UTCP

#endif
