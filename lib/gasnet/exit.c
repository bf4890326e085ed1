/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exit.c - errors, the end of the job, and the death of a node
 *
 * The thread that calls gasnet_exit, or in which main ends or a signal arrives, only
 * turns the state from RUN into LEAVING and flushes; the watch thread does the rest, so
 * the same code runs whatever the other threads do, and whatever locks they hold, in a
 * signal handler, too.  The watch thread runs no handler of the program, and every
 * watch_ms it looks for messages of nodes that leave and for nodes that have died.
 *
 *	leave:	tell all nodes (EXIT); wait until each one has told this node and has
 *		acknowledged, or is dead, or the time is over; end the process
 *	EXIT of another node arrives:	SIGQUIT, if the program has a handler for it; then
 *		leave with that node's code
 *	fewer nodes alive, three times in a row, and no EXIT:	leave with code 1
 * A second thread, the last resort, sleeps until the node begins to leave, and ends the
 * process some seconds after the time-out, even if the watch thread hangs.  It is no
 * alarm, because SIGALRM and the timers belong to the program.  EXIT is acknowledged
 * because the last messages of a process that ends may be lost.
 *
 * Order.  The thread that leaves writes code and signal and then releases the
 * state, which the watch thread acquires.  The event handlers below run in any thread
 * that polls; they set flags of their own word, the code before the flag exit_remote.
 *
 * Signals.  SIGQUIT is raised at most once, and by a thread that finds the state RUN: the
 * thread that leaves takes exit_quit_sent before it claims the state.  It blocks the
 * signals that the program may handle, since a handler would keep it from flushing its
 * streams, and on another thread the library's handlers return at once.  Signals of
 * crashes stay unblocked: a crash in fflush parks the thread, and the watch thread ends
 * the process.
 * The library's handlers return, except those of crashes: the thread may be inside a call
 * of Portals, whose lease it gives back when it goes on until the process ends.  If a
 * handler of the program ends the job there, the library leaves that handler for good,
 * and the thread goes on, too.  If such a call crashes, the lease is lost: the signal
 * ends the process at once, and the launcher, or their watch threads, tell the other
 * nodes.
 * A child that the program forks has the handlers, but no watch thread: there the signals
 * have their default effects, and gasnet_exit ends the child alone.
 */
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "internal.h"

enum { RUN, CLAIMED, LEAVING };
enum { NONE = 1, ALL };
enum { RESEND_MS = 200, FOLLOW_MS = 1000, QUIT_MS = 2000, FLUSH_MS = 2000 };

#define GIVEN ((uint64_t)1 << 32) /* in EXIT's header data: the program gave the code */

static uint32_t exit_state;  /* RUN, CLAIMED or LEAVING */
static uint32_t exit_remote; /* EXIT of another node has come */
static uint32_t
	exit_flushed; /* the leaving thread has flushed its streams: 0, NONE or ALL */
static uint32_t exit_returns;   /* a thread in exit waits for exit_all_told */
static uint32_t exit_all_told;  /* it may go on */
static uint32_t exit_quit_sent; /* SIGQUIT has been raised, or will never be */
static uint32_t exit_term;      /* SIGTERM or its like has raised SIGQUIT */
static int exit_code, exit_remote_code, exit_term_code, exit_signal;
static bool exit_code_given,
	exit_remote_given; /* by the program, and not by a signal or a death */
static uint64_t exit_timeout_ms;
static uint32_t exit_fewer;
static pthread_t exit_watcher, exit_thread;
static pid_t exit_pid;

static void exit_nap(uint32_t ms)
{
	struct timespec ts = {ms / 1000, (long)(ms % 1000) * 1000000};
	nanosleep(&ts, NULL);
}

static uint64_t exit_now(void)
{
	return gasnett_ticks_now() / 1000000;
}

/* ---- messages ---- */

