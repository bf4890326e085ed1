/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the frame that starts jobs and looks at their ends, and that of scenes. */
#include "gn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	NAMES = 4096 /* bytes of a list of names */
};

static char variables[1024]; /* assignments for the next job */
static char job_name[64], mark[64], directory[64];
static char self[512];
static char names_before[NAMES];
static struct gn_run result;
static pid_t child;
static bool child_is_job;
static unsigned jobs;

/* ---- the driver ---- */

static void clean_up(void)
{
	char path[128];
	snprintf(path, sizeof path, "%s/out", directory);
	(void)unlink(path);
	snprintf(path, sizeof path, "%s/err", directory);
	(void)unlink(path);
	(void)rmdir(directory);
	(void)shm_unlink(job_name);
}

void gn_driver_init(void)
{
	CHECK(getenv("P3_YOD"));
	gn.size = 1;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(n > 0);
	snprintf(directory, sizeof directory, "/tmp/gn_driver.%d", (int)getpid());
	CHECK(mkdir(directory, 0700) == 0 || errno == EEXIST); /* of a killed driver */
	snprintf(job_name, sizeof job_name, "/gn_driver.%d", (int)getpid());
	atexit(clean_up);
}

void gn_env(const char *name, const char *value)
{
	size_t n = strlen(variables);
	CHECK(n + strlen(name) + strlen(value) + 4 < sizeof variables);
	snprintf(variables + n, sizeof variables - n, "%s='%s' ", name, value);
}

static void read_file(const char *name, char *to, size_t size)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	int fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	ssize_t n = read(fd, to, size - 1);
	CHECK(n >= 0);
	to[n] = 0;
	close(fd);
}

/* ---- processes and names that a job leaves ---- */

static bool is_process(const char *name)
{
	return name[0] >= '1' && name[0] <= '9';
}

static bool is_marked(const char *pid)
{
	char path[300], text[16384];
	snprintf(path, sizeof path, "/proc/%s/environ", pid);
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof text);
	close(fd);
	return n > 0 && memmem(text, (size_t)n, mark, strlen(mark)) != NULL;
}

/* Count the processes whose environment has the job's mark. */
static unsigned marked(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc");
	CHECK(d);
	for (struct dirent *e; (e = readdir(d));)
		n += is_process(e->d_name) && is_marked(e->d_name);
	closedir(d);
	return n;
}

static bool is_of_library(const char *name)
{
	return strncmp(name, "ptl3", 4) == 0 || strncmp(name, "p3", 2) == 0 ||
	       strncmp(name, "gasnet", 6) == 0;
}

/* List the names below /dev/shm that the library could have made, each in slashes. */
static void list_shm(char *list)
{
	size_t n = 0;
	list[0] = 0;
	DIR *d = opendir("/dev/shm");
	for (struct dirent *e; d && (e = readdir(d));)
		if (is_of_library(e->d_name) && n + strlen(e->d_name) + 3 < NAMES)
			n += (size_t)snprintf(list + n, NAMES - n, "/%s/", e->d_name);
	if (d)
		closedir(d);
}

/* Return true if a name is there that was not there before. */
static bool has_new_name(char *list)
{
	char *state = NULL, name[300];
	list_shm(list);
	for (char *at = strtok_r(list, "/", &state); at;
		at = strtok_r(NULL, "/", &state)) {
		snprintf(name, sizeof name, "/%s/", at);
		if (!strstr(names_before, name))
			return true;
	}
	return false;
}

/* Wait until no process of the job and no new name is there; /dev/shm is this test's. */
static void check_remains(void)
{
	char list[NAMES];
	struct patience p = patience_begin();
	while (marked() && !patience_is_over(&p))
		sleep_ms(5);
	CHECK_EQ(marked(), 0);
	p = patience_begin();
	while (has_new_name(list) && !patience_is_over(&p))
		sleep_ms(20);
	CHECK(!has_new_name(list));
}

/* ---- a command ---- */

static _Noreturn void exec_command(const char *text)
{
	char path[128];
	snprintf(path, sizeof path, "%s/out", directory);
	int out = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	snprintf(path, sizeof path, "%s/err", directory);
	int err = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	int null = open("/dev/null", O_RDONLY);
	if (out < 0 || err < 0 || null < 0)
		_exit(126);
	dup2(null, 0);
	dup2(out, 1);
	dup2(err, 2);
	execl("/bin/sh", "sh", "-c", text, (char *)NULL);
	_exit(126);
}

static void start_command(const char *text)
{
	CHECK(!child);
	result.ms = now_ms();
	fflush(stdout);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		exec_command(text);
	variables[0] = 0;
}

static int status_of(int raw)
{
	return WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
}

/* Limits of a command as a whole, and of the end of a job that is to end. */
struct limits {
	struct patience whole, end;
	bool ends;
};

static bool is_late(struct limits *l)
{
	if (child_is_job && gn_job->mark_ms && !l->ends) {
		l->ends = true;
		l->end = patience_begin();
	}
	return patience_is_over(&l->whole) || (l->ends && patience_is_over(&l->end));
}

