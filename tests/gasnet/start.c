/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of the start: init, attach, the segment, queries. */
#include "gn.h"

#include <portals3_runtime.h>

#include <unistd.h>

static void ignore(gasnet_token_t token)
{
	(void)token;
}

static gasnet_handlerentry_t table[] = {{200, ignore}};
const struct gn_program gn_program = {.is_driver = true, GN_TABLE(table)};

/* ---- init ---- */

SCENE(ranks)
{
	unsigned rank, size;
	gn_scene_init();
	CHECK_EQ(gasnet_nodes(), atoi(getenv("GN_NODES")));
	CHECK_EQ(PtlGetRank(PTL_INVALID_HANDLE, &rank, &size), PTL_OK);
	CHECK_EQ(gasnet_mynode(), rank);
	CHECK_EQ(gasnet_nodes(), size);
	gn_job->word[rank]++;
	gn_scene_attach();
	CHECK_EQ(gasnet_mynode(), rank);
	gn_scene_done();
}

STATEMENT(15, init_gives_number_and_count)
{
	EACH_SIZE(i)
	{
		struct gn_run *r = gn_scene(gn_sizes[i], "ranks");
		CHECK_STATUS(r, 0);
		for (unsigned k = 0; k < 8; k++)
			CHECK_EQ(r->word[k], k < gn_sizes[i]);
	}
}

SCENE(init_twice)
{
	gn_scene_init();
	CHECK(gasnet_init(NULL, NULL) != GASNET_OK);
	CHECK_EQ(gasnet_mynode(), gn.rank);
	CHECK_EQ(gasnet_nodes(), gn.size);
	gn_scene_attach();
	CHECK(gasnet_init(NULL, NULL) != GASNET_OK);
	CHECK_EQ(gasnet_mynode(), gn.rank);
	gn_scene_done();
}

STATEMENT(16, second_init_is_an_error_without_effect)
{
	CHECK_EACH_SIZE(0, "init_twice");
}

SCENE(arguments)
{
	int argc = gn.argc + 3;
	char **argv = gn.argv - 3;
	CHECK_OK(gasnet_init(&argc, &argv));
	CHECK_EQ(argc, 6);
	CHECK(strcmp(argv[1], "scene") == 0);
	CHECK(strcmp(argv[3], "-a") == 0);
	CHECK(strcmp(argv[4], "two words") == 0);
	CHECK(strcmp(argv[5], "") == 0);
	CHECK(argv[6] == NULL);
	CHECK_OK(gasnet_attach(NULL, 0, 0, 0));
	gn_scene_done();
}

SCENE(null_arguments)
{
	CHECK_OK(gasnet_init(NULL, NULL));
	CHECK_OK(gasnet_attach(NULL, 0, 0, 0));
	gn_scene_done();
}

STATEMENT(17, arguments_after_init)
{
	CHECK_STATUS(gn_scene(2, "arguments -a 'two words' ''"), 0);
	if (GASNET_NULL_ARGV_OK)
		CHECK_STATUS(gn_scene(2, "null_arguments"), 0);
}

SCENE(between)
{
	gn_scene_init();
	CHECK(gasnet_mynode() < gasnet_nodes());
	CHECK(gasnet_getMaxLocalSegmentSize() > 0);
	CHECK(gasnet_getMaxGlobalSegmentSize() > 0);
	CHECK(gasnet_getenv("GN_JOB"));
	CHECK_RC(gasnet_AMPoll(), GASNET_ERR_NOT_INIT);
	gn_scene_meet();
	gn_mark();
	gasnet_exit(17);
}

WEAK_STATEMENT(18, calls_between_init_and_attach)
{
	CHECK_EACH_SIZE(17, "between");
}

/* ---- sizes of segments ---- */

SCENE(sizes)
{
	gn_scene_init();
	uintptr_t local = gasnet_getMaxLocalSegmentSize();
	uintptr_t global = gasnet_getMaxGlobalSegmentSize();
#ifdef GASNET_SEGMENT_EVERYTHING
	CHECK_EQ(local, (uintptr_t)-1);
	CHECK_EQ(global, (uintptr_t)-1);
#else
	CHECK_EQ(local % GASNET_PAGESIZE, 0);
	CHECK_EQ(global % GASNET_PAGESIZE, 0);
	CHECK(global > 0 && global <= local);
#endif
	gn_job->word[gn.rank] = global;
	gn_scene_meet();
	CHECK_EQ(global, gn_job->word[gn.next]);
	gn_scene_attach();
	gn_scene_done();
}

