/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pairs ROUNDS - programs count START and END in pairs
 *
 * Each rank sends requests to its neighbour, each only when the last one is over: a get
 * or an exchange at its REPLY_END, a put at its ACK or its SEND_END.  Then the END of
 * each at the target is posted before the next one's START.  The table shows how often
 * it was not, for each length, each kind of request, and memory that peers see or do
 * not see.
 */
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1 << 20 };
enum kind { GET, PUT_ACK, PUT_SEND, EXCHANGE, MIXED, KINDS };
enum memory { PRIVATE, SHARED, MEMORIES };

static const char *const kinds[] = {
	"get", "put, ACK", "put, SEND_END", "getput", "mixed"};

/* Descriptors of a rank: its own requests use one, its neighbour's requests the other. */
static ptl_handle_eq_t mine, asked;
static ptl_handle_md_t here[MEMORIES], swap_in[MEMORIES], swap_out[MEMORIES];
static unsigned rounds;
static ptl_size_t swap_most;

static void wait_for(ptl_event_kind_t kind)
{
	ptl_event_t ev;
	do {
		ev = mp_next(mine);
		mp_check(ev.ni_fail_type == PTL_NI_OK, "%s failed",
			PtlEventKindStr(ev.type));
	} while (ev.type != kind);
}

static void exchange(enum memory m, ptl_size_t length, unsigned to)
{
	mp_ok(PtlGetPutRegion(
		swap_in[m], 0, swap_out[m], 0, length, mp.id[to], MP_PORTAL, 0, m, 0, 0));
	wait_for(PTL_EVENT_REPLY_END);
}

static void ask(enum kind kind, enum memory m, ptl_size_t length, unsigned to)
{
	switch (kind) {
	case GET:
		mp_get(here[m], 0, length, to, m, 0);
		wait_for(PTL_EVENT_REPLY_END);
		break;
	case PUT_ACK:
		mp_put(here[m], 0, length, PTL_ACK_REQ, to, m, 0, 0);
		wait_for(PTL_EVENT_ACK);
		break;
	case PUT_SEND:
		mp_put(here[m], 0, length, PTL_NO_ACK_REQ, to, m, 0, 0);
		wait_for(PTL_EVENT_SEND_END);
		break;
	default:
		exchange(m, length, to);
	}
}

static bool is_start(ptl_event_kind_t kind)
{
	return kind == PTL_EVENT_GET_START || kind == PTL_EVENT_PUT_START ||
	       kind == PTL_EVENT_GETPUT_START;
}

/* Return the number of served requests whose START came before the END of an earlier
 * one. */
static unsigned overtakings(void)
{
	unsigned under_way = 0, overtaken = 0;
	for (unsigned i = 0; i < 2 * rounds; i++) {
		if (is_start(mp_next(asked).type))
			overtaken += under_way++ != 0;
		else
			under_way--;
	}
	mp_check(under_way == 0, "%u requests without END", under_way);
	return overtaken;
}

static unsigned measure(enum kind kind, enum memory m, ptl_size_t length)
{
	for (unsigned i = 0; i < rounds; i++) {
		enum kind now = kind == MIXED ? i % MIXED : kind;
		if (now == EXCHANGE && length > swap_most)
			now = GET;
		ask(now, m, length, (mp.rank + 1) % mp.size);
	}
	unsigned overtaken = overtakings();
	mp_barrier();
	return overtaken;
}

static void head(void)
{
	printf("overtakings of %u requests, private memory / shared heap\n%8s", rounds,
		"bytes");
	for (unsigned k = 0; k < KINDS; k++)
		printf("%16s", kinds[k]);
	printf("\n");
}

static unsigned row(ptl_size_t length)
{
	unsigned n[KINDS][MEMORIES], all = 0;
	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned m = 0; m < MEMORIES; m++) {
			n[k][m] = 0;
			if (k == EXCHANGE && length > swap_most)
				continue;
			n[k][m] = measure((enum kind)k, (enum memory)m, length);
			all += n[k][m];
		}
	if (mp.rank != 0)
		return all;
	printf("%8llu", (unsigned long long)length);
	for (unsigned k = 0; k < KINDS; k++)
		if (k == EXCHANGE && length > swap_most)
			printf("%16s", "-");
		else
			printf("%12u / %u", n[k][PRIVATE], n[k][SHARED]);
	printf("\n");
	(void)fflush(stdout);
	return all;
}

static void prepare(enum memory m)
{
	void *at[2] = {calloc(1, LONGEST), calloc(1, LONGEST)};
	if (m == SHARED)
		for (int i = 0; i < 2; i++) {
			free(at[i]);
			mp_ok(PtlXAlloc(LONGEST, &at[i]));
		}
	here[m] = mp_bind(at[0], LONGEST, mine, 0);
	swap_in[m] = mp_bind(at[0], swap_most, mine, 0);
	swap_out[m] = mp_bind((char *)at[0] + LONGEST / 2, swap_most, mine, 0);
	(void)mp_attach(m, at[1], LONGEST,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | MP_STARTS, asked);
}

int main(int argc, char **argv)
{
	ptl_ni_limits_t limits;
	ptl_handle_ni_t ni;
	unsigned overtaken = 0;
	mp_start();
	rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
	int rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &limits, &ni);
	mp_check(rc == PTL_OK && ni == mp.ni, "another interface");
	swap_most = (ptl_size_t)limits.max_getput_md;
	mine = mp_queue(64);
	asked = mp_queue(2 * rounds);
	for (unsigned m = 0; m < MEMORIES; m++)
		prepare((enum memory)m);
	mp_barrier();
	if (mp.rank == 0)
		head();
	for (ptl_size_t length = 8; length <= LONGEST; length *= 2)
		overtaken += row(length);
	mp_end();
	mp_check(overtaken == 0, "%u requests overtook the END of the one before",
		overtaken);
	return 0;
}
