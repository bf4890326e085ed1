/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.c - the start of a node: settings, init, attach, segments, and questions about the
 * job.  The functions that programs call for init and attach are in mode.c.
 *
 * gasnet_init opens the interface and learns ids, hosts and largest segments;
 * gasnet_attach makes the segment and everything that receives.  Both exchange 16 bytes
 * with each node through a table that the others write, between two barriers of all
 * nodes: the first makes sure that all tables can be written, the second that all are
 * complete.
 */
#include <math.h>
#include <strings.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define HEAP_MOST  ((uint64_t)1 << 30)
#define HEAP_EXTRA ((uint64_t)16 << 20)
#define LEAST_MAX  ((uint64_t)64 << 20)

enum { HOST_SHIFT = 48 }; /* of the first node of a host, above its credit settings */

struct gasneti_node gasneti = {.waitmode = -1};

/* ---- settings (GASNET_VERBOSEENV=1 lets node 0 print them) ---- */

static void setting_show(const char *name, const char *value, bool given)
{
	if (gasneti.set.verbose && gasneti.me == 0)
		fprintf(stderr, "ENV parameter: %s = %s%s\n", name, value,
			given ? "" : "   (default)");
}

static void setting_wrong(const char *name, const char *value, const char *expected)
{
	gasneti_fatal("%s is '%s'; expected %s", name, value, expected);
}

/* Read a number with an optional suffix; return false if the setting is not there.  End
 * the job if it is out of range. */
static bool setting_read_number(
	const char *name, double least, double most, double *number)
{
	const char *text = getenv(name);
	char expected[80], *end;
	if (!text || !*text)
		return false;
	*number = strtod(text, &end);
	int shift = *end ? gasneti_suffix_shift(end) : 0;
	*number = ldexp(*number, shift);
	if (end == text || shift < 0 || !(*number >= least) || *number > most) {
		snprintf(expected, sizeof(expected), "a number from %.15g to %.15g",
			least, most);
		setting_wrong(name, text, expected);
	}
	return true;
}

/* Read a whole number. */
static uint64_t setting_whole(
	const char *name, uint64_t by_default, uint64_t least, uint64_t most)
{
	double number;
	char shown[32];
	bool given = setting_read_number(name, (double)least, (double)most, &number);
	uint64_t value = given ? (uint64_t)number : by_default;
	snprintf(shown, sizeof(shown), "%llu", (unsigned long long)value);
	setting_show(name, shown, given);
	return value;
}

static double setting_real(const char *name, double by_default, double least, double most)
{
	double value = by_default;
	char shown[32];
	bool given = setting_read_number(name, least, most, &value);
	snprintf(shown, sizeof(shown), "%g", value);
	setting_show(name, shown, given);
	return value;
}

static uint32_t setting_number(
	const char *name, uint64_t by_default, uint64_t least, uint64_t most)
{
	return (uint32_t)setting_whole(name, by_default, least, most);
}

/* Read a word of a list that NULL ends; return its index. */
static int setting_choice(const char *name, const char *const *words, int by_default)
{
	const char *text = getenv(name);
	int index = by_default;
	if (text && *text) {
		char all[128] = "one of"; /* the words before that of the text */
		for (index = 0; words[index] && strcasecmp(words[index], text); index++) {
			size_t used = strlen(all);
			snprintf(all + used, sizeof(all) - used, " %s", words[index]);
		}
		if (!words[index])
			setting_wrong(name, text, all);
	}
	setting_show(name, words[index], text && *text);
	return index;
}

/* Read a switch: 0 or 1, no or yes. */
static bool setting_is_on(const char *name, bool by_default)
{
	static const char *const words[] = {
		"0", "1", "no", "yes", "n", "y", "off", "on", "false", "true", NULL};
	return setting_choice(name, words, by_default) % 2;
}