/* Handle an event of EXIT_EQ; in any thread. */
void gasneti_exit_event(const ptl_event_t *ev)
{
	uint32_t from = gasneti_node_of(ev->initiator);
	uint32_t to = (uint32_t)(ev->match_bits >> 32);
	if (ev->type == PTL_EVENT_PUT_END && from < gasneti.nodes) {
		gasneti_set(&gasneti.peers[from].exit_seen, true);
		if (ev->hdr_data & GIVEN || !gasneti_get(&exit_remote_given))
			gasneti_set(&exit_remote_code, (int)(uint32_t)ev->hdr_data);
		if (ev->hdr_data & GIVEN)
			gasneti_set(&exit_remote_given, true);
		gasneti_release(&exit_remote, 1);
		gasneti_futex_wake(&exit_state);
	} else if (ev->type == PTL_EVENT_ACK && to < gasneti.nodes) {
		gasneti_set(&gasneti.peers[to].exit_acked, true);
	} else if (ev->type == PTL_EVENT_SEND_END && ev->ni_fail_type != PTL_NI_OK &&
		   to < gasneti.nodes) {
		gasneti_set(&gasneti.peers[to].dead, true);
	}
}

/* Handle all events of EXIT_EQ that have come; in any thread. */
void gasneti_exit_poll(void)
{
	ptl_event_t ev;
	int rc;
	while ((rc = PtlEQGet(gasneti.exit_eq, &ev)) == PTL_OK || rc == PTL_EQ_DROPPED)
		gasneti_exit_event(&ev);
}

/* Tell the nodes that have not acknowledged yet. */
static void exit_tell_all(void)
{
	bool is_given = gasneti_get(&exit_code_given) || gasneti_get(&exit_remote_given);
	for (uint32_t i = 0; i < gasneti.nodes; i++) {
		const struct gasneti_peer *peer = &gasneti.peers[i];
		if (i != gasneti.me && !gasneti_get(&peer->exit_acked) &&
			!gasneti_get(&peer->dead))
			PtlPut(gasneti.exit_md, PTL_ACK_REQ, peer->id, GASNETI_AM_PTE, 0,
				GASNETI_MD_EXIT | (uint64_t)i << 32, 0,
				(uint32_t)exit_code | (is_given ? GIVEN : 0));
	}
}

/* Return the number of nodes that are alive, this one included. */
static uint64_t exit_nodes_alive(void)
{
	ptlx_stats_t stats = {.struct_size = sizeof(stats)};
	if (PtlXStats(gasneti.ni, &stats) != PTL_OK)
		return gasneti.nodes; /* nothing is known about deaths */
	return stats.job_alive;
}

/* Return true if all living nodes have told that they leave, and, if that is asked for,
 * have acknowledged that this node does. */
static bool exit_have_all_told(bool acked)
{
	for (uint32_t i = 0; i < gasneti.nodes; i++) {
		const struct gasneti_peer *peer = &gasneti.peers[i];
		if (i == gasneti.me || gasneti_get(&peer->dead))
			continue;
		if (!gasneti_get(&peer->exit_seen) ||
			(acked && !gasneti_get(&peer->exit_acked)))
			return false;
	}
	return true;
}

/*
 * Tell and hear all nodes for a bounded time; return true if all have told.  A node that
 * has told need not know that this one leaves, and may have ended without its
 * acknowledgement, so that is not waited for as long.
 */
static bool exit_tell_and_hear(uint64_t limit)
{
	uint64_t start = exit_now(), told = 0;
	bool heard = false;
	for (uint64_t now = start; now - start < limit; now = exit_now()) {
		gasneti_exit_poll();
		if (exit_have_all_told(true) || exit_nodes_alive() <= 1)
			break;
		if (!heard && exit_have_all_told(false)) {
			heard = true;
			if (limit > now - start + FOLLOW_MS)
				limit = now - start + FOLLOW_MS;
		}
		if (now - told >= RESEND_MS) {
			exit_tell_all();
			told = now;
		}
		exit_nap(1);
	}
	gasneti_exit_poll();
	return exit_have_all_told(false);
}

/* ---- statistics ---- */

/* The watch thread prints them, so they avoid the lock of stderr, as messages of errors
 * do: the program may hold it for ever. */

