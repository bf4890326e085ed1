/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of return codes, event kinds and failure types. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <portals3.h>

/* Declared as programs do, since the header does not declare it. */
extern const char *ptl_event_str[];

#define NAMED(code)                                                                      \
	{                                                                                \
		(code), #code                                                            \
	}
#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

struct named {
	int code;
	const char *name;
};

static const struct named codes[] = {
	NAMED(PTL_OK),
	NAMED(PTL_AC_INDEX_INVALID),
	NAMED(PTL_EQ_DROPPED),
	NAMED(PTL_EQ_EMPTY),
	NAMED(PTL_EQ_INVALID),
	NAMED(PTL_FAIL),
	NAMED(PTL_HANDLE_INVALID),
	NAMED(PTL_IFACE_INVALID),
	NAMED(PTL_MD_ILLEGAL),
	NAMED(PTL_MD_INVALID),
	NAMED(PTL_MD_IN_USE),
	NAMED(PTL_MD_NO_UPDATE),
	NAMED(PTL_ME_INVALID),
	NAMED(PTL_ME_IN_USE),
	NAMED(PTL_ME_LIST_TOO_LONG),
	NAMED(PTL_NI_INVALID),
	NAMED(PTL_NO_INIT),
	NAMED(PTL_NO_SPACE),
	NAMED(PTL_PID_INVALID),
	NAMED(PTL_PROCESS_INVALID),
	NAMED(PTL_PT_FULL),
	NAMED(PTL_PT_INDEX_INVALID),
	NAMED(PTL_SEGV),
	NAMED(PTL_SR_INDEX_INVALID),
	NAMED(PTL_UNKNOWN_ERROR),
	NAMED(PTL_IFACE_DUP),
	NAMED(PTL_EQ_IN_USE),
	NAMED(PTL_VAL_FAILED),
	NAMED(PTL_PID_IN_USE),
	NAMED(PTL_NOT_IMPLEMENTED),
};

static const struct named kinds[] = {
	NAMED(PTL_EVENT_GET_START),
	NAMED(PTL_EVENT_GET_END),
	NAMED(PTL_EVENT_PUT_START),
	NAMED(PTL_EVENT_PUT_END),
	NAMED(PTL_EVENT_GETPUT_START),
	NAMED(PTL_EVENT_GETPUT_END),
	NAMED(PTL_EVENT_REPLY_START),
	NAMED(PTL_EVENT_REPLY_END),
	NAMED(PTL_EVENT_SEND_START),
	NAMED(PTL_EVENT_SEND_END),
	NAMED(PTL_EVENT_ACK),
	NAMED(PTL_EVENT_UNLINK),
};

/* P3.3 3.3: PTL_OK is 0, the others are positive and distinct; here also dense. */
static void codes_are_dense(void **state)
{
	(void)state;
	assert_int_equal(PTL_OK, 0);
	assert_int_equal(LENGTH(codes), PTL_MAX_ERRNO);
	for (size_t i = 0; i < LENGTH(codes); i++)
		assert_int_equal(codes[i].code, i);
}

static void codes_map_to_their_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(codes); i++) {
		assert_string_equal(ptl_err_str[codes[i].code], codes[i].name);
		assert_string_equal(
			PtlErrorStr((unsigned int)codes[i].code), codes[i].name);
	}
}

static void codes_end_with_sentinel(void **state)
{
	(void)state;
	assert_string_equal(ptl_err_str[PTL_MAX_ERRNO], "PTL_MAX_ERRNO");
	assert_null(ptl_err_str[PTL_MAX_ERRNO + 1]);
}

static void codes_out_of_range_have_a_text(void **state)
{
	(void)state;
	assert_string_equal(PtlErrorStr(PTL_MAX_ERRNO), "unknown return code");
	assert_string_equal(PtlErrorStr(PTL_MAX_ERRNO + 1), "unknown return code");
	assert_string_equal(PtlErrorStr((unsigned int)-1), "unknown return code");
	assert_string_equal(PtlErrorStr(INT_MAX), "unknown return code");
}

/* P3.3 3.11.1 */
static void kinds_are_dense(void **state)
{
	(void)state;
	assert_int_equal(LENGTH(kinds), 12);
	for (size_t i = 0; i < LENGTH(kinds); i++)
		assert_int_equal(kinds[i].code, i);
}

static void kinds_map_to_their_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(kinds); i++) {
		ptl_event_kind_t kind = (ptl_event_kind_t)kinds[i].code;

		assert_string_equal(ptl_event_str[kind], kinds[i].name);
		assert_string_equal(PtlEventKindStr(kind), kinds[i].name);
	}
}

static void kinds_end_with_sentinel(void **state)
{
	(void)state;
	assert_null(ptl_event_str[LENGTH(kinds)]);
}

static void kinds_out_of_range_have_a_text(void **state)
{
	static const int wrong[] = {LENGTH(kinds), LENGTH(kinds) + 1, -1, INT_MAX};

	(void)state;
	for (size_t i = 0; i < LENGTH(wrong); i++)
		assert_string_equal(PtlEventKindStr((ptl_event_kind_t)wrong[i]),
			"unknown event kind");
}

/* P3.3 3.11.3: PTL_NI_OK is 0. */
static void failures_have_names(void **state)
{
	(void)state;
	assert_int_equal(PTL_NI_OK, 0);
	assert_string_equal(PtlNIFailStr(PTL_INVALID_HANDLE, PTL_NI_OK), "PTL_NI_OK");
	assert_string_equal(PtlNIFailStr(PTL_INVALID_HANDLE, PTL_NI_FAIL), "PTL_NI_FAIL");
	assert_string_equal(PtlNIFailStr(0, PTL_NI_FAIL + 1), "unknown failure type");
	assert_string_equal(PtlNIFailStr(0, UINT32_MAX), "unknown failure type");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_are_dense),
		cmocka_unit_test(codes_map_to_their_names),
		cmocka_unit_test(codes_end_with_sentinel),
		cmocka_unit_test(codes_out_of_range_have_a_text),
		cmocka_unit_test(kinds_are_dense),
		cmocka_unit_test(kinds_map_to_their_names),
		cmocka_unit_test(kinds_end_with_sentinel),
		cmocka_unit_test(kinds_out_of_range_have_a_text),
		cmocka_unit_test(failures_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
