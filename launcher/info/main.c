/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portals-info - shows libportals' view of this machine: an interface's limits, ways to
 * move data, CPUs and NUMA nodes, and settings
 *
 *	main.c	the command line, the interface, text
 *	probe.c	the CPU, the rules by which bytes are moved, and a trial of each way
 *
 * All is gathered as JSON, and the text is made of that.
 */
#include "launcher/info/info.h"
#include "launcher/ptlstat/ptlstat.h"
#include "launcher/tools/options.h"
#include "launcher/tools/rows.h"
#include "launcher/yod/tools.h"
#include "portals3.h"
#include "portals3_runtime.h"
#include "portals3x.h"
#include "shm/conf.h"
#include "shm/cpuset.h"

#include <dlfcn.h>
#include <numa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef P3_VERSION
#define P3_VERSION "unversioned"
#endif

enum { STATUS_OK, STATUS_FAILED };

/* ---- the library and the machine ---- */

static json_t *info_library(void)
{
	Dl_info where = {.dli_fname = NULL};
	const char *file =
		dladdr((void *)(uintptr_t)PtlInit, &where) ? where.dli_fname : NULL;
	return json_pack("{s:s, s:s?, s:s}", "version", PtlXVersion(), "file", file,
		"tool", P3_VERSION);
}

static json_t *info_machine(void)
{
	struct utsname u;
	struct p3_cpuset set;
	char list[P3_CPULIST_LEN];
	bool known = uname(&u) == 0, listed = p3_cpuset_read(0, &set) == 0;
	if (listed)
		p3_cpulist_print(&set, list, sizeof list);
	return json_pack("{s:s?, s:s?, s:s?, s:I}", "kernel", known ? u.release : NULL,
		"architecture", known ? u.machine : NULL, "cpus", listed ? list : NULL,
		"usable", P3_ROW_N(p3_cpus_usable()));
}

static void info_list_cpus(int node, char list[P3_CPULIST_LEN])
{
	struct p3_cpuset set = {{0}};
	struct bitmask *mask = numa_allocate_cpumask();
	if (numa_node_to_cpus(node, mask) == 0)
		for (unsigned i = 0; i < mask->size && i < P3_CPUS_MOST; i++)
			if (numa_bitmask_isbitset(mask, i))
				p3_cpuset_add(&set, i);
	numa_free_cpumask(mask);
	*list = '\0';
	if (p3_cpuset_count(&set))
		p3_cpulist_print(&set, list, P3_CPULIST_LEN);
}

static json_t *info_numa_nodes(void)
{
	json_t *a = json_array();
	char list[P3_CPULIST_LEN];
	for (int i = 0; numa_available() >= 0 && i <= numa_max_node(); i++) {
		long long left = 0, size = numa_node_size64(i, &left);
		if (size < 0)
			continue;
		info_list_cpus(i, list);
		json_array_append_new(
			a, json_pack("{s:i, s:s, s:I, s:I}", "node", i, "cpus", list,
				   "bytes", P3_ROW_N(size), "free", P3_ROW_N(left)));
	}
	return a;
}

/* ---- an interface ---- */

static json_t *info_limits_of(const ptl_ni_limits_t *l)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I}", "max_mes",
		l->max_mes, "max_mds", l->max_mds, "max_eqs", l->max_eqs, "max_ac_index",
		l->max_ac_index, "max_pt_index", l->max_pt_index, "max_md_iovecs",
		l->max_md_iovecs, "max_me_list", l->max_me_list, "max_getput_md",
		P3_ROW_N(l->max_getput_md));
}

/* Copy the P3_COUNTERS words that this process's interface shows to tools.  Return false
 * if they are not known. */
static bool info_take_words(uint64_t *word_out)
{
	struct p3_look *look;
	struct ptl_picture p = {.size = 0};
	bool found = false;
	if (p3_look_open((uint32_t)getpid(), &look))
		return false;
	if (ptl_picture_take(look, &p))
		p.size = 0;
	for (uint32_t i = 0; i < p.size && !found; i++) {
		found = p.node[i].msg.os_pid == (uint32_t)getpid() && !p.node[i].unseen;
		if (found)
			memcpy(word_out, p.node[i].of.word, sizeof p.node[i].of.word);
	}
	ptl_picture_drop(&p);
	p3_look_close(look);
	return found;
}