#define LLU(n) ((unsigned long long)(n))

/* Print the counters of this node: GASNET_PORTAL_STATS=1. */
static void stats_print(void)
{
	const struct gasneti_stats *s = &gasneti.stats;
	ptl_sr_value_t drops = -1;
	if (!gasneti.set.stats)
		return;
	PtlNIStatus(gasneti.ni, PTL_SR_DROP_COUNT, &drops);
	uint64_t loans = 0, held = 0;
	for (uint32_t i = 0; i < gasneti.nodes; i++) {
		loans += gasneti_get(&gasneti.peers[i].loan);
		held += gasneti_get(&gasneti.peers[i].send);
	}
	dprintf(STDERR_FILENO,
		"gasnet credits %u: loans %llu and bank %u of %u, held %llu; lent %llu, "
		"revoked %llu, returned %llu\n",
		gasneti.me, LLU(loans), gasneti_get(&gasneti.bank),
		gasneti_credits_total(), LLU(held), LLU(s->lent), LLU(s->revoked),
		LLU(s->returned));
	for (uint32_t i = 0; i < gasneti.nodes; i++) /* credits lent, and held */
		if (i != gasneti.me)
			dprintf(STDERR_FILENO,
				"gasnet pair %u %u: loan %u held %u in use %u\n",
				gasneti.me, i, gasneti_get(&gasneti.peers[i].loan),
				gasneti_get(&gasneti.peers[i].send),
				gasneti_get(&gasneti.peers[i].in_use));
	dprintf(STDERR_FILENO,
		"gasnet stats %u: drops %lld; stalls: tickets %llu credits %llu chunks "
		"%llu; fewest tickets %lld; buffer turns %llu; most lids %llu\n",
		gasneti.me, (long long)drops, LLU(s->ticket_stalls),
		LLU(s->credit_stalls), LLU(s->chunk_stalls), (long long)s->tickets_low,
		LLU(s->turns), LLU(s->lid_high));
	if (gasneti.set.local == GASNETI_LOCAL_FIREHOSE)
		dprintf(STDERR_FILENO,
			"gasnet firehose %u: hits %llu misses %llu merges %llu evictions "
			"%llu; most regions %llu of %llu, most bytes %llu of %llu\n",
			gasneti.me, LLU(s->hits), LLU(s->misses), LLU(s->merges),
			LLU(s->evictions), LLU(s->regions_high),
			LLU(gasneti.set.fh_regions), LLU(s->bytes_high),
			LLU(gasneti.set.fh_bytes));
}

/* ---- leaving ---- */

/* Flush a stream; return false if another thread holds its lock. */
static bool stream_flush(FILE *stream)
{
	if (ftrylockfile(stream))
		return false;
	fflush_unlocked(stream);
	funlockfile(stream);
	return true;
}

static bool streams_flush_usual(void)
{
	bool out = stream_flush(stdout);
	return stream_flush(stderr) && out;
}

/* Wait until the leaving thread has flushed its streams; flush the usual ones if it could
 * not, and anyhow in the end. */
static void exit_await_flush(void)
{
	uint64_t end = exit_now() + FLUSH_MS;
	while (gasneti_acquire(&exit_flushed) != ALL && exit_now() < end) {
		if (gasneti_acquire(&exit_flushed) == NONE && streams_flush_usual())
			return;
		exit_nap(1);
	}
	if (gasneti_acquire(&exit_flushed) != ALL)
		streams_flush_usual();
}

/* End the process by a signal, so that the launcher sees it. */
static void exit_by_signal(int signal)
{
	struct sigaction by_default = {.sa_handler = SIG_DFL};
	sigset_t set;
	sigaction(signal, &by_default, NULL);
	sigemptyset(&set);
	sigaddset(&set, signal);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(signal);
}

/* Tell and hear all nodes, for a bounded time, and end the process, or let the thread in
 * exit do so, for which the last resort waits. */
