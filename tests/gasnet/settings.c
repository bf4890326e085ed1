/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements that run other programs of the suite with other settings and launchers. */
#include "gn.h"

const struct gn_program gn_program = {.is_driver = true};

/* Programs, and those of their statements that take part. */
struct part {
	const char *program, *statements;
};

static void check_part(unsigned nodes, const char *settings, const struct part *part)
{
	struct gn_run *r =
		gn_run_program(nodes, settings, part->program, part->statements);
	if (r->status)
		check_failed(__FILE__, __LINE__, "%s -sz %u gn_%s_%s: status %d: %.600s",
			settings, nodes, part->program, GN_MODE, r->status, r->err);
	CHECK(strstr(r->out, "\nok "));
}

static void check_parts(const char *settings, const struct part *parts, int n)
{
	for (int i = 0; i < n; i++) {
		check_part(2, settings, &parts[i]);
		check_part(3, settings, &parts[i]);
	}
}

static const struct part messages[] = {
	{"handlers", ""}, {"am", ""}, {"flow", "55 56 57 64 65 66 67"}, {"hsl", ""}};
static const struct part all[] = {{"handlers", ""}, {"am", ""},
	{"flow", "55 56 57 64 65 66 67"}, {"hsl", ""},
	{"blocking", "75 76 77 78 79 80 81 82 84 85"}, {"nonblocking", ""},
	{"barriers", ""}, {"threads", "126 127 129 130"}, {"extensions", ""}};
static const struct part local[] = {{"am", "45 46 47 48 49 50 51 52 53 54"},
	{"blocking", "75 76 77 78 79 80 81 82 84 85"}, {"nonblocking", ""}};

enum { MESSAGES = sizeof messages / sizeof messages[0] };
enum { ALL = sizeof all / sizeof all[0], LOCAL = sizeof local / sizeof local[0] };

STATEMENT(162, least_credits)
{
	check_parts("GASNET_PORTAL_CRED_PER_NODE=8 GASNET_PORTAL_BANKED_CREDITS=0",
		messages, MESSAGES);
	check_parts("GASNET_PORTAL_CRED_PER_NODE=8 GASNET_PORTAL_BANKED_CREDITS=0 "
		    "GASNET_PORTAL_DYNAMIC_CREDITS=0",
		messages, MESSAGES);
}

STATEMENT(163, least_send_tickets)
{
	check_parts("GASNET_PORTAL_MSG_LIMIT=12", all, ALL);
}

STATEMENT(164, each_local_mode)
{
	check_parts("GASNET_PORTAL_LOCAL=all", local, LOCAL);
	check_parts("GASNET_PORTAL_LOCAL=bounce", local, LOCAL);
	check_parts("GASNET_PORTAL_LOCAL=tmpmd", local, LOCAL);
	check_parts("GASNET_PORTAL_LOCAL=firehose", local, LOCAL);
}

STATEMENT(166, settings_of_portals)
{
	static const char *const settings[] = {"PTL3_PERSONALITY=document",
		"PTL3_PERSONALITY=cray", "PTL3_MOVER=window", "PTL3_MOVER=read",
		"PTL3_HEAP=0", "PTL3_MODE=dedicated", "PTL3_MODE=park"};
	for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
		check_parts(settings[i], all, ALL);
}

STATEMENT(167, under_yod_and_mpirun)
{
	const char *sources = getenv("GN_SOURCES"), *bin = getenv("GN_BIN");
	CHECK(sources && bin);
	for (int i = 0; i < ALL; i++) {
		struct gn_run *r = gn_sh("exec '%s/mpi.sh' 3 '%s/gn_%s_" GN_MODE "' %s",
			sources, bin, all[i].program, all[i].statements);
		CHECK_STATUS(r, 0);
		CHECK(strstr(r->out, "\nok "));
	}
}
