/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * in_malloc [real] - calls from a signal handler that has interrupted malloc call
 * neither malloc nor free; the interface grows meanwhile, into its second host segment
 *
 * Rank 0's handler runs in the middle of its own malloc, first in a thread that has
 * made no call of the library.  It makes more entries, descriptors and queues than
 * there is room for, sends more to rank 1, which is stopped, than the pool of pendings
 * holds, and makes all enquiries.  Afterwards all of it must have happened.
 *
 * Hugepages are simulated: memfds without them, of which the host segment has two.
 * With "real" they are the machine's, which needs one at least.
 */
#include "../mp/mp.h"
#include "../support/asleep.h"
#include "shm/atomics.h"

#include <cnos_mpi_os.h>
#include <dlfcn.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *at, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *at);

enum { ENTRIES = 3000, PUTS = 3000, QUEUES = 6 };
enum { QUEUE_EVENTS = 1 << 13 }; /* larger queues have memory of their own */
enum { BITS = 1, PID, WORD, SPARE, HUGE_LEN = 2 << 20, HUGE_PAGES = 2 };

/* ---- the system ---- */

static __thread bool armed, in_handler;
static __thread const char *violation;
static bool real_ones;
static p3_a32 second_segments;
static ino_t host; /* of the last segment with hugepages */

/* Each way into the allocator: signals come here, and handlers must not. */
static void enter(const char *name)
{
	if (in_handler)
		violation = name;
	if (!armed)
		return;
	armed = false;
	(void)raise(SIGUSR1);
}

void *malloc(size_t n)
{
	enter("malloc");
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
	enter("calloc");
	return __libc_calloc(n, each);
}

void *realloc(void *at, size_t n)
{
	enter("realloc");
	return __libc_realloc(at, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	enter("aligned_alloc");
	return __libc_memalign(align, n);
}

void free(void *at)
{
	enter("free");
	__libc_free(at);
}

int memfd_create(const char *name, unsigned flags)
{
	struct stat st;
	unsigned kept = real_ones ? flags : flags & ~(MFD_HUGETLB | MFD_HUGE_2MB);
	int fd = (int)syscall(SYS_memfd_create, name, kept);
	if (fd < 0 || strcmp(name, "p3-host") != 0 || fstat(fd, &st) != 0)
		return fd;
	if (flags & MFD_HUGETLB)
		host = st.st_ino;
	else
		p3_add32(&second_segments, 1);
	return fd;
}

static bool is_short(int fd, long end)
{
	struct stat st;
	return !real_ones && end > HUGE_PAGES * HUGE_LEN && fstat(fd, &st) == 0 &&
	       st.st_ino == host;
}

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	long a[6];
	va_list args;
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_fallocate && is_short((int)a[0], a[2] + a[3])) {
		errno = ENOSPC;
		return -1;
	}
	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- in the handler ---- */

static struct {
	ptl_handle_md_t md, get, one, other;
	ptl_handle_me_t me;
	ptl_handle_eq_t eq, grown[QUEUES];
	uint64_t word[2];
} mine;

static const char *wrong; /* the first wrong call in the handler */

static void want(const char *call, int rc)
{
	if (rc != PTL_OK && !wrong)
		wrong = call;
}

#define OK(call) want(#call, call)

static void ask(void)
{
	ptl_process_id_t id;
	ptl_nid_t nids[2];
	ptl_pid_t pids[2];
	ptl_uid_t uid;
	ptl_jid_t jid;
	ptl_sr_value_t drops;
	ptl_handle_ni_t ni;
	ptlx_stats_t stats = {.struct_size = sizeof stats};
	unsigned long distance;
	unsigned rank, size;
	OK(PtlGetId(mp.ni, &id));
	OK(PtlGetUid(mp.ni, &uid));
	OK(PtlGetJid(mp.ni, &jid));
	OK(PtlNIHandle(mine.md, &ni));
	OK(PtlNIDist(mp.ni, mp.id[1], &distance));
	OK(PtlGetRank(mp.ni, &rank, &size));
	OK(PtlGetRankId(mp.ni, 1, &id));
	OK(PtlGetNIDMap(mp.ni, nids, 2));
	OK(PtlGetPIDMap(mp.ni, pids, 2));
	OK(PtlXStats(mp.ni, &stats));
	OK(PtlNIStatus(mp.ni, PTL_SR_DROP_COUNT, &drops));
	OK(PtlProgress(mp.ni, 0));
	OK(!PtlErrorStr(PTL_FAIL) || !PtlNIFailStr(mp.ni, PTL_NI_OK));
	OK(cnos_get_rank() != 0 || cnos_get_size() != 2);
}

static void make_queues(void)
{
	for (int i = 0; i < QUEUES; i++)
		OK(PtlEQAlloc(mp.ni, QUEUE_EVENTS, PTL_EQ_HANDLER_NONE, &mine.grown[i]));
}

