/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration file of CCI, beyond statements 8 to 14 of tests/cci; the names of
 * endpoints. */

#include "lib/cci/cci.h"
#include "support/cases.h"

#include <stdio.h>
#include <string.h>

static struct p3_cci_devices *parse(const char *text)
{
	struct p3_cci_devices *devices;
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	assert_non_null(file);
	assert_int_equal(p3_cci_config_read(file, "portals", &devices), 0);
	fclose(file);
	return devices;
}

CASE(pairs_are_kept_in_order)
{
	struct p3_cci_devices *all =
		parse("[ a ]\n  as =7 more\nno pair\ntransport\t=portals\n= 5\nempty =\n"
		      "two words = 1\nmss = 2000\npriority = x\n");
	const char *const want[] = {
		"as=7", "transport=portals", "mss=2000", "priority=x"};
	assert_int_equal(all->n, 1);
	assert_string_equal(all->list[0]->name, "a");
	for (int i = 0; i < 4; i++)
		assert_string_equal(all->list[0]->conf_argv[i], want[i]);
	assert_null(all->list[0]->conf_argv[4]);
	assert_int_equal(all->list[0]->max_send_size, 2000);
	assert_int_equal(all->device[0]->priority, 50);
	p3_cci_config_free(all);
}

static uint32_t length_of(const char *mss)
{
	char text[128];
	snprintf(text, sizeof text, "[a]\ntransport=portals\nmss=%s\n", mss);
	struct p3_cci_devices *all = parse(text);
	uint32_t n = all->list[0]->max_send_size;
	p3_cci_config_free(all);
	return n;
}

CASE(length_is_the_nearest_possible_one)
{
	assert_int_equal(length_of("1024"), 1024);
	assert_int_equal(length_of("1"), P3_CCI_MTU_LEAST);
	assert_int_equal(length_of("99999999"), P3_CCI_MTU_MOST);
	assert_int_equal(length_of("4k"), P3_CCI_MTU);
	assert_int_equal(length_of("99999999999999999999"), P3_CCI_MTU);
}

CASE(limits_hold)
{
	static char text[64 << 10];
	size_t at = 0;
	for (int i = 0; i < 40; i++) {
		at += (size_t)sprintf(text + at, "[d%d]\ntransport=portals\n", i);
		for (int k = 0; k < 40; k++)
			at += (size_t)sprintf(text + at, "key%d=%d\n", k, i);
	}
	struct p3_cci_devices *all = parse(text);
	assert_int_equal(all->n, P3_CCI_DEVICES);
	assert_string_equal(all->list[31]->conf_argv[P3_CCI_PAIRS - 1], "key30=31");
	assert_null(all->list[31]->conf_argv[P3_CCI_PAIRS]);
	p3_cci_config_free(all);
}

CASE(long_lines_are_cut)
{
	static char text[8192];
	size_t at = (size_t)sprintf(text, "[a]\ntransport=portals\n");
	memset(text + at, 'k', 300);
	at += 300;
	at += (size_t)sprintf(text + at, "=1\nv=");
	memset(text + at, 'v', 600);
	at += 600;
	at += (size_t)sprintf(text + at, "\nlast=1 ");
	memset(text + at, 'x', 2000);
	struct p3_cci_devices *all = parse(text);
	assert_string_equal(all->list[0]->conf_argv[1], "last=1");
	assert_null(all->list[0]->conf_argv[2]);
	p3_cci_config_free(all);
}

/* ---- names of endpoints ---- */

static const struct p3_node here = {.domain = "lab-1.x", .index = 3, .capacity = 64};
static const struct p3_node alone = {.jid = 77, .index = 0, .capacity = 1};

static int parsed(const struct p3_node *node, const char *uri)
{
	uint32_t index = 0, number = 0;
	int rc = p3_cci_uri_parse(node, "portals", uri, &index, &number);
	return rc ? rc : (int)(index * 100000 + number);
}

CASE(names_are_parsed_as_they_are_made)
{
	char uri[P3_CCI_URI];
	p3_cci_uri_make(&here, "portals", 5000, uri);
	assert_string_equal(uri, "portals://lab-1.x/3/5000");
	assert_int_equal(parsed(&here, uri), 305000);
	p3_cci_uri_make(&alone, "portals", UINT32_MAX, uri);
	assert_string_equal(uri, "portals://job:77/0/4294967295");
	assert_int_equal(parsed(&alone, "portals://job:77/0/9"), 9);
	assert_int_equal(parsed(&here, uri), CCI_EADDRNOTAVAIL);
}

CASE(other_names_are_refused)
{
	const char *const bad[] = {"", "x", "portals://", "portals://lab-1.x",
		"portals://lab-1.x/3", "portals://lab-1.x/3/", "portals://lab-1.x//5",
		"portals:///3/5", "portals://lab-1.x/3/5/6", "portals://lab-1.x/3/0",
		"portals://lab-1.x/03/5", "portals://lab-1.x/3/5 ",
		"portals://lab-1.x/-3/5", "portals://lab-1.x/3/4294967296",
		"portals://lab-1.x/99999999999999999999/5", "://lab-1.x/3/5",
		"a b://lab-1.x/3/5"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(parsed(&here, bad[i]), CCI_EINVAL);
	assert_int_equal(parsed(&here, "tcp://h:1"), CCI_EADDRNOTAVAIL);
	assert_int_equal(parsed(&here, "portals://lab-1/3/5"), CCI_EADDRNOTAVAIL);
	assert_int_equal(parsed(&here, "portals://lab-1.xy/3/5"), CCI_EADDRNOTAVAIL);
	assert_int_equal(parsed(&here, "portals://lab-1.x/64/5"), CCI_EADDRNOTAVAIL);
}
