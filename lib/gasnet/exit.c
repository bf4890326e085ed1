/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exit.c - the end of the job, and the death of a node
 *
 * The thread that calls gasnet_exit, or in which main ends or a signal arrives, only
 * turns the state from RUN into LEAVING and sleeps; the watch thread does the rest, so
 * the same code runs whatever the other threads do, and whatever locks they hold, in a
 * signal handler, too.  The watch thread is the only thread of the library.  It runs no
 * handler of the program, and every watch_ms it looks for messages of nodes that leave
 * and for nodes that have died.
 *
 *	leave:	tell all nodes (EXIT); wait until each one has told this node and has
 *		acknowledged, or is dead, or the time is over; end the process
 *	EXIT of another node arrives:	SIGQUIT, if the program has a handler for it; then
 *		leave with that node's code
 *	fewer nodes alive, twice in a row, and no EXIT:	leave with code 1
 * An alarm ends the process even if the watch thread hangs.  EXIT is acknowledged because
 * the last messages of a process that ends may be lost.
 *
 * Order.  The thread that leaves writes code and signal and then releases the
 * state, which the watch thread acquires.  The event handlers below run in any thread
 * that polls; they set flags of their own word, the code before the flag remote.
 *
 * Signals.  SIGQUIT is raised at most once, and by a thread that finds the state RUN: the
 * thread that leaves takes quit_sent before it claims the state.  It blocks the signals
 * that the program may handle, since a handler would keep it from flushing its streams,
 * and on another thread the library's handlers return at once.  Signals of crashes stay
 * unblocked: a crash in fflush parks the thread, and the watch thread ends the process.
 */
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

enum { RUN, CLAIMED, LEAVING };
enum { RESEND_MS = 200, FOLLOW_MS = 1000, QUIT_MS = 2000, FLUSH_MS = 2000 };

static uint32_t state;     /* RUN, CLAIMED or LEAVING */
static uint32_t remote;    /* EXIT of another node has come */
static uint32_t flushed;   /* the leaving thread has flushed its streams */
static uint32_t returns;   /* a thread in exit waits for all_told */
static uint32_t all_told;  /* it may go on */
static uint32_t quit_sent; /* SIGQUIT has been raised, or will never be */
static int code, remote_code, end_signal;
static uint64_t alive_most, timeout_ms;
static uint32_t fewer;
static pthread_t watcher;
static pid_t process;

static void nap_ms(uint32_t ms)
{
	struct timespec ts = {ms / 1000, (long)(ms % 1000) * 1000000};
	nanosleep(&ts, NULL);
}

static uint64_t now_ms(void)
{
	return gasneti_now() / 1000000;
}

static void wake_watcher(void)
{
	syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Write a line to stderr without its lock, which another thread may hold for ever. */
static void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
	char text[128];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n > 0 && write(STDERR_FILENO, text, strnlen(text, sizeof(text))) < 0)
		return; /* standard error is closed: the status alone tells */
}

/* ---- messages ---- */

/* Handle an event of EXIT_EQ; in any thread. */
void gasneti_exit_event(const ptl_event_t *ev)
{
	uint32_t from = gasneti_node_of(ev->initiator);
	uint32_t to = (uint32_t)(ev->match_bits >> 32);
	if (ev->type == PTL_EVENT_PUT_END && from < gasneti.nodes) {
		gasneti_set(&gasneti.peers[from].exit_seen, true);
		gasneti_set(&remote_code, (int)(uint32_t)ev->hdr_data);
		gasneti_release(&remote, 1);
		wake_watcher();
	} else if (ev->type == PTL_EVENT_ACK && to < gasneti.nodes) {
		gasneti_set(&gasneti.peers[to].exit_acked, true);
	} else if (ev->type == PTL_EVENT_SEND_END && ev->ni_fail_type != PTL_NI_OK &&
		   to < gasneti.nodes) {
		gasneti_set(&gasneti.peers[to].dead, true);
	}
}

