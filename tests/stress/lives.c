/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lives - a job whose first rank runs out of a resource, at any call of its life: by
 * shim.c, or by a limit of its own
 *
 *	lives [nofile|fsize|as|memlock N]	N more descriptors than it has, files
 *					of N bytes, N MiB more of address space,
 *					N MiB more of memory when all is locked
 *
 * Three lives: PtlInit, PtlNIInit, queues, descriptors, verified puts and gets of all
 * kinds both ways, PtlFini.  A call may fail with its documented code; it is repeated,
 * and from then on there is enough.  Nothing else may happen: each message arrives once
 * with its bytes and events, for both ranks.
 */
#include "../mp/mp.h"
#include "../support/memory.h"

#include <dlfcn.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LIVES = 3, EACH = 12, SMALL = 8, EAGER = 600, LONG = 50000, KINDS = 4 };

static const ptl_size_t length[KINDS] = {SMALL, EAGER, LONG, LONG};

static unsigned refused, huge;
static ptl_handle_eq_t eq;

/* ---- limits ---- */

static struct {
	int what; /* RLIMIT_*, -1: none */
	rlim_t least;
	struct rlimit was;
	unsigned reached; /* number of times that the limit was reached */
} limit = {.what = -1};

/* Lock all memory, also later one, and give up root's right to exceed the limit. */
static void lock_all(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];
	mp_check(mlockall(MCL_CURRENT | MCL_FUTURE) == 0, "mlockall");
	mp_check(syscall(SYS_capget, &head, caps) == 0, "capget");
	caps[0].effective &= ~(1u << CAP_IPC_LOCK);
	mp_check(syscall(SYS_capset, &head, caps) == 0, "capset");
}

/* Return the resources in use; descriptors are numbered from 0. */
static rlim_t used(void)
{
	if (limit.what == RLIMIT_NOFILE) {
		int lowest = dup(0);
		close(lowest);
		return (rlim_t)lowest;
	}
	if (limit.what == RLIMIT_MEMLOCK)
		return (rlim_t)memory_kib("VmLck") << 10;
	return limit.what == RLIMIT_AS ? (rlim_t)memory_kib("VmSize") << 10 : 0;
}

static void be_short(void)
{
	if (limit.what < 0)
		return;
	struct rlimit now = limit.was;
	now.rlim_cur = used() + limit.least;
	if (now.rlim_cur > now.rlim_max)
		now.rlim_cur = now.rlim_max;
	mp_check(setrlimit((unsigned)limit.what, &now) == 0, "setrlimit");
}

static void set_limit(const char *what, const char *n)
{
	unsigned long long least = strtoull(n, NULL, 10);
	const char *rank = getenv("PTL_MY_RID");
	if (rank && strcmp(rank, "0") != 0)
		return;
	limit.what = !strcmp(what, "nofile")    ? RLIMIT_NOFILE
		     : !strcmp(what, "fsize")   ? RLIMIT_FSIZE
		     : !strcmp(what, "memlock") ? RLIMIT_MEMLOCK
						: RLIMIT_AS;
	limit.least = limit.what == RLIMIT_AS || limit.what == RLIMIT_MEMLOCK
			      ? least << 20
			      : least;
	mp_check(getrlimit((unsigned)limit.what, &limit.was) == 0, "getrlimit");
	if (limit.what == RLIMIT_MEMLOCK)
		lock_all();
}

static void enough(void)
{
	void (*relax)(void);
	void *found = dlsym(RTLD_DEFAULT, "shim_relax");
	memcpy(&relax, &found, sizeof relax);
	if (found)
		relax();
	if (limit.what >= 0)
		setrlimit((unsigned)limit.what, &limit.was);
	if (limit.what == RLIMIT_MEMLOCK)
		(void)munlockall();
	limit.reached++;
}

/* ---- the shim, if it is loaded ---- */

static unsigned shim(const char *name)
{
	unsigned (*number)(void);
	void *found = dlsym(RTLD_DEFAULT, name);
	memcpy(&number, &found, sizeof number);
	return found ? number() : 0;
}

