/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnet_basic.h - macros that gasnet.h and gasnet_tools.h share: platform, compiler,
 * prediction of branches, and words of the preprocessor
 *
 * Programs include gasnet.h or gasnet_tools.h, which include this file.  It declares no
 * function and needs no library.
 */
#ifndef _INCLUDED_GASNET_BASIC_H
#define _INCLUDED_GASNET_BASIC_H

#include <errno.h>
#include <gasnet_config.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define _STRINGIFY_HELPER(x) #x
#define _STRINGIFY(x)        _STRINGIFY_HELPER(x)
#define _CONCAT_HELPER(a, b) a##b
#define _CONCAT(a, b)        _CONCAT_HELPER(a, b)

/* An if statement whose condition is usually false, or usually true. */
#define if_pf(cond) if (__builtin_expect(!!(cond), 0))
#define if_pt(cond) if (__builtin_expect(!!(cond), 1))

#if defined(__clang__)
#define PLATFORM_COMPILER_CLANG       1
#define PLATFORM_COMPILER_FAMILYNAME  CLANG
#define PLATFORM_COMPILER_VERSION_STR __clang_version__
#else
#define PLATFORM_COMPILER_GNU         1
#define PLATFORM_COMPILER_FAMILYNAME  GNU
#define PLATFORM_COMPILER_VERSION_STR __VERSION__
#endif
#define PLATFORM_OS_LINUX 1
#if UINTPTR_MAX > 0xffffffffu
#define PLATFORM_ARCH_64 1
#else
#define PLATFORM_ARCH_32 1
#endif
#if defined(__x86_64__)
#define PLATFORM_ARCH_X86_64 1
#elif defined(__aarch64__)
#define PLATFORM_ARCH_AARCH64 1
#endif

/* Threads of a program that may use the library, GASNET_MAX_THREADS at most. */
#define GASNETI_MAX_THREADS 256

#if defined(GASNET_DEBUG) && defined(GASNET_NDEBUG)
#error GASNET_DEBUG and GASNET_NDEBUG are both defined; define one of them, or none
#elif defined(GASNET_DEBUG)
#undef GASNET_DEBUG
#define GASNET_DEBUG 1
#else
#undef GASNET_NDEBUG
#define GASNET_NDEBUG 1
#endif

#endif /* _INCLUDED_GASNET_BASIC_H */
