/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portals-info - shows libportals' view of this machine: an interface's limits, ways to
 * move data, CPUs and NUMA nodes, and settings
 *
 *	main.c	the command line, the interface, text and JSON
 *	probe.c	the CPU, the rules by which bytes are moved, and a trial of each way
 *
 * All is gathered as JSON, and the text is made of that.
 */
#include "launcher/info/info.h"
#include "launcher/ptlstat/ptlstat.h"
#include "launcher/yod/tools.h"
#include "portals3.h"
#include "portals3_runtime.h"
#include "portals3x.h"
#include "shm/conf.h"
#include "shm/cpuset.h"

#include <dlfcn.h>
#include <getopt.h>
#include <numa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef P3_VERSION
#define P3_VERSION "unversioned"
#endif

enum { STATUS_OK, STATUS_FAILED, STATUS_USAGE };

static void info_set_number(json_t *o, const char *name, uint64_t v)
{
	json_object_set_new(o, name, json_integer((json_int_t)v));
}

static void info_set_text(json_t *o, const char *name, const char *text)
{
	json_object_set_new(o, name, text ? json_string(text) : json_null());
}

/* ---- the library and the machine ---- */

static json_t *info_library(void)
{
	Dl_info where = {.dli_fname = NULL};
	json_t *o = json_object();
	info_set_text(o, "version", PtlXVersion());
	info_set_text(o, "file",
		dladdr((void *)(uintptr_t)PtlInit, &where) ? where.dli_fname : NULL);
	info_set_text(o, "tool", P3_VERSION);
	return o;
}

static json_t *info_machine(void)
{
	struct utsname u;
	struct p3_cpuset set;
	char list[P3_CPULIST_LEN];
	json_t *o = json_object();
	info_set_text(o, "kernel", uname(&u) ? NULL : u.release);
	info_set_text(o, "architecture", uname(&u) ? NULL : u.machine);
	if (p3_cpuset_read(0, &set) == 0) {
		p3_cpulist_print(&set, list, sizeof list);
		info_set_text(o, "cpus", list);
	} else {
		info_set_text(o, "cpus", NULL);
	}
	info_set_number(o, "usable", p3_cpus_usable());
	return o;
}

static void info_set_cpus(json_t *o, int node)
{
	struct p3_cpuset set = {{0}};
	char list[P3_CPULIST_LEN] = "";
	struct bitmask *mask = numa_allocate_cpumask();
	if (numa_node_to_cpus(node, mask) == 0)
		for (unsigned i = 0; i < mask->size && i < P3_CPUS_MOST; i++)
			if (numa_bitmask_isbitset(mask, i))
				p3_cpuset_add(&set, i);
	numa_free_cpumask(mask);
	if (p3_cpuset_count(&set))
		p3_cpulist_print(&set, list, sizeof list);
	info_set_text(o, "cpus", list);
}

static json_t *info_numa_nodes(void)
{
	json_t *a = json_array();
	for (int i = 0; numa_available() >= 0 && i <= numa_max_node(); i++) {
		long long left = 0, size = numa_node_size64(i, &left);
		json_t *o = json_object();
		if (size < 0) {
			json_decref(o);
			continue;
		}
		info_set_number(o, "node", (uint64_t)i);
		info_set_cpus(o, i);
		info_set_number(o, "bytes", (uint64_t)size);
		info_set_number(o, "free", (uint64_t)left);
		json_array_append_new(a, o);
	}
	return a;
}

/* ---- an interface ---- */

static json_t *info_limits_of(const ptl_ni_limits_t *l)
{
	json_t *o = json_object();
	info_set_number(o, "max_mes", (uint64_t)l->max_mes);
	info_set_number(o, "max_mds", (uint64_t)l->max_mds);
	info_set_number(o, "max_eqs", (uint64_t)l->max_eqs);
	info_set_number(o, "max_ac_index", (uint64_t)l->max_ac_index);
	info_set_number(o, "max_pt_index", (uint64_t)l->max_pt_index);
	info_set_number(o, "max_md_iovecs", (uint64_t)l->max_md_iovecs);
	info_set_number(o, "max_me_list", (uint64_t)l->max_me_list);
	info_set_number(o, "max_getput_md", (uint64_t)l->max_getput_md);
	return o;
}

/* Return the words that this process's interface shows to tools, or NULL. */
static const uint64_t *info_own_words(struct p3_look **look, struct ptl_picture *p)
{
	if (p3_look_open((uint32_t)getpid(), look))
		return NULL;
	if (ptl_picture_take(*look, p)) {
		p3_look_close(*look);
		return NULL;
	}
	for (uint32_t i = 0; i < p->size; i++)
		if (p->node[i].msg.os_pid == (uint32_t)getpid() && !p->node[i].unseen)
			return p->node[i].word;
	ptl_picture_drop(p);
	p3_look_close(*look);
	return NULL;
}