static void read_events(void)
{
	ptl_event_t ev;
	int rc;
	while ((rc = PtlEQGet(gasneti.exit_eq, &ev)) == PTL_OK || rc == PTL_EQ_DROPPED)
		gasneti_exit_event(&ev);
}

/* If another node has told that it leaves, wait for the end of this process. */
void gasneti_exit_check(void)
{
	read_events();
	while (gasneti_acquire(&remote) && !pthread_equal(pthread_self(), watcher))
		pause();
}

/* Tell the nodes that have not acknowledged yet. */
static void tell_all(void)
{
	for (uint32_t i = 0; i < gasneti.nodes; i++) {
		const struct gasneti_peer *peer = &gasneti.peers[i];
		if (i != gasneti.me && !gasneti_get(&peer->exit_acked) &&
			!gasneti_get(&peer->dead))
			PtlPut(gasneti.exit_md, PTL_ACK_REQ, peer->id, GASNETI_AM_PTE, 0,
				GASNETI_MD_EXIT | (uint64_t)i << 32, 0, (uint32_t)code);
	}
}

/* Return the number of peers that are alive. */
static uint64_t peers_alive(void)
{
	ptlx_stats_t stats = {.struct_size = sizeof(stats)};
	if (PtlXStats(gasneti.ni, &stats) != PTL_OK)
		return 0;
	return stats.peers_alive;
}

static bool all_know(void)
{
	read_events();
	for (uint32_t i = 0; i < gasneti.nodes; i++) {
		const struct gasneti_peer *peer = &gasneti.peers[i];
		if (i != gasneti.me && !gasneti_get(&peer->dead) &&
			!(gasneti_get(&peer->exit_seen) &&
				gasneti_get(&peer->exit_acked)))
			return peers_alive() == 0;
	}
	return true;
}

/* ---- leaving ---- */

static void flush(FILE *stream)
{
	if (ftrylockfile(stream))
		return;
	fflush_unlocked(stream);
	funlockfile(stream);
}

/* Wait until the leaving thread has flushed its streams; flush the usual ones anyhow. */
static void await_flush(void)
{
	uint64_t end = now_ms() + FLUSH_MS;
	while (!gasneti_acquire(&flushed) && now_ms() < end)
		nap_ms(1);
	if (!gasneti_acquire(&flushed)) {
		flush(stdout);
		flush(stderr);
	}
}

/* End the process by a signal, so that the launcher sees it. */
static void end_by_signal(int signal)
{
	struct sigaction by_default = {.sa_handler = SIG_DFL};
	sigset_t set;
	sigaction(signal, &by_default, NULL);
	sigemptyset(&set);
	sigaddset(&set, signal);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(signal);
}

/* End the process, or let the thread in exit do so, whose alarm goes on. */
static void end_process(bool known)
{
	if (gasneti_acquire(&returns) && known) {
		gasneti_release(&all_told, 1);
		for (;;)
			pause();
	}
	_exit(code || known ? code : 1);
}

/* Tell and hear all nodes, for a bounded time, and end the process. */
static void leave(void)
{
	bool follows = gasneti_acquire(&remote);
	uint64_t limit = follows && timeout_ms > FOLLOW_MS ? FOLLOW_MS : timeout_ms;
	uint64_t start = now_ms(), told = 0;
	bool known = false;
	while (!(known = all_know()) && now_ms() - start < limit) {
		if (now_ms() - told >= RESEND_MS) {
			tell_all();
			told = now_ms();
		}
		nap_ms(1);
	}
	tell_all();
	gasneti_statistics();
	await_flush();
	if (end_signal)
		end_by_signal(end_signal);
	end_process(known || follows);
}

static void on_alarm(int signal)
{
	(void)signal;
	_exit(code ? code : 1);
}

/* End the process in a bounded time, whatever hangs: from here on the alarm is ours. */
static void arm_alarm(void)
{
	struct sigaction action = {.sa_handler = on_alarm};
	sigaction(SIGALRM, &action, NULL);
	alarm((unsigned)(timeout_ms / 1000 + 2 + FLUSH_MS / 1000));
}