static void settings_read_credits(struct gasneti_settings *set)
{
	uint32_t n = gasneti.nodes, peers = n > 1 ? n - 1 : 1;
	uint32_t share = 2048 / peers, tens = n < 64 ? n : 64;
	share = share < GASNETI_MIN_CREDITS ? GASNETI_MIN_CREDITS
		: share > 128               ? 128
					    : share;
	set->flow_control = setting_is_on("GASNET_PORTAL_FLOW_CONTROL", true);
	set->dynamic = setting_is_on("GASNET_PORTAL_DYNAMIC_CREDITS", true);
	set->max_credits = setting_number(
		"GASNET_PORTAL_MAX_CRED_PER_NODE", 400, GASNETI_MIN_CREDITS, 10000);
	set->credits = setting_number("GASNET_PORTAL_CRED_PER_NODE", share,
		GASNETI_MIN_CREDITS, set->max_credits);
	set->banked = setting_number(
		"GASNET_PORTAL_BANKED_CREDITS", 512 + 64 * tens, 0, 1000000);
	set->epoch = setting_number("GASNET_PORTAL_EPOCH_DURATION", 1024, 1, 1000000);
	set->lend_limit = setting_number("GASNET_PORTAL_LENDER_LIMIT", 32, 0, 10000);
	set->revoke_limit = setting_number("GASNET_PORTAL_REVOKE_LIMIT", 32, 0, 10000);
	set->scavenge = setting_number("GASNET_PORTAL_SCAVENGE_BREADTH", 6, 1, 1024);
}

static void settings_read_local(struct gasneti_settings *set)
{
	static const char *const modes[] = {"all", "bounce", "tmpmd", "firehose", NULL};
	static const char *const segments[] = {"auto", "heap", "mmap", NULL};
	set->local = setting_choice("GASNET_PORTAL_LOCAL", modes, GASNETI_LOCAL_ALL);
	set->segment = *segments[setting_choice("GASNET_PORTAL_SEGMENT", segments, 0)];
	set->bounce_limit = setting_number(
		"GASNET_PORTAL_PUTGET_BOUNCE_LIMIT", GASNETI_CHUNK, 0, GASNETI_CHUNK);
	set->tmpmds = setting_number("GASNET_PORTAL_NUM_TMPMD", 1024, 1, 0x3fff);
	set->fh_region = setting_whole("GASNET_FIREHOSE_MAXREGION_SIZE", 128 << 10,
				 2 * GASNET_PAGESIZE, 1 << 30) &
			 ~(uint64_t)(GASNET_PAGESIZE - 1);
	set->fh_regions = setting_whole("GASNET_FIREHOSE_R", 1024, 2, 0x7fff);
	set->fh_bytes = setting_whole("GASNET_FIREHOSE_M",
		set->fh_regions * set->fh_region, 2 * set->fh_region, UINT64_MAX / 2);
}

static void settings_read(void)
{
	struct gasneti_settings *set = &gasneti.set;
	set->verbose = setting_is_on("GASNET_VERBOSEENV", false);
	set->max_threads = setting_number(
		"GASNET_MAX_THREADS", GASNETI_MAX_THREADS, 1, GASNETI_MAX_THREADS);
	set->msg_limit = setting_number("GASNET_PORTAL_MSG_LIMIT", 1024, 12, 100000);
	set->sb_chunks = setting_number("GASNET_PORTAL_SB_CHUNKS", 256, 2, 0x3ff0);
	set->rpl_chunks = setting_number("GASNET_PORTAL_RPL_CHUNKS", 64, 1, 0x3ff0);
	set->handlers =
		GASNETI_THREADS ? setting_number("GASNET_PORTAL_HANDLERS", 4, 1, 64) : 1;
	set->safe_limit = setting_number("GASNET_PORTAL_SAFE_LIMIT", 12, 0, 100000);
	set->am_limit = setting_number("GASNET_PORTAL_AM_LIMIT", 8, 0, 100000);
	set->safe_limit = set->safe_limit ? set->safe_limit : UINT32_MAX;
	set->am_limit = set->am_limit ? set->am_limit : UINT32_MAX;
	set->watch_ms = setting_number("GASNET_PORTAL_WATCH_MS", 200, 1, 10000);
	set->packed = setting_is_on("GASNET_PORTAL_PACKED_LONG", true);
	set->stats = setting_is_on("GASNET_PORTAL_STATS", false);
	settings_read_credits(set);
	settings_read_local(set);
}

/* Return the milliseconds that a coordinated end may take. */
static uint64_t setting_exit_ms(void)
{
	enum { MOST = 1000000 };
	double most = setting_real("GASNET_EXITTIMEOUT_MAX", 360, 0.001, MOST);
	double least = setting_real("GASNET_EXITTIMEOUT_MIN", 3, 0, MOST);
	double each = setting_real("GASNET_EXITTIMEOUT_FACTOR", 0.125, 0, MOST);
	double sum = least + gasneti.nodes * each;
	double seconds =
		setting_real("GASNET_EXITTIMEOUT", sum < most ? sum : most, 0.001, MOST);
	return (uint64_t)(seconds * 1000);
}

