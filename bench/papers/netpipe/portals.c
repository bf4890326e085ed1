/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portals.c - NetPIPE's module for Portals 3.3: puts, or gets with -g
 *
 *	yod -sz 2 NPportals [-g] [-s | -2] [other options of NetPIPE] -o FILE
 *
 * The script build compiles this file together with NetPIPE's netpipe.c, which calls the
 * functions at the end.  MPI and MPI2 are defined for both, although there is no MPI:
 * with these names netpipe.h has a ProtocolStruct for two ranks, and netpipe.c takes -g.
 *
 * Each rank has a match entry for data and one for notes.  The descriptor for data is
 * attached anew for each buffer, outside of the time that NetPIPE takes.
 *
 *	put	SendData puts, and RecvData waits for PUT_END.
 *	get	The transmitter gets in SendData and in RecvData, and the receiver waits
 *		for GET_END in both, so a round of two messages is two gets in turn.
 *		With -2 both ranks get in SendData.  NetPIPE's integrity check, -i, is
 *		for puts only: it expects the data at the receiver.
 *
 * SendData waits for the end of its operation (SEND_END, REPLY_END), except with -s.
 *
 * An event queue overwrites events that its program has not taken, so no rank is more
 * than WINDOW operations ahead of its peer's program.  Each put tells in its header data
 * how many operations of the peer have come; a rank that sends nothing tells it by a
 * note.  Notes also carry NetPIPE's repeats and times.
 */
#include <cnos_mpi_os.h>
#include <portals3.h>
#include <portals3_runtime.h>

#include <netpipe.h>

#include <stdarg.h>
#include <stdbool.h>

enum { PORTAL_DATA = 4, PORTAL_NOTES = 5 };
enum { NOTE_COUNT, NOTE_VALUE }; /* match bits of notes */
enum { WINDOW = 256, EVENTS = 4 * WINDOW };

static struct {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_me_t data;    /* entry of the descriptor in */
	ptl_handle_md_t in, out; /* the buffers of the size, if open */
	ptl_handle_md_t nothing; /* source of notes */
	bool open;
	ptl_size_t shift; /* remote minus local offset of a message */
	ptl_process_id_t peer;
	uint32_t started, ended; /* operations of this rank */
	uint32_t seen;           /* of them, those whose event the peer's program has */
	uint32_t came, taken;    /* operations of the peer: events, and RecvDatas */
	uint32_t told;           /* value of came that the peer knows */
	uint32_t odd;            /* sum of numbers minus that of a complete series */
	uint64_t value;          /* of the last note, if has_value */
	bool has_value;
} np;

