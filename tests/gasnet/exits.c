/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statements of the end of a job.  Each scene is a way to end, beside an activity of the
 * other nodes; the driver checks the status, the time, and that nothing is left.
 */
#include "gn.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { H_EXIT = 128, H_EXIT_BACK, H_ASK, H_ASK_BACK, H_BYTES };

static void exit_in_handler(gasnet_token_t token, gasnet_handlerarg_t code);
static void ask(gasnet_token_t token, gasnet_handlerarg_t code);
static void take_bytes(gasnet_token_t token, void *buf, size_t n);

static gasnet_handlerentry_t table[] = {{H_EXIT, exit_in_handler},
	{H_EXIT_BACK, exit_in_handler}, {H_ASK, ask}, {H_BYTES, take_bytes}};
const struct gn_program gn_program = {.is_driver = true, GN_TABLE(table)};

/* ---- activities of nodes until the job ends ---- */

static void spin(void)
{
	for (volatile unsigned i = 0;; i++)
		;
}

static void poll(void)
{
	for (;;)
		CHECK_OK(gasnet_AMPoll());
}

static void put_all_the_time(void)
{
	for (uint64_t i = 0;; i++)
		gasnet_put_val(gn.a, gn_at(gn.a, 8), i, 8);
}

static void request_all_the_time(void)
{
	static char bytes[4000];
	for (;;) {
		(void)gasnet_AMRequestMedium0(gn.a, H_BYTES, bytes, 500);
		(void)gasnet_AMRequestLong0(
			gn.a, H_BYTES, bytes, sizeof bytes, gn_at(gn.a, 4096));
	}
}

/* Do what the word says; return only from a barrier that ended. */
static void do_meanwhile(const char *what)
{
	if (strcmp(what, "barrier") == 0)
		gn_pass_barrier();
	else if (strcmp(what, "spin") == 0)
		spin();
	else if (strcmp(what, "poll") == 0)
		poll();
	else if (strcmp(what, "put") == 0)
		put_all_the_time();
	else if (strcmp(what, "request") == 0)
		request_all_the_time();
	else
		check_failed(__FILE__, __LINE__, "there is no %s", what);
}

/* Wait until the other nodes are most likely at what they do meanwhile. */
static void let_others_begin(void)
{
	/* pause: a stagger, for the others to get into their calls */
	sleep_ms(50);
}

/* ---- all nodes, after a barrier ---- */

SCENE(all_exit)
{
	gn_scene_up();
	gn_pass_barrier();
	gn_mark();
	gasnet_exit(gn_number(0));
	_exit(94);
}

STATEMENT(133, all_exit_after_a_barrier)
{
	CHECK_EACH_SIZE(0, "all_exit 0");
	CHECK_EACH_SIZE(5, "all_exit 5");
}

/* exit() does what a return from main does. */
SCENE(all_return)
{
	gn_scene_up();
	gn_pass_barrier();
	gn_mark();
	exit(gn_number(0));
}

static void say_bye(void)
{
	printf("bye ");
}

/* A function that the program registers before gasnet_init runs, too, on the node that
 * ends first; the others may not have come to their exit. */
SCENE(registers_first)
{
	atexit(say_bye);
	gn_scene_up();
	gn_pass_barrier();
	gn_mark();
	exit(0);
}

static void exit_again(void)
{
	gasnet_exit(0);
}

/* Functions that were registered before gasnet_init may end the process in turn: the
 * job's end is agreed by then. */
SCENE(ends_in_exit)
{
	atexit(say_bye);
	atexit(gn_number(0) ? abort : exit_again);
	gn_scene_up();
	gn_pass_barrier();
	gn_mark();
	exit(0);
}

STATEMENT(134, all_return_from_main)
{
	CHECK_STATUS(gn_scene(2, "ends_in_exit 0"), 0);
	CHECK_STATUS(gn_scene(1, "ends_in_exit 1"), 128 + SIGABRT);
	EACH_SIZE(i)
	{
		struct gn_run *r = gn_scene(gn_sizes[i], "registers_first");
		CHECK_STATUS(r, 0);
		CHECK(strstr(r->out, "bye"));
	}
	CHECK_EACH_SIZE(0, "all_return 0");
	CHECK_EACH_SIZE(6, "all_return 6");
}

/* ---- one node ---- */

/* End by a call, a return, or a signal. */
static _Noreturn void end_by(const char *how)
{
	gn_mark();
	if (strcmp(how, "exit") == 0)
		gasnet_exit(3);
	if (strcmp(how, "return") == 0)
		exit(4);
	if (strcmp(how, "_exit") == 0)
		_exit(7);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "badput") == 0) /* crashes within Portals */
		gasnet_put(gn.next, gn_at(gn.next, 0), (void *)(uintptr_t)0x10008, 8);
	raise(atoi(how));
	_exit(93);
}