/* Copy P3_COUNTERS words; return false if they are not known. */
static bool info_take_words(uint64_t *word_out)
{
	struct p3_look *look;
	struct ptl_picture p;
	const uint64_t *word = info_own_words(&look, &p);
	if (!word)
		return false;
	memcpy(word_out, word, P3_COUNTERS * sizeof *word);
	ptl_picture_drop(&p);
	p3_look_close(look);
	return true;
}

/* Open an interface, and close it when its limits and its words are known. */
static json_t *info_interface(uint64_t *word_out, bool *known_out)
{
	ptl_ni_limits_t limits;
	ptl_handle_ni_t ni;
	int most, rc = PtlInit(&most);
	json_t *o = json_object();
	if (rc == PTL_OK)
		rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &limits, &ni);
	bool opened = rc == PTL_OK || rc == PTL_IFACE_DUP;
	json_object_set_new(o, "opened", json_boolean(opened));
	info_set_text(o, "error", opened ? NULL : PtlErrorStr((unsigned)rc));
	json_object_set_new(o, "limits", opened ? info_limits_of(&limits) : json_null());
	info_set_number(o, "max_nodes", P3_MAX_NODES);
	*known_out = opened && info_take_words(word_out);
	info_set_text(o, "mode", *known_out ? ptl_mode_name(word_out[P3_G_MODE]) : NULL);
	json_object_set_new(o, "page_bytes",
		*known_out ? json_integer((json_int_t)word_out[P3_G_PAGE]) : json_null());
	PtlFini();
	return o;
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
	json_t *o = json_object();
	info_set_text(o, "name", row->name);
	info_set_text(o, "value", got ? got : right && set ? set : row->usual);
	info_set_text(o, "from", set ? "environment" : "default");
	info_set_text(o, "set", set);
	info_set_text(o, "default", row->usual);
	if (!right)
		p3_conf_complain(row, set, line, sizeof line);
	info_set_text(o, "wrong", right ? NULL : line);
	return o;
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
	json_array_append_new(arg, json_string(line));
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
	json_t *o = json_object(), *unknown = json_array();
	p3_conf_unknown(environ, info_hear_unknown, unknown);
	info_keep_settings(texts);
	info_be_alone();
	json_object_set_new(o, "library", info_library());
	json_object_set_new(o, "machine", info_machine());
	json_object_set_new(o, "cpu", p3_info_cpu());
	json_object_set_new(o, "movers", p3_info_movers());
	json_object_set_new(o, "numa", info_numa_nodes());
	/* p3_info_probe() forks, so call it before info_interface() starts threads. */
	json_object_set_new(o, "allowed", p3_info_probe());
	json_t *ni = info_interface(word, &known);
	*opened_out = json_is_true(json_object_get(ni, "opened"));
	json_object_set_new(o, "interface", ni);
	json_object_set_new(o, "settings", info_settings(texts, known ? word : NULL));
	json_object_set_new(o, "unknown", unknown);
	for (int id = 0; id < P3_CONF_ROWS; id++)
		free(texts[id]);
	return o;
}

/* ---- text ---- */

static const char *info_text_of(const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));
	return text ? text : "?";
}

static uint64_t info_number_of(const json_t *o, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(o, name));
}

static void info_show_library(const json_t *o)
{
	const json_t *library = json_object_get(o, "library");
	const json_t *machine = json_object_get(o, "machine");
	printf("library     %s (Portals 3.3)\n            %s\n",
		info_text_of(library, "version"), info_text_of(library, "file"));
	printf("machine     Linux %s, %s\n", info_text_of(machine, "kernel"),
		info_text_of(machine, "architecture"));
	printf("CPUs        %s; %llu usable at a time\n", info_text_of(machine, "cpus"),
		(unsigned long long)info_number_of(machine, "usable"));
}

static void info_show_cpu(const json_t *o)
{
	const json_t *cpu = json_object_get(o, "cpu"), *number;
	printf("CPU         %s, %s", info_text_of(cpu, "vendor"),
		info_text_of(cpu, "model_name"));
	if (json_is_integer(number = json_object_get(cpu, "family")))
		printf("; family %lld, model %lld", (long long)json_integer_value(number),
			(long long)info_number_of(cpu, "model"));
	printf("; copies by %s\n", info_text_of(cpu, "copy"));
}

static void info_show_movers(const json_t *o)
{
	const char *name;
	const json_t *rule;
	puts("\nlong messages move by");
	json_object_foreach(json_object_get(o, "movers"), name, rule)
		printf("  %-12s %s\n", name, json_string_value(rule));
}

