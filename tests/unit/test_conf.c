/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of settings: accepted and refused values, messages, and docs/settings.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/variant.h"
#include "shm/conf.h"
#include "support/cases.h"

static char said[4096];
static unsigned lines;

static void hear(void *arg, const char *line)
{
	(void)arg;
	lines++;
	strncat(said, line, sizeof said - strlen(said) - 2);
	strcat(said, "\n");
}

static void forget(void)
{
	said[0] = '\0';
	lines = 0;
}

CASE(remote_shell_has_a_name)
{
	uint64_t v;
	assert_true(p3_conf_value(p3_conf_row(P3_CONF_RSH), "ssh -q", &v) && v == 0);
	assert_false(p3_conf_value(p3_conf_row(P3_CONF_RSH), " \t ", &v));
}

/* OFI.93: the provider over this library would wait for itself. */
CASE(fabric_is_another_provider)
{
	uint64_t v;
	const struct p3_conf_row *fabric = p3_conf_row(P3_CONF_FABRIC);
	static const char *const names[] = {
		"tcp", "tcp;ofi_rxm", "p", "portals2", "psm3"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_true(p3_conf_value(fabric, names[i], &v));
	assert_false(p3_conf_value(fabric, "portals", &v));
	assert_false(p3_conf_value(fabric, "portals;ofi_rxm", &v));
	assert_non_null(strstr(fabric->expected, "not portals"));
}

CASE(defaults_are_values)
{
	for (enum p3_conf_id id = 0; id < P3_CONF_ROWS; id++) {
		const struct p3_conf_row *row = p3_conf_row(id);
		uint64_t without, empty, usual;
		assert_true(p3_conf_value(row, row->usual, &usual));
		assert_true(p3_conf_value(row, NULL, &without) && without == usual);
		assert_true(p3_conf_value(row, "", &empty) && empty == usual);
		assert_true(row->help && row->range && strlen(row->name) <= 40);
		assert_true(row->kind == P3_CONF_WORDS || row->expected);
	}
}

CASE(words_count_from_0)
{
	uint64_t v;
	const struct p3_conf_row *mode = p3_conf_row(P3_CONF_MODE);
	static const char *const words[] = {"auto", "lease", "dedicated", "park"};
	for (uint64_t i = 0; i < 4; i++)
		assert_true(p3_conf_value(mode, words[i], &v) && v == i);
	static const char *const no[] = {
		"Auto", "aut", "autolease", "auto|lease", "|", "auto ", "park|"};
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		assert_false(p3_conf_value(mode, no[i], &v));
}

CASE(size_is_read_strictly)
{
	static const char *const wrong[] = {
		"x", "-1", " 1", "1KB", "1X", "K", "2048G", "99999999999999999999", "+1"};
	const uint64_t most = (uint64_t)1 << 40;
	uint64_t len;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(p3_conf_size(wrong[i], 7, most, &len));
	assert_true(p3_conf_size(NULL, 7, most, &len) && len == 7);
	assert_true(p3_conf_size("", 7, most, &len) && len == 7);
	assert_true(p3_conf_size("0", 7, most, &len) && len == 0);
	assert_true(p3_conf_size("4096", 7, most, &len) && len == 4096);
	assert_true(p3_conf_size("3k", 7, most, &len) && len == 3072);
	assert_true(p3_conf_size("64M", 7, most, &len) && len == 64u << 20);
	assert_true(p3_conf_size("1024G", 7, most, &len) && len == most);
}

CASE(numbers_have_bounds)
{
	const struct p3_conf_row row = {
		.kind = P3_CONF_NUMBER, .usual = "5", .least = 2, .most = 10};
	uint64_t v;
	assert_true(p3_conf_value(&row, NULL, &v) && v == 5);
	assert_true(p3_conf_value(&row, "2", &v) && v == 2);
	assert_true(p3_conf_value(&row, "10", &v) && v == 10);
	static const char *const no[] = {"1", "11", "3K", "-3", "x", "3 ", "0x3"};
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		assert_false(p3_conf_value(&row, no[i], &v));
}

CASE(garbage_is_named)
{
	for (enum p3_conf_id id = 0; id < P3_CONF_ROWS; id++) {
		const struct p3_conf_row *row = p3_conf_row(id);
		if (id == P3_CONF_RSH) /* any words name a program */
			continue;
		forget();
		assert_int_equal(setenv(row->name, "no such value", 1), 0);
		assert_int_equal(p3_conf_check(hear, NULL), -22);
		unsetenv(row->name);
		assert_int_equal(lines, 1);
		assert_true(strncmp(said, row->name, strlen(row->name)) == 0);
		assert_non_null(strstr(said, " is 'no such value'; expected "));
		assert_non_null(strstr(said, row->expected ? row->expected : ", "));
		assert_non_null(strstr(said, "; unset it for the default\n"));
	}
}

CASE(all_that_is_wrong_is_said)
{
	forget();
	assert_int_equal(p3_conf_check(hear, NULL), 0);
	assert_int_equal(lines, 0);
	setenv("PTL3_MODE", "fast", 1);
	setenv("PTL3_HEAP", "1TB", 1);
	assert_int_equal(p3_conf_check(hear, NULL), -22);
	unsetenv("PTL3_MODE");
	unsetenv("PTL3_HEAP");
	assert_string_equal(said, "PTL3_MODE is 'fast'; expected auto, lease, dedicated, "
				  "park; unset it for "
				  "the default\n"
				  "PTL3_HEAP is '1TB'; expected bytes, or with K, M or "
				  "G, 1024G at most, as "
				  "in 64M; unset it for the default\n");
}

CASE(unknown_names_are_told_with_the_nearest)
{
	char *env[] = {"PTL3_MOD=lease", "HOME=/", "PTL3_MODE=lease",
		"PTL3_HUGE_PAGES=on", "PTL3_FAULT=list", "PTL3_YOD_FD=100", "PTL_IFACE=0",
		"PTL3_=1", "PTL3_SOMETHING_ELSE=1", NULL};
	forget();
	p3_conf_unknown(env, hear, NULL);
	assert_string_equal(said,
		"PTL3_MOD is no setting; did you mean PTL3_MODE? yod --help-env lists "
		"them\n"
		"PTL3_HUGE_PAGES is no setting; did you mean PTL3_HUGEPAGES? yod "
		"--help-env "
		"lists them\n"
		"PTL3_ is no setting; yod --help-env lists them\n"
		"PTL3_SOMETHING_ELSE is no setting; yod --help-env lists them\n");
	char name[1000] = "PTL3_";
	memset(name + 5, 'X', sizeof name - 6);
	char *long_one[] = {name, NULL};
	forget();
	p3_conf_unknown(long_one, hear, NULL);
	assert_int_equal(lines, 1);
}

/* Return the whole text of a file. */
static char *read_all(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = calloc(1, 1 << 20);
	assert_true(f && text);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

static char *table(enum p3_conf_format format)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	p3_conf_print(f, format);
	fclose(f);
	return text;
}

CASE(document_has_the_table)
{
	char *doc = read_all(getenv("SETTINGS")), *rows = table(P3_CONF_MARKDOWN);
	if (!strstr(doc, rows))
		fail_msg("docs/settings.md: expected this table\n%s", rows);
	free(doc);
	free(rows);
}

CASE(help_has_every_name)
{
	char *help = table(P3_CONF_TEXT);
	for (enum p3_conf_id id = 0; id < P3_CONF_ROWS; id++)
		assert_int_equal(
			!strstr(help, p3_conf_row(id)->name), p3_conf_row(id)->internal);
	assert_non_null(strstr(help, "PTL3_MODE (auto): auto, lease, dedicated, park\n"));
	free(help);
}

CASE(ranks_that_match_on_the_host)
{
	static const struct {
		const char *text;
		bool is[4]; /* by rank */
	} yes[] = {{NULL, {0}}, {"", {0}}, {"firmware", {0}}, {"host", {1, 1, 1, 1}},
		{"host:0", {1, 0, 0, 0}}, {"host:1,3", {0, 1, 0, 1}},
		{"host:1-2", {0, 1, 1, 0}}};
	static const char *const no[] = {"Host", "hosts", "host:", "host:x", "host:1,",
		"firmware:0", "host 0", "generic", "host:-1", "host:99999", "host/",
		"host/tap", "host/poll ", "host/inline=", "host/inline=33",
		"host/inline=0x1", "firmware/poll", "host/poll:1", "host/poll/"};
	struct p3_conf_match m;
	for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
		for (uint32_t rank = 0; rank < 4; rank++) {
			assert_true(p3_conf_match(yes[i].text, rank, &m));
			assert_int_equal(m.on_host, yes[i].is[rank]);
			assert_true(m.interrupt == 0 && m.inlined == P3_CONF_INLINE);
		}
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		assert_false(p3_conf_match(no[i], 0, &m));
	assert_true(p3_conf_match("host/poll/inline=0", 5, &m));
	assert_true(m.on_host && m.interrupt == 2 && m.inlined == 0);
	assert_true(p3_conf_match("host:1/inline=32/signal", 1, &m));
	assert_true(m.on_host && m.interrupt == 1 && m.inlined == 32);
}

CASE(parts_that_are_left_out)
{
	static const struct {
		const char *text;
		uint32_t parts;
	} yes[] = {{NULL, 0}, {"", 0}, {"none", 0}, {"index", 1u << P3_INDEX},
		{"shadows,prefetches", 1u << P3_SHADOWS | 1u << P3_PREFETCHES},
		{"prefetches,lines,shadows,credits,index,batches",
			(1u << P3_ABLATIONS) - 1}};
	static const char *const no[] = {"all", "Index", "index,", ",index", "none,index",
		"index,none", "index index", "indexes", "ind"};
	uint32_t parts;
	for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
		assert_true(p3_ablation_parse(yes[i].text, &parts));
		assert_int_equal(parts, yes[i].parts);
	}
	for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
		assert_false(p3_ablation_parse(no[i], &parts));
		assert_int_equal(parts, 0);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--table") == 0) {
		p3_conf_print(stdout, P3_CONF_MARKDOWN);
		return 0;
	}
	return cases_run();
}