/* Open an interface, and close it when its limits and its words are known. */
static json_t *info_interface(uint64_t *word_out, bool *known_out)
{
	ptl_ni_limits_t limits;
	ptl_handle_ni_t ni;
	int most, rc = PtlInit(&most);
	if (rc == PTL_OK)
		rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &limits, &ni);
	bool opened = rc == PTL_OK || rc == PTL_IFACE_DUP;
	bool known = *known_out = opened && info_take_words(word_out);
	PtlFini();
	return json_pack("{s:b, s:s?, s:o, s:i, s:s?, s:o}", "opened", opened, "error",
		opened ? NULL : PtlErrorStr((unsigned)rc), "limits",
		opened ? info_limits_of(&limits) : json_null(), "max_nodes", P3_MAX_NODES,
		"mode", known ? ptl_mode_name(word_out[P3_G_MODE]) : NULL, "page_bytes",
		known ? json_integer(P3_ROW_N(word_out[P3_G_PAGE])) : json_null());
}

/* ---- settings ---- */

static json_t *info_one_setting(enum p3_conf_id id, const char *set, const uint64_t *word)
{
	char line[480], text[30];
	uint64_t value;
	const struct p3_conf_row *row = p3_conf_row(id);
	/* The heap is made by the first call that needs it. */
	bool told = word && id != P3_CONF_HEAP;
	const char *got = told ? ptl_conf_got(word, id, text) : NULL;
	bool right = p3_conf_value(row, set, &value);
	if (!right)
		p3_conf_complain(row, set, line, sizeof line);
	return json_pack("{s:s, s:o, s:s, s:o, s:s, s:o}", "name", row->name, "value",
		p3_rows_text(got            ? got
			     : right && set ? set
					    : row->usual),
		"from", set ? "environment" : "default", "set", p3_rows_text(set),
		"default", row->usual, "wrong", p3_rows_text(right ? NULL : line));
}

static json_t *info_settings(char *const texts[P3_CONF_ROWS], const uint64_t *word)
{
	json_t *a = json_array();
	for (int id = 0; id < P3_CONF_ROWS; id++)
		if (texts[id] || !p3_conf_row((enum p3_conf_id)id)->internal)
			json_array_append_new(a,
				info_one_setting((enum p3_conf_id)id, texts[id], word));
	return a;
}

static void info_hear_unknown(void *arg, const char *line)
{
	json_array_append_new(arg, p3_rows_text(line));
}

/* Copy the settings before this program changes some for itself. */
static void info_keep_settings(char *texts[P3_CONF_ROWS])
{
	for (int id = 0; id < P3_CONF_ROWS; id++) {
		const char *text = p3_conf_text((enum p3_conf_id)id);
		texts[id] = text ? strdup(text) : NULL;
	}
}

/* Keep out of domains; a rank of yod's stays one. */
static void info_be_alone(void)
{
	setenv("PTL3_LOG", "error", 0);
	if (getenv("PTL3_YOD_FD"))
		return;
	setenv("PTL3_DOMAIN", "none", 1);
	setenv("PTL3_LAUNCHED", "off", 1);
}

static json_t *info_gather(bool *opened_out)
{
	char *texts[P3_CONF_ROWS];
	uint64_t word[P3_COUNTERS];
	bool known;
	json_t *unknown = json_array();
	p3_conf_unknown(environ, info_hear_unknown, unknown);
	info_keep_settings(texts);
	info_be_alone();
	/* p3_info_probe() forks, so call it before info_interface() starts threads. */
	json_t *machine = info_machine(), *allowed = p3_info_probe();
	json_t *ni = info_interface(word, &known);
	*opened_out = json_is_true(json_object_get(ni, "opened"));
	json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "library",
		info_library(), "machine", machine, "cpu", p3_info_cpu(), "movers",
		p3_info_movers(), "numa", info_numa_nodes(), "allowed", allowed,
		"interface", ni, "settings", info_settings(texts, known ? word : NULL),
		"unknown", unknown);
	for (int id = 0; id < P3_CONF_ROWS; id++)
		free(texts[id]);
	return o;
}

