/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnet_config.h - the release of GASNet with this interface, and other words for
 * configure scripts
 *
 * Programs include gasnet.h or gasnet_tools.h, which include this file.  It declares no
 * function and needs no library.
 */
#ifndef _INCLUDE_GASNET_CONFIG_H_
#define _INCLUDE_GASNET_CONFIG_H_

#define GASNET_RELEASE_VERSION_MAJOR     1
#define GASNET_RELEASE_VERSION_MINOR     30
#define GASNET_RELEASE_VERSION_PATCH     0
#define GASNETI_RELEASE_STR              "1.30.0"
#define GASNETI_SPEC_VERSION_MAJOR       1
#define GASNETI_SPEC_VERSION_MINOR       8
#define GASNETI_TOOLS_SPEC_VERSION_MAJOR 1
#define GASNETI_TOOLS_SPEC_VERSION_MINOR 9

#ifndef HAVE_PTHREAD_H
#define HAVE_PTHREAD_H 1
#endif
#ifndef HAVE_MMAP
#define HAVE_MMAP 1
#endif
#ifndef SIZEOF_INT
#define SIZEOF_INT __SIZEOF_INT__
#endif
#ifndef SIZEOF_VOID_P
#define SIZEOF_VOID_P __SIZEOF_POINTER__
#endif

#endif /* _INCLUDE_GASNET_CONFIG_H_ */
