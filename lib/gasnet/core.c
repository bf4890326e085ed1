/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.c - the start of a node: init, attach, segments, and questions about the job.  The
 * functions that programs call for the first two are in mode.c.
 *
 * gasnet_init opens the interface and learns ids, hosts and largest segments;
 * gasnet_attach makes the segment and everything that receives.  Both exchange 16 bytes
 * with each node through a table that the others write, between two barriers of all
 * nodes: the first makes sure that all tables can be written, the second that all are
 * complete.
 */
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define HEAP_MOST  ((uint64_t)1 << 30)
#define HEAP_EXTRA ((uint64_t)16 << 20)
#define LEAST_MAX  ((uint64_t)64 << 20)

enum { HOST_SHIFT = 48 }; /* of the first node of a host, above its credit settings */

struct gasneti_node gasneti = {.waitmode = -1};

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
	return gasneti_setting(
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

/* Size the shared heap for the segment, unless the user has. */
static void core_set_heap(void)
{
	char text[32];
	uint64_t most = core_max_segment();
	uint64_t heap = (most < HEAP_MOST ? most : HEAP_MOST) + HEAP_EXTRA;
	snprintf(text, sizeof(text), "%lluM", (unsigned long long)(heap >> 20));
	setenv("PTL3_HEAP", text, 0);
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

static void exchange_await_acks(uint32_t acks)
{
	ptl_event_t ev;
	while (acks) {
		int which, rc = PtlEQPoll(&gasneti.safe_eq, 1, 1000, &ev, &which);
		if (rc == PTL_OK && ev.ni_fail_type != PTL_NI_OK)
			gasneti_fatal("a node died while the job started");
		if (rc == PTL_OK && ev.type == PTL_EVENT_ACK)
			acks--;
	}
}

/*
 * Take the events of the numbers of all other nodes.  They are there after the barrier,
 * which follows the ACKs.  That alone orders the bytes, too, but through other processes;
 * by the events the thread that wrote the bytes tells this one directly.
 */
static void exchange_take_arrivals(void)
{
	ptl_event_t ev;
	for (uint32_t i = 1; i < gasneti.nodes; i++)
		gasneti_must(PtlEQGet(gasneti.sys_eq, &ev), "PtlEQGet");
}

/* Tell two numbers to all nodes; their numbers are in gasneti.table when it returns.  A
 * barrier must follow before the next exchange, which writes the table again. */
static void core_exchange(uint64_t a, uint64_t b)
{
	uint64_t at = gasneti.me * sizeof(*gasneti.table);
	gasneti.table[gasneti.me][0] = a;
	gasneti.table[gasneti.me][1] = b;
	for (uint32_t i = 0; i < gasneti.nodes; i++)
		if (i != gasneti.me)
			gasneti_must(
				PtlPutRegion(gasneti.table_md, at, sizeof(*gasneti.table),
					PTL_ACK_REQ, gasneti.peers[i].id, GASNETI_AM_PTE,
					0, GASNETI_MD_TABLE, at, 0),
				"PtlPutRegion");
	exchange_await_acks(gasneti.nodes - 1);
	core_meet();
	exchange_take_arrivals();
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
	gasneti.table = calloc(gasneti.nodes, sizeof(*gasneti.table));
	if (!gasneti.table)
		gasneti_fatal("no memory for the table of %u nodes", gasneti.nodes);
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
	gasneti.hash = calloc(size, sizeof(*gasneti.hash));
	if (!gasneti.hash)
		gasneti_fatal("no memory for the table of nodes");
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
	gasneti.peers = calloc(gasneti.nodes, sizeof(*gasneti.peers));
	if (!gasneti.peers)
		gasneti_fatal("no memory for %u nodes", gasneti.nodes);
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

static void core_compare_credits(void)
{
	for (uint32_t i = 0; i < gasneti.nodes; i++)
		if ((gasneti.table[i][1] ^ core_credit_settings()) << (64 - HOST_SHIFT))
			gasneti_fatal("node %u has other settings of credits: set "
				      "GASNET_PORTAL_CRED_PER_NODE, _BANKED_CREDITS, "
				      "_DYNAMIC_CREDITS and _FLOW_CONTROL alike on all",
				i);
}

/* Number the hosts in the order of their first nodes. */
static void core_number_hosts(void)
{
	uint32_t hosts = 0;
	for (uint32_t i = 0; i < gasneti.nodes; i++) {
		uint32_t first = (uint32_t)(gasneti.table[i][1] >> HOST_SHIFT);
		gasneti.peers[i].host = first < i ? gasneti.peers[first].host : hosts++;
	}
}

static void core_learn_segments(void)
{
	uint64_t first = core_first_near();
	gasneti.max_local = core_max_local();
	gasneti.max_global = gasneti.max_local;
	core_exchange(gasneti.max_local, core_credit_settings() | first << HOST_SHIFT);
	core_compare_credits();
	core_number_hosts();
	for (uint32_t i = 0; i < gasneti.nodes; i++)
		if (gasneti.table[i][0] < gasneti.max_global)
			gasneti.max_global = gasneti.table[i][0];
}

static uint32_t core_cpus(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return (uint32_t)CPU_COUNT(&set);
}

int gasneti_core_init(void)
{
	if (gasneti.state != GASNETI_FRESH)
		return GASNET_ERR_NOT_INIT;
	core_set_heap();
	int rc = core_open_network();
	if (rc != GASNET_OK)
		return rc;
	gasneti.cpus = core_cpus();
	gasneti_settings_read();
	gasneti.tickets = gasneti.stats.tickets_low = gasneti.set.msg_limit;
	gasneti.max_long = gasneti.set.local == GASNETI_LOCAL_FIREHOSE
				   ? gasneti.set.fh_region - GASNET_PAGESIZE
				   : GASNETI_MAX_LONG;
	make_queues();
	core_make_targets();
	core_meet();
	ids_learn();
	gasneti_exit_init(gasneti_setting_exit_ms());
	gasneti.state = GASNETI_INIT;
	gasneti_threads_init();
	core_learn_segments();
	return GASNET_OK;
}

/* ---- gasnet_attach ---- */

typedef void (*handler_t)(void);

/* The table of handlers, while it is made.  An entry without a function keeps its index,
 * too: a message to it ends the job. */
static bool handlers_taken[GASNETI_HANDLERS];

static void handler_set(const gasnet_handlerentry_t *entry)
{
	gasneti.handlers[entry->index] = (handler_t)entry->fnptr;
	handlers_taken[entry->index] = true;
}

static int handlers_register_explicit(const gasnet_handlerentry_t *table, int numentries)
{
	for (int i = 0; i < numentries; i++) {
		gasnet_handler_t index = table[i].index;
		if (!index)
			continue;
		if (index < GASNETI_FIRST_HANDLER || handlers_taken[index])
			return GASNET_ERR_RESOURCE;
		handler_set(&table[i]);
	}
	return GASNET_OK;
}

/* There are enough indexes: handlers_register has counted the entries. */
static void handlers_register_others(gasnet_handlerentry_t *table, int numentries)
{
	uint32_t next = GASNETI_FIRST_HANDLER;
	for (int i = 0; i < numentries; i++) {
		if (table[i].index)
			continue;
		while (handlers_taken[next])
			next++;
		table[i].index = (gasnet_handler_t)next;
		handler_set(&table[i]);
	}
}

static int handlers_register(gasnet_handlerentry_t *table, int numentries)
{
	if (numentries < 0 || (numentries && !table))
		return GASNET_ERR_BAD_ARG;
	if (numentries > GASNETI_HANDLERS - GASNETI_FIRST_HANDLER)
		return GASNET_ERR_RESOURCE;
	memset(handlers_taken, 0, sizeof(handlers_taken));
	int rc = handlers_register_explicit(table, numentries);
	if (rc == GASNET_OK)
		handlers_register_others(table, numentries);
	return rc;
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

static void core_learn_bases(void)
{
	core_exchange(gasneti.base, gasneti.size);
	for (uint32_t i = 0; i < gasneti.nodes; i++) {
		gasneti.peers[i].base = gasneti.table[i][0];
		gasneti.peers[i].size = gasneti.table[i][1];
	}
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
	core_learn_bases();
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