/* ---- text ---- */

#define TABLE(rows, columns)                                                             \
	p3_rows_table(json_object_get(o, rows), columns, sizeof columns / sizeof *columns)

static const struct p3_column info_numa_columns[] = {{"NUMA", -4, "node", P3_PLAIN},
	{"memory", 8, "bytes", P3_BYTES}, {"free", 8, "free", P3_BYTES},
	{"CPUs", -1, "cpus", P3_PLAIN}};
static const struct p3_column info_way_columns[] = {
	{"allowed here", -14, "name", P3_PLAIN}, {"", -4, "allowed", P3_PLAIN},
	{"", -1, "why", P3_PLAIN}};
static const struct p3_column info_setting_columns[] = {
	{"setting", -18, "name", P3_PLAIN}, {"in force", -16, "value", P3_PLAIN},
	{"from", -11, "from", P3_PLAIN}, {"set", -16, "set", P3_PLAIN},
	{"default", -1, "default", P3_PLAIN}};

static void info_show(const json_t *o)
{
	size_t i;
	const json_t *row, *ni = json_object_get(o, "interface");
	p3_rows_list("library", json_object_get(o, "library"));
	p3_rows_list("machine", json_object_get(o, "machine"));
	p3_rows_list("CPU", json_object_get(o, "cpu"));
	TABLE("numa", info_numa_columns);
	putchar('\n');
	TABLE("allowed", info_way_columns);
	p3_rows_list("\nlong messages move by", json_object_get(o, "movers"));
	p3_rows_list("\ninterface", ni);
	if (json_is_true(json_object_get(ni, "opened")))
		p3_rows_list("\nlimits", json_object_get(ni, "limits"));
	putchar('\n');
	TABLE("settings", info_setting_columns);
	json_array_foreach(json_object_get(o, "settings"), i, row) {
		const char *wrong = json_string_value(json_object_get(row, "wrong"));
		if (wrong)
			printf("wrong: %s\n", wrong);
	}
	json_array_foreach(json_object_get(o, "unknown"), i, row)
		printf("unknown: %s\n", json_string_value(row));
}

/* ---- the command line ---- */

struct info_choice {
	bool json;
};

static const struct p3_option info_rows[] = {
	{"json", 'j', NULL, "for programs: one object", .at = 0}};

static const struct p3_options info_options = {.program = "portals-info",
	.usage = "usage: portals-info [options]\n"
		 "Prints what libportals finds here: the limits of an interface, which "
		 "ways to\n"
		 "move data the machine allows and why not, CPUs and NUMA nodes, the "
		 "settings in\n"
		 "force and where each comes from.  As a rank (yod -sz 1 portals-info) "
		 "it prints\n"
		 "the findings of that rank.\n",
	.after = "status: 0, 1 no interface can be opened, or the output cannot be "
		 "printed,\n"
		 "2 usage.",
	.row = info_rows,
	.n = sizeof info_rows / sizeof *info_rows,
	.say = p3_tool_say};

static int info_report(bool json)
{
	bool opened;
	json_t *o = info_gather(&opened);
	(json ? p3_rows_json : info_show)(o);
	json_decref(o);
	return opened ? STATUS_OK : STATUS_FAILED;
}

int main(int argc, char **argv)
{
	struct info_choice choice = {false};
	int first, status = p3_options_read(&info_options, &choice, argc, argv, &first);
	if (status == P3_OPTIONS_GO && first < argc) {
		p3_tool_say("'%s': not expected; see portals-info --help", argv[first]);
		status = P3_OPTIONS_USAGE;
	}
	if (status == P3_OPTIONS_GO)
		status = info_report(choice.json);
	return p3_tool_end(status, STATUS_FAILED);
}