static void exit_leave(void)
{
	bool follows = gasneti_acquire(&exit_remote);
	bool told = exit_tell_and_hear(
		follows && exit_timeout_ms > FOLLOW_MS ? FOLLOW_MS : exit_timeout_ms);
	exit_tell_all();
	stats_print();
	exit_await_flush();
	if (exit_signal)
		exit_by_signal(exit_signal);
	if (!told && !follows)
		_exit(exit_code ? exit_code : 1);
	if (gasneti_acquire(&exit_returns) && gasneti_acquire(&exit_flushed) == ALL) {
		gasneti_release(&exit_all_told, 1);
		for (;;)
			pause();
	}
	quick_exit(exit_code); /* mpirun takes _exit() for a failure */
}

static const int signal_crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

/* Block the signals of the calling thread but those of crashes. */
static void exit_block_signals(void)
{
	sigset_t set;
	sigfillset(&set);
	for (size_t i = 0; i < sizeof(signal_crashes) / sizeof(*signal_crashes); i++)
		sigdelset(&set, signal_crashes[i]);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
}

/* Begin to leave; the caller has claimed the state.  signal: that of a crash, which ends
 * the process, or 0. */
static void exit_start(int with, int signal)
{
	exit_code = with;
	exit_signal = signal;
	gasneti_release(&gasneti.leaving, 1);
	gasneti_release(&exit_state, LEAVING);
	gasneti_futex_wake(&exit_state);
}

/* Flush the program's streams; return false if another thread holds a lock.  in_signal:
 * the caller may have interrupted anything. */
static bool streams_flush(bool in_signal)
{
	if (in_signal)
		return streams_flush_usual();
	fflush(NULL);
	return true;
}

/* Turn the state from RUN into LEAVING, and flush; signals stay blocked in this thread
 * until the handler returns, if it runs one.  Do nothing more if another thread has. */
static void exit_begin(int with, int signal, bool in_signal)
{
	exit_block_signals();
	/* The caller may be in the program's handler of SIGQUIT. */
	bool in_quit = gasneti_swap(&exit_quit_sent, 1);
	if (!gasneti_cas(&exit_state, RUN, CLAIMED))
		return;
	exit_start(with, signal);
	gasneti_release(&exit_flushed, streams_flush(in_signal || in_quit) ? ALL : NONE);
}

static bool exit_is_forked(void)
{
	return getpid() != exit_pid;
}

/* ---- signal handlers that have interrupted a call of Portals ---- */

/* Return true if the calling thread is in one: it may hold the lease. */
static bool exit_interrupts_portals(void)
{
	ptl_sr_value_t drops;
	return PtlNIStatus(gasneti.ni, PTL_SR_DROP_COUNT, &drops) == PTL_NO_SPACE;
}

#if defined(__x86_64__)
/* The innermost frame that a signal has interrupted, as the kernel has saved it. */
struct interrupted {
	ucontext_t *context;
	uintptr_t stack; /* of the frame before, or of this one */
	bool found;
};

static _Unwind_Reason_Code signal_look_at_frame(struct _Unwind_Context *frame, void *arg)
{
	struct interrupted *i = arg;
	int exact = 0; /* the frame stands at an instruction, and not behind a call */
	uintptr_t at = _Unwind_GetIPInfo(frame, &exact), stack = _Unwind_GetCFA(frame);
	i->context = (ucontext_t *)i->stack;
	i->stack = stack;
	if (!exact)
		return _URC_NO_REASON;
	const greg_t *saved = i->context->uc_mcontext.gregs;
	i->found = (uintptr_t)saved[REG_RIP] == at && (uintptr_t)saved[REG_RSP] == stack;
	return _URC_END_OF_STACK;
}

/* Leave the signal handler, and go on with the code that it has interrupted, with the
 * signals blocked that are now.  Return if its frame is not found. */
static void signal_go_on(void)
{
	struct interrupted i = {.found = false};
	sigset_t blocked;
	_Unwind_Backtrace(signal_look_at_frame, &i);
	if (!i.found)
		return;
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	memcpy(&i.context->uc_sigmask, &blocked, _NSIG / 8); /* the kernel's part */
	__asm__ volatile("mov %0, %%rsp\n\tsyscall"
			 :
			 : "r"(i.context), "a"((long)SYS_rt_sigreturn)
			 : "memory");
	__builtin_unreachable();
}
#else
static void signal_go_on(void)
{
}
#endif

