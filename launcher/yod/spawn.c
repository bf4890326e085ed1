/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting a node: its libraries, environment, descriptors, CPUs, and the exec. */
#include "launcher/yod/yod.h"
#include "shm/conf.h"
#include "shm/cpuset.h"
#include "shm/fault.h"
#include "shm/heap.h"
#include "shm/job.h"
#include "shm/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SOCKET_FD_MIN  100 /* above the descriptors that shell scripts redirect */
#define NUMBER_LEN     12
#define TUNABLES       "GLIBC_TUNABLES"
#define STATIC_TLS     "glibc.rtld.optional_static_tls"
#define RSEQ           "glibc.pthread.rseq"
#define CLOEXEC_ALWAYS 4u /* CLOSE_RANGE_CLOEXEC */

struct spawn_ends {
	int sock[2];
	int out[2][2];
	int report[2]; /* a failed exec is reported here */
};

struct spawn_report {
	int err;
	int at_exec;
};

/* ---- environment ---- */

static int spawn_set(const char *name, const char *value)
{
	return setenv(name, value, 1) ? -errno : 0;
}

static int spawn_set_map(const char *name, uint32_t n, uint32_t base)
{
	char *map = malloc((size_t)n * NUMBER_LEN);
	size_t len = 0;
	if (!map)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		len += (size_t)snprintf(
			map + len, NUMBER_LEN, i ? ":%u" : "%u", base + i);
	int rc = spawn_set(name, map);
	free(map);
	return rc;
}

/* Return true if there are more nodes than CPUs, of the job or of this node's set. */
static bool spawn_takes_turns(const struct p3_spawn_conf *conf, uint32_t rank)
{
	const struct p3_place *place = conf->place;
	uint32_t here = 0;
	for (uint32_t i = 0; i < place->end; i++)
		here += p3_cpuset_equal(&place->node[i], &place->node[rank]);
	return conf->here > place->cpus ||
	       (place->bound && here > p3_cpuset_count(&place->node[rank]));
}

/* Put ours in front of the value that the user gave the variable, or behind it. */
static int spawn_join(const char *name, const char *ours, char between, bool behind)
{
	const char *was = getenv(name);
	char *text;
	if (!was || !*was)
		return spawn_set(name, ours);
	if (asprintf(&text, "%s%c%s", behind ? was : ours, between, behind ? ours : was) <
		0)
		return -ENOMEM;
	int rc = spawn_set(name, text);
	free(text);
	return rc;
}

/* Add a tunable, unless the user has set it. */
static int spawn_add_tunable(const char *name, const char *ours)
{
	const char *was = getenv(TUNABLES);
	return was && strstr(was, name) ? 0 : spawn_join(TUNABLES, ours, ':', true);
}

uint32_t p3_spawn_trace_records(bool wanted)
{
	uint32_t records;
	(void)p3_conf_trace(p3_conf_text(P3_CONF_TRACE), &records);
	return records || !wanted ? records : P3_TRACE_USUAL;
}

/* Set PTL3_TRACE for --trace.  Leave a wrong value as it is: the nodes report it. */
static int spawn_set_trace(void)
{
	char text[NUMBER_LEN];
	uint32_t records;
	if (!p3_conf_trace(p3_conf_text(P3_CONF_TRACE), &records) || records)
		return 0;
	snprintf(text, sizeof text, "%u", p3_spawn_trace_records(true));
	return spawn_set(p3_conf_row(P3_CONF_TRACE)->name, text);
}

/* Set the environment that all nodes share.  Remove a user's PTL3_LAUNCHED=off, which is
 * for other launchers: yod's nodes are ranks. */
int p3_spawn_environment(const struct p3_spawn_conf *conf)
{
	const struct p3_opt *opt = conf->opt;
	const struct {
		const char *name, *value;
	} variable[] = {{"PTL_IFACE", "0"},
		{p3_conf_row(P3_CONF_STDOUT)->name, opt->line_buffered ? "lines" : NULL},
		{"PTL3_MODE", opt->mode}, {"PTL3_DOMAIN", opt->domain}};
	unsetenv(p3_conf_row(P3_CONF_LAUNCHED)->name);
	int rc = spawn_set_map("PTL_NIDMAP", opt->size, conf->nid_base);
	rc = rc ? rc : spawn_set_map("PTL_PIDMAP", opt->size, P3_JOB_PID_BASE);
	if (!rc && opt->trace)
		rc = spawn_set_trace();
	for (size_t i = 0; i < sizeof variable / sizeof *variable && !rc; i++)
		if (variable[i].value)
			rc = spawn_set(variable[i].name, variable[i].value);
	return rc;
}