/* ---- the largest segment ---- */

/* Return MemAvailable of the host, bytes. */
static uint64_t core_memory_available(void)
{
	char line[128];
	unsigned long long kib = 0;
	FILE *f = fopen("/proc/meminfo", "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return (uint64_t)kib << 10;
}

static uint64_t core_max_segment(void)
{
	return setting_whole(
		"GASNET_MAX_SEGSIZE", UINT64_MAX / 2, GASNET_PAGESIZE, UINT64_MAX / 2);
}

static uintptr_t core_max_local(void)
{
#ifdef GASNET_SEGMENT_EVERYTHING
	return (uintptr_t)-1;
#else
	uint64_t share = core_memory_available() / 10 * 8 / gasneti.near;
	uint64_t most = core_max_segment();
	share = share < LEAST_MAX ? LEAST_MAX : share;
	share = share < most ? share : most;
	return share & ~(uint64_t)(GASNET_PAGESIZE - 1);
#endif
}

/* ---- the exchange at the start ---- */

/* Meet all nodes; end with the job if a node has left or died. */
static int core_meet(void)
{
	if (PtlXBarrier() == PTL_OK)
		return GASNET_OK;
	struct timespec second = {1, 0};
	nanosleep(&second, NULL); /* the watch thread ends the process if EXIT has come */
	gasneti_fatal("a node died while the job started");
}

/* Tell two numbers to all nodes; their numbers are in gasneti.table when it returns.  A
 * barrier must follow before the next exchange, which writes the table again. */
static void core_exchange(uint64_t a, uint64_t b)
{
	uint64_t at = gasneti.me * sizeof(*gasneti.table);
	ptl_event_t ev;
	gasneti.table[gasneti.me][0] = a;
	gasneti.table[gasneti.me][1] = b;
	for (uint32_t i = 0; i < gasneti.nodes; i++)
		if (i != gasneti.me)
			gasneti_must(
				PtlPutRegion(gasneti.table_md, at, sizeof(*gasneti.table),
					PTL_ACK_REQ, gasneti.peers[i].id, GASNETI_AM_PTE,
					0, GASNETI_MD_TABLE, at, 0),
				"PtlPutRegion");
	for (uint32_t acks = gasneti.nodes - 1; acks;) {
		int which, rc = PtlEQPoll(&gasneti.safe_eq, 1, 1000, &ev, &which);
		if (rc == PTL_OK && ev.ni_fail_type != PTL_NI_OK)
			gasneti_fatal("a node died while the job started");
		if (rc == PTL_OK && ev.type == PTL_EVENT_ACK)
			acks--;
	}
	core_meet();
	/* The events of the others' numbers are there after the barrier, which follows
	 * the ACKs.  That alone orders the bytes, too, but through other processes; by
	 * the events the thread that wrote the bytes tells this one directly. */
	for (uint32_t i = 1; i < gasneti.nodes; i++)
		gasneti_must(PtlEQGet(gasneti.sys_eq, &ev), "PtlEQGet");
}

/* ---- gasnet_init ---- */

static ptl_handle_eq_t core_queue(uint32_t events)
{
	ptl_handle_eq_t eq;
	gasneti_must(
		PtlEQAlloc(gasneti.ni, events, PTL_EQ_HANDLER_NONE, &eq), "PtlEQAlloc");
	return eq;
}

/* Make the queues: each holds all events that can be unread at a time. */
static void make_queues(void)
{
	const struct gasneti_settings *set = &gasneti.set;
	gasneti.safe_eq =
		core_queue(2 * set->msg_limit + 3 * set->sb_chunks + set->rpl_chunks +
			   2 * GASNETI_BARRIER_STEPS + 2 * gasneti.nodes + 64);
	gasneti.am_eq = core_queue(gasneti_credits_total() * 2 + 64);
	gasneti.sys_eq = core_queue(2 * gasneti.nodes + 16);
	gasneti.exit_eq = core_queue(4 * gasneti.nodes + 64);
}

static void core_make_targets(void)
{
	size_t bytes = gasneti.nodes * sizeof(*gasneti.table);
	unsigned empty = PTL_MD_TRUNCATE | PTL_MD_ACK_DISABLE;
	gasneti.table = gasneti_alloc(gasneti.nodes, sizeof(*gasneti.table));
	gasneti_attach_target(
		GASNETI_AM_PTE, GASNETI_MD_SYS, NULL, 0, empty, gasneti.sys_eq, NULL);
	gasneti_attach_target(GASNETI_AM_PTE, GASNETI_MD_BARRIER, NULL, 0, empty,
		gasneti.safe_eq, NULL);
	gasneti_attach_target(GASNETI_AM_PTE, GASNETI_MD_EXIT, NULL, 0, PTL_MD_TRUNCATE,
		gasneti.exit_eq, NULL);
	gasneti_attach_target(GASNETI_AM_PTE, GASNETI_MD_TABLE, gasneti.table, bytes,
		PTL_MD_MANAGE_REMOTE, gasneti.sys_eq, NULL);
	gasneti.table_md = gasneti_bind(gasneti.table, bytes, 0, gasneti.safe_eq);
	gasneti.none = gasneti_bind(NULL, 0, 0, PTL_EQ_NONE);
	gasneti.exit_md = gasneti_bind(NULL, 0, 0, gasneti.exit_eq);
}

static int core_open_network(void)
{
	unsigned rank = 0, size = 1;
	int most, rc = PtlInit(&most);
	if (rc == PTL_OK)
		rc = PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &gasneti.ni);
	if (rc != PTL_OK && rc != PTL_IFACE_DUP) {
		fprintf(stderr, "gasnet_init: the network cannot be opened: %s\n",
			PtlErrorStr((unsigned)rc));
		return GASNET_ERR_RESOURCE;
	}
	if (PtlGetRank(gasneti.ni, &rank, &size) != PTL_OK)
		rank = 0, size = 1;
	if (size > GASNET_MAXNODES) {
		fprintf(stderr, "gasnet_init: the job has %u nodes; %u are possible\n",
			size, GASNET_MAXNODES);
		return GASNET_ERR_RESOURCE;
	}
	gasneti.me = rank;
	gasneti.nodes = size;
	return GASNET_OK;
}