STATEMENT(19, most_segment_sizes)
{
	CHECK_EACH_SIZE(0, "sizes");
}

SCENE(limited)
{
	if (gn.argc)
		setenv("GASNET_MAX_SEGSIZE", gn.argv[0], 1);
	gn_scene_init();
	CHECK(gasnet_getMaxLocalSegmentSize() <= (uintptr_t)1 << 20);
	CHECK(gasnet_getMaxLocalSegmentSize() >= GASNET_PAGESIZE);
	gn_attach_most();
	gn_scene_done();
}

STATEMENT(20, max_segsize_limits)
{
	NEED_SEGMENT();
	gn_env("GASNET_MAX_SEGSIZE", "1M");
	CHECK_STATUS(gn_scene(2, "limited"), 0);
	CHECK_STATUS(gn_scene(2, "limited 1M"), 0);
	CHECK_STATUS(gn_scene(2, "limited 64K"), 0);
}

/* ---- attach ---- */

SCENE(late)
{
	gn_scene_init();
	if (gn.rank == (unsigned)atoi(gn.argv[0]))
		sleep_ms(500); /* pause: the others must wait in attach */
	gn_job->word[0]++;
	gn_scene_attach();
	CHECK_EQ(gn_job->word[0], gn.size);
	gn_scene_done();
}

STATEMENT(21, attach_is_a_barrier)
{
	CHECK_STATUS(gn_scene(2, "late 0"), 0);
	CHECK_STATUS(gn_scene(2, "late 1"), 0);
	CHECK_STATUS(gn_scene(3, "late 1"), 0);
	CHECK_STATUS(gn_scene(8, "late 7"), 0);
}

SCENE(attach_twice)
{
	gn_scene_up();
	CHECK(gasnet_attach(table, 1, GASNET_PAGESIZE, 0) != GASNET_OK);
	CHECK(gasnet_attach(NULL, 0, 0, 0) != GASNET_OK);
	gn_scene_done();
}

SCENE(attach_first)
{
	if (gasnet_attach(NULL, 0, 0, 0) == GASNET_OK)
		_exit(0);
	fprintf(stderr, "attach gives an error\n");
	_exit(3);
}

STATEMENT(22, second_attach_and_attach_before_init)
{
	CHECK_STATUS(gn_scene(1, "attach_twice"), 0);
	CHECK_STATUS(gn_scene(2, "attach_twice"), 0);
	CHECK_FATAL(gn_scene(1, "attach_first"));
}

SCENE(attach_nothing)
{
	gn_scene_init();
	CHECK_OK(gasnet_attach(NULL, 0, 0, 0));
	CHECK_OK(gasnet_getSegmentInfo(gn.seg, (int)gn.size));
	for (unsigned i = 0; i < gn.size; i++)
		CHECK_EQ(gn.seg[i].size, 0);
	gn_scene_done();
}

STATEMENT(23, attach_without_table_and_segment)
{
	NEED_SEGMENT();
	CHECK_EACH_SIZE(0, "attach_nothing");
}

/* Nodes have no segment, one page, and 64 pages in turn. */
static uintptr_t segment_of(unsigned rank)
{
	static const uintptr_t pages[] = {64, 0, 1};
	return pages[rank % 3] * GASNET_PAGESIZE;
}

SCENE(different)
{
	gn_scene_init();
	CHECK_OK(gasnet_attach(table, 1, segment_of(gn.rank), 0));
	CHECK_OK(gasnet_getSegmentInfo(gn.seg, (int)gn.size));
	for (unsigned i = 0; i < gn.size; i++) {
		CHECK_EQ(gn.seg[i].size, segment_of(i));
		CHECK_EQ((uintptr_t)gn.seg[i].addr % GASNET_PAGESIZE, 0);
	}
	gn_job->word[gn.rank] = (uintptr_t)gn.seg[gn.rank].addr;
	gn_scene_meet();
	for (unsigned i = 0; i < gn.size; i++)
		CHECK_EQ((uintptr_t)gn.seg[i].addr, gn_job->word[i]);
	gn_scene_done();
}