/* Leave the job, as exit_begin has it; the calling thread never returns. */
static __attribute__((noreturn)) void exit_job(int with, int signal, bool in_signal)
{
	if (pthread_equal(pthread_self(), exit_watcher))
		_exit(with ? with : 1);
	/* Without the watch thread, if this is a forked child, or all nodes know, and
	 * this thread runs the program's functions of exit, or crashed beside them. */
	bool told = gasneti_acquire(&exit_all_told);
	if (exit_is_forked() ||
		(told && (signal || pthread_equal(pthread_self(), exit_thread)))) {
		streams_flush(in_signal);
		if (signal)
			exit_by_signal(signal);
		if (exit_is_forked())
			_exit(with);
		quick_exit(with);
	}
	exit_begin(with, signal, in_signal);
	if (exit_interrupts_portals()) { /* then the watch thread waits for the lease */
		if (signal)
			exit_by_signal(signal);
		signal_go_on();
	}
	for (;;)
		pause();
}

/* Return the job's status, for which the program gives a number here: the number of the
 * node that ends the job wins over those of handlers of SIGQUIT. */
static int exit_status(int status)
{
	if (gasneti_acquire(&exit_remote) && gasneti_get(&exit_remote_given))
		return gasneti_get(&exit_remote_code);
	if (gasneti_acquire(&exit_state) == RUN)
		gasneti_set(&exit_code_given, true);
	return status;
}

void gasnet_exit(int exitcode)
{
	if (gasneti.state == GASNETI_FRESH)
		exit(exitcode);
	exit_job(exit_status(exitcode), 0, false);
}

/*
 * The program returns from main, or calls exit.  When all nodes know, exit goes on with
 * the program's functions that were registered before gasnet_init; also if another node
 * began to leave.  Not so in a handler of SIGQUIT, which may have interrupted anything,
 * nor in another one that has interrupted a call of Portals.
 */
static void exit_on_end(int status, void *unused)
{
	(void)unused;
	if (exit_is_forked())
		return;
	exit_block_signals(); /* no handler ends the job before exit_begin */
	exit_thread = pthread_self();
	bool in_handler = exit_interrupts_portals();
	if (!in_handler && !gasneti_acquire(&exit_quit_sent))
		gasneti_release(&exit_returns, 1);
	exit_begin(exit_status(status), 0, false);
	if (in_handler)
		signal_go_on();
	while (!gasneti_acquire(&exit_returns) || !gasneti_acquire(&exit_all_told))
		exit_nap(1);
}

/* ---- signals ---- */

static void signal_on_quit(int signal)
{
	if (exit_is_forked())
		exit_by_signal(signal);
	if (gasneti_acquire(&exit_state) != RUN)
		return;
	exit_begin(
		gasneti_acquire(&exit_remote) ? exit_remote_code : 128 + signal, 0, true);
}

/* Return true if the program has a SIGQUIT handler of its own. */
static bool signal_program_quits(void)
{
	struct sigaction now;
	return sigaction(SIGQUIT, NULL, &now) == 0 && now.sa_handler != signal_on_quit &&
	       now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN;
}

/* A signal that ends the job: the program's SIGQUIT handler runs first, and the watch
 * thread waits a bounded time for it (exit_follow). */
static void signal_on_term(int signal)
{
	if (exit_is_forked())
		exit_by_signal(signal);
	if (gasneti_acquire(&exit_state) != RUN)
		return;
	if (signal_program_quits()) {
		if (gasneti_swap(&exit_quit_sent, 1))
			return; /* the handler runs already, or another thread leaves */
		gasneti_set(&exit_term_code, 128 + signal);
		gasneti_release(&exit_term, 1);
		gasneti_futex_wake(&exit_state);
		raise(SIGQUIT);
	}
	exit_begin(128 + signal, 0, true);
}

