/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of the header: modes, constants, types, link identifiers, evaluation. */
#include <gasnet.h>
#include <gasnet.h>

#include "gn.h"

#include <limits.h>

/* Constants that the preprocessor must know. */
#if GASNET_PAGESIZE < 4096 || GASNET_PAGESIZE & (GASNET_PAGESIZE - 1)
#error the page size is no power of two
#endif
#if GASNET_ALIGNED_SEGMENTS != 0 && GASNET_ALIGNED_SEGMENTS != 1
#error GASNET_ALIGNED_SEGMENTS is neither 0 nor 1
#endif
#if SIZEOF_GASNET_REGISTER_VALUE_T != 8 && SIZEOF_GASNET_REGISTER_VALUE_T != 4
#error the register value has an odd size
#endif
#if GASNET_SPEC_VERSION_MAJOR != 1 || GASNET_SPEC_VERSION_MINOR != 8 ||                  \
	GASNET_VERSION != 1
#error the version of the specification is not 1.8
#endif
#if GASNET_RELEASE_VERSION_MAJOR <= 0 || GASNET_RELEASE_VERSION_MINOR < 0 ||             \
	GASNET_RELEASE_VERSION_PATCH < 0
#error the release has no number
#endif

static void take_short(gasnet_token_t token, gasnet_handlerarg_t a);
static void take_medium(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t a);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes" /* the statement has the cast */
static gasnet_handlerentry_t table[] = {
	{200, take_short}, {201, (void (*)())take_medium}, {202, take_medium}};
#pragma GCC diagnostic pop
const struct gn_program gn_program = {.is_driver = true, GN_TABLE(table)};

static const char *const modes[] = {"SEQ", "PARSYNC", "PAR"};
static const char *const dialects[] = {
	"%s -std=c99", "%s -std=c11", "%s -std=gnu11", "%s -x c++ -std=c++17"};

static const char *env_of(const char *name)
{
	const char *text = getenv(name);
	if (!text)
		suite_skip("the environment names no compiler");
	return text;
}

/* Compile a text; return the compiler's status. */
static struct gn_run *compile(const char *command, const char *flags, const char *text)
{
	return gn_sh("printf '%s' | %s %s -Wall -Wextra -Wshadow -Wconversion -Wundef "
		     "-Werror %s -fsyntax-only -",
		text, command, env_of("GN_CFLAGS"), flags);
}

static void compile_alone(const char *dialect, const char *mode)
{
	char command[300], flags[80];
	bool is_cxx = strstr(dialect, "c++") != NULL;
	snprintf(command, sizeof command, is_cxx ? "%s -x c++ -std=c++17" : "%s -x c",
		env_of(is_cxx ? "GN_CXX" : "GN_CC"));
	snprintf(flags, sizeof flags, "-DGASNET_%s %s", mode,
		is_cxx ? "" : strstr(dialect, "-std"));
	struct gn_run *r = compile(command, flags,
		"#include <gasnet.h>\\n#include <gasnet.h>\\nint main(void){return "
		"GASNET_COLL_LOCAL == GASNET_COLL_SINGLE;}\\n");
	if (r->status)
		check_failed(__FILE__, __LINE__, "%s %s: %.600s", command, flags, r->err);
}

STATEMENT(1, header_alone_in_each_dialect_and_mode)
{
	for (int d = 0; d < 4; d++)
		for (int m = 0; m < 3; m++)
			compile_alone(dialects[d], modes[m]);
}

static void check_stops(const char *flags)
{
	char command[300];
	snprintf(command, sizeof command, "%s -x c", env_of("GN_CC"));
	struct gn_run *r = compile(command, flags, "#include <gasnet.h>\\n");
	CHECK(r->status != 0);
	CHECK(strstr(r->err, "#error"));
	CHECK(strstr(r->err, "GASNET_"));
}