static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

/* Block the signals of the calling thread but SIGALRM and those of crashes. */
static void block_signals(void)
{
	sigset_t set;
	sigfillset(&set);
	sigdelset(&set, SIGALRM);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(*crashes); i++)
		sigdelset(&set, crashes[i]);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
}

/*
 * Turn the state from RUN into LEAVING, and flush.  signal: that of a crash, which ends
 * the process, or 0.  in_signal: the caller may have interrupted anything.  Do nothing if
 * another thread has.
 */
static void begin_end(int with, int signal, bool in_signal)
{
	/* The caller may be in the program's handler of SIGQUIT. */
	bool in_quit = gasneti_swap(&quit_sent, 1);
	if (!gasneti_cas(&state, RUN, CLAIMED))
		return;
	code = with;
	end_signal = signal;
	arm_alarm();
	gasneti_release(&gasneti.leaving, 1);
	gasneti_release(&state, LEAVING);
	wake_watcher();
	if (in_signal || in_quit) {
		flush(stdout);
		flush(stderr);
	} else {
		fflush(NULL);
	}
	gasneti_release(&flushed, 1);
}

/* Leave the job, as begin_end has it; the calling thread never returns. */
void gasneti_leave(int with, int signal, bool in_signal)
{
	if (pthread_equal(pthread_self(), watcher))
		_exit(with ? with : 1);
	block_signals();
	begin_end(with, signal, in_signal);
	for (;;)
		pause();
}

void gasnet_exit(int exitcode)
{
	if (gasneti.state == GASNETI_FRESH)
		exit(exitcode);
	gasneti_leave(exitcode, 0, false);
}

/*
 * The program returns from main, or calls exit.  When all nodes know, exit goes on with
 * the program's functions that were registered before gasnet_init; also if another node
 * began to leave.  Not so in a handler of SIGQUIT, which may have interrupted anything.
 */
static void on_end(int status, void *unused)
{
	(void)unused;
	if (getpid() != process)
		return;
	block_signals();
	if (!gasneti_acquire(&quit_sent))
		gasneti_release(&returns, 1);
	begin_end(status, 0, false);
	while (!gasneti_acquire(&returns) || !gasneti_acquire(&all_told))
		nap_ms(1);
}

/* ---- signals ---- */

static void on_quit(int signal)
{
	if (gasneti_acquire(&state) != RUN)
		return;
	gasneti_leave(gasneti_acquire(&remote) ? remote_code : 128 + signal, 0, true);
}

/* Return true if the program has a SIGQUIT handler of its own. */
static bool program_quits(void)
{
	struct sigaction now;
	return sigaction(SIGQUIT, NULL, &now) == 0 && now.sa_handler != on_quit &&
	       now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN;
}

/* A signal that ends the job: the program's SIGQUIT handler runs first. */
static void on_term(int signal)
{
	if (gasneti_acquire(&state) != RUN)
		return;
	if (program_quits() && !gasneti_swap(&quit_sent, 1))
		raise(SIGQUIT);
	gasneti_leave(128 + signal, 0, true);
}

static void on_crash(int signal)
{
	say("*** GASNet: node %u of %u caught signal %d (%s)\n", gasneti.me,
		gasneti.nodes, signal, sigabbrev_np(signal));
	gasneti_leave(128 + signal, signal, true);
}

/* Return true if GASNET_NO_CATCH_SIGNAL names a signal: "SEGV", "SIGSEGV", "11", "*". */
static bool excluded(int signal)
{
	const char *list = getenv("GASNET_NO_CATCH_SIGNAL");
	const char *name = sigabbrev_np(signal);
	char number[16], copy[256], *save = NULL;
	if (!list || !name)
		return false;
	snprintf(number, sizeof(number), "%d", signal);
	snprintf(copy, sizeof(copy), "%s", list);
	for (char *word = strtok_r(copy, ", |:", &save); word;
		word = strtok_r(NULL, ", |:", &save)) {
		if (!strncmp(word, "SIG", 3))
			word += 3;
		if (!strcmp(word, "*") || !strcmp(word, name) || !strcmp(word, number))
			return true;
	}
	return false;
}