static int spawn_set_number(const char *name, uint32_t value)
{
	char text[NUMBER_LEN];
	snprintf(text, sizeof text, "%u", value);
	return spawn_set(name, text);
}

/* ---- the child, between fork and exec ---- */

/* Set the program's own variables first, then those that the node needs. */
static int spawn_set_environment(
	const struct p3_spawn_conf *conf, const struct p3_prog *prog, uint32_t rank)
{
	for (uint32_t i = 0; i < prog->env_n; i++)
		if (putenv((char *)(uintptr_t)prog->env[i]))
			return -errno;
	/* The shared heap's allocator is loaded late, and its static thread-local storage
	 * needs 2.6 KiB; by default the C library keeps only 512 bytes for such
	 * libraries.  The C library takes this storage from the stack of every thread,
	 * and the smallest stack has 16 KiB: so set no more than necessary. */
	int rc = spawn_add_tunable(STATIC_TLS, STATIC_TLS "=4096");
	/* Disable the C library's restartable sequences for nodes that take turns on a
	 * CPU: for a thread that has registered them, the kernel accesses the thread's
	 * memory at the start of each turn, which takes some 100 ns of a turn of 4 us.  A
	 * program that needs restartable sequences registers its own (rseq(2)). */
	if (!rc && spawn_takes_turns(conf, rank))
		rc = spawn_add_tunable(RSEQ, RSEQ "=0");
	if (!rc && prog->lib_dir)
		rc = spawn_join("LD_LIBRARY_PATH", prog->lib_dir, ':', false);
	if (!conf->opt->shared_heap)
		return rc;
	/* Preload the shared heap's allocator.  Of two words of MALLOC_CONF that
	 * conflict, the later one counts, so a user's words stay behind ours. */
	rc = rc ? rc : spawn_join("LD_PRELOAD", P3_HEAP_JEMALLOC, ':', false);
	rc = rc ? rc : spawn_join("MALLOC_CONF", P3_HEAP_MALLOC_CONF, ',', false);
	return rc ? rc : spawn_set(P3_HEAP_SHARED_ENV, "on");
}

/* Bind this process to the node's CPUs, and set the CPUs of the NIC thread, unless the
 * user has set these. */
static int spawn_set_cpus(const struct p3_place *place, uint32_t rank)
{
	char list[P3_CPULIST_LEN];
	struct p3_cpuset said;
	if (!place->bound)
		return 0;
	int rc = p3_cpuset_apply(&place->node[rank]);
	if (rc)
		return rc;
	if (p3_conf_nic_cpus(getenv(P3_CONF_NIC_CPUS_ENV), &said))
		return 0;
	p3_cpulist_print(&place->nic[rank], list, sizeof list);
	return spawn_set(P3_CONF_NIC_CPUS_ENV, list);
}

static _Noreturn void spawn_fail(int report, int err, bool at_exec)
{
	struct spawn_report r = {err, at_exec};
	ssize_t n = write(report, &r, sizeof r);
	_exit(n == sizeof r ? 127 : 126);
}

/* Make the kernel kill this process when yod ends.  If the report pipe, which only yod
 * reads, has no reader, yod ended before the prctl: exit. */
static int spawn_die_with_yod(int report)
{
	struct pollfd p = {.fd = report};
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return -errno;
	if (poll(&p, 1, 0) > 0 && (p.revents & POLLERR))
		_exit(127);
	return 0;
}

static int spawn_set_stdin(const struct p3_spawn_conf *conf, uint32_t rank)
{
	int fd = rank ? open("/dev/null", O_RDONLY) : conf->stdin_fd;
	if (fd < 0)
		return -errno;
	return fd != STDIN_FILENO && dup2(fd, STDIN_FILENO) < 0 ? -errno : 0;
}

static bool spawn_is_silent(const struct p3_spawn_conf *conf, uint32_t rank)
{
	return conf->opt->only && !p3_ranks_has(&conf->opt->only_ranks, rank);
}