/* Arguments: the way to end, the activity of the others, 1 if the last node
 * ends and not the first one. */
SCENE(one_ends)
{
	gn_scene_up();
	unsigned which = gn_number(2) ? gn.size - 1 : 0;
	gn_scene_meet();
	if (gn.rank != which) {
		do_meanwhile(gn.argv[1]);
		_exit(92);
	}
	let_others_begin();
	end_by(gn.argv[0]);
}

static struct gn_run *end_one(
	unsigned nodes, const char *how, const char *others, int last)
{
	return gn_scene(nodes, "one_ends %s %s %d", how, others, last);
}

static void end_one_in_each_size(const char *how, const char *others, int status)
{
	for (int i = 1; i < 4; i++)
		for (int last = 0; last < 2; last++)
			CHECK_STATUS(end_one(gn_sizes[i], how, others, last), status);
}

STATEMENT(135, one_exits_others_in_a_barrier)
{
	end_one_in_each_size("exit", "barrier", 3);
}

STATEMENT(136, one_exits_others_spin)
{
	end_one_in_each_size("exit", "spin", 3);
	CHECK_STATUS(end_one(3, "exit", "poll", 0), 3);
}

/* ---- before attach ---- */

/* Arguments: bits of the nodes that exit before attach; of those that attach. */
SCENE(before_attach)
{
	gn_scene_init();
	gn_scene_meet();
	bool exits = gn_number(0) >> gn.rank & 1, attaches = gn_number(1) >> gn.rank & 1;
	if (exits) {
		let_others_begin();
		gn_mark();
		gasnet_exit(8);
	}
	if (attaches)
		gn_scene_attach();
	spin();
}

STATEMENT(137, one_exits_others_before_attach)
{
	CHECK_STATUS(gn_scene(2, "before_attach 1 0"), 8);
	CHECK_STATUS(gn_scene(2, "before_attach 2 0"), 8);
	CHECK_STATUS(gn_scene(2, "before_attach 1 2"), 8);
	CHECK_STATUS(gn_scene(3, "before_attach 2 5"), 8);
	CHECK_STATUS(gn_scene(3, "before_attach 4 1"), 8);
}

STATEMENT(138, exit_between_init_and_attach)
{
	CHECK_STATUS(gn_scene(1, "before_attach 1 0"), 8);
	CHECK_STATUS(gn_scene(3, "before_attach 7 0"), 8);
	CHECK_STATUS(gn_scene(8, "before_attach 255 0"), 8);
	CHECK_STATUS(gn_scene(8, "before_attach 16 0"), 8);
}

STATEMENT(139, one_returns_from_main)
{
	end_one_in_each_size("return", "barrier", 4);
	end_one_in_each_size("return", "spin", 4);
}

/* ---- in handlers ---- */

static void exit_in_handler(gasnet_token_t token, gasnet_handlerarg_t code)
{
	(void)token;
	gn_mark();
	gasnet_exit(code);
}

static void ask(gasnet_token_t token, gasnet_handlerarg_t code)
{
	CHECK_OK(gasnet_AMReplyShort1(token, H_EXIT_BACK, code));
}

static void take_bytes(gasnet_token_t token, void *buf, size_t n)
{
	(void)token, (void)buf, (void)n;
}

/* Arguments: bits of the senders; the target, or -1: the next node, -2: the own one; the
 * handler. */
SCENE(handler_exits)
{
	gn_scene_up();
	gn_scene_meet();
	int to = gn_number(1);
	unsigned target = to == -1 ? gn.next : to == -2 ? gn.rank : (unsigned)to;
	if (gn_number(0) >> gn.rank & 1)
		(void)gasnet_AMRequestShort1(target, (gasnet_handler_t)gn_number(2), 9);
	poll();
}

STATEMENT(140, exit_in_handlers)
{
	CHECK_STATUS(gn_scene(3, "handler_exits 7 -1 128"), 9); /* on all */
	CHECK_STATUS(gn_scene(3, "handler_exits 1 1 128"), 9);  /* on one */
	CHECK_STATUS(gn_scene(3, "handler_exits 2 -2 128"), 9); /* loopback */
	CHECK_STATUS(gn_scene(1, "handler_exits 1 -2 128"), 9);
	CHECK_STATUS(gn_scene(8, "handler_exits 255 0 128"), 9); /* N requests */
	CHECK_STATUS(gn_scene(2, "handler_exits 1 1 130"), 9);   /* in the reply */
	CHECK_STATUS(gn_scene(3, "handler_exits 7 -1 130"), 9);
}