STATEMENT(2, no_mode_or_two_stops_the_compiler)
{
	check_stops("");
	check_stops("-DGASNET_SEQ -DGASNET_PAR");
	check_stops("-DGASNET_PAR -DGASNET_PARSYNC");
	check_stops("-DGASNET_SEQ -DGASNET_PARSYNC");
	check_stops("-DGASNET_SEQ -DGASNET_PARSYNC -DGASNET_PAR");
}

#define IS_ONE_(x) sizeof "" #x == sizeof "1" && #x[0] == '1'
#define IS_ONE(x)  (IS_ONE_(x))
#define VALUE_(x)  #x
#define VALUE(x)   VALUE_(x)
#define DEFINED(x) (strcmp(VALUE(x), #x) != 0)

STATEMENT(3, mode_and_segment_macros_are_one)
{
	CHECK_EQ(DEFINED(GASNET_SEQ) + DEFINED(GASNET_PAR) + DEFINED(GASNET_PARSYNC), 1);
#ifdef GASNET_SEQ
	CHECK_EQ(GASNET_SEQ, 1);
#elif defined(GASNET_PAR)
	CHECK_EQ(GASNET_PAR, 1);
#else
	CHECK_EQ(GASNET_PARSYNC, 1);
#endif
	CHECK_EQ(DEFINED(GASNET_SEGMENT_FAST) + DEFINED(GASNET_SEGMENT_LARGE) +
			 DEFINED(GASNET_SEGMENT_EVERYTHING),
		1);
	CHECK(!DEFINED(GASNET_SEGMENT_FAST) || IS_ONE(GASNET_SEGMENT_FAST));
	CHECK(!DEFINED(GASNET_SEGMENT_LARGE) || IS_ONE(GASNET_SEGMENT_LARGE));
	CHECK(!DEFINED(GASNET_SEGMENT_EVERYTHING) || IS_ONE(GASNET_SEGMENT_EVERYTHING));
}

/* The preprocessor has checked the values at the head of this file. */
STATEMENT(4, version_numbers)
{
	CHECK_EQ(GASNET_SPEC_VERSION_MAJOR, GASNET_VERSION);
	CHECK(GASNET_RELEASE_VERSION_MAJOR + GASNET_RELEASE_VERSION_MINOR > 0);
}

STATEMENT(5, values_of_error_codes)
{
	CHECK_EQ(GASNET_OK, 0);
	CHECK_EQ(GASNET_ERR_NOT_INIT, 10001);
	CHECK_EQ(GASNET_ERR_RESOURCE, 10002);
	CHECK_EQ(GASNET_ERR_BAD_ARG, 10003);
	CHECK_EQ(GASNET_ERR_NOT_READY, 10004);
	CHECK_EQ(GASNET_ERR_BARRIER_MISMATCH, 10005);
}

#define CHECK_NAME(code) CHECK(strcmp(gasnet_ErrorName(code), #code) == 0)

STATEMENT(6, error_names_and_texts)
{
	CHECK_NAME(GASNET_OK);
	CHECK_NAME(GASNET_ERR_NOT_INIT);
	CHECK_NAME(GASNET_ERR_RESOURCE);
	CHECK_NAME(GASNET_ERR_BAD_ARG);
	CHECK_NAME(GASNET_ERR_NOT_READY);
	CHECK_NAME(GASNET_ERR_BARRIER_MISMATCH);
	const int any[] = {GASNET_OK, GASNET_ERR_NOT_INIT, GASNET_ERR_BARRIER_MISMATCH, 1,
		-1, 10000, 10006, 12345, INT_MAX, INT_MIN};
	for (size_t i = 0; i < sizeof any / sizeof any[0]; i++) {
		CHECK(gasnet_ErrorName(any[i]) && *gasnet_ErrorName(any[i]));
		CHECK(gasnet_ErrorDesc(any[i]) && *gasnet_ErrorDesc(any[i]));
	}
}