__attribute__((format(printf, 2, 3), noreturn)) static void die(
	int status, const char *fmt, ...)
{
	va_list args;
	fputs("NPportals: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(status);
}

static void check(int rc, const char *what)
{
	if (rc != PTL_OK)
		die(1, "%s: %s", what, PtlErrorStr((unsigned)rc));
}

#define DO(function, ...) check(function(__VA_ARGS__), #function)

/* ---- events ---- */

static void peer_has_seen(uint32_t count)
{
	if ((int32_t)(count - np.seen) > 0)
		np.seen = count;
}

static void tell(ptl_match_bits_t kind, uint64_t what)
{
	check(PtlPut(np.nothing, PTL_NO_ACK_REQ, np.peer, PORTAL_NOTES, 0, kind, 0, what),
		"PtlPut of a note");
}

/* The header data of a put are its number, and the count of this rank's operations.
 * PUT_ENDs of long messages can overtake each other, so Sync checks the sum. */
static void data_came(const ptl_event_t *ev)
{
	if (ev->mlength != ev->rlength)
		die(1, "%s of %llu bytes; expected %llu; the peer has another buffer",
			PtlEventKindStr(ev->type), (unsigned long long)ev->mlength,
			(unsigned long long)ev->rlength);
	if (ev->type == PTL_EVENT_PUT_END) {
		np.odd += (uint32_t)(ev->hdr_data >> 32) - np.came;
		peer_has_seen((uint32_t)ev->hdr_data);
	}
	if (++np.came - np.told >= WINDOW / 2) {
		np.told = np.came;
		tell(NOTE_COUNT, np.came);
	}
}

/* Wait for one event. */
static void take(void)
{
	ptl_event_t ev;
	DO(PtlEQWait, np.eq, &ev);
	if (ev.ni_fail_type != PTL_NI_OK)
		die(1, "%s failed: the peer has ended", PtlEventKindStr(ev.type));
	if (ev.type == PTL_EVENT_SEND_END || ev.type == PTL_EVENT_REPLY_END)
		np.ended++;
	else if (ev.pt_index != PORTAL_NOTES)
		data_came(&ev);
	else if (ev.match_bits == NOTE_COUNT)
		peer_has_seen((uint32_t)ev.hdr_data);
	else {
		np.value = ev.hdr_data;
		np.has_value = true;
	}
}

static void drain(void)
{
	while (np.ended != np.started)
		take();
}

static uint64_t await_value(void)
{
	while (!np.has_value)
		take();
	np.has_value = false;
	return np.value;
}

/* ---- descriptors ---- */

static ptl_md_t region(void *start, ptl_size_t length, unsigned options)
{
	return (ptl_md_t){.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = options | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = np.eq};
}

static ptl_handle_me_t entry(ptl_pt_index_t portal)
{
	ptl_handle_me_t me;
	DO(PtlMEAttach, np.ni, portal, np.peer, 0, ~(ptl_match_bits_t)0, PTL_RETAIN,
		PTL_INS_AFTER, &me);
	return me;
}

static void close_buffers(void)
{
	if (!np.open)
		return;
	DO(PtlMDUnlink, np.in);
	DO(PtlMDUnlink, np.out);
	np.open = false;
}

/* ---- one message ---- */

static void start(const ArgStruct *p)
{
	ptl_size_t at = (ptl_size_t)(p->s_ptr - p->s_buff);
	while (np.started - np.seen >= WINDOW || np.started - np.ended >= WINDOW)
		take();
	if (p->prot.use_get) {
		DO(PtlGetRegion, np.out, at, (ptl_size_t)p->bufflen, np.peer, PORTAL_DATA,
			0, 0, at + np.shift);
	} else {
		np.told = np.came;
		DO(PtlPutRegion, np.out, at, (ptl_size_t)p->bufflen, PTL_NO_ACK_REQ,
			np.peer, PORTAL_DATA, 0, 0, at + np.shift,
			(uint64_t)np.started << 32 | np.came);
	}
	np.started++;
	if (!p->reset_conn) /* netpipe.c sets it for -s */
		drain();
}

static void await_peer(void)
{
	while (np.came == np.taken)
		take();
	np.taken++;
}

/* ---- the functions that netpipe.c calls ---- */

void Init(ArgStruct *p, int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	p->prot.use_get = p->prot.no_fence = 0;
	p->reset_conn = 0;
	p->source_node = 0;
}

void Setup(ArgStruct *p)
{
	int most;
	unsigned rank, size;
	DO(PtlInit, &most);
	DO(PtlNIInit, PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &np.ni);
	DO(PtlGetRank, np.ni, &rank, &size);
	/* rank 0 speaks first: the first rank that leaves ends the job */
	bool fence = p->prot.no_fence;
	if (rank == 0 && size != 2)
		die(2, "%u rank%s; expected 2; use yod -sz 2 NPportals", size,
			size == 1 ? "" : "s");
	if (rank == 0 && fence)
		die(2, "-f; expected no -f, which is for MPI-2 only; leave it out");
	if (size != 2 || fence) {
		cnos_barrier();
		exit(2);
	}
	DO(PtlGetRankId, np.ni, 1 - rank, &np.peer);
	DO(PtlEQAlloc, np.ni, EVENTS, PTL_EQ_HANDLER_NONE, &np.eq);
	ptl_md_t md = region(NULL, 0, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE);
	DO(PtlMDAttach, entry(PORTAL_NOTES), md, PTL_RETAIN, NULL);
	md.eq_handle = PTL_EQ_NONE;
	DO(PtlMDBind, np.ni, md, PTL_RETAIN, &np.nothing);
	np.data = entry(PORTAL_DATA);
	p->tr = rank == 0;
	p->rcv = rank == 1;
	Sync(p);
}

/* NetPIPE's first messages go through a buffer that it does not align and whose offsets
 * are 0. */
void AfterAlignmentInit(ArgStruct *p)
{
	unsigned ops = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
	bool first = p->r_buff == p->r_buff_orig;
	ptl_size_t room = (ptl_size_t)(first || p->cache ? p->bufflen : MEMSIZE);
	if (!first)
		room += (ptl_size_t)MAX(p->soffset, p->roffset);
	close_buffers();
	DO(PtlMDAttach, np.data, region(p->r_buff, room, ops), PTL_RETAIN, &np.in);
	DO(PtlMDBind, np.ni, region(p->s_buff, room, 0), PTL_RETAIN, &np.out);
	np.shift = first ? 0 : (ptl_size_t)(p->roffset - p->soffset);
	np.open = true;
}

/* Meet the peer; all messages have come. */
void Sync(ArgStruct *p)
{
	(void)p;
	if (np.odd)
		die(1,
			"the numbers of %u messages have a wrong sum; expected 0, 1, 2 "
			"...; messages are lost, or come twice",
			np.came);
	if (cnos_barrier() != 0)
		die(1, "cnos_barrier failed: the peer has ended");
}

/* Nothing has to be prepared: the descriptor accepts any number of messages. */
void PrepareToReceive(ArgStruct *p)
{
	(void)p;
}

void SendData(ArgStruct *p)
{
	if (p->prot.use_get && !p->tr && !p->bidir)
		await_peer();
	else
		start(p);
}

void RecvData(ArgStruct *p)
{
	if (p->prot.use_get && p->tr && !p->bidir)
		start(p);
	else
		await_peer();
}

void SendTime(ArgStruct *p, double *t)
{
	uint64_t value;
	(void)p;
	memcpy(&value, t, sizeof value);
	tell(NOTE_VALUE, value);
}

void RecvTime(ArgStruct *p, double *t)
{
	uint64_t value = await_value();
	(void)p;
	memcpy(t, &value, sizeof value);
}

void SendRepeat(ArgStruct *p, int rpt)
{
	(void)p;
	tell(NOTE_VALUE, (uint64_t)rpt);
}

void RecvRepeat(ArgStruct *p, int *rpt)
{
	(void)p;
	*rpt = (int)await_value();
}

/* netpipe.c calls this after each trial, before it frees the buffers. */
void Reset(ArgStruct *p)
{
	(void)p;
	drain();
}

void CleanUp(ArgStruct *p)
{
	Sync(p);
	close_buffers();
	DO(PtlNIFini, np.ni);
	PtlFini();
}
