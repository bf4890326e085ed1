/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of the conduit: its calls of Portals, drops, credits, registrations. */
#include "gn.h"

#include <portals3_runtime.h>

#include <ctype.h>
#include <sys/mman.h>

enum { H_COUNT = 128, H_TELL, INDEXES = 64, OURS = 38, OURS_TOO = 39 };

static void count(gasnet_token_t token, void *buf, size_t n);

static void tell(gasnet_token_t token);

static gasnet_handlerentry_t table[] = {{H_COUNT, count}, {H_TELL, tell}};
const struct gn_program gn_program = {.is_driver = true, GN_TABLE(table)};

static _Atomic unsigned counted;

static void count(gasnet_token_t token, void *buf, size_t n)
{
	(void)token, (void)buf, (void)n;
	counted++;
}

static void tell(gasnet_token_t token)
{
	(void)token;
	gn_job->word[2] = 1;
}

/* ---- symbols ---- */

STATEMENT(156, library_calls_public_functions_only)
{
	const char *library = getenv("GN_LIBRARY"),
		   *include = getenv("GN_PORTALS_INCLUDE");
	CHECK(library && include);
	struct gn_run *r =
		gn_sh("nm -u '%s' | awk 'NF == 2 {print $2}' | sort -u | "
		      "grep -E '^(Ptl|p3|nic_|shm_p|cnos_)' | while read -r s; do "
		      "grep -qw \"$s\" '%s'/portals3.h '%s'/portals3x.h "
		      "'%s'/portals3_runtime.h || echo \"$s\"; done",
			library, include, include, include);
	CHECK_STATUS(r, 0);
	if (r->out[0])
		check_failed(__FILE__, __LINE__, "the library calls: %.500s", r->out);
	r = gn_sh("nm -u '%s' | grep -c 'U Ptl'", library);
	CHECK(atoi(r->out) > 5);
}

/* ---- beside GASNet ---- */

static ptl_handle_ni_t ni;
static uint64_t arrived[INDEXES];

/* Attach memory for a word at a portal index. */
static void attach_word(unsigned index, ptl_handle_eq_t eq)
{
	ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	ptl_md_t word = {.start = &arrived[index],
		.length = sizeof arrived[index],
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT,
		.eq_handle = eq};
	CHECK_EQ(PtlMEAttach(ni, index, any, 0, ~(ptl_match_bits_t)0, PTL_RETAIN,
			 PTL_INS_AFTER, &me),
		PTL_OK);
	CHECK_EQ(PtlMDAttach(me, word, PTL_RETAIN, &md), PTL_OK);
}

static void put_word(unsigned index, uint64_t *value, ptl_process_id_t to)
{
	ptl_handle_md_t md;
	ptl_md_t word = {.start = value,
		.length = sizeof *value,
		.threshold = PTL_MD_THRESH_INF,
		.eq_handle = PTL_EQ_NONE};
	CHECK_EQ(PtlMDBind(ni, word, PTL_RETAIN, &md), PTL_OK);
	CHECK_EQ(PtlPut(md, PTL_NOACK_REQ, to, index, 0, 77, 0, 0), PTL_OK);
}

static bool is_ours(unsigned index)
{
	return index == OURS || index == OURS_TOO;
}

static void attach_words(void)
{
	ptl_handle_eq_t eq;
	ni = gn_interface();
	CHECK_EQ(PtlEQAlloc(ni, 4 * INDEXES, PTL_EQ_HANDLER_NONE, &eq), PTL_OK);
	for (unsigned i = 0; i < INDEXES; i++)
		if (!is_ours(i))
			attach_word(i, eq);
}