/* The preprocessor has used them at the head of this file. */
STATEMENT(7, constants_of_the_preprocessor)
{
	CHECK_EQ(SIZEOF_GASNET_REGISTER_VALUE_T, sizeof(gasnet_register_value_t));
	CHECK_EQ(SIZEOF_GASNET_REGISTER_VALUE_T, sizeof(void *));
}

STATEMENT(8, signs_and_sizes_of_types)
{
	CHECK_EQ(sizeof(gasnet_handlerarg_t), 4);
	CHECK((gasnet_handlerarg_t)-1 < 0);
	CHECK((gasnet_node_t)-1 > 0);
	CHECK((gasnet_handler_t)-1 > 0);
	CHECK((gasnet_register_value_t)-1 > 0);
	CHECK((gasnet_node_t)GASNET_MAXNODES == GASNET_MAXNODES);
	CHECK(GASNET_MAXNODES > 0);
}

STATEMENT(9, handle_of_zero_bytes_is_invalid)
{
	gasnet_handle_t handle;
	memset(&handle, 0, sizeof handle);
	CHECK(handle == GASNET_INVALID_HANDLE);
}

STATEMENT(10, config_string)
{
	static const char text[] = "<" GASNET_CONFIG_STRING ">";
	char want[80];
	snprintf(want, sizeof want, "RELEASE=%d.%d.%d,SPEC=1.8,CONDUIT=PORTALS(",
		GASNET_RELEASE_VERSION_MAJOR, GASNET_RELEASE_VERSION_MINOR,
		GASNET_RELEASE_VERSION_PATCH);
	CHECK(strncmp(text + 1, want, strlen(want)) == 0);
	CHECK(strstr(text, "THREADMODEL=" GN_MODE_WORD ","));
	CHECK(strstr(text, "SEGMENT="));
	struct gn_run *r = gn_sh("grep -qaF 'GASNetConfig: (libgasnet.a) %s $' '%s'",
		GASNET_CONFIG_STRING, env_of("GN_LIBRARY"));
	CHECK_STATUS(r, 0);
}

/* The table at the head of this file compiles. */
STATEMENT(11, entries_of_any_prototype)
{
	CHECK_EQ(table[0].index, 200);
	CHECK(table[1].fnptr == table[2].fnptr);
	CHECK(offsetof(gasnet_handlerentry_t, index) <
		offsetof(gasnet_handlerentry_t, fnptr));
}

/* Link an object of this mode with the library of another. */
static void check_no_link(const char *mode)
{
	struct gn_run *r = gn_sh(
		"d=$(mktemp -d) && printf '#include <gasnet.h>\\nint main(int c, char "
		"**v)"
		"{return gasnet_init(&c, &v) + gasnet_attach(NULL, 0, 0, 0);}\\n' "
		">$d/m.c && "
		"%s %s -DGASNET_%s -c $d/m.c -o $d/m.o && "
		"{ %s $d/m.o $GN_LINK_%s -o $d/m; s=$?; rm -r $d; exit $s; }",
		env_of("GN_CC"), env_of("GN_CFLAGS"), GN_MODE_WORD, env_of("GN_CC"),
		mode);
	bool is_same = strcmp(mode, GN_MODE_WORD) == 0;
	if ((r->status == 0) != is_same)
		check_failed(__FILE__, __LINE__,
			"%s with the library of %s: status %d: %.300s", GN_MODE_WORD,
			mode, r->status, r->err);
	CHECK(is_same || strstr(r->err, "undefined"));
}

WEAK_STATEMENT(12, modes_do_not_link_with_each_other)
{
	for (int m = 0; m < 3; m++)
		check_no_link(modes[m]);
}

/* ---- arguments are evaluated once ---- */

static _Atomic int came;
static int calls;

static void take_short(gasnet_token_t token, gasnet_handlerarg_t a)
{
	(void)token, (void)a;
	came++;
}

static void take_medium(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t a)
{
	(void)token, (void)buf, (void)n, (void)a;
	came++;
}

