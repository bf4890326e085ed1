/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portals-info - shows libportals' view of this machine: an interface's limits, ways to
 * move data, CPUs and NUMA nodes, and settings
 *
 * All is gathered as JSON, and the text is made of that.
 */
#include "launcher/info/trial.h"
#include "launcher/ptlstat/ptlstat.h"
#include "launcher/tools/options.h"
#include "launcher/tools/rows.h"
#include "nic/xfer/movers.h"
#include "portals3.h"
#include "portals3_runtime.h"
#include "portals3x.h"
#include "shm/conf.h"
#include "shm/cpuset.h"
#include "shm/layout.h"
#include "shm/seg.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <linux/membarrier.h>
#include <linux/memfd.h>
#include <numa.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define YAMA  "/proc/sys/kernel/yama/ptrace_scope"

enum { STATUS_OK, STATUS_FAILED };

/* ---- the CPU ---- */

/* The features of the CPU that memcpy, or the kernel's copy, chooses by. */
static const char *const cpu_features[] = {"erms", "fsrm", "avx2", "avx512f"};

/* Return the value of a line "name : value" of /proc/cpuinfo, or NULL. */
static char *cpu_value_of(char *line, const char *name)
{
	size_t k = strlen(name);
	char *colon = strchr(line, ':');
	if (strncmp(line, name, k) || strspn(line + k, " \t") + line + k != colon)
		return NULL;
	line[strcspn(line, "\n")] = 0;
	return colon + 1 + strspn(colon + 1, " ");
}

static void cpu_take_line(json_t *o, char *line)
{
	static const char *const names[][2] = {
		{"vendor_id", "vendor"}, {"model name", "model_name"}};
	static const char *const numbers[][2] = {
		{"cpu family", "family"}, {"model", "model"}};
	char *value, *next = NULL;
	for (int i = 0; i < 2; i++) {
		if ((value = cpu_value_of(line, names[i][0])))
			json_object_set_new(o, names[i][1], json_string(value));
		if ((value = cpu_value_of(line, numbers[i][0])))
			json_object_set_new(
				o, numbers[i][1], json_integer(strtoll(value, NULL, 10)));
	}
	if (!(value = cpu_value_of(line, "flags")))
		return;
	json_t *found = json_object_get(o, "features");
	for (char *word = strtok_r(value, " ", &next); word;
		word = strtok_r(NULL, " ", &next))
		for (size_t i = 0; i < sizeof cpu_features / sizeof *cpu_features; i++)
			if (!strcmp(word, cpu_features[i]))
				json_array_append_new(found, json_string(word));
}

/* Return {vendor, family, model, model_name, features, copy}: the CPU, and the copy loop
 * in use with its reason.  A member that /proc/cpuinfo lacks is null. */
static json_t *info_cpu(void)
{
	char *line = NULL;
	size_t room = 0;
	json_t *o = json_pack("{s:n, s:n, s:n, s:n, s:[]}", "vendor", "family", "model",
		"model_name", "features");
	FILE *f = fopen("/proc/cpuinfo", "re");
	while (f && getline(&line, &room, f) > 0 && *line != '\n') /* the first CPU */
		cpu_take_line(o, line);
	free(line);
	if (f)
		fclose(f);
	json_object_set_new(o, "copy",
		json_sprintf("memcpy of libc %s, which chooses its loop by the CPU",
			gnu_get_libc_version()));
	return o;
}

/* Return the rule of each mover of long messages, by name. */
static json_t *info_movers(void)
{
	return json_pack("{s:o, s:o, s:o}", "heap",
		json_sprintf("where the bytes lie in a shared heap; puts above %u bytes",
			P3_EAGER_MOST_HEAP),
		"cma",
		json_sprintf("puts above %u bytes, or above %u where copies took less "
			     "time lately; slices of %u to %u KiB, of the length "
			     "that took the least time lately, up to %u us each "
			     "(ptlstat: slice_bytes)",
			P3_EAGER_MOST, P3_EAGER_MOST_PAST, P3_SLICE_LEAST >> 10,
			P3_SLICE_MOST >> 10, P3_SLICE_NS / 1000),
		"window",
		json_string("instead of cma where that took clearly less time lately, or "
			    "where cma is not allowed"));
}

/* ---- probes ---- */