/* Fill all other portal indexes, while messages of GASNet go, too. */
static void use_other_indexes(void)
{
	static uint64_t values[INDEXES];
	ptl_process_id_t to;
	CHECK_EQ(PtlGetRankId(ni, gn.next, &to), PTL_OK);
	for (unsigned i = 0; i < INDEXES; i++) {
		char bytes[100] = {0};
		values[i] = 1000 * gn.rank + i;
		if (!is_ours(i))
			put_word(i, &values[i], to);
		CHECK_OK(gasnet_AMRequestMedium0(gn.next, H_COUNT, bytes, sizeof bytes));
	}
	UNTIL(counted == INDEXES);
	for (unsigned i = 0; i < INDEXES; i++)
		if (!is_ours(i))
			UNTIL(__atomic_load_n(&arrived[i], __ATOMIC_ACQUIRE) ==
				1000 * gn.before + i);
}

SCENE(beside)
{
	gn_scene_up();
	memset(arrived, 0xff, sizeof arrived);
	attach_words();
	gn_scene_meet();
	use_other_indexes();
	gn_pass_barrier();
	gn_scene_done();
}

STATEMENT(157, other_portal_indexes_are_free)
{
	CHECK_STATUS(gn_scene(1, "beside"), 0);
	CHECK_STATUS(gn_scene(2, "beside"), 0);
	CHECK_STATUS(gn_scene(3, "beside"), 0);
}

/* ---- drops ---- */

static const char *const programs[] = {"handlers", "am", "flow", "hsl", "blocking",
	"nonblocking", "barriers", "threads", "extensions"};

/* The frame of these programs fails, and says so, if a node has dropped a message. */
STATEMENT(158, no_node_drops_a_message)
{
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
		struct gn_run *r = gn_run_program(3, "", programs[i], "");
		CHECK_STATUS(r, 0);
		CHECK(strstr(r->out, "# drops: 0\n"));
	}
}

enum { BLOCK = 4000 };

/* This node has two chunks: one has the meeting of the collective, one a request. */
static void send_in_a_collective(void)
{
	static char bytes[1500];
	CHECK_OK(gasnet_AMRequestShort0(1, H_TELL));
	gn_job->word[0] = 1;
	AWAIT(gn_job->word[1]);
	CHECK_OK(gasnet_AMRequestMedium0(1, H_COUNT, bytes, sizeof bytes));
}

/* The collective's message is there, then the request: no reply before both are read. */
static void answer_late(void)
{
	CHECK_OK(gasnet_AMRequestShort0(0, H_TELL));
	gn_job->word[1] = 1;
	AWAIT(gn_job->word[2]);
}

/*
 * Node 0 sends a request of six credits while it has no chunk.  As it waits, node 1 comes
 * to the meeting of the collective, whose blocks then need all eight credits of node 1.
 */
SCENE(collective_in_a_request)
{
	static char src[2 * BLOCK], dst[2 * BLOCK];
	gn_scene_up();
	gasnet_coll_init(0, 0, 0, 0, 0);
	gn_scene_meet();
	if (gn.rank == 1)
		AWAIT(gn_job->word[0]);
	gasnet_coll_handle_t exchange = gasnet_coll_exchange_nb(GASNET_TEAM_ALL, dst, src,
		BLOCK, GASNET_COLL_LOCAL | GASNET_COLL_IN_ALLSYNC);
	if (gn.rank == 0)
		send_in_a_collective();
	else
		answer_late();
	gasnet_coll_wait_sync(exchange);
	gn_pass_barrier();
	gn_scene_done();
}

static void least_parameters(void)
{
	gn_env("GASNET_PORTAL_CRED_PER_NODE", "8");
	gn_env("GASNET_PORTAL_BANKED_CREDITS", "0");
	gn_env("GASNET_PORTAL_MSG_LIMIT", "12");
	gn_env("GASNET_PORTAL_STATS", "1");
}

/* The library ends the job when a queue has lost an event. */
STATEMENT(159, no_queue_overflows)
{
	for (unsigned nodes = 2; nodes <= 8; nodes += 3) {
		least_parameters();
		struct gn_run *r = gn_run_program(nodes, "", "flow", "55 56 57");
		CHECK_STATUS(r, 0);
		CHECK(!strstr(r->err, "PTL_EQ_DROPPED"));
	}
	least_parameters();
	gn_env("GASNET_PORTAL_SB_CHUNKS", "2");
	CHECK_STATUS(gn_scene(2, "collective_in_a_request"), 0);
}