static void catch_signals(const int *signals, size_t n, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	for (size_t i = 0; i < n; i++)
		if (!excluded(signals[i]))
			sigaction(signals[i], &action, NULL);
}

static void install_handlers(void)
{
	static const int terms[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
	static const int quits[] = {SIGQUIT};
	catch_signals(terms, 4, on_term);
	catch_signals(crashes, 5, on_crash);
	catch_signals(quits, 1, on_quit);
}

/* ---- the watch thread ---- */

static void *flush_all(void *unused)
{
	(void)unused;
	fflush(NULL);
	gasneti_release(&flushed, 1);
	return NULL;
}

/* Flush all streams in a thread of its own: the program may hold a stream's lock. */
static void start_flush(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, flush_all, NULL) == 0)
		pthread_detach(thread);
}

/* Another node leaves: let the program's SIGQUIT handler run, and follow. */
static void follow(void)
{
	if (program_quits() && !gasneti_swap(&quit_sent, 1)) {
		uint64_t end = now_ms() + QUIT_MS;
		kill(process, SIGQUIT);
		while (gasneti_acquire(&state) != LEAVING && now_ms() < end)
			nap_ms(1);
	}
	if (gasneti_cas(&state, RUN, CLAIMED)) {
		code = gasneti_get(&remote_code);
		arm_alarm();
		gasneti_release(&gasneti.leaving, 1);
		gasneti_release(&state, LEAVING);
		start_flush();
	}
}

/* Look for nodes that have died without EXIT. */
static void look_for_deaths(void)
{
	uint64_t alive = peers_alive();
	if (alive > alive_most)
		alive_most = alive;
	fewer = alive < alive_most ? fewer + 1 : 0;
	if (fewer < 3 || gasneti_acquire(&remote))
		return;
	gasneti_set(&remote_code, 1);
	gasneti_release(&remote, 1);
	say("*** GASNet: node %u of %u: a node died\n", gasneti.me, gasneti.nodes);
}

static void *watch(void *unused)
{
	struct timespec period = {gasneti.set.watch_ms / 1000,
		(long)(gasneti.set.watch_ms % 1000) * 1000000};
	(void)unused;
	while (gasneti_acquire(&state) != LEAVING) {
		read_events();
		if (gasneti_acquire(&remote))
			follow();
		else
			look_for_deaths();
		uint32_t seen = gasneti_acquire(&state);
		if (seen != LEAVING && !gasneti_acquire(&remote))
			syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, seen, &period,
				NULL, 0);
	}
	leave();
	return NULL;
}

/* Return the seconds that a coordinated end may take. */
static double exit_timeout(void)
{
	const char *text = getenv("GASNET_EXITTIMEOUT");
	const char *names[] = {"GASNET_EXITTIMEOUT_MAX", "GASNET_EXITTIMEOUT_MIN",
		"GASNET_EXITTIMEOUT_FACTOR"};
	double value[] = {360, 3, 0.125};
	if (text && atof(text) > 0)
		return atof(text);
	for (int i = 0; i < 3; i++)
		if (getenv(names[i]) && atof(getenv(names[i])) > 0)
			value[i] = atof(getenv(names[i]));
	double want = value[1] + gasneti.nodes * value[2];
	return want < value[0] ? want : value[0];
}

/* Install the handlers, and start the watch thread. */
void gasneti_exit_init(void)
{
	sigset_t all, old;
	process = getpid();
	timeout_ms = (uint64_t)(exit_timeout() * 1000);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&watcher, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		gasneti_fatal("no watch thread: %s", strerror(rc));
	pthread_setname_np(watcher, "gasnet-watch");
	install_handlers();
	on_exit(on_end, NULL);
}