static void signal_on_crash(int signal)
{
	dprintf(STDERR_FILENO, "*** GASNet: node %u of %u caught signal %d (%s)\n",
		gasneti.me, gasneti.nodes, signal, sigabbrev_np(signal));
	exit_job(128 + signal, signal, true);
}

/* Return true if GASNET_NO_CATCH_SIGNAL names a signal: "SEGV", "SIGSEGV", "11", "*". */
static bool signal_is_excluded(int signal)
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

/* Return true if a setting from before gasnet_init stays: a handler for SIGQUIT; that
 * SIGHUP is ignored, as by nohup; that SIGPIPE is, by a program that looks at EPIPE. */
static bool signal_stays(int signal)
{
	struct sigaction now;
	if (sigaction(signal, NULL, &now))
		return false;
	if (signal == SIGQUIT)
		return now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN;
	return (signal == SIGHUP || signal == SIGPIPE) && now.sa_handler == SIG_IGN;
}

static void signal_catch(const int *signals, size_t n, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	for (size_t i = 0; i < n; i++)
		if (!signal_is_excluded(signals[i]) && !signal_stays(signals[i]))
			sigaction(signals[i], &action, NULL);
}

/* ---- the watch thread ---- */

static void *streams_flush_thread(void *unused)
{
	(void)unused;
	fflush(NULL);
	gasneti_release(&exit_flushed, ALL);
	return NULL;
}

/* Return true if another node leaves, or a signal ends the job. */
static bool exit_must_follow(void)
{
	return gasneti_acquire(&exit_remote) || gasneti_acquire(&exit_term);
}

static void exit_follow(void)
{
	if (signal_program_quits()) { /* its handler runs for a bounded time */
		uint64_t half = exit_timeout_ms / 2;
		uint64_t end = exit_now() + (half < QUIT_MS ? half : QUIT_MS);
		if (!gasneti_swap(&exit_quit_sent, 1))
			kill(exit_pid, SIGQUIT);
		while (gasneti_acquire(&exit_state) != LEAVING && exit_now() < end)
			exit_nap(1);
	}
	if (gasneti_cas(&exit_state, RUN, CLAIMED)) {
		exit_start(gasneti_get(gasneti_acquire(&exit_remote) ? &exit_remote_code
								     : &exit_term_code),
			0);
		/* In a thread of its own: the program may hold a stream's lock. */
		pthread_t thread;
		if (pthread_create(&thread, NULL, streams_flush_thread, NULL) == 0)
			pthread_detach(thread);
	}
}

/* Look for nodes that have died without EXIT. */
static void exit_look_for_deaths(void)
{
	exit_fewer = exit_nodes_alive() < gasneti.nodes ? exit_fewer + 1 : 0;
	if (exit_fewer < 3 || gasneti_acquire(&exit_remote))
		return;
	gasneti_set(&exit_remote_code, 1);
	gasneti_release(&exit_remote, 1);
	dprintf(STDERR_FILENO, "*** GASNet: node %u of %u: a node died\n", gasneti.me,
		gasneti.nodes);
}

static void *exit_watch(void *unused)
{
	struct timespec period = {gasneti.set.watch_ms / 1000,
		(long)(gasneti.set.watch_ms % 1000) * 1000000};
	(void)unused;
	while (gasneti_acquire(&exit_state) != LEAVING) {
		gasneti_exit_poll();
		if (exit_must_follow())
			exit_follow();
		else
			exit_look_for_deaths();
		uint32_t seen = gasneti_acquire(&exit_state);
		if (seen != LEAVING && !exit_must_follow())
			gasneti_futex_wait(&exit_state, seen, &period);
	}
	exit_leave();
	return NULL;
}

/* End the process a while after it began to leave, whatever hangs. */
static void *exit_last_resort(void *unused)
{
	uint32_t seen;
	(void)unused;
	while ((seen = gasneti_acquire(&exit_state)) != LEAVING)
		gasneti_futex_wait(&exit_state, seen, NULL);
	exit_nap((uint32_t)exit_timeout_ms + 2000 + FLUSH_MS);
	if (exit_signal)
		exit_by_signal(exit_signal);
	_exit(exit_code ? exit_code : 1);
}