/* ---- statistics at exit ---- */

/* Return the sum of the numbers behind "name" in all lines; "seen" counts them. */
static uint64_t sum_of(const char *text, const char *name, unsigned *seen)
{
	uint64_t sum = 0;
	*seen = 0;
	for (const char *at = text; (at = strstr(at, name)); at += strlen(name)) {
		const char *number = at + strlen(name);
		while (*number == ' ' || *number == '=' || *number == ':')
			number++;
		if (!isdigit((unsigned char)*number))
			continue;
		sum += strtoull(number, NULL, 10);
		++*seen;
	}
	return sum;
}

static uint64_t statistic(const struct gn_run *r, const char *name)
{
	unsigned seen;
	uint64_t sum = sum_of(r->err, name, &seen);
	if (!seen)
		check_failed(
			__FILE__, __LINE__, "no statistic \"%s\": %.600s", name, r->err);
	return sum;
}

/* Node 1 has another setting of credits than the others. */
SCENE(credits_differ)
{
	int most;
	unsigned rank, size;
	CHECK_EQ(PtlInit(&most), PTL_OK);
	CHECK_EQ(PtlGetRank(PTL_INVALID_HANDLE, &rank, &size), PTL_OK);
	setenv("GASNET_PORTAL_CRED_PER_NODE", rank == 1 ? "24" : "32", 1);
	gn_scene_up();
	gn_scene_done();
}

static void flood(gasnet_node_t to, unsigned n)
{
	char bytes[1000] = {0};
	for (unsigned i = 0; i < n; i++)
		CHECK_OK(gasnet_AMRequestMedium0(to, H_COUNT, bytes, sizeof bytes));
}

/* Node 1 floods node 0; then node 2 does.  The next round begins with quiet lanes. */
SCENE(moves_pattern)
{
	gn_scene_up();
	const unsigned n = 30000;
	for (unsigned from = 1; from < gn.size; from++) {
		if (gn.rank == from)
			flood(0, n);
		if (gn.rank == 0)
			UNTIL(counted == from * n);
		gn_pass_barrier();
	}
	gn_scene_done();
}

/* Check that the loans and the bank of each node make its total. */
static void check_banks(const struct gn_run *r, unsigned nodes)
{
	unsigned long long loans, bank, total;
	unsigned lines = 0;
	for (const char *at = r->err; (at = strstr(at, ": loans ")); at++, lines++) {
		CHECK_EQ(sscanf(at, ": loans %llu and bank %llu of %llu", &loans, &bank,
				 &total),
			3);
		CHECK_EQ(loans + bank, total);
	}
	CHECK_EQ(lines, nodes);
}

enum { PAIRS = 4 };

/* Check that each node holds of each other one what that has lent, and at least 8. */
static void check_pairs(const struct gn_run *r, unsigned nodes)
{
	unsigned loan[PAIRS][PAIRS], held[PAIRS][PAIRS], lines = 0;
	for (const char *at = r->err; (at = strstr(at, "gasnet pair ")); at++, lines++) {
		unsigned from, to, lent, have, used;
		CHECK_EQ(sscanf(at, "gasnet pair %u %u: loan %u held %u in use %u", &from,
				 &to, &lent, &have, &used),
			5);
		CHECK(from < nodes && to < nodes && nodes <= PAIRS);
		loan[from][to] = lent;
		held[from][to] = have;
		CHECK_EQ(used, 0);
	}
	CHECK_EQ(lines, nodes * (nodes - 1));
	for (unsigned i = 0; i < nodes * nodes; i++)
		if (i / nodes != i % nodes) {
			CHECK_EQ(loan[i / nodes][i % nodes], held[i % nodes][i / nodes]);
			CHECK(loan[i / nodes][i % nodes] >= 8);
		}
}

