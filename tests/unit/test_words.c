/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of load files, lists of CPUs and of ranks. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/yod/tools.h"
#include "launcher/yod/yod.h"
#include "shm/cpuset.h"
#include "support/cases.h"

/* Compare all lines of a text as "line[word|word]", or the error at its end. */
static void expect(const char *text, const char *wanted)
{
	char got[500] = "", *copy = strdup(text);
	struct p3_words w = {copy, 1};
	char **argv;
	int argc, rc;
	uint32_t line = 0;
	while (!(rc = p3_words_next(&w, 1, &argv, &argc, &line))) {
		assert_null(argv[0]);
		assert_null(argv[argc]);
		sprintf(got + strlen(got), "%u[", line);
		for (int i = 1; i < argc; i++)
			sprintf(got + strlen(got), "%s%s", i > 1 ? "|" : "", argv[i]);
		strcat(got, "]");
		free(argv);
	}
	if (rc == -EINVAL)
		sprintf(got + strlen(got), "open at %u", line);
	else
		assert_int_equal(rc, -ENOENT);
	assert_string_equal(got, wanted);
	free(copy);
}

CASE(words_blanks_and_lines)
{
	expect("", "");
	expect(" \t\r\n\n", "");
	expect("a", "1[a]");
	expect("a b\tc  \n", "1[a|b|c]");
	expect("a b\r\nc\r\n", "1[a|b]2[c]");
	expect("\n\n a\n\nb c\n", "3[a]5[b|c]");
	expect("a \\\n b\nc", "1[a|b]3[c]");
	expect("a\\\nb\nc", "1[ab]3[c]");
	expect("1 2 3 4 5 6 7\n1 2 3 4 5 6 7 8\n1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
		"1[1|2|3|4|5|6|7]2[1|2|3|4|5|6|7|8]"
		"3[1|2|3|4|5|6|7|8|9|10|11|12|13|14|15]");
}

CASE(words_comments)
{
	expect("# a\n  # b\nc # d\n#", "3[c]");
	expect("a#b c\\# '#' \"#\" #d\ne", "1[a#b|c#|#|#]2[e]");
}

CASE(words_quotes)
{
	expect("'a b' \"c d\" e\\ f", "1[a b|c d|e f]");
	expect("'' \"\" a''b", "1[||ab]");
	expect("'a\\' \"b'c\" 'd\"e'", "1[a\\|b'c|d\"e]");
	expect("\"\\\"\\\\\\$\\`\\a\" \\'\\\"\\\\\\a", "1[\"\\$`\\a|'\"\\a]");
	expect("'a\nb' \"c\nd\"\ne", "1[a\nb|c\nd]4[e]");
	expect("\"a\\\nb\" 'c\\\nd'\ne", "1[ab|c\\\nd]4[e]");
	expect("a\nb 'c\nd", "1[a]open at 2");
	expect("a \"b\\\"", "open at 1");
	expect("a\\", "1[a\\]");
}

static void cpus(const char *text, const char *wanted)
{
	char got[P3_CPULIST_LEN] = "none";
	struct p3_cpuset set;
	if (p3_cpulist_parse(text, &set))
		p3_cpulist_print(&set, got, sizeof got);
	assert_string_equal(got, wanted);
}

CASE(cpulist_forms)
{
	static const char *const bad[] = {"", ",", "-", "1,", ",1", "1-", "-1", "2-1",
		"1 2", " 1", "1 ", "a", "1a", "0x1", "8192", "0-8192", "1,,2", "1-2-3",
		"99999999999999999999", "+1", "1\n\n", "\n"};
	cpus("0", "0");
	cpus("0,2-3\n", "0,2-3");
	cpus("3,2,1", "1-3");
	cpus("5-5,0-1,1-2", "0-2,5");
	cpus("1023-1024,8191", "1023-1024,8191");
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		cpus(bad[i], "none");
}

CASE(cpulist_longest_fits)
{
	char text[P3_CPULIST_LEN], cut[8];
	struct {
		struct p3_cpuset set;
		unsigned long behind; /* is no part of the set */
	} a = {.behind = ~0ul};
	struct p3_cpuset back;
	for (unsigned cpu = 0; cpu < P3_CPUS_MOST; cpu++)
		if (cpu % 3)
			p3_cpuset_add(&a.set, cpu);
	p3_cpulist_print(&a.set, text, sizeof text);
	assert_true(p3_cpulist_parse(text, &back));
	assert_true(p3_cpuset_equal(&a.set, &back));
	p3_cpulist_print(&a.set, cut, sizeof cut);
	assert_string_equal(cut, "1-2,4-5");
}

/* There is room for ",..." behind every range. */
static void expect_ranks(const char *list, size_t size, const char *wanted)
{
	char text[64];
	struct p3_ranks ranks;
	memset(text, '#', sizeof text);
	assert_true(p3_ranks_parse(list, &ranks));
	p3_ranks_print(&ranks, text, size);
	assert_string_equal(text, wanted);
	assert_true(strlen(text) < size);
	assert_int_equal(text[size], '#');
}

CASE(ranks_are_printed_as_they_are_read)
{
	expect_ranks("0", 60, "0");
	expect_ranks("3,2,0", 60, "0,2-3");
	expect_ranks("1022-1023,5,7,63-64", 60, "5,7,63-64,1022-1023");
	expect_ranks("0-1023", 60, "0-1023");
	expect_ranks("0,2,4,6,8,10", 17, "0,2,4,6,8,10");
	expect_ranks("0,2,4,6,8,10,12", 16, "0,2,4,6,8,...");
	expect_ranks("100,102,104", 11, "100,...");
}