/* ---- threads ---- */

static void exit_in_thread(unsigned nth)
{
	if (nth == 0 || strcmp(gn.argv[0], "exit") == 0) {
		gn_mark();
		gasnet_exit(10);
	}
	if (gn.rank == 0 && strcmp(gn.argv[0], "barrier") == 0)
		poll(); /* this node keeps the others in the barrier */
	do_meanwhile(gn.argv[0]);
	_exit(91);
}

SCENE(threads_exit)
{
	gn_scene_up();
	gn_scene_meet();
	if (gn.rank == 0 || strcmp(gn.argv[0], "exit") == 0)
		for (unsigned i = 1; i < 4; i++)
			gn_thread(exit_in_thread, i);
	if (gn.rank == 0)
		let_others_begin();
	exit_in_thread(gn.rank);
}

STATEMENT(141, exit_of_threads)
{
	NEED_PAR();
	const char *const others[] = {
		"exit", "barrier", "spin", "poll", "put", "request"};
	for (int i = 0; i < 6; i++) {
		CHECK_STATUS(gn_scene(1, "threads_exit %s", others[i]), 10);
		CHECK_STATUS(gn_scene(3, "threads_exit %s", others[i]), 10);
	}
}

SCENE(exits_with)
{
	static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
	gn_scene_up();
	gn_scene_meet();
	if (gn_number(0))
		gasnet_hsl_lock(&lock);
	else
		gasnet_hold_interrupts();
	if (gn.rank == 0) {
		gn_mark();
		gasnet_exit(11);
	}
	spin();
}

STATEMENT(142, exit_with_a_lock_and_in_hold)
{
	CHECK_STATUS(gn_scene(1, "exits_with 1"), 11);
	CHECK_STATUS(gn_scene(3, "exits_with 1"), 11);
	CHECK_STATUS(gn_scene(1, "exits_with 0"), 11);
	CHECK_STATUS(gn_scene(3, "exits_with 0"), 11);
}

/* ---- SIGQUIT ---- */

static void on_quit(int number_of_signal)
{
	(void)number_of_signal;
	gn_job->word[gn.rank]++;
	gasnet_exit(4);
}

static void on_quit_return(int number_of_signal)
{
	(void)number_of_signal;
	gn_job->word[gn.rank]++;
	exit(4);
}

static void on_quit_hang(int number_of_signal)
{
	(void)number_of_signal;
	gn_job->word[gn.rank]++;
	for (;;)
		pause();
}

/* Arguments: the activity of the nodes; a node that exits, or -1; the handler; 1 if it is
 * there before gasnet_init. */
SCENE(catches_quit)
{
	void (*const handlers[])(int) = {on_quit_return, on_quit, on_quit_hang};
	bool early = gn_number(3);
	if (early)
		signal(SIGQUIT, handlers[gn_number(2)]);
	gn_scene_up();
	if (!early)
		signal(SIGQUIT, handlers[gn_number(2)]);
	gn_scene_meet();
	gn_job->word[59]++;
	if (gn_number(1) == (int)gn.rank) {
		let_others_begin();
		gn_mark();
		gasnet_exit(6); /* and not the number of the handlers */
	}
	do_meanwhile(gn.argv[0]);
	_exit(90);
}

static ptl_handle_ni_t ni;

/* End the job if this has interrupted a call of Portals. */
static void on_tick_in_portals(int number_of_signal)
{
	ptl_sr_value_t drops;
	(void)number_of_signal;
	if (PtlNIStatus(ni, PTL_SR_DROP_COUNT, &drops) != PTL_NO_SPACE)
		return;
	gn_mark();
	if (gn_number(0))
		exit(0);
	gasnet_exit(0);
}

/* A handler whose thread may hold the lease: the other nodes hear of the end. */
SCENE(exits_within_portals)
{
	const struct itimerval often = {{0, 1000}, {0, 1000}};
	gn_scene_up();
	ni = gn_interface();
	gn_scene_meet();
	if (gn.rank == 0) {
		signal(SIGALRM, on_tick_in_portals);
		CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	}
	poll();
}

static void check_handlers(const struct gn_run *r, unsigned nodes, unsigned except)
{
	for (unsigned i = 0; i < nodes; i++)
		CHECK_EQ(r->word[i], i != except);
}