__attribute__((format(printf, 3, 4))) static json_t *probe_answer(
	const char *name, bool allowed, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	json_t *why = json_vsprintf(fmt, args);
	va_end(args);
	return json_pack("{s:s, s:b, s:o}", "name", name, "allowed", allowed, "why", why);
}

/* Return the number in a file, or -1 if there is no such file or number. */
static long probe_number_in(const char *file)
{
	char line[40];
	bool read = p3_line_read(line, sizeof line, "%s", file);
	return read && *line >= '0' && *line <= '9' ? strtol(line, NULL, 10) : -1;
}

/* ---- cross-memory reads ---- */

/* Try a read.  told: the target permits it to descendants of this process, by
 * PR_SET_PTRACER, as yod's ranks do among each other. */
static int probe_try_cma(bool told)
{
	static const int word = 4711;
	int ready[2], got, status = 0;
	char done;
	if (pipe2(ready, O_CLOEXEC))
		return errno;
	pid_t target = fork();
	if (!target) {
		if (told)
			(void)prctl(PR_SET_PTRACER, (unsigned long)getppid(), 0, 0, 0);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	int rc = target < 0 ? errno : read(ready[0], &done, 1) == 1 ? 0 : EPIPE;
	pid_t reader = rc ? -1 : fork(); /* a sibling of the target */
	if (!reader) {
		struct iovec here = {&got, sizeof got};
		struct iovec there = {(void *)(uintptr_t)&word, sizeof got};
		ssize_t n = process_vm_readv(target, &here, 1, &there, 1, 0);
		_exit(n == sizeof got ? 0 : n < 0 ? errno : EIO);
	}
	if (!rc)
		rc = reader < 0 || waitpid(reader, &status, 0) < 0 ? errno
		     : WIFEXITED(status)                           ? WEXITSTATUS(status)
								   : EINTR;
	close(ready[0]);
	if (target > 0) {
		kill(target, SIGKILL);
		waitpid(target, NULL, 0);
	}
	return rc;
}

static json_t *probe_cma(void)
{
	long scope = probe_number_in(YAMA);
	int rc = probe_try_cma(false);
	if (!rc)
		return probe_answer("cma", true, "process_vm_readv copies long messages");
	if (rc == ENOSYS)
		return probe_answer("cma", false,
			"the kernel has no process_vm_readv "
			"(CONFIG_CROSS_MEMORY_ATTACH)");
	if (scope == 1 && !probe_try_cma(true))
		return probe_answer("cma", true,
			"among ranks of one yod; not among other processes, as " YAMA
			" is 1");
	if (scope > 0)
		return probe_answer("cma", false,
			"%s: " YAMA " is %ld; 0, or 1 under yod, allows it", strerror(rc),
			scope);
	return probe_answer("cma", false,
		"%s: a filter of system calls, as containers have (Docker: --cap-add "
		"SYS_PTRACE)",
		strerror(rc));
}

/* ---- memory ---- */

/* Try a sealed file that its owner can write, and that others can only read. */
static json_t *probe_segments(void)
{
	struct p3_seg seg;
	int none, rc = p3_seg_create(
			  "portals-info", P3_HUGE, P3_PAGE, P3_HUGE_OFF, &seg, &none);
	if (!rc) {
		rc = p3_seg_seal(&seg);
		p3_seg_destroy(&seg);
	}
	if (rc == -EINVAL)
		return probe_answer("segments", false,
			"the kernel cannot seal memory against writing (Linux 5.1 can)");
	if (rc)
		return probe_answer("segments", false, "memfd_create: %s", strerror(-rc));
	return probe_answer("segments", true,
		"shared segments and windows; the shared heap, for yod --shared-heap and "
		"PtlXAlloc");
}

static json_t *probe_hugepages(void)
{
	long all = probe_number_in(PAGES "nr_hugepages");
	long left = probe_number_in(PAGES "free_hugepages");
	int fd = memfd_create("portals-info", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
	int rc = fd < 0 || ftruncate(fd, (off_t)P3_HUGE) ||
				 fallocate(fd, 0, 0, (off_t)P3_HUGE)
			 ? errno
			 : 0;
	if (fd >= 0)
		close(fd);
	if (!rc)
		return probe_answer("hugepages", true,
			"%ld of %ld pages of 2 MiB are free (yod --plan says how many a "
			"job wants)",
			left, all);
	if (all < 0)
		return probe_answer("hugepages", false,
			"the kernel has none of 2 MiB: %s", strerror(rc));
	return probe_answer("hugepages", false,
		"%s: %ld of %ld pages are free; echo 64 | sudo tee " PAGES "nr_hugepages",
		strerror(rc), left, all);
}

/* ---- others ---- */

static json_t *probe_membarrier(void)
{
	const long want = MEMBARRIER_CMD_GLOBAL_EXPEDITED |
			  MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED |
			  MEMBARRIER_CMD_PRIVATE_EXPEDITED |
			  MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
	long has = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	if (has < 0)
		return probe_answer("membarrier", false,
			"%s: each message pays for a fence", strerror(errno));
	if ((has & want) != want)
		return probe_answer("membarrier", false,
			"this kernel lacks expedited barriers (Linux 4.16 has them): "
			"each message pays for a fence");
	return probe_answer(
		"membarrier", true, "sleepers are found without a fence in each message");
}

static json_t *probe_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (fd < 0)
		return probe_answer("pidfd", false,
			"%s: the end of a process in a domain is seen within a second, "
			"not at once",
			strerror(errno));
	close(fd);
	return probe_answer("pidfd", true, "the end of a process is seen at once");
}

/* ---- the machine ---- */

static json_t *info_numa_nodes(void)
{
	json_t *a = json_array();
	for (int i = 0; numa_available() >= 0 && i <= numa_max_node(); i++) {
		char list[P3_CPULIST_LEN] = "";
		long long left = 0, size = numa_node_size64(i, &left);
		if (size < 0)
			continue;
		struct p3_cpuset set = {{0}};
		struct bitmask *mask = numa_allocate_cpumask();
		if (numa_node_to_cpus(i, mask) == 0)
			for (unsigned k = 0; k < mask->size && k < P3_CPUS_MOST; k++)
				if (numa_bitmask_isbitset(mask, k))
					p3_cpuset_add(&set, k);
		numa_free_cpumask(mask);
		p3_cpulist_print(&set, list, sizeof list);
		json_array_append_new(
			a, json_pack("{s:i, s:s, s:I, s:I}", "node", i, "cpus", list,
				   "bytes", P3_ROW_N(size), "free", P3_ROW_N(left)));
	}
	return a;
}

/* ---- an interface ---- */

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
	ptl_handle_ni_t ni;
	ptl_ni_limits_t l;
	int most, rc = PtlInit(&most);
	if (rc == PTL_OK)
		rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &l, &ni);
	bool opened = rc == PTL_OK || rc == PTL_IFACE_DUP;
	bool known = *known_out = opened && info_take_words(word_out);
	PtlFini();
	json_t *limits =
		opened ? json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I}", "max_mes",
				 l.max_mes, "max_mds", l.max_mds, "max_eqs", l.max_eqs,
				 "max_ac_index", l.max_ac_index, "max_pt_index",
				 l.max_pt_index, "max_md_iovecs", l.max_md_iovecs,
				 "max_me_list", l.max_me_list, "max_getput_md",
				 P3_ROW_N(l.max_getput_md))
		       : json_null();
	return json_pack("{s:b, s:s?, s:o, s:i, s:s?, s:o}", "opened", opened, "error",
		opened ? NULL : PtlErrorStr((unsigned)rc), "limits", limits, "max_nodes",
		P3_MAX_NODES, "mode", known ? ptl_mode_name(word_out[P3_G_MODE]) : NULL,
		"page_bytes",
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

static void info_hear_unknown(void *arg, const char *line)
{
	json_array_append_new(arg, p3_rows_text(line));
}

static json_t *info_gather(bool *opened_out)
{
	char *texts[P3_CONF_ROWS];
	uint64_t word[P3_COUNTERS];
	bool known;
	Dl_info where = {.dli_fname = NULL};
	(void)dladdr((void *)(uintptr_t)PtlInit, &where);
	json_t *library = json_pack("{s:s, s:s?, s:s}", "version", PtlXVersion(), "file",
		where.dli_fname, "tool", P3_VERSION);
	struct utsname u;
	struct p3_cpuset set;
	char list[P3_CPULIST_LEN];
	bool named = uname(&u) == 0, listed = p3_cpuset_read(0, &set) == 0;
	if (listed)
		p3_cpulist_print(&set, list, sizeof list);
	json_t *machine = json_pack("{s:s?, s:s?, s:s?, s:I}", "kernel",
		named ? u.release : NULL, "architecture", named ? u.machine : NULL,
		"cpus", listed ? list : NULL, "usable", P3_ROW_N(p3_cpus_usable()));
	json_t *settings = json_array(), *unknown = json_array();
	p3_conf_unknown(environ, info_hear_unknown, unknown);
	/* Copy the settings before this program changes some for itself. */
	for (int id = 0; id < P3_CONF_ROWS; id++) {
		const char *text = p3_conf_text((enum p3_conf_id)id);
		texts[id] = text ? strdup(text) : NULL;
	}
	/* Keep out of domains; a rank of yod's stays one. */
	setenv("PTL3_LOG", "error", 0);
	if (!getenv("PTL3_YOD_FD")) {
		setenv("PTL3_DOMAIN", "none", 1);
		setenv("PTL3_LAUNCHED", "off", 1);
	}
	/* Try each way to move data: {name, allowed, why}.  Some fork, so try them before
	 * info_interface() starts threads. */
	json_t *allowed = json_pack("[o, o, o, o, o]", probe_segments(), probe_cma(),
		probe_hugepages(), probe_membarrier(), probe_pidfd());
	json_t *ni = info_interface(word, &known);
	*opened_out = json_is_true(json_object_get(ni, "opened"));
	for (int id = 0; id < P3_CONF_ROWS; id++) {
		if (texts[id] || !p3_conf_row((enum p3_conf_id)id)->internal)
			json_array_append_new(
				settings, info_one_setting((enum p3_conf_id)id, texts[id],
						  known ? word : NULL));
		free(texts[id]);
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "library",
		library, "machine", machine, "cpu", info_cpu(), "movers", info_movers(),
		"numa", info_numa_nodes(), "allowed", allowed, "interface", ni,
		"settings", settings, "unknown", unknown);
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

static const struct p3_column info_trial_columns[] = {{"bytes", 8, "bytes", P3_PLAIN},
	{"us", 8, "us", P3_PLAIN}, {"moved by", -8, "mover", P3_PLAIN},
	{"%", 4, "percent", P3_PLAIN}, {"us by reads", 12, "us_by_reads", P3_PLAIN},
	{"us by windows", 14, "us_by_windows", P3_PLAIN}};

static void info_show_trial(const json_t *o)
{
	p3_rows_list("CPU", json_object_get(o, "cpu"));
	puts("\nputs of private memory, each behind the ACK of the one before");
	TABLE("trial", info_trial_columns);
	puts("A node takes the mover that was faster lately, a window if it was clearly "
	     "faster.");
}

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
	bool json, movers, trial;
};

static const struct p3_option info_rows[] = {
	{"json", 'j', NULL, "for programs: one object",
		.at = offsetof(struct info_choice, json)},
	{"movers", 'm', NULL, "try puts of each length: what moves them, and its time",
		.at = offsetof(struct info_choice, movers)},
	{"trial", 0, NULL, NULL, .at = offsetof(struct info_choice, trial)}};

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

int main(int argc, char **argv)
{
	struct info_choice choice = {false};
	int first, status = p3_options_read(&info_options, &choice, argc, argv, &first);
	if (status == P3_OPTIONS_GO && choice.trial)
		return info_trial_rank();
	if (status == P3_OPTIONS_GO && choice.movers) {
		json_t *rows = info_trial(),
		       *o = json_pack("{s:o, s:o?}", "cpu", info_cpu(), "trial", rows);
		if (rows)
			(choice.json ? p3_rows_json : info_show_trial)(o);
		json_decref(o);
		status = rows ? STATUS_OK : STATUS_FAILED;
	} else if (status == P3_OPTIONS_GO) {
		bool opened;
		json_t *o = info_gather(&opened);
		(choice.json ? p3_rows_json : info_show)(o);
		json_decref(o);
		status = opened ? STATUS_OK : STATUS_FAILED;
	}
	return p3_tool_end(status, STATUS_FAILED);
}