/* Let stdout and stderr go elsewhere than to yod's, if they do. */
static int spawn_set_output(
	const struct p3_spawn_conf *conf, uint32_t rank, const struct spawn_ends *e)
{
	int dir = conf->opt->output_dir_fd;
	bool silent = spawn_is_silent(conf, rank);
	for (int k = 0; k < 2 && (silent || dir >= 0 || conf->pipes); k++) {
		int fd = silent     ? open("/dev/null", O_WRONLY | O_CLOEXEC)
			 : dir >= 0 ? p3_outdir_file(dir, rank, k, 0)
				    : e->out[k][1];
		if (fd < 0)
			return silent ? -errno : fd;
		if (dup2(fd, k ? STDERR_FILENO : STDOUT_FILENO) < 0)
			return -errno;
	}
	return 0;
}

/* Set up the socket.  Let the exec close all other descriptors from 3 on: yod's, and
 * those that yod's parent left open by mistake. */
static int spawn_set_socket(int sock)
{
	if (syscall(SYS_close_range, 3u, ~0u, CLOEXEC_ALWAYS))
		for (int fd = 3; fd < 1024; fd++)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
	int fd = fcntl(sock, F_DUPFD, SOCKET_FD_MIN);
	if (fd < 0)
		fd = fcntl(sock, F_DUPFD, 3);
	return fd < 0 ? -errno : spawn_set_number(P3_JOB_ENV, (uint32_t)fd);
}

static int spawn_prepare(const struct p3_spawn_conf *conf, const struct p3_prog *prog,
	uint32_t rank, const struct spawn_ends *e)
{
	setpgid(0, 0);
	int rc = spawn_die_with_yod(e->report[1]);
	rc = rc ? rc : spawn_set_stdin(conf, rank);
	rc = rc ? rc : spawn_set_output(conf, rank, e);
	rc = rc ? rc : spawn_set_socket(e->sock[1]);
	rc = rc ? rc : spawn_set_environment(conf, prog, rank);
	rc = rc ? rc : spawn_set_cpus(conf->place, rank);
	rc = rc ? rc : spawn_set_number("PTL_MY_RID", rank);
	if (!rc && prog->dir && chdir(prog->dir))
		rc = -errno;
	return rc;
}

static _Noreturn void spawn_child(const struct p3_spawn_conf *conf,
	const struct p3_prog *prog, uint32_t rank, const struct spawn_ends *e)
{
	close(e->report[0]);
	int rc = spawn_prepare(conf, prog, rank, e);
	if (rc)
		spawn_fail(e->report[1], -rc, false);
	setrlimit(RLIMIT_NOFILE, &conf->nofile);
	p3_signals_give_back();
	FAULT_POINT("yod.child_prepared");
	execvp(prog->argv[0], prog->argv);
	spawn_fail(e->report[1], errno, true);
}

/* ---- yod ---- */

static void spawn_close_ends(struct spawn_ends *e)
{
	p3_close_fds(e->sock, 2);
	p3_close_fds(e->out[0], 2);
	p3_close_fds(e->out[1], 2);
	p3_close_fds(e->report, 2);
}

static int spawn_open_ends(
	const struct p3_spawn_conf *conf, uint32_t rank, struct spawn_ends *e)
{
	*e = (struct spawn_ends){{-1, -1}, {{-1, -1}, {-1, -1}}, {-1, -1}};
	int on = 1, rc = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, e->sock) ||
		setsockopt(e->sock[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on))
		rc = -errno;
	if (!rc && pipe2(e->report, O_CLOEXEC))
		rc = -errno;
	bool pipes = conf->pipes && !spawn_is_silent(conf, rank);
	for (int k = 0; k < 2 && !rc && pipes; k++)
		if (pipe2(e->out[k], O_CLOEXEC))
			rc = -errno;
	return rc;
}

/* Wait for the exec, which closes the report pipe: end of file means success.  The end
 * of file also comes if the node is killed before its exec. */
static int spawn_await_exec(int report, const int give_up_fd[2], bool *at_exec_out)
{
	struct pollfd p[3] = {{.fd = report, .events = POLLIN},
		{.fd = give_up_fd[0], .events = POLLIN},
		{.fd = give_up_fd[1], .events = POLLIN}};
	while (poll(p, 3, -1) < 0 && errno == EINTR)
		;
	if (!p[0].revents)
		return -EINTR;
	struct spawn_report r;
	ssize_t n;
	do
		n = read(report, &r, sizeof r);
	while (n < 0 && errno == EINTR);
	if (n != sizeof r)
		return 0;
	*at_exec_out = r.at_exec != 0;
	return -r.err;
}