STATEMENT(143, quit_handler_runs_once_on_each_other_node)
{
	const char *const words[] = {"spin 0 1 0", "poll 1 1 0", "barrier 2 1 0",
		"spin 1 0 0", "poll 1 1 1", "spin 2 2 0"};
	const unsigned except[] = {0, 1, 2, 1, 1, 2};
	for (int i = 0; i < 6; i++) {
		struct gn_run *r = gn_scene(3, "catches_quit %s", words[i]);
		CHECK_STATUS(r, 6);
		check_handlers(r, 3, except[i]);
	}
	for (int i = 0; i < 4; i++)
		CHECK_STATUS(
			gn_scene(3, "exits_within_portals %s", i % 2 ? "1" : "0"), 0);
}

/* SIGHUP that is ignored, as by nohup, stays ignored. */
SCENE(ignores_hangup)
{
	signal(SIGHUP, SIG_IGN);
	gn_scene_up();
	CHECK_EQ(raise(SIGHUP), 0);
	gn_mark();
	gasnet_exit(5);
}

/* End a forked child by a signal, or by gasnet_exit(7); return its status. */
static int end_child(int signal_number)
{
	int status;
	pid_t child = fork();
	if (child == 0 && signal_number)
		raise(signal_number);
	if (child == 0)
		gasnet_exit(7);
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

/* A forked child has no part in the job, and ends alone. */
SCENE(forks)
{
	static const int signals[] = {SIGTERM, SIGQUIT, SIGSEGV};
	gn_scene_up();
	gn_scene_meet();
	for (int i = 0; i < 3; i++) {
		int status = end_child(signals[i]);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
	}
	int status = end_child(0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	gn_pass_barrier();
	gn_mark();
	gasnet_exit(6);
}

/* Send a signal to the launcher (-1) or a node of a running scene. */
static struct gn_run *signal_job(const char *scene, int signal_number, int node)
{
	pid_t yod = gn_scene_start(3, scene);
	AWAIT(gn_job->word[59] == 3);
	pid_t to = node < 0 ? yod : gn_job->pid[node];
	gn_mark();
	CHECK_EQ(kill(to, signal_number), 0);
	return gn_scene_end();
}

STATEMENT(144, signals_to_a_node_and_to_the_launcher)
{
	const int signals[] = {SIGINT, SIGTERM};
	for (int i = 0; i < 2; i++)
		for (int node = -1; node < 3; node += 2) {
			struct gn_run *r =
				signal_job("catches_quit spin -1 1 0", signals[i], node);
			if (r->status <= 0 || r->status == 99)
				check_failed(__FILE__, __LINE__,
					"signal %d to node %d: status %d after %llu ms: "
					"%.400s",
					signals[i], node, r->status,
					(unsigned long long)r->ms, r->err);
			CHECK(r->word[0] >= 1 && r->word[2] >= 1);
			CHECK(r->word[0] <= 1 && r->word[1] <= 1 && r->word[2] <= 1);
		}
	/* A handler that never returns ends with the time that it has. */
	CHECK(signal_job("catches_quit spin -1 2 0", SIGTERM, 1)->status > 0);
	CHECK_STATUS(gn_scene(2, "ignores_hangup"), 5);
	CHECK_STATUS(gn_scene(2, "forks"), 6);
}

/* ---- sudden ends ---- */

STATEMENT(145, sudden_end_of_one_node)
{
	static const char *const ways[] = {"abort", "11", "9", "_exit"};
	static const char *const others[] = {"barrier", "spin", "put", "request"};
	for (int w = 0; w < 4; w++)
		for (int o = 0; o < 4; o++) {
			struct gn_run *r = end_one(3, ways[w], others[o], 0);
			if (r->status <= 0 || r->status == 99)
				check_failed(__FILE__, __LINE__,
					"%s, %s: status %d: %.400s", ways[w], others[o],
					r->status, r->err);
		}
	gn_env("GASNET_EXITTIMEOUT", "1000"); /* it does not wait for its own lease */
	CHECK_STATUS(end_one(3, "badput", "poll", 0), 128 + SIGSEGV);
}

/* ---- output ---- */

SCENE(prints)
{
	gn_scene_up();
	for (int i = 0; gn.rank == 0 && i < 2000; i++)
		printf("%d.", i);
	gn_scene_meet(); /* the exit of another node ends this one, too */
	gn_mark();
	gasnet_exit(0);
}

enum { FILE_BYTES = 3000 };

/* A node that follows another one flushes its files, too. */
SCENE(keeps_files)
{
	char path[200];
	gn_scene_up();
	snprintf(path, sizeof path, "%s.%u", gn.argv[0], gn.rank);
	FILE *file = fopen(path, "w");
	CHECK(file);
	for (int i = 0; i < FILE_BYTES; i++)
		putc('x', file);
	gn_scene_meet();
	gn_mark();
	if (gn.rank == 0)
		gasnet_exit(0);
	spin();
}

static void check_files(unsigned nodes)
{
	char path[100], name[120];
	snprintf(path, sizeof path, "/tmp/gn_exits.%d", (int)getpid());
	CHECK_STATUS(gn_scene(nodes, "keeps_files %s", path), 0);
	for (unsigned i = 0; i < nodes; i++) {
		struct stat is;
		snprintf(name, sizeof name, "%s.%u", path, i);
		CHECK(stat(name, &is) == 0);
		unlink(name);
		CHECK_EQ(is.st_size, FILE_BYTES);
	}
}

/* A stream whose flush takes time, in which signals come that end jobs. */
static ssize_t write_slowly(void *unused, const char *bytes, size_t n)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};
	(void)unused;
	for (size_t i = 0; i < 4; i++) {
		kill(getpid(), signals[i]);
		sleep_ms(20); /* pause: the flush takes time */
	}
	return fwrite(bytes, 1, n, stdout) == n ? (ssize_t)n : -1;
}

