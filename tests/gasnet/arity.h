/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arity - handler arguments 0 to 16 for macros that define functions of each count M
 *
 *	GN_PARAMS(M)	", gasnet_handlerarg_t a0, ..." for a handler's head
 *	GN_NAMES(M)	"a0, ..., " for the values of an array
 *	GN_VALUES(M)	", v[0], ..." for a call of GN_CALL()
 *	GN_EACH_M(X)	X(0) to X(16)
 */
#ifndef P3_TESTS_GASNET_ARITY_H
#define P3_TESTS_GASNET_ARITY_H

/* Call a function or macro whose arguments come from macros. */
#define GN_CALL(f, ...) f(__VA_ARGS__)

/* X(0) to X(m - 1). */
#define GN_LIST(m, X) GN_LIST_##m(X)
#define GN_LIST_0(X)
#define GN_LIST_1(X)  GN_LIST_0(X) X(0)
#define GN_LIST_2(X)  GN_LIST_1(X) X(1)
#define GN_LIST_3(X)  GN_LIST_2(X) X(2)
#define GN_LIST_4(X)  GN_LIST_3(X) X(3)
#define GN_LIST_5(X)  GN_LIST_4(X) X(4)
#define GN_LIST_6(X)  GN_LIST_5(X) X(5)
#define GN_LIST_7(X)  GN_LIST_6(X) X(6)
#define GN_LIST_8(X)  GN_LIST_7(X) X(7)
#define GN_LIST_9(X)  GN_LIST_8(X) X(8)
#define GN_LIST_10(X) GN_LIST_9(X) X(9)
#define GN_LIST_11(X) GN_LIST_10(X) X(10)
#define GN_LIST_12(X) GN_LIST_11(X) X(11)
#define GN_LIST_13(X) GN_LIST_12(X) X(12)
#define GN_LIST_14(X) GN_LIST_13(X) X(13)
#define GN_LIST_15(X) GN_LIST_14(X) X(14)
#define GN_LIST_16(X) GN_LIST_15(X) X(15)

#define GN_PARAM(i)   , gasnet_handlerarg_t a##i
#define GN_NAME(i)    a##i,
#define GN_VALUE(i)   , v[i]
#define GN_PARAMS(m)  GN_LIST(m, GN_PARAM)
#define GN_NAMES(m)   GN_LIST(m, GN_NAME)
#define GN_VALUES(m)  GN_LIST(m, GN_VALUE)

#define GN_EACH_M(X)                                                                     \
	X(0)                                                                             \
	X(1)                                                                             \
	X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)

#endif