static void count_call(void)
{
	calls++;
}

/* Count an evaluation; the value has the type of an argument. */
#define ONE(x) (count_call(), (x))
#define CALLS(n)                                                                         \
	do {                                                                             \
		CHECK_EQ(calls, n);                                                      \
		calls = 0;                                                               \
	} while (0)
#define HERE        ONE((gasnet_node_t)0)
#define ADDRESS(at) ONE((void *)(at))

static void evaluate_messages(char *seg, char *mine)
{
	CHECK_OK(gasnet_AMRequestShort1(HERE, ONE(200), ONE(1)));
	CALLS(3);
	CHECK_OK(gasnet_AMRequestMedium1(
		HERE, ONE(201), ADDRESS(mine), ONE((size_t)8), ONE(1)));
	CALLS(5);
	CHECK_OK(gasnet_AMRequestLong1(
		HERE, ONE(201), ADDRESS(mine), ONE((size_t)8), ADDRESS(seg), ONE(1)));
	CALLS(6);
	UNTIL(came == 3);
	GASNET_BLOCKUNTIL(came == 3);
	gasnet_seginfo_t info;
	CHECK_OK(gasnet_getSegmentInfo(ONE(&info), ONE(1)));
	CALLS(2);
	CHECK_OK(gasnet_set_waitmode(ONE(GASNET_WAIT_BLOCK)));
	CALLS(1);
}

static void evaluate_blocking(char *seg, char *mine)
{
	gasnet_put(HERE, ADDRESS(seg), ADDRESS(mine), ONE((size_t)8));
	CALLS(4);
	gasnet_put_bulk(HERE, ADDRESS(seg), ADDRESS(mine), ONE((size_t)8));
	CALLS(4);
	gasnet_get(ADDRESS(mine), HERE, ADDRESS(seg), ONE((size_t)8));
	CALLS(4);
	gasnet_get_bulk(ADDRESS(mine), HERE, ADDRESS(seg), ONE((size_t)8));
	CALLS(4);
	gasnet_memset(HERE, ADDRESS(seg), ONE(1), ONE((size_t)8));
	CALLS(4);
	gasnet_put_val(
		HERE, ADDRESS(seg), ONE((gasnet_register_value_t)7), ONE((size_t)8));
	CALLS(4);
	CHECK_EQ(gasnet_get_val(HERE, ADDRESS(seg), ONE((size_t)8)), 7);
	CALLS(3);
}

static void evaluate_explicit(char *seg, char *mine)
{
	gasnet_handle_t h[6];
	h[0] = gasnet_put_nb(HERE, ADDRESS(seg), ADDRESS(mine), ONE((size_t)8));
	h[1] = gasnet_put_nb_bulk(HERE, ADDRESS(seg + 8), ADDRESS(mine), ONE((size_t)8));
	h[2] = gasnet_get_nb(ADDRESS(mine + 8), HERE, ADDRESS(seg + 16), ONE((size_t)8));
	h[3] = gasnet_get_nb_bulk(
		ADDRESS(mine + 16), HERE, ADDRESS(seg + 16), ONE((size_t)8));
	h[4] = gasnet_memset_nb(HERE, ADDRESS(seg + 24), ONE(1), ONE((size_t)8));
	h[5] = gasnet_put_nb_val(
		HERE, ADDRESS(seg + 32), ONE((gasnet_register_value_t)7), ONE((size_t)8));
	CALLS(24);
	gasnet_wait_syncnb(ONE(h[0]));
	while (gasnet_try_syncnb(h[1]) != GASNET_OK)
		;
	CALLS(1);
	gasnet_wait_syncnb_some(ONE(h + 2), ONE((size_t)4));
	(void)gasnet_try_syncnb_all(ONE(h + 2), ONE((size_t)4));
	(void)gasnet_try_syncnb_some(ONE(h + 2), ONE((size_t)4));
	gasnet_wait_syncnb_all(ONE(h + 2), ONE((size_t)4));
	CALLS(8);
	gasnet_valget_handle_t v =
		gasnet_get_nb_val(HERE, ADDRESS(seg + 32), ONE((size_t)8));
	CHECK_EQ(gasnet_wait_syncnb_valget(ONE(v)), 7);
	CALLS(4);
}