STATEMENT(24, nodes_have_different_segments)
{
	NEED_SEGMENT();
	CHECK_EACH_SIZE(0, "different");
}

SCENE(misaligned)
{
	gn_scene_init();
	gn_mark();
	CHECK_RC(gasnet_attach(table, 1, GASNET_PAGESIZE + 8, 0), GASNET_ERR_BAD_ARG);
	fprintf(stderr, "attach gives GASNET_ERR_BAD_ARG\n");
	gasnet_exit(3);
}

STATEMENT(25, misaligned_segment_is_an_error)
{
	NEED_SEGMENT();
	CHECK_FATAL(gn_scene(1, "misaligned"));
	CHECK_FATAL(gn_scene(2, "misaligned"));
}

/* ---- segment information ---- */

SCENE(info)
{
	gasnet_seginfo_t few[3], many[GN_NODES + 1], none;
	gn_scene_up();
	memset(few, 0x5a, sizeof few);
	memset(many, 0x5a, sizeof many);
	memset(&none, 0x5a, sizeof none);
	CHECK_OK(gasnet_getSegmentInfo(few, (int)gn.size - 1));
	CHECK_ALL(few + gn.size - 1, sizeof few - (gn.size - 1) * sizeof few[0], 0x5a);
	CHECK(memcmp(few, gn.seg, (gn.size - 1) * sizeof few[0]) == 0);
	CHECK_OK(gasnet_getSegmentInfo(many, (int)gn.size + 1));
	CHECK(memcmp(many, gn.seg, gn.size * sizeof many[0]) == 0);
	CHECK_ALL(many + gn.size, sizeof none, 0x5a);
	CHECK_RC(gasnet_getSegmentInfo(&none, -1), GASNET_ERR_BAD_ARG);
	CHECK_RC(gasnet_getSegmentInfo(NULL, 1), GASNET_ERR_BAD_ARG);
	for (unsigned i = 0; i < gn.size; i++)
		gn_job->word[gn.rank * 8 + i] =
			(uintptr_t)gn.seg[i].addr + gn.seg[i].size;
	gn_scene_meet();
	for (unsigned i = 0; i < gn.size; i++)
		CHECK_EQ(gn_job->word[gn.rank * 8 + i], gn_job->word[i]);
	gn_scene_done();
}

STATEMENT(26, segment_info_counts_entries)
{
	NEED_SEGMENT();
	CHECK_STATUS(gn_scene(1, "info"), 0);
	CHECK_STATUS(gn_scene(2, "info"), 0);
	CHECK_STATUS(gn_scene(3, "info"), 0);
}

/* Put a byte to the first, the last, and each thousandth byte of the next segment. */
static void put_bytes(void)
{
	size_t size = gn.seg[gn.next].size;
	for (size_t at = 0; at < size; at += 1000)
		gasnet_put_val(gn.next, gn_at(gn.next, at), at / 1000 % 251, 1);
	gasnet_put_val(gn.next, gn_at(gn.next, size - 1), 0xee, 1);
}

static void look_at_bytes(void)
{
	unsigned char *own = gn_own(0);
	size_t size = gn.seg[gn.rank].size;
	for (size_t at = 0; at < size; at += 1000)
		CHECK_EQ(own[at], at / 1000 % 251);
	CHECK_EQ(own[size - 1], 0xee);
	memset(own, 0x77, size);
	CHECK_ALL(own, size, 0x77);
}

SCENE(untouched)
{
	gn_scene_up();
	put_bytes();
	gn_pass_barrier();
	look_at_bytes();
	gn_scene_done();
}

STATEMENT(27, whole_segment_is_writable)
{
	CHECK_EACH_SIZE(0, "untouched");
}

/* ---- address space ---- */

static bool overlaps(const void *at, size_t len)
{
	uintptr_t from = (uintptr_t)gn.seg[gn.rank].addr;
	uintptr_t to = from + gn.seg[gn.rank].size;
	return (uintptr_t)at < to && (uintptr_t)at + len > from;
}