static struct gn_run *run_moves(void)
{
	gn_env("GASNET_PORTAL_STATS", "1");
	struct gn_run *r = gn_scene(3, "moves_pattern");
	CHECK_STATUS(r, 0);
	check_banks(r, 3);
	check_pairs(r, 3);
	return r;
}

STATEMENT(160, credits_add_up)
{
	struct gn_run *differ = gn_scene(2, "credits_differ");
	CHECK_FATAL(differ);
	CHECK(strstr(differ->err, "GASNET_PORTAL_CRED_PER_NODE"));
	(void)run_moves();
	gn_env("GASNET_PORTAL_DYNAMIC_CREDITS", "0");
	struct gn_run *r = run_moves();
	CHECK_EQ(statistic(r, "lent"), 0);
	CHECK_EQ(statistic(r, "revoked"), 0);
	CHECK_EQ(statistic(r, "returned"), 0);
}

/* Credits move to the pair that floods: with few of them, and with the defaults. */
STATEMENT(161, credits_follow_the_pattern)
{
	gn_env("GASNET_PORTAL_CRED_PER_NODE", "16");
	gn_env("GASNET_PORTAL_BANKED_CREDITS", "64");
	struct gn_run *r = run_moves();
	CHECK(statistic(r, "lent") > 0);
	CHECK(statistic(r, "returned") > 0);
	gn_env("GASNET_PORTAL_BANKED_CREDITS", "0");
	r = run_moves();
	CHECK(statistic(r, "revoked") > 0);
	CHECK(statistic(r, "returned") > 0);
	r = run_moves();
	CHECK(statistic(r, "lent") > 0);
}

/* ---- firehose ---- */

enum { MAPPED = 1 << 18 };

/* Memory at the same address has new pages behind it each time. */
static void remap_and_move(char *at, unsigned round)
{
	void *is = mmap(at, MAPPED, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(is == at);
	fill_bytes(at, MAPPED, round);
	gasnet_put_bulk(gn.next, gn_at(gn.next, 0), at, MAPPED);
	CHECK_EQ(munmap(at, MAPPED), 0);
	is = mmap(at, MAPPED, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(is == at);
	gasnet_get_bulk(at, gn.next, gn_at(gn.next, 0), MAPPED);
	CHECK_BYTES(at, MAPPED, round);
}

SCENE(remaps)
{
	gn_scene_up();
	char *at = mmap(NULL, MAPPED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at != MAP_FAILED);
	for (unsigned i = 0; i < 50; i++)
		remap_and_move(at, i);
	gn_scene_done();
}

/* Check that no node had more regions, or more bytes in them, than its limits. */
static void check_bounds(const struct gn_run *r, unsigned long long most_regions)
{
	unsigned long long regions, limit, bytes, bytes_limit;
	unsigned lines = 0;
	for (const char *at = r->err; (at = strstr(at, "most regions ")); at++, lines++) {
		CHECK_EQ(sscanf(at, "most regions %llu of %llu, most bytes %llu of %llu",
				 &regions, &limit, &bytes, &bytes_limit),
			4);
		CHECK(regions > 0 && regions <= limit);
		CHECK(bytes <= bytes_limit);
		CHECK_EQ(limit, most_regions);
	}
	CHECK_EQ(lines, 2);
}

STATEMENT(165, memory_that_is_mapped_again)
{
	NEED_SEGMENT();
	for (int few = 0; few < 2; few++) {
		gn_env("GASNET_PORTAL_LOCAL", "firehose");
		gn_env("GASNET_PORTAL_STATS", "1");
		if (few) {
			gn_env("GASNET_FIREHOSE_M", "256K");
			gn_env("GASNET_FIREHOSE_R", "4");
		}
		struct gn_run *r = gn_scene(2, "remaps");
		CHECK_STATUS(r, 0);
		check_bounds(r, few ? 4 : 1024);
	}
}