SCENE(flushes_slowly)
{
	gn_scene_up();
	if (gn.rank == 0) {
		FILE *slow = fopencookie(
			NULL, "w", (cookie_io_functions_t){.write = write_slowly});
		CHECK(slow);
		fprintf(slow, "whole");
	}
	gn_scene_meet();
	gn_mark();
	gasnet_exit(3);
}

static void on_tick(int number_of_signal)
{
	(void)number_of_signal;
}

/* SIGALRM belongs to the program, whose timer goes on while the node leaves. */
SCENE(has_a_timer)
{
	const struct itimerval often = {{0, 1000}, {0, 1000}};
	signal(SIGALRM, on_tick);
	gn_scene_up();
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	printf("text ");
	gn_scene_meet();
	gn_mark();
	if (gn.rank == 0)
		let_others_begin();
	gasnet_exit(0);
}

STATEMENT(146, text_before_exit_is_there)
{
	struct gn_run *ticks = gn_scene(2, "has_a_timer");
	CHECK_STATUS(ticks, 0);
	CHECK(strcmp(ticks->out, "text text ") == 0);
	check_files(3);
	struct gn_run *slow = gn_scene(2, "flushes_slowly");
	CHECK_STATUS(slow, 3);
	CHECK(strcmp(slow->out, "whole") == 0);
	char *want = suite_alloc(1 << 15);
	size_t n = 0;
	for (int i = 0; i < 2000; i++)
		n += (size_t)snprintf(want + n, 8, "%d.", i);
	EACH_SIZE(i)
	{
		struct gn_run *r = gn_scene(gn_sizes[i], "prints");
		CHECK_STATUS(r, 0);
		CHECK(strcmp(r->out, want) == 0);
	}
}

SCENE(two_codes)
{
	gn_scene_up();
	gn_scene_meet();
	gn_mark();
	if (gn.rank < 2)
		gasnet_exit(20 + (int)gn.rank);
	spin();
}

STATEMENT(147, one_of_two_codes_wins)
{
	for (int i = 0; i < 5; i++) {
		struct gn_run *r = gn_scene(3, "two_codes");
		CHECK(r->status == 20 || r->status == 21);
	}
}

/* ---- a stopped node ---- */

SCENE(stopped)
{
	gn_scene_up();
	gn_scene_meet();
	if (gn.rank == 1)
		raise(SIGSTOP);
	if (gn.rank == 0) {
		let_others_begin();
		gn_mark();
		gasnet_exit(12);
	}
	spin();
}

WEAK_STATEMENT(148, stopped_node)
{
	CHECK_STATUS(gn_scene(3, "stopped"), 12);
}

/* A stopped node keeps the exit from being a coordinated one, so that the other node ends
 * when the time-out is over, which would be one of 3 s if it were not set. */
STATEMENT(149, exit_timeout_is_set)
{
	gn_env("GASNET_EXITTIMEOUT", "5");
	struct gn_run *r = gn_scene(2, "stopped");
	CHECK(r->ms >= 5000);
	CHECK(r->status > 0);
}

SCENE(goes_on)
{
	gn_scene_up();
	gn_mark();
	gasnet_exit(13);
	gn_job->word[0]++;
	printf("exit returns\n");
	_exit(89);
}

STATEMENT(150, exit_does_not_return)
{
	EACH_SIZE(i)
	{
		struct gn_run *r = gn_scene(gn_sizes[i], "goes_on");
		CHECK_STATUS(r, 13);
		CHECK_EQ(r->word[0], 0);
		CHECK(!strstr(r->out, "returns"));
	}
}