SCENE(apart)
{
	enum { BLOCKS = 200 };
	static char data[100000];
	char stack[100000];
	void *block[BLOCKS];
	gn_scene_init();
	for (size_t i = 0; i < BLOCKS; i++)
		CHECK((block[i] = malloc(i * 5000 + 1)));
	gn_scene_attach();
	CHECK(!overlaps(data, sizeof data));
	CHECK(!overlaps(stack, sizeof stack));
	CHECK(!overlaps(sbrk(-0), 1));
	for (size_t i = 0; i < BLOCKS; i++)
		CHECK(!overlaps(block[i], i * 5000 + 1));
	gn_scene_done();
}

STATEMENT(28, segment_overlaps_nothing)
{
	CHECK_STATUS(gn_scene(1, "apart"), 0);
	CHECK_STATUS(gn_scene(3, "apart"), 0);
}

static uint64_t free_bytes(void)
{
	return (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

SCENE(most)
{
	gn_scene_init();
	uintptr_t most = gasnet_getMaxGlobalSegmentSize();
	bool fits = most < free_bytes() / gn.size;
	gn_mark();
	int rc = gasnet_attach(table, 1, most, 0);
	if (rc != GASNET_OK) {
		CHECK(!fits);
		CHECK_RC(rc, GASNET_ERR_RESOURCE);
		gasnet_exit(0);
	}
	CHECK_OK(gasnet_getSegmentInfo(gn.seg, (int)gn.size));
	CHECK_EQ(gn.seg[gn.rank].size, most);
	gasnet_put_val(gn.next, gn_at(gn.next, most - 1), 1, 1);
	gn_scene_done();
}

WEAK_STATEMENT(29, largest_segment_on_all_nodes)
{
	NEED_SEGMENT();
	struct gn_run *r = gn_scene(2, "most");
	if (r->status)
		CHECK_FATAL(r);
	CHECK(r->status < 128);
}

/* ---- environment, node information ---- */

SCENE(environment)
{
	gn_scene_init();
	CHECK(strcmp(gasnet_getenv("GN_GIVEN"), "some words = 1") == 0);
	CHECK(strcmp(gasnet_getenv("GN_EMPTY"), "") == 0);
	CHECK(gasnet_getenv("GN_UNSET") == NULL);
	gn_scene_attach();
	CHECK(strcmp(gasnet_getenv("GN_GIVEN"), "some words = 1") == 0);
	gn_scene_done();
}

STATEMENT(30, getenv_knows_the_jobs_environment)
{
	EACH_SIZE(i)
	{
		gn_env("GN_GIVEN", "some words = 1");
		gn_env("GN_EMPTY", "");
		CHECK_STATUS(gn_scene(gn_sizes[i], "environment"), 0);
	}
}

static void check_node_info(void)
{
	gasnet_nodeinfo_t info[GN_NODES + 1], few[GN_NODES];
	memset(info, 0x5a, sizeof info);
	memset(few, 0x5a, sizeof few);
	CHECK_OK(gasnet_getNodeInfo(info, (int)gn.size + 1));
	CHECK_ALL(info + gn.size, sizeof info[0], 0x5a);
	CHECK_OK(gasnet_getNodeInfo(few, (int)gn.size - 1));
	CHECK_ALL(few + gn.size - 1, sizeof few[0], 0x5a);
	for (unsigned i = 0; i < gn.size; i++) {
		CHECK_EQ(info[i].host, info[0].host);
		CHECK_EQ(info[i].supernode, i);
	}
	CHECK_RC(gasnet_getNodeInfo(NULL, 1), GASNET_ERR_BAD_ARG);
	CHECK_RC(gasnet_getNodeInfo(info, -1), GASNET_ERR_BAD_ARG);
}

SCENE(nodeinfo)
{
	gn_scene_init();
	check_node_info();
	gn_scene_attach();
	check_node_info();
	gn_scene_done();
}

STATEMENT(31, node_info)
{
	CHECK_EACH_SIZE(0, "nodeinfo");
}

/* ---- a job of one ---- */

STATEMENT(32, job_of_one_started_by_hand)
{
	static const char *const programs[] = {"handlers", "am", "hsl", "blocking",
		"nonblocking", "barriers", "threads", "extensions"};
	const char *bin = getenv("GN_BIN");
	CHECK(bin);
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
		struct gn_run *r = gn_sh("exec '%s/gn_%s_" GN_MODE "'", bin, programs[i]);
		CHECK_STATUS(r, 0);
		CHECK(strstr(r->out, "\nok "));
	}
}