static void evaluate_implicit(char *seg, char *mine)
{
	gasnet_put_nbi(HERE, ADDRESS(seg), ADDRESS(mine), ONE((size_t)8));
	gasnet_put_nbi_bulk(HERE, ADDRESS(seg + 8), ADDRESS(mine), ONE((size_t)8));
	gasnet_get_nbi(ADDRESS(mine + 8), HERE, ADDRESS(seg + 16), ONE((size_t)8));
	gasnet_get_nbi_bulk(ADDRESS(mine + 16), HERE, ADDRESS(seg + 16), ONE((size_t)8));
	gasnet_memset_nbi(HERE, ADDRESS(seg + 24), ONE(1), ONE((size_t)8));
	gasnet_put_nbi_val(
		HERE, ADDRESS(seg + 32), ONE((gasnet_register_value_t)7), ONE((size_t)8));
	CALLS(24);
	gasnet_wait_syncnbi_all();
	gasnet_barrier_notify(ONE(1), ONE(0));
	CHECK_OK(gasnet_barrier_wait(ONE(1), ONE(0)));
	gasnet_barrier_notify(ONE(1), ONE(0));
	int rc = GASNET_ERR_NOT_READY, tries = 0;
	for (; rc == GASNET_ERR_NOT_READY; tries++)
		rc = gasnet_barrier_try(ONE(1), ONE(0));
	CHECK_OK(rc);
	CALLS(6 + 2 * tries);
}

static void evaluate_locks(void)
{
	gasnet_hsl_t lock;
	gasnet_hsl_init(ONE(&lock));
	gasnet_hsl_lock(ONE(&lock));
	gasnet_hsl_unlock(ONE(&lock));
	CHECK_OK(gasnet_hsl_trylock(ONE(&lock)));
	gasnet_hsl_unlock(ONE(&lock));
	gasnet_hsl_destroy(ONE(&lock));
	CALLS(6);
}

SCENE(evaluates)
{
	static char mine[64];
	gn_scene_up();
	char *seg = gn_own(0);
	evaluate_messages(seg, mine);
	evaluate_blocking(seg, mine);
	evaluate_explicit(seg, mine);
	evaluate_implicit(seg, mine);
	evaluate_locks();
	gn_scene_done();
}

STATEMENT(13, arguments_are_evaluated_once)
{
	CHECK_STATUS(gn_scene(1, "evaluates"), 0);
}

STATEMENT(14, thread_macros_stand_before_declarations)
{
	char command[300], flags[80];
	snprintf(command, sizeof command, "%s -x c", env_of("GN_CC"));
	snprintf(flags, sizeof flags,
		"-DGASNET_%s -std=c99 -pedantic "
		"-Wdeclaration-after-statement",
		GN_MODE_WORD);
	struct gn_run *r = compile(command, flags,
		"#include <gasnet.h>\\n"
		"int f(int x);\\nint f(int x) { GASNET_BEGIN_FUNCTION(); int y = x; "
		"return y; }\\n"
		"int g(gasnet_threadinfo_t x);\\nint g(gasnet_threadinfo_t x) { "
		"GASNET_POST_THREADINFO(x); int y = 1; return y; }\\n"
		"int h(gasnet_threadinfo_t x);\\nint h(gasnet_threadinfo_t x) { "
		"GASNET_POST_THREADINFO(x); char y = 1; "
		"{ GASNET_BEGIN_FUNCTION(); int z = y; return z; } }\\n");
	if (r->status)
		check_failed(__FILE__, __LINE__, "%.800s", r->err);
}