/* ---- the start ---- */

static pthread_t exit_start_thread(void *(*run)(void *), const char *name)
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, run, NULL);
	if (rc)
		gasneti_fatal("no thread %s: %s", name, strerror(rc));
	pthread_setname_np(thread, name);
	return thread;
}

/* Install the handlers, and start the threads, in which all signals are blocked. */
void gasneti_exit_init(uint64_t timeout)
{
	static const int terms[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
	static const int quits[] = {SIGQUIT};
	sigset_t all, old;
	exit_pid = getpid();
	exit_timeout_ms = timeout;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	exit_watcher = exit_start_thread(exit_watch, "gasnet-watch");
	exit_start_thread(exit_last_resort, "gasnet-end");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	signal_catch(terms, 4, signal_on_term);
	signal_catch(signal_crashes, 5, signal_on_crash);
	signal_catch(quits, 1, signal_on_quit);
	on_exit(exit_on_end, NULL);
}

/* ---- errors ---- */

static const struct error {
	int code;
	const char *name, *text;
} errors[] = {
	{GASNET_OK, "GASNET_OK", "No error"},
	{GASNET_ERR_NOT_INIT, "GASNET_ERR_NOT_INIT",
		"GASNet is not initialized, or has been initialized already"},
	{GASNET_ERR_RESOURCE, "GASNET_ERR_RESOURCE", "A resource or the network failed"},
	{GASNET_ERR_BAD_ARG, "GASNET_ERR_BAD_ARG", "An argument is illegal"},
	{GASNET_ERR_NOT_READY, "GASNET_ERR_NOT_READY",
		"The operation is not complete, or the lock not free"},
	{GASNET_ERR_BARRIER_MISMATCH, "GASNET_ERR_BARRIER_MISMATCH",
		"The values of the nodes at the barrier differ"},
};

static const struct error *error_find(int code)
{
	static const struct error unknown = {.name = "unknown GASNet error",
		.text = "This number is no error of GASNet"};
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].code == code)
			return &errors[i];
	return &unknown;
}

const char *gasnet_ErrorName(int code)
{
	return error_find(code)->name;
}

const char *gasnet_ErrorDesc(int code)
{
	return error_find(code)->text;
}

/* Print a message and abort the job. */
void gasneti_fatal(const char *format, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	dprintf(STDERR_FILENO, "*** GASNet FATAL ERROR (node %u of %u): %s\n", gasneti.me,
		gasneti.nodes, text);
	if (gasneti.state == GASNETI_FRESH)
		abort();
	exit_job(128 + 6, 6, false);
}

void *gasneti_alloc(size_t n, size_t size)
{
	void *p = calloc(n, size);
	if (!p)
		gasneti_fatal("no memory for %zu times %zu bytes", n, size);
	return p;
}

void gasneti_portals_failed(const char *call, int rc)
{
	gasneti_fatal("%s: %s", call, PtlErrorStr((unsigned)rc));
}

void gasneti_no_node(uint32_t node)
{
	gasneti_fatal("a put, get or memset to node %u; expected 0 to %u", node,
		gasneti.nodes - 1);
}

/*
 * An operation failed since its peer has died: end the job.  If the peer has left, its
 * EXIT is here, and the watch thread ends this process with its code.
 */
void gasneti_peer_died(uint32_t node)
{
	gasneti_exit_poll();
	while (gasneti_acquire(&exit_remote) &&
		!pthread_equal(pthread_self(), exit_watcher))
		pause();
	char target[32] = "its target";
	if (node != gasneti.me)
		snprintf(target, sizeof(target), "node %u", node);
	dprintf(STDERR_FILENO, "*** GASNet (node %u of %u): a message failed: %s died\n",
		gasneti.me, gasneti.nodes, target);
	exit_job(1, 0, false);
}
