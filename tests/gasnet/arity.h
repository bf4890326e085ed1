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

#define GN_PARAMS(m)    GN_PARAMS_##m
#define GN_PARAMS_0
#define GN_PARAMS_1  GN_PARAMS_0, gasnet_handlerarg_t a0
#define GN_PARAMS_2  GN_PARAMS_1, gasnet_handlerarg_t a1
#define GN_PARAMS_3  GN_PARAMS_2, gasnet_handlerarg_t a2
#define GN_PARAMS_4  GN_PARAMS_3, gasnet_handlerarg_t a3
#define GN_PARAMS_5  GN_PARAMS_4, gasnet_handlerarg_t a4
#define GN_PARAMS_6  GN_PARAMS_5, gasnet_handlerarg_t a5
#define GN_PARAMS_7  GN_PARAMS_6, gasnet_handlerarg_t a6
#define GN_PARAMS_8  GN_PARAMS_7, gasnet_handlerarg_t a7
#define GN_PARAMS_9  GN_PARAMS_8, gasnet_handlerarg_t a8
#define GN_PARAMS_10 GN_PARAMS_9, gasnet_handlerarg_t a9
#define GN_PARAMS_11 GN_PARAMS_10, gasnet_handlerarg_t a10
#define GN_PARAMS_12 GN_PARAMS_11, gasnet_handlerarg_t a11
#define GN_PARAMS_13 GN_PARAMS_12, gasnet_handlerarg_t a12
#define GN_PARAMS_14 GN_PARAMS_13, gasnet_handlerarg_t a13
#define GN_PARAMS_15 GN_PARAMS_14, gasnet_handlerarg_t a14
#define GN_PARAMS_16 GN_PARAMS_15, gasnet_handlerarg_t a15

#define GN_NAMES(m)  GN_NAMES_##m
#define GN_NAMES_0
#define GN_NAMES_1   GN_NAMES_0 a0,
#define GN_NAMES_2   GN_NAMES_1 a1,
#define GN_NAMES_3   GN_NAMES_2 a2,
#define GN_NAMES_4   GN_NAMES_3 a3,
#define GN_NAMES_5   GN_NAMES_4 a4,
#define GN_NAMES_6   GN_NAMES_5 a5,
#define GN_NAMES_7   GN_NAMES_6 a6,
#define GN_NAMES_8   GN_NAMES_7 a7,
#define GN_NAMES_9   GN_NAMES_8 a8,
#define GN_NAMES_10  GN_NAMES_9 a9,
#define GN_NAMES_11  GN_NAMES_10 a10,
#define GN_NAMES_12  GN_NAMES_11 a11,
#define GN_NAMES_13  GN_NAMES_12 a12,
#define GN_NAMES_14  GN_NAMES_13 a13,
#define GN_NAMES_15  GN_NAMES_14 a14,
#define GN_NAMES_16  GN_NAMES_15 a15,

#define GN_VALUES(m) GN_VALUES_##m
#define GN_VALUES_0
#define GN_VALUES_1  GN_VALUES_0, v[0]
#define GN_VALUES_2  GN_VALUES_1, v[1]
#define GN_VALUES_3  GN_VALUES_2, v[2]
#define GN_VALUES_4  GN_VALUES_3, v[3]
#define GN_VALUES_5  GN_VALUES_4, v[4]
#define GN_VALUES_6  GN_VALUES_5, v[5]
#define GN_VALUES_7  GN_VALUES_6, v[6]
#define GN_VALUES_8  GN_VALUES_7, v[7]
#define GN_VALUES_9  GN_VALUES_8, v[8]
#define GN_VALUES_10 GN_VALUES_9, v[9]
#define GN_VALUES_11 GN_VALUES_10, v[10]
#define GN_VALUES_12 GN_VALUES_11, v[11]
#define GN_VALUES_13 GN_VALUES_12, v[12]
#define GN_VALUES_14 GN_VALUES_13, v[13]
#define GN_VALUES_15 GN_VALUES_14, v[14]
#define GN_VALUES_16 GN_VALUES_15, v[15]

#define GN_EACH_M(X)                                                                     \
	X(0)                                                                             \
	X(1)                                                                             \
	X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)

#endif