static int spawn_settle(const struct p3_spawn_conf *conf, pid_t pid, struct spawn_ends *e,
	struct p3_spawned *spawned_out, bool *at_exec_out)
{
	for (int k = 0; k < 2; k++)
		p3_close_fds(&e->out[k][1], 1);
	p3_close_fds(&e->sock[1], 1);
	p3_close_fds(&e->report[1], 1);
	int rc = spawn_await_exec(e->report[0], conf->give_up_fd, at_exec_out);
	if (rc && rc != -EINTR) {
		p3_reap_take(pid);
		spawn_close_ends(e);
		return rc;
	}
	setpgid(pid, pid);
	*spawned_out = (struct p3_spawned){pid, e->sock[0], {e->out[0][0], e->out[1][0]}};
	p3_close_fds(&e->report[0], 1);
	return rc;
}

int p3_spawn_node(const struct p3_spawn_conf *conf, const struct p3_prog *prog,
	uint32_t rank, struct p3_spawned *spawned_out, bool *at_exec_out)
{
	struct spawn_ends e;
	int rc = spawn_open_ends(conf, rank, &e);
	pid_t pid = rc ? -1 : fork();
	if (pid < 0) {
		rc = rc ? rc : -errno;
		spawn_close_ends(&e);
		return rc;
	}
	if (!pid)
		spawn_child(conf, prog, rank, &e);
	FAULT_POINT("yod.spawned");
	return spawn_settle(conf, pid, &e, spawned_out, at_exec_out);
}

/* ---- other programs ---- */

/* Set what the program gets: signals, and descriptors.  Return false without memory. */
static bool tool_set(posix_spawnattr_t *attr, posix_spawn_file_actions_t *files, int to,
	int from, int look)
{
	/* Reset the signals that yod blocks and ignores, but keep those blocked by which
	 * the terminal would stop the program: it then fails instead. */
	sigset_t blocked, standard;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTTIN);
	sigaddset(&blocked, SIGTTOU);
	sigemptyset(&standard);
	sigaddset(&standard, SIGPIPE);
	sigaddset(&standard, SIGXFSZ);
	sigaddset(&standard, SIGCHLD);
	if (posix_spawnattr_setsigmask(attr, &blocked) ||
		posix_spawnattr_setsigdefault(attr, &standard) ||
		posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK |
						       POSIX_SPAWN_SETSIGDEF |
						       POSIX_SPAWN_SETPGROUP) ||
		posix_spawn_file_actions_adddup2(files, from, STDOUT_FILENO))
		return false;
	if (look < 0)
		return !posix_spawn_file_actions_adddup2(files, to, STDIN_FILENO);
	return !posix_spawn_file_actions_addopen(
		       files, STDIN_FILENO, "/dev/null", O_RDONLY, 0) &&
	       !posix_spawn_file_actions_adddup2(files, from, STDERR_FILENO) &&
	       !posix_spawn_file_actions_adddup2(files, look, P3_SPAWN_LOOK);
}

int p3_spawn_tool(const char *const *argv, int look, struct p3_spawned_tool *tool_out)
{
	posix_spawnattr_t attr;
	posix_spawn_file_actions_t files;
	int to[2] = {-1, -1}, from[2] = {-1, -1}, rc = 0;
	if (pipe2(from, O_CLOEXEC) || (look < 0 && pipe2(to, O_CLOEXEC)))
		rc = errno;
	(void)posix_spawnattr_init(&attr); /* it cannot fail */
	(void)posix_spawn_file_actions_init(&files);
	if (!rc)
		rc = !tool_set(&attr, &files, to[0], from[1], look)
			     ? ENOMEM
			     : posix_spawnp(&tool_out->pid, argv[0], &files, &attr,
				       (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	p3_close(to[0]);
	p3_close(from[1]);
	p3_close(rc ? to[1] : -1);
	p3_close(rc ? from[0] : -1);
	tool_out->to = to[1];
	tool_out->from = from[0];
	return -rc;
}
