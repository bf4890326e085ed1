/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dumps - checks that the printed match list, entry and event queues are the existing
 * ones
 *
 * The format is not promised; the numbers in it are those that the program chose.
 */
#include <portals/portals3.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PORTAL = 5, EVENTS = 37, LENGTH = 4321 };

#define BITS   UINT64_C(0xb175b175)
#define IGNORE UINT64_C(0xff00ff)

#define CHECK(truth)                                                                     \
	do {                                                                             \
		if (!(truth)) {                                                          \
			printf("line %d: %s; printed was: %s\n", __LINE__, #truth,       \
				printed);                                                \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

static char printed[1 << 16], bytes[LENGTH];
static FILE *err;

/* Return the text since the last call; stderr is a file. */
static const char *said(void)
{
	static long from;
	fflush(stderr);
	ssize_t n = pread(fileno(err), printed, sizeof printed - 1, from);
	printed[n > 0 ? n : 0] = 0;
	from += n > 0 ? n : 0;
	return printed;
}

static unsigned times(const char *text, const char *what)
{
	unsigned n = 0;
	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static unsigned times_number(const char *text, const char *format, uint64_t number)
{
	char what[40];
	snprintf(what, sizeof what, format, number);
	return times(text, what);
}

static ptl_handle_me_t attach(ptl_handle_ni_t ni, ptl_match_bits_t bits)
{
	static const ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_me_t me;
	CHECK(PtlMEAttach(ni, PORTAL, anyone, bits, IGNORE, PTL_RETAIN, PTL_INS_AFTER,
		      &me) == PTL_OK);
	return me;
}

/* Put to oneself: PUT_START and PUT_END stay unread. */
static ptl_handle_me_t listen_and_put(ptl_handle_ni_t ni, ptl_handle_eq_t eq)
{
	ptl_handle_me_t me = attach(ni, BITS);
	ptl_process_id_t self;
	ptl_md_t md = {.start = bytes,
		.length = LENGTH,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT,
		.eq_handle = eq};
	ptl_handle_md_t here, from;
	CHECK(PtlMDAttach(me, md, PTL_RETAIN, &here) == PTL_OK);
	md.eq_handle = PTL_EQ_NONE;
	md.options = 0;
	CHECK(PtlMDBind(ni, md, PTL_RETAIN, &from) == PTL_OK);
	CHECK(PtlGetId(ni, &self) == PTL_OK);
	CHECK(PtlPut(from, PTL_NO_ACK_REQ, self, PORTAL, 0, BITS, 0, 0) == PTL_OK);
	ptl_event_t ev;
	ptl_sr_value_t under_way = 1;
	while (under_way || PtlEQPeek(eq, &ev) != PTL_OK)
		CHECK(PtlNIStatus(ni, PTL_SR_MSGS_CUR, &under_way) == PTL_OK);
	return me;
}

int main(void)
{
	int most;
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq, idle;
	err = tmpfile();
	CHECK(err && dup2(fileno(err), STDERR_FILENO) == STDERR_FILENO);
	CHECK(PtlInit(&most) == PTL_OK);
	CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK);
	CHECK(PtlEQAlloc(ni, EVENTS, PTL_EQ_HANDLER_NONE, &eq) == PTL_OK);
	CHECK(PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &idle) == PTL_OK);
	ptl_handle_me_t me = listen_and_put(ni, eq), other = attach(ni, ~BITS);
	(void)said();

	CHECK(PtlMEDump(me) == PTL_OK);
	CHECK(times_number(said(), "bits %#" PRIx64, BITS) == 1);
	CHECK(times_number(printed, "ignore %#" PRIx64, IGNORE) == 1);
	CHECK(times_number(printed, "%" PRIu64 " bytes", LENGTH) == 1);
	CHECK(times_number(printed, "start %#" PRIx64, (uintptr_t)bytes) == 1);

	CHECK(PtlTblDump(ni, PORTAL) == PTL_OK);
	CHECK(times(said(), "  me ") == 2 && times(printed, "    md ") == 1);
	CHECK(strstr(printed, "b175b175") < strstr(printed, "ffffffff4e8a4e8a"));
	CHECK(PtlTblDump(ni, PORTAL + 1) == PTL_OK);
	CHECK(times(said(), "  me ") == 0 && *printed);
	CHECK(PtlTblDump(ni, -1) == PTL_PT_INDEX_INVALID && !*said());

	CHECK(PtlNIEqDump(ni) == PTL_OK);
	CHECK(times(said(), "  eq ") == 2 && times(printed, "2 of 64 unread") == 1);
	CHECK(times(printed, "0 of 4 unread") == 1);
	ptl_event_t ev;
	CHECK(PtlEQGet(eq, &ev) == PTL_OK && ev.type == PTL_EVENT_PUT_START);
	CHECK(PtlNIEqDump(ni) == PTL_OK && times(said(), "1 of 64 unread") == 1);

	CHECK(PtlMEUnlink(other) == PTL_OK && PtlMEDump(other) == PTL_ME_INVALID);
	CHECK(!*said());
	PtlFini();
	return 0;
}