static void end_command(void)
{
	struct limits limits = {.whole = patience_times(4)};
	int raw = 0;
	pid_t got;
	while ((got = waitpid(child, &raw, WNOHANG)) == 0 && !is_late(&limits))
		sleep_ms(2);
	result.status = got == child ? status_of(raw) : -1;
	if (got != child) {
		(void)kill(child, SIGKILL);
		(void)waitpid(child, &raw, 0);
	}
	child = 0;
	result.ms = now_ms() - result.ms;
	read_file("out", result.out, sizeof result.out);
	read_file("err", result.err, sizeof result.err);
}

void gn_driver_reset(void)
{
	int raw;
	if (child) {
		(void)kill(child, SIGKILL);
		(void)waitpid(child, &raw, 0);
	}
	child = 0;
	gn_job = NULL;
	variables[0] = 0;
}

struct gn_run *gn_sh(const char *format, ...)
{
	char text[4096];
	va_list args;
	size_t n = (size_t)snprintf(text, sizeof text, "%s", variables);
	va_start(args, format);
	vsnprintf(text + n, sizeof text - n, format, args);
	va_end(args);
	child_is_job = false;
	start_command(text);
	end_command();
	return &result;
}

struct gn_run *gn_run_program(
	unsigned nodes, const char *settings, const char *program, const char *statements)
{
	const char *bin = getenv("GN_BIN");
	CHECK(bin);
	return gn_sh("%s exec '%s' --timeout 600 -sz %u '%s/gn_%s_" GN_MODE "' %s",
		settings, getenv("P3_YOD"), nodes, bin, program, statements);
}

pid_t gn_scene_start(unsigned nodes, const char *scene)
{
	char text[4096];
	gn_job = map_shared(
		shm_open(job_name, O_RDWR | O_CREAT | O_TRUNC, 0600), sizeof *gn_job);
	list_shm(names_before);
	snprintf(mark, sizeof mark, "GN_MARK=%d.%u", (int)getpid(), jobs++);
	snprintf(text, sizeof text,
		"%s GN_JOB=%s GN_NODES=%u GASNET_EXITTIMEOUT=60 %s exec '%s' "
		"--kill-after 60 --timeout %s "
		"-sz %u '%s' scene %s",
		mark, job_name, nodes, variables, getenv("P3_YOD"),
		getenv("P3_LIMIT") ? getenv("P3_LIMIT") : "600", nodes, self, scene);
	child_is_job = true;
	start_command(text);
	return child;
}

struct gn_run *gn_scene_end(void)
{
	end_command();
	for (int i = 0; i < GN_WORDS; i++)
		result.word[i] = gn_job->word[i];
	munmap(gn_job, sizeof *gn_job);
	gn_job = NULL;
	(void)shm_unlink(job_name);
	check_remains();
	return &result;
}

struct gn_run *gn_scene(unsigned nodes, const char *scene, ...)
{
	char text[1024];
	va_list args;
	va_start(args, scene);
	vsnprintf(text, sizeof text, scene, args);
	va_end(args);
	(void)gn_scene_start(nodes, text);
	return gn_scene_end();
}

void gn_check_run(const char *file, int line, const struct gn_run *r, int status)
{
	if (r->status != status)
		check_failed(file, line,
			"status %d, not %d, after %llu ms; output: %.300s%.400s",
			r->status, status, (unsigned long long)r->ms, r->out, r->err);
}

void gn_check_fatal(const char *file, int line, const struct gn_run *r)
{
	if (r->status <= 0)
		check_failed(file, line, "status %d; output: %.300s%.400s", r->status,
			r->out, r->err);
	if (r->status == 99 || (!r->err[0] && !r->out[0]))
		check_failed(file, line,
			"status %d without the library's message: %.400s", r->status,
			r->err);
}

/* ---- nodes ---- */

_Noreturn void gn_run_scene(int argc, char **argv)
{
	gn.argc = argc - 3;
	gn.argv = argv + 3;
	if (scene_run(argv[2]))
		_exit(97);
	fprintf(stderr, "there is no scene %s\n", argv[2]);
	_exit(96);
}

void gn_scene_init(void)
{
	const char *name = getenv("GN_JOB");
	CHECK(name);
	gn_job = map_shared(shm_open(name, O_RDWR, 0600), sizeof *gn_job);
	CHECK_OK(gasnet_init(NULL, NULL));
	gn_know_nodes();
	gn_job->pid[gn.rank] = (int32_t)getpid();
	gn_job->meeting.opened++;
}

void gn_scene_attach(void)
{
	gn_attach((uintptr_t)1 << 20);
}

void gn_attach_most(void)
{
	gn_attach(gasnet_getMaxGlobalSegmentSize());
}

void gn_scene_up(void)
{
	gn_scene_init();
	gn_scene_attach();
}

int gn_number(int nth)
{
	CHECK(nth < gn.argc);
	return atoi(gn.argv[nth]);
}

void gn_scene_meet(void)
{
	static unsigned times;
	gn_job->word[60]++;
	times++;
	AWAIT(gn_job->word[60] >= (uint64_t)times * gn.size);
}

void gn_pass_barrier(void)
{
	gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
	CHECK_OK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS));
}

void gn_mark(void)
{
	uint64_t none = 0;
	(void)__atomic_compare_exchange_n((uint64_t *)&gn_job->mark_ms, &none, now_ms(),
		false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

_Noreturn void gn_scene_done(void)
{
	gn_pass_barrier();
	gasnet_exit(0);
	_exit(95);
}