static void info_show_numa(const json_t *o)
{
	size_t i;
	const json_t *node;
	json_array_foreach(json_object_get(o, "numa"), i, node)
		printf("NUMA %-6llu CPUs %s; memory %.1f GiB, %.1f GiB free\n",
			(unsigned long long)info_number_of(node, "node"),
			info_text_of(node, "cpus"),
			(double)info_number_of(node, "bytes") / (1 << 30),
			(double)info_number_of(node, "free") / (1 << 30));
}

static void info_show_allowed(const json_t *o)
{
	size_t i;
	const json_t *way;
	puts("\nallowed here");
	json_array_foreach(json_object_get(o, "allowed"), i, way)
		printf("  %-12s %-4s %s\n", info_text_of(way, "name"),
			json_is_true(json_object_get(way, "allowed")) ? "yes" : "no",
			info_text_of(way, "why"));
}

static void info_show_interface(const json_t *o)
{
	const json_t *ni = json_object_get(o, "interface"), *value;
	const char *name;
	json_t *limits = json_object_get(ni, "limits");
	if (!json_is_object(limits)) {
		printf("\ninterface    cannot be opened: %s\n",
			info_text_of(ni, "error"));
		return;
	}
	printf("\ninterface    mode %s, pages of %llu bytes, jobs of up to %llu nodes\n",
		info_text_of(ni, "mode"),
		(unsigned long long)info_number_of(ni, "page_bytes"),
		(unsigned long long)info_number_of(ni, "max_nodes"));
	json_object_foreach(limits, name, value)
		printf("  %-14s %lld\n", name, (long long)json_integer_value(value));
}

static void info_show_settings(const json_t *o)
{
	size_t i;
	const json_t *row, *line;
	printf("\n%-18s %-16s %s\n", "setting", "in force", "from");
	json_array_foreach(json_object_get(o, "settings"), i, row)
	{
		const char *set = json_string_value(json_object_get(row, "set"));
		printf("%-18s %-16s %s %s\n", info_text_of(row, "name"),
			info_text_of(row, "value"), info_text_of(row, "from"),
			set ? set : info_text_of(row, "default"));
	}
	json_array_foreach(json_object_get(o, "settings"), i,
		row) if (json_is_string(json_object_get(row, "wrong")))
		printf("wrong: %s\n", info_text_of(row, "wrong"));
	json_array_foreach(json_object_get(o, "unknown"), i, line)
		printf("unknown: %s\n", json_string_value(line));
}

static void info_show(const json_t *o)
{
	info_show_library(o);
	info_show_cpu(o);
	info_show_numa(o);
	info_show_allowed(o);
	info_show_movers(o);
	info_show_interface(o);
	info_show_settings(o);
}

/* ---- the command line ---- */

static int info_show_help(void)
{
	puts("usage: portals-info [options]\n"
	     "Prints what libportals finds here: the limits of an interface, which ways "
	     "to\n"
	     "move data the machine allows and why not, CPUs and NUMA nodes, the "
	     "settings in\n"
	     "force and where each comes from.  As a rank (yod -sz 1 portals-info) it "
	     "prints\n"
	     "the findings of that rank.\n\n"
	     "  -j, --json          for programs: one object\n"
	     "  -h, --help          print this\n"
	     "  --version           print the version\n\n"
	     "status: 0, 1 no interface can be opened, or the output cannot be printed,\n"
	     "2 usage.");
	return STATUS_OK;
}

static int info_report(bool json)
{
	bool opened;
	json_t *o = info_gather(&opened);
	if (json) {
		json_dumpf(o, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		info_show(o);
	}
	json_decref(o);
	return opened ? STATUS_OK : STATUS_FAILED;
}

static int info_perform(int argc, char **argv)
{
	static const struct option longs[] = {{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'v'},
		{NULL, 0, NULL, 0}};
	bool json = false;
	opterr = 0;
	for (int c, at = 1; (c = getopt_long(argc, argv, "jh", longs, NULL)) >= 0;
		at = optind) {
		json |= c == 'j';
		if (c == 'h')
			return info_show_help();
		if (c == 'v') {
			puts("portals-info (libportals " P3_VERSION ", Portals 3.3)");
			return STATUS_OK;
		}
		if (c == '?') {
			fprintf(stderr,
				"portals-info: %s: not an option; see portals-info "
				"--help\n",
				argv[at]);
			return STATUS_USAGE;
		}
	}
	if (optind == argc)
		return info_report(json);
	fprintf(stderr, "portals-info: '%s': not expected; see portals-info --help\n",
		argv[optind]);
	return STATUS_USAGE;
}

int main(int argc, char **argv)
{
	int status = info_perform(argc, argv);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "portals-info: cannot write to standard output; see df, and "
			"where it leads\n");
	return status ? status : STATUS_FAILED;
}