static void make_entries(void)
{
	ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = mp_region(mine.word, 8, PTL_MD_OP_PUT, mine.grown[0]);
	ptl_handle_me_t me = mine.me;
	ptl_handle_md_t mdh;
	for (int i = 0; i < ENTRIES; i++) {
		OK(PtlMEInsert(me, any, SPARE + 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
		OK(PtlMDAttach(me, md, PTL_RETAIN, &mdh));
		OK(PtlMDUpdate(mdh, NULL, &md, PTL_EQ_NONE));
		OK(i % 2 ? PtlMDUnlink(mdh) : PTL_OK);
		OK(i % 2 ? PtlMEUnlink(me) : PTL_OK);
		me = i % 2 ? mine.me : me;
	}
	OK(PtlACEntry(mp.ni, 5, any, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
}

static void start_operations(void)
{
	for (unsigned i = 0; i < PUTS; i++)
		OK(PtlPut(mine.md, PTL_ACK_REQ, mp.id[1], MP_PORTAL, 0, BITS, 0, i));
	OK(PtlGet(mine.get, mp.id[1], MP_PORTAL, 0, WORD, 0));
	OK(PtlGetPut(mine.one, mine.other, mp.id[1], MP_PORTAL, 0, SPARE, 0, 0));
}

static void read_queues(void)
{
	ptl_event_t ev;
	int which;
	want("empty PtlEQGet", PtlEQGet(mine.grown[1], &ev) != PTL_EQ_EMPTY);
	want("empty PtlEQPeek", PtlEQPeek(mine.grown[1], &ev) != PTL_EQ_EMPTY);
	want("empty PtlEQPoll",
		PtlEQPoll(&mine.grown[1], 2, 0, &ev, &which) != PTL_EQ_EMPTY);
	OK(PtlEQFree(mine.grown[2]));
}

static p3_a32 handled;

static void handler(int number)
{
	(void)number;
	in_handler = true;
	if (p3_add32(&handled, 1) == 0) {
		ask();
		in_handler = false;
		return;
	}
	make_queues();
	make_entries();
	start_operations();
	read_queues();
	ask();
	in_handler = false;
}

static void interrupt_malloc(void)
{
	void *volatile block;
	uint32_t before = p3_get(&handled);
	armed = true;
	block = malloc(100);
	free(block);
	mp_check(p3_get(&handled) == before + 1, "no handler has run");
	mp_check(!violation, "a handler's call calls %s", violation);
	mp_check(!wrong, "in a handler that has interrupted malloc: %s", wrong);
}

static void *new_thread(void *arg)
{
	interrupt_malloc();
	return arg;
}

/* ---- the ranks ---- */

static pid_t stop_other(void)
{
	static pid_t pid;
	ptl_handle_eq_t eq = mp_queue(8);
	ptl_handle_md_t md = mp_bind(&pid, sizeof pid, eq, 0);
	mp_get(md, 0, sizeof pid, 1, PID, 0);
	(void)mp_expect(eq, PTL_EVENT_REPLY_END);
	mp_check(kill(pid, SIGSTOP) == 0 && await_stopped(pid), "cannot stop rank 1");
	return pid;
}

/* Wait until all that was started in the handler is over, this number of times in a
 * row. */
static void all_has_happened(void)
{
	unsigned acks = 0, replies = 0;
	while (acks < PUTS || replies < 2) {
		ptl_event_t ev = mp_next(mine.eq);
		mp_check(ev.ni_fail_type == PTL_NI_OK, "an operation fails");
		acks += ev.type == PTL_EVENT_ACK;
		replies += ev.type == PTL_EVENT_REPLY_END;
	}
	mp_check(mine.word[0] == 77 && mine.word[1] == 88, "other words: %llu, %llu",
		(unsigned long long)mine.word[0], (unsigned long long)mine.word[1]);
}

static void source(void)
{
	static uint64_t swapped = 99;
	ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	struct sigaction act = {.sa_handler = handler};
	pthread_t other;
	mine.eq = mp_queue(1 << 13);
	mine.md = mp_bind(mp_pattern, 200, mine.eq, PTL_MD_EVENT_END_DISABLE);
	mine.get = mp_bind(&mine.word[0], 8, mine.eq, 0);
	mine.one = mp_bind(&mine.word[1], 8, mine.eq, 0);
	mine.other = mp_bind(&swapped, 8, mine.eq, 0);
	mp_ok(PtlMEAttach(mp.ni, MP_PORTAL + 1, any, SPARE, 0, PTL_RETAIN, PTL_INS_AFTER,
		&mine.me));
	mp_check(sigaction(SIGUSR1, &act, NULL) == 0, "sigaction");
	mp_check(!p3_get(&second_segments), "there is a second segment already");
	pid_t pid = stop_other();
	mp_check(pthread_create(&other, NULL, new_thread, NULL) == 0 &&
			 pthread_join(other, NULL) == 0,
		"no thread");
	interrupt_malloc();
	mp_check(p3_get(&second_segments) == 1, "%u second segments",
		p3_get(&second_segments));
	mp_check(kill(pid, SIGCONT) == 0, "cannot wake rank 1");
	all_has_happened();
}

static void target(void)
{
	static uint64_t word[2] = {77, 88};
	static pid_t pid;
	pid = getpid();
	unsigned options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
	(void)mp_attach(BITS, mp_pattern, 200, options, PTL_EQ_NONE);
	(void)mp_attach(PID, &pid, sizeof pid, options, PTL_EQ_NONE);
	(void)mp_attach(WORD, &word[0], 8, options, PTL_EQ_NONE);
	(void)mp_attach(SPARE, &word[1], 8, options, PTL_EQ_NONE);
	mp_barrier();
	mp_barrier();
	mp_check(word[1] == 99, "the exchange brought %llu", (unsigned long long)word[1]);
}

int main(int argc, char **argv)
{
	real_ones = argc > 1 && strcmp(argv[1], "real") == 0;
	mp_start();
	if (mp.rank) {
		target();
	} else {
		mp_barrier();
		source();
		mp_barrier();
		printf("# tried: %d calls\n", ENTRIES + PUTS + QUEUES);
	}
	mp_end();
	return 0;
}