static void ids_hash(void)
{
	uint32_t size = 4;
	while (size < 2 * gasneti.nodes)
		size *= 2;
	gasneti.hash = gasneti_alloc(size, sizeof(*gasneti.hash));
	gasneti.hash_mask = size - 1;
	for (uint32_t node = 0; node < gasneti.nodes; node++) {
		uint32_t i = gasneti_hash_of(gasneti.peers[node].id);
		while (gasneti.hash[i & gasneti.hash_mask])
			i++;
		gasneti.hash[i & gasneti.hash_mask] = node + 1;
	}
}

static void ids_learn(void)
{
	gasneti.peers = gasneti_alloc(gasneti.nodes, sizeof(*gasneti.peers));
	for (uint32_t i = 0; i < gasneti.nodes; i++) {
		static const gasneti_lock_t unlocked = GASNETI_UNLOCKED;
		struct gasneti_peer *peer = &gasneti.peers[i];
		peer->lock = unlocked;
		if (gasneti.nodes == 1)
			gasneti_must(PtlGetId(gasneti.ni, &peer->id), "PtlGetId");
		else
			gasneti_must(
				PtlGetRankId(gasneti.ni, i, &peer->id), "PtlGetRankId");
	}
	ids_hash();
}

/* Count the nodes of this host; return the first one. */
static uint32_t core_first_near(void)
{
	uint32_t first = gasneti.me;
	gasneti.near = 0;
	for (uint32_t i = gasneti.nodes; i-- > 0;) {
		unsigned long far = 1;
		PtlNIDist(gasneti.ni, gasneti.peers[i].id, &far);
		if (far && i != gasneti.me)
			continue;
		gasneti.near++;
		first = i;
	}
	return first;
}

/* The settings that lenders and holders of credits must have alike, in one number. */
static uint64_t core_credit_settings(void)
{
	const struct gasneti_settings *set = &gasneti.set;
	return (uint64_t)set->credits << 32 | (uint64_t)set->banked << 2 |
	       (uint64_t)set->dynamic << 1 | (uint64_t)set->flow_control;
}