/* Return true if a call failed for a passing reason and must be repeated. */
static bool again(int rc, int may_be, const char *what)
{
	static unsigned tries;
	if (rc == PTL_OK)
		return false;
	mp_check(rc == may_be, "%s gives %s, not %s", what, PtlErrorStr((unsigned)rc),
		PtlErrorStr((unsigned)may_be));
	mp_check(++tries < 20000, "%s never succeeds", what);
	refused++;
	if (strstr(what, "Init("))
		printf("refused %s\n", what);
	enough();
	return true;
}

#define do_it(call, may_be)                                                              \
	while (again(call, may_be, #call))                                               \
	sleep_ms(1) /* pause: between two tries */

/* ---- one life ---- */

struct room {
	char *start;
	ptl_handle_md_t md;
};

static ptl_handle_md_t bind(void *start, ptl_size_t len, ptl_handle_eq_t to)
{
	ptl_handle_md_t md;
	do_it(PtlMDBind(mp.ni,
		      (ptl_md_t){.start = start,
			      .length = len,
			      .threshold = PTL_MD_THRESH_INF,
			      .options = PTL_MD_EVENT_START_DISABLE,
			      .user_ptr = start,
			      .eq_handle = to},
		      PTL_RETAIN, &md),
		PTL_NO_SPACE);
	return md;
}

static void attach(ptl_match_bits_t bits, void *start, ptl_size_t len, unsigned options)
{
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	do_it(PtlMEAttach(
		      mp.ni, MP_PORTAL, anyone, bits, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_NO_SPACE);
	do_it(PtlMDAttach(me,
		      (ptl_md_t){.start = start,
			      .length = len,
			      .threshold = PTL_MD_THRESH_INF,
			      .options = options | PTL_MD_MANAGE_REMOTE |
					 PTL_MD_EVENT_START_DISABLE,
			      .eq_handle = eq},
		      PTL_RETAIN, &md),
		PTL_NO_SPACE);
}

/* Return a block; one of the last kind is in the shared heap, if that has room. */
static char *block(unsigned kind, ptl_size_t len)
{
	void *at;
	if (kind < KINDS - 1)
		return calloc(1, len);
	do_it(PtlXAlloc(len, &at), PTL_NO_SPACE);
	memset(at, 0, len);
	return at;
}

static uint64_t seed(unsigned life, unsigned kind, unsigned i)
{
	return (uint64_t)(life * KINDS + kind) * EACH + i;
}

static char *pieces(unsigned life, unsigned kind, unsigned to)
{
	char *at = block(kind, EACH * length[kind]);
	for (unsigned i = 0; i < EACH; i++)
		memcpy(at + i * length[kind],
			mp_pattern + mp_cut(mp.rank, to, seed(life, kind, i)),
			length[kind]);
	return at;
}

static void compare(const char *at, unsigned life, unsigned kind, unsigned from,
	unsigned to, const char *what)
{
	for (unsigned i = 0; i < EACH; i++)
		mp_check(mp_same(at + i * length[kind], from, to, seed(life, kind, i),
				 length[kind]),
			"life %u: %s %u of kind %u is wrong", life, what, i, kind);
}

/* Make no calls for a while, so that a call that waits for room gets it. */
static ptl_event_t next(void)
{
	ptl_event_t ev;
	struct patience p = patience_begin();
	for (unsigned i = 0; !patience_is_over(&p); i++) {
		if (mp_next_within(eq, 20, &ev)) {
			mp_check(ev.ni_fail_type == PTL_NI_OK, "%s failed",
				PtlEventKindStr(ev.type));
			return ev;
		}
		if (i > 2)
			enough();
	}
	mp_fail(__FILE__, __LINE__, "an event is missing");
}

static void send_all(ptl_handle_md_t out, ptl_handle_md_t in, unsigned kind)
{
	for (unsigned i = 0; i < EACH; i++) {
		ptl_size_t off = i * length[kind];
		ptl_process_id_t to = mp.id[1 - mp.rank];
		do_it(PtlPutRegion(out, off, length[kind], PTL_ACK_REQ, to, MP_PORTAL, 0,
			      kind, off, i),
			PTL_NO_SPACE);
		do_it(PtlGetRegion(
			      in, off, length[kind], to, MP_PORTAL, 0, KINDS + kind, off),
			PTL_NO_SPACE);
	}
}

static void traffic(unsigned life)
{
	unsigned other = 1 - mp.rank, seen[PTL_EVENT_UNLINK + 1] = {0};
	char *out[KINDS], *in[KINDS], *theirs[KINDS];
	ptl_handle_md_t mine[KINDS], got[KINDS];
	for (unsigned k = 0; k < KINDS; k++) {
		ptl_size_t len = EACH * length[k];
		out[k] = pieces(life, k, other);
		in[k] = block(0, len);
		theirs[k] = block(0, len);
		mine[k] = bind(out[k], len, eq);
		got[k] = bind(in[k], len, eq);
		attach(k, theirs[k], len, PTL_MD_OP_PUT);
		attach(KINDS + k, out[k], len, PTL_MD_OP_GET);
	}
	mp_barrier();
	for (unsigned k = 0; k < KINDS; k++)
		send_all(mine[k], got[k], k);
	for (unsigned left = 5 * KINDS * EACH; left; left--)
		seen[next().type]++;
	mp_check(seen[PTL_EVENT_SEND_END] == KINDS * EACH &&
			 seen[PTL_EVENT_ACK] == KINDS * EACH &&
			 seen[PTL_EVENT_REPLY_END] == KINDS * EACH &&
			 seen[PTL_EVENT_PUT_END] == KINDS * EACH &&
			 seen[PTL_EVENT_GET_END] == KINDS * EACH,
		"events are missing");
	mp_barrier();
	for (unsigned k = 0; k < KINDS; k++) {
		compare(in[k], life, k, other, mp.rank, "get");
		compare(theirs[k], life, k, other, mp.rank, "put");
		free(in[k]);
		free(theirs[k]);
		if (k < KINDS - 1)
			free(out[k]);
		else
			mp_ok(PtlXFree(out[k]));
	}
}

static void make_pattern(void)
{
	uint64_t *words = malloc(MP_PATTERN);
	mp_check(words, "no memory");
	for (size_t i = 0; i < MP_PATTERN / sizeof *words; i++)
		words[i] = mp_mix(i + 1);
	mp_pattern = (unsigned char *)words;
}

static void live(unsigned life)
{
	int most;
	ptlx_stats_t st = {.struct_size = sizeof st};
	be_short();
	do_it(PtlInit(&most), PTL_FAIL);
	do_it(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &mp.ni),
		PTL_NO_SPACE);
	mp_ok(PtlGetRank(mp.ni, &mp.rank, &mp.size));
	mp_check(mp.size == 2, "two ranks, please");
	for (unsigned i = 0; i < mp.size; i++)
		mp_ok(PtlGetRankId(mp.ni, i, &mp.id[i]));
	do_it(PtlEQAlloc(mp.ni, 1024, PTL_EQ_HANDLER_NONE, &eq), PTL_NO_SPACE);
	traffic(life);
	mp_ok(PtlXStats(mp.ni, &st));
	mp_check(!st.bad_headers && !st.drops, "bad headers or drops");
	huge = (unsigned)st.hugepages;
	mp_barrier();
	PtlFini();
}

int main(int argc, char **argv)
{
	make_pattern();
	if (argc > 2)
		set_limit(argv[1], argv[2]);
	for (unsigned i = 0; i < LIVES; i++)
		live(i);
	printf("fine %u: %u calls, %u failed, %u told, %u waited for room, %u huge\n",
		mp.rank, shim("shim_calls"), shim("shim_failed"), refused, limit.reached,
		huge);
	return 0;
}
