/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check - checks of test programs, whose harness says what a failed one ends
 *
 * A harness (support/nodes.h, support/suite.h) defines check_failed() and check_code().
 * CHECK_AT, if it is defined before, runs at each check.
 */
#ifndef P3_TESTS_CHECK_H
#define P3_TESTS_CHECK_H

#include <string.h>

_Noreturn void check_failed(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Return the name of a return code. */
const char *check_code(int rc);

/* Return a path behind its last slash. */
static inline const char *check_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

#ifndef CHECK_AT
#define CHECK_AT(file, line) ((void)0)
#endif

#define CHECK(truth)                                                                     \
	do {                                                                             \
		CHECK_AT(__FILE__, __LINE__);                                            \
		if (!(truth))                                                            \
			check_failed(__FILE__, __LINE__, "not so: %s", #truth);          \
	} while (0)

#define CHECK_EQ(is, want)                                                               \
	do {                                                                             \
		CHECK_AT(__FILE__, __LINE__);                                            \
		unsigned long long is_ = (unsigned long long)(is);                       \
		unsigned long long want_ = (unsigned long long)(want);                   \
		if (is_ != want_)                                                        \
			check_failed(__FILE__, __LINE__,                                 \
				"%s is %llu (%#llx), not %llu (%#llx)", #is, is_, is_,   \
				want_, want_);                                           \
	} while (0)

#define CHECK_RC(call, want)                                                             \
	do {                                                                             \
		CHECK_AT(__FILE__, __LINE__);                                            \
		int rc_ = (call);                                                        \
		if (rc_ != (want))                                                       \
			check_failed(__FILE__, __LINE__, "%s gives %s, not %s", #call,   \
				check_code(rc_), #want);                                 \
	} while (0)

#endif