static void core_learn_segments(void)
{
	uint64_t first = core_first_near();
	gasneti.max_local = core_max_local();
	gasneti.max_global = gasneti.max_local;
	core_exchange(gasneti.max_local, core_credit_settings() | first << HOST_SHIFT);
	for (uint32_t i = 0; i < gasneti.nodes; i++)
		if ((gasneti.table[i][1] ^ core_credit_settings()) << (64 - HOST_SHIFT))
			gasneti_fatal("node %u has other settings of credits: set "
				      "GASNET_PORTAL_CRED_PER_NODE, _BANKED_CREDITS, "
				      "_DYNAMIC_CREDITS and _FLOW_CONTROL alike on all",
				i);
	uint32_t hosts = 0; /* in the order of their first nodes */
	for (uint32_t i = 0; i < gasneti.nodes; i++) {
		uint32_t on = (uint32_t)(gasneti.table[i][1] >> HOST_SHIFT);
		gasneti.peers[i].host = on < i ? gasneti.peers[on].host : hosts++;
		if (gasneti.table[i][0] < gasneti.max_global)
			gasneti.max_global = gasneti.table[i][0];
	}
}

int gasneti_core_init(void)
{
	char heap[32];
	if (gasneti.state != GASNETI_FRESH)
		return GASNET_ERR_NOT_INIT;
	/* Size the shared heap for the segment, unless the user has. */
	uint64_t most = core_max_segment();
	snprintf(heap, sizeof(heap), "%lluM",
		(unsigned long long)((most < HEAP_MOST ? most : HEAP_MOST) +
				     HEAP_EXTRA) >>
			20);
	setenv("PTL3_HEAP", heap, 0);
	int rc = core_open_network();
	if (rc != GASNET_OK)
		return rc;
	gasneti.cpus = (uint32_t)gasnett_cpu_count();
	settings_read();
	gasneti.tickets = gasneti.stats.tickets_low = gasneti.set.msg_limit;
	gasneti.max_long = gasneti.set.local == GASNETI_LOCAL_FIREHOSE
				   ? gasneti.set.fh_region - GASNET_PAGESIZE
				   : GASNETI_MAX_LONG;
	make_queues();
	core_make_targets();
	core_meet();
	ids_learn();
	gasneti_exit_init(setting_exit_ms());
	gasneti.state = GASNETI_INIT;
	gasneti_threads_init();
	core_learn_segments();
	return GASNET_OK;
}

/* ---- gasnet_attach ---- */

/*
 * Register the program's handlers: first those that have an index, then the others.  An
 * entry without a function keeps its index, too: a message to it ends the job.
 */
static int handlers_register(gasnet_handlerentry_t *table, int numentries)
{
	bool taken[GASNETI_HANDLERS] = {false};
	uint32_t next = GASNETI_FIRST_HANDLER;
	if (numentries < 0 || (numentries && !table))
		return GASNET_ERR_BAD_ARG;
	if (numentries > GASNETI_HANDLERS - GASNETI_FIRST_HANDLER)
		return GASNET_ERR_RESOURCE;
	for (int i = 0; i < numentries; i++) {
		gasnet_handler_t index = table[i].index;
		if (!index)
			continue;
		if (index < GASNETI_FIRST_HANDLER || taken[index])
			return GASNET_ERR_RESOURCE;
		gasneti.handlers[index] = (void (*)(void))table[i].fnptr;
		taken[index] = true;
	}
	for (int i = 0; i < numentries; i++) {
		if (table[i].index)
			continue;
		while (taken[next]) /* ends, by the number of entries */
			next++;
		table[i].index = (gasnet_handler_t)next;
		gasneti.handlers[next] = (void (*)(void))table[i].fnptr;
		taken[next] = true;
	}
	return GASNET_OK;
}

/* Get zeroed pages from the shared heap, or NULL. */
static void *segment_from_heap(uintptr_t size)
{
	void *block = NULL;
	if (gasneti.set.segment == 'm' ||
		(gasneti.set.segment == 'a' && size > HEAP_MOST) ||
		PtlXAlloc(size + GASNET_PAGESIZE, &block) != PTL_OK || !block)
		return NULL;
	uintptr_t base = ((uintptr_t)block + GASNET_PAGESIZE - 1) &
			 ~(uintptr_t)(GASNET_PAGESIZE - 1);
	return (void *)base;
}

static int segment_make(uintptr_t size)
{
#ifdef GASNET_SEGMENT_EVERYTHING
	(void)size;
	gasneti.base = GASNETI_ANY_BASE;
	gasneti.size = GASNETI_ANY_END - GASNETI_ANY_BASE;
#else
	if (size % GASNET_PAGESIZE || size > gasneti.max_local)
		return GASNET_ERR_BAD_ARG;
	if (!size)
		return GASNET_OK;
	void *base = segment_from_heap(size);
	if (!base) {
		base = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (base == MAP_FAILED)
			return GASNET_ERR_RESOURCE;
	}
	gasneti.base = (uintptr_t)base;
	gasneti.size = size;
#endif
	return GASNET_OK;
}

/* End the job if the nodes differ in an argument that must be alike. */
static void core_compare_offsets(uintptr_t minheapoffset)
{
#if defined(GASNET_DEBUG) && !defined(GASNET_SEGMENT_EVERYTHING)
	core_exchange(minheapoffset, 0);
	for (uint32_t i = 0; i < gasneti.nodes; i++)
		if (gasneti.table[i][0] != minheapoffset)
			gasneti_fatal("gasnet_attach: minheapoffset is %llu here and "
				      "%llu on node %u; pass the same on all nodes",
				(unsigned long long)minheapoffset,
				(unsigned long long)gasneti.table[i][0], i);
	core_meet(); /* all have read the table */
#else
	(void)minheapoffset;
#endif
}

int gasneti_core_attach(gasnet_handlerentry_t *table, int numentries, uintptr_t segsize,
	uintptr_t minheapoffset)
{
	if (gasneti.state != GASNETI_INIT)
		return GASNET_ERR_NOT_INIT;
	int rc = handlers_register(table, numentries);
	if (rc == GASNET_OK)
		rc = segment_make(segsize);
	if (rc != GASNET_OK) {
		memset(gasneti.handlers, 0, sizeof(gasneti.handlers));
		return rc;
	}
	gasneti_am_attach();
	gasneti.handlers[GASNETI_H_MEMSET] = (void (*)(void))gasneti_memset_request;
	gasneti.handlers[GASNETI_H_MEMSET_DONE] = (void (*)(void))gasneti_memset_done;
	gasneti.handlers[GASNETI_H_COLL] = (void (*)(void))gasneti_coll_request;
	gasneti_local_attach();
	gasneti_credits_attach();
	core_meet();
	core_compare_offsets(minheapoffset);
	core_exchange(gasneti.base, gasneti.size);
	for (uint32_t i = 0; i < gasneti.nodes; i++) {
		gasneti.peers[i].base = gasneti.table[i][0];
		gasneti.peers[i].size = gasneti.table[i][1];
	}
	gasneti.state = GASNETI_ATTACHED;
	core_meet();
	return GASNET_OK;
}

/* ---- questions ---- */

uintptr_t gasnet_getMaxLocalSegmentSize(void)
{
	return gasneti.max_local;
}

uintptr_t gasnet_getMaxGlobalSegmentSize(void)
{
	return gasneti.max_global;
}

gasnet_node_t gasnet_mynode(void)
{
	return gasneti.me;
}

gasnet_node_t gasnet_nodes(void)
{
	return gasneti.nodes;
}

int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int numentries)
{
	if (gasneti.state != GASNETI_ATTACHED)
		return GASNET_ERR_NOT_INIT;
	if (!table || numentries < 0)
		return GASNET_ERR_BAD_ARG;
	for (uint32_t i = 0; i < gasneti.nodes && i < (uint32_t)numentries; i++) {
#ifdef GASNET_SEGMENT_EVERYTHING
		table[i] = (gasnet_seginfo_t){NULL, (uintptr_t)-1};
#else
		table[i].addr = (void *)gasneti.peers[i].base;
		table[i].size = gasneti.peers[i].size;
#endif
	}
	return GASNET_OK;
}

int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int numentries)
{
	if (gasneti.state == GASNETI_FRESH)
		return GASNET_ERR_NOT_INIT;
	if (!table || numentries < 0)
		return GASNET_ERR_BAD_ARG;
	for (uint32_t i = 0; i < gasneti.nodes && i < (uint32_t)numentries; i++)
		table[i] = (gasnet_nodeinfo_t){
			.host = gasneti.peers[i].host, .supernode = i};
	return GASNET_OK;
}

char *gasnet_getenv(const char *name)
{
	return name ? getenv(name) : NULL;
}
