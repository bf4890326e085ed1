/* SPDX-License-Identifier: BSD-3-Clause */
/* A file server and its clients. */
#define PTL_ACENTRY_5ARGS /* the form before job ids */
#include "rpc_layer.h"

#include <p3api/debug.h>
#include <p3nal_tcp.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef PTL_MD_EVENT_AUTO_UNLINK_ENABLE
#define PTL_MD_EVENT_AUTO_UNLINK_ENABLE 0
#endif

enum { REQUESTS = 8, BULK, ANSWERS };               /* portal indexes */
enum { OWN_USER = 2, SERVER_ONLY = 3, NOBODY = 5 }; /* access control entries */
enum { BUFFERS = 4, EACH = 64, SLOTS = 16, PAGE = 4096, PAGES = RPC_MOST / PAGE };
enum { EVENTS = 4096, QUEUE = 1024, FILES = 4096, LATE_S = 1 };

#define REQUEST_BITS (0xf5ull << 56)
#define CALL_IGNR    ((1ull << 56) - 1)

struct request {
	uint32_t operation, file;
	uint64_t offset, length, call; /* match bits of the bytes at the client */
	uint64_t spare[4];
};
_Static_assert(sizeof(struct request) == 64, "buffers hold a whole number of them");

struct answer {
	int64_t result;
	uint64_t call;
};

static const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};

static void admit(ptl_ac_index_t entry, ptl_process_id_t whom, ptl_pt_index_t portal)
{
	ptl_uid_t uid;
	DO(PtlGetUid(job.ni, &uid));
	DO(PtlACEntry(job.ni, entry, whom, uid, portal));
}

/* ---- server: requests ---- A request without room is lost, and its client waits for
 * ever: there is room for requests of all clients, and of their earlier lives that were
 * killed. */

struct buffer {
	ptl_handle_me_t me;
	struct request request[EACH];
};

/* An operation under way; its bytes lie in pages that are not adjacent. */
enum state { FREE, FETCHING, PUSHING, ANSWERING };

struct slot {
	enum state state;
	struct request request;
	ptl_process_id_t client;
	ptl_handle_md_t md;
	ptl_md_iovec_t page[PAGES];
	struct answer answer;
	double since;
};

struct waiting {
	struct request request;
	ptl_process_id_t client;
};

static struct {
	ptl_handle_eq_t eqs[2]; /* for requests, and for work */
	struct buffer buffer[BUFFERS];
	struct slot slot[SLOTS];
	char *pages;
	struct waiting waiting[QUEUE];
	unsigned first, last;
	int directory, byes;
	int file[FILES];
	struct rpc_served served;
} server;

static void attach_buffer(struct buffer *b)
{
	ptl_md_t md = job_md(b->request, sizeof b->request, PTL_MD_THRESH_INF,
		PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE |
			PTL_MD_EVENT_AUTO_UNLINK_ENABLE,
		server.eqs[0]);
	md.max_size = sizeof(struct request);
	md.user_ptr = b;
	DO(PtlMDAttach(b->me, md, PTL_UNLINK, NULL));
}

static void open_buffers(void)
{
	for (int i = 0; i < BUFFERS; i++) {
		struct buffer *b = &server.buffer[i];
		DO(PtlMEAttach(job.ni, REQUESTS, anybody, REQUEST_BITS, CALL_IGNR,
			PTL_RETAIN, PTL_INS_AFTER, &b->me));
		attach_buffer(b);
	}
}

/* Choose every second page of its share, backwards. */
static void lay_pages(struct slot *s, char *share)
{
	for (int i = 0; i < PAGES; i++)
		s->page[i] = (ptl_md_iovec_t){share + (PAGES - 1 - i) * 2 * PAGE, PAGE};
}

static void open_slots(void)
{
	server.pages = malloc((size_t)SLOTS * PAGES * 2 * PAGE);
	for (int i = 0; i < SLOTS; i++)
		lay_pages(&server.slot[i], server.pages + (size_t)i * PAGES * 2 * PAGE);
}

/* ---- server: files ---- */

static int open_file(uint32_t number)
{
	char name[16];
	if (number >= FILES)
		return -1;
	snprintf(name, sizeof name, "%u", number);
	if (server.file[number] <= 0)
		server.file[number] = openat(
			server.directory, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return server.file[number];
}

/* Return the pages; the last one only up to the length. */
static int pages_of(struct slot *s)
{
	uint64_t length = s->request.length;
	for (int i = 0; i < PAGES; i++) {
		s->page[i].iov_len = length < PAGE ? length : PAGE;
		length -= s->page[i].iov_len;
		if (length == 0)
			return i + 1;
	}
	return 0;
}

static int64_t move_file(struct slot *s, bool write)
{
	struct request *r = &s->request;
	struct iovec iov[PAGES];
	int fd = open_file(r->file), n = pages_of(s);
	for (int i = 0; i < n; i++)
		iov[i] = (struct iovec){s->page[i].iov_base, s->page[i].iov_len};
	ssize_t moved = write ? pwritev(fd, iov, n, (off_t)r->offset)
			      : preadv(fd, iov, n, (off_t)r->offset);
	return moved < 0 ? -errno : moved;
}

/* ---- server: slots ---- */

static ptl_md_t slot_md(struct slot *s, int threshold)
{
	ptl_md_t md = job_md(s->page, (ptl_size_t)pages_of(s), threshold,
		PTL_MD_IOVEC | PTL_MD_EVENT_START_DISABLE, server.eqs[1]);
	md.user_ptr = s;
	return md;
}

static void answer(struct slot *s, int64_t result)
{
	s->answer = (struct answer){result, s->request.call};
	s->state = ANSWERING;
	s->since = job_now();
	ptl_md_t md = job_md(&s->answer, sizeof s->answer, 1, PTL_MD_EVENT_START_DISABLE,
		server.eqs[1]);
	md.user_ptr = s;
	DO(PtlMDBind(job.ni, md, PTL_RETAIN, &s->md));
	DO(PtlPut(s->md, PTL_NOACK_REQ, s->client, ANSWERS, SERVER_ONLY, s->request.call,
		0, 0));
}

/* Fetch.  Threshold 2: REPLY, and on some networks SEND_END. */
static void fetch(struct slot *s)
{
	s->state = FETCHING;
	DO(PtlMDBind(job.ni, slot_md(s, 2), PTL_RETAIN, &s->md));
	DO(PtlGet(s->md, s->client, BULK, SERVER_ONLY, s->request.call, 0));
}

static void push(struct slot *s)
{
	int64_t moved = move_file(s, false);
	if (moved <= 0) {
		answer(s, moved);
		return;
	}
	s->request.length = (uint64_t)moved;
	s->state = PUSHING;
	DO(PtlMDBind(job.ni, slot_md(s, 2), PTL_RETAIN, &s->md));
	DO(PtlPut(
		s->md, PTL_ACK_REQ, s->client, BULK, SERVER_ONLY, s->request.call, 0, 0));
}

static void start(struct slot *s)
{
	struct request *r = &s->request;
	server.served.requests++;
	s->since = job_now();
	if (r->operation == RPC_WRITE && r->length <= RPC_MOST && open_file(r->file) >= 0)
		fetch(s);
	else if (r->operation == RPC_READ && r->length <= RPC_MOST &&
		 open_file(r->file) >= 0)
		push(s);
	else if (r->operation == RPC_STATUS)
		answer(s, job_drops());
	else if (r->operation == RPC_BYE)
		answer(s, ++server.byes);
	else
		answer(s, -EINVAL);
}

static void start_waiting(void)
{
	for (int i = 0; i < SLOTS && server.first != server.last; i++) {
		struct slot *s = &server.slot[i];
		if (s->state != FREE)
			continue;
		struct waiting *w = &server.waiting[server.first++ % QUEUE];
		s->request = w->request;
		s->client = w->client;
		start(s);
	}
}

static void request_event(const ptl_event_t *event)
{
	struct buffer *b = event->md.user_ptr;
	if (event->type == PTL_EVENT_UNLINK) {
		attach_buffer(b);
		return;
	}
	CHECK(event->type == PTL_EVENT_PUT_END && server.last - server.first < QUEUE);
	if (event->ni_fail_type != PTL_NI_OK || event->mlength != sizeof(struct request))
		return;
	struct waiting *w = &server.waiting[server.last++ % QUEUE];
	memcpy(&w->request, (char *)event->md.start + event->offset, sizeof w->request);
	w->client = event->initiator;
}

static void release(struct slot *s)
{
	DO(PtlMDUnlink(s->md));
	s->state = FREE;
}

static void lost(struct slot *s)
{
	server.served.lost++;
	release(s);
}

static void fetched(struct slot *s, const ptl_event_t *event)
{
	CHECK(event->mlength == s->request.length);
	DO(PtlMDUnlink(s->md));
	server.served.writes++;
	answer(s, move_file(s, true));
}

static void pushed(struct slot *s, const ptl_event_t *event)
{
	CHECK(event->rlength == s->request.length);
	DO(PtlMDUnlink(s->md));
	server.served.reads++;
	answer(s, (int64_t)event->mlength);
}

/* Ignore an event of a descriptor that the slot no longer has: its operation is over. */
static void work_event(const ptl_event_t *event)
{
	struct slot *s = event->md.user_ptr;
	if (s->state == FREE || event->md_handle != s->md)
		return;
	if (event->ni_fail_type != PTL_NI_OK)
		lost(s);
	else if (s->state == FETCHING && event->type == PTL_EVENT_REPLY_END)
		fetched(s, event);
	else if (s->state == PUSHING && event->type == PTL_EVENT_ACK)
		pushed(s, event);
	else if (s->state == ANSWERING && event->type == PTL_EVENT_SEND_END)
		release(s);
}

/* Give up operations whose client ignores them: it is gone, or is back without the
 * entry. */
static void give_up_late(void)
{
	for (int i = 0; i < SLOTS; i++) {
		struct slot *s = &server.slot[i];
		if (s->state == FREE || job_now() < s->since + LATE_S)
			continue;
		int rc = PtlMDUnlink(s->md);
		CHECK(rc == PTL_OK || rc == PTL_MD_IN_USE);
		if (rc == PTL_OK) {
			server.served.late++;
			s->state = FREE;
		}
	}
}

static bool busy(void)
{
	for (int i = 0; i < SLOTS; i++)
		if (server.slot[i].state != FREE)
			return true;
	return server.first != server.last;
}

void rpc_serve(const char *directory, int clients)
{
	ptl_event_t event;
	int which;
	PtlNIDebug(job.ni, PTL_DBG_NONE);
	server.directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(server.directory >= 0);
	for (int i = 0; i < 2; i++)
		DO(PtlEQAlloc(job.ni, EVENTS, PTL_EQ_HANDLER_NONE, &server.eqs[i]));
	admit(OWN_USER, anybody, REQUESTS);
	open_slots();
	open_buffers();
	long dropped = job_drops();
	while (server.byes < clients || busy()) {
		int rc = PtlEQPoll(server.eqs, 2, 100, &event, &which);
		CHECK(rc == PTL_OK || rc == PTL_EQ_EMPTY);
		if (rc == PTL_EQ_EMPTY)
			give_up_late();
		else if (which == 0)
			request_event(&event);
		else
			work_event(&event);
		start_waiting();
	}
	server.served.dropped = job_drops() - dropped;
	for (int i = 0; i < FILES; i++)
		if (server.file[i] > 0)
			close(server.file[i]);
	close(server.directory);
}

struct rpc_served rpc_served(void)
{
	return server.served;
}

/* ---- client ---- */

struct rpc_call {
	struct request request;
	ptl_md_iovec_t piece[RPC_PIECES];
	struct answer answer;
	ptl_handle_md_t md;
	ptl_handle_me_t bulk, answers;
	bool exposed, answered, sent;
	ptl_size_t moved;
};

static struct {
	ptl_handle_eq_t eq;
	uint64_t next;
} client;

static void client_event(const ptl_event_t *event)
{
	struct rpc_call *c = event->md.user_ptr;
	if (event->type == PTL_EVENT_UNLINK)
		return;
	if (event->type == PTL_EVENT_SEND_END) {
		c->sent = true;
		return;
	}
	CHECK(event->ni_fail_type == PTL_NI_OK);
	CHECK(event->initiator.pid == job.ids[0].pid);
	if (event->pt_index == BULK) {
		c->moved = event->mlength;
		c->exposed = false;
	} else
		c->answered = true;
}

static bool poll_client(ptl_time_t patience)
{
	ptl_event_t event;
	int which, rc = PtlEQPoll(&client.eq, 1, patience, &event, &which);
	CHECK(rc == PTL_OK || rc == PTL_EQ_EMPTY);
	if (rc == PTL_OK)
		client_event(&event);
	return rc == PTL_OK;
}

static void expose(
	ptl_handle_me_t *me, ptl_pt_index_t portal, struct rpc_call *c, ptl_md_t md)
{
	md.user_ptr = c;
	DO(PtlMEAttach(job.ni, portal, job.ids[0], c->request.call, 0, PTL_UNLINK,
		PTL_INS_AFTER, me));
	DO(PtlMDAttach(*me, md, PTL_UNLINK, NULL));
}

static void send_request(struct rpc_call *c, ptl_ac_index_t entry)
{
	ptl_md_t md = job_md(
		&c->request, sizeof c->request, 1, PTL_MD_EVENT_START_DISABLE, client.eq);
	md.user_ptr = c;
	DO(PtlMDBind(job.ni, md, PTL_UNLINK, &c->md));
	DO(PtlPut(c->md, PTL_NOACK_REQ, job.ids[0], REQUESTS, entry,
		REQUEST_BITS | c->request.call, 0, 0));
}

static struct rpc_call *new_call(
	enum rpc_operation operation, unsigned file, uint64_t offset)
{
	struct rpc_call *c = calloc(1, sizeof *c);
	c->request.operation = operation;
	c->request.file = file;
	c->request.offset = offset;
	c->request.call = ++client.next;
	return c;
}

struct rpc_call *rpc_begin(enum rpc_operation operation, unsigned file, uint64_t offset,
	const ptl_md_iovec_t *pieces, int n)
{
	struct rpc_call *c = new_call(operation, file, offset);
	unsigned option = operation == RPC_WRITE ? PTL_MD_OP_GET : PTL_MD_OP_PUT;
	CHECK(n <= RPC_PIECES);
	for (int i = 0; i < n; i++) {
		c->piece[i] = pieces[i];
		c->request.length += pieces[i].iov_len;
	}
	c->exposed = n > 0;
	if (n > 0)
		expose(&c->bulk, BULK, c,
			job_md(c->piece, (ptl_size_t)n, 1,
				option | PTL_MD_IOVEC | PTL_MD_EVENT_START_DISABLE,
				client.eq));
	expose(&c->answers, ANSWERS, c,
		job_md(&c->answer, sizeof c->answer, 1,
			PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, client.eq));
	send_request(c, OWN_USER);
	return c;
}

/* Finish; the event of the bytes may still be unread when the answer is there. */
long rpc_finish(struct rpc_call *c)
{
	while (!c->answered || !c->sent)
		poll_client(100);
	CHECK(c->answer.call == c->request.call);
	long result = (long)c->answer.result;
	if (c->exposed && result > 0)
		while (c->exposed)
			poll_client(100);
	else if (c->exposed)
		DO(PtlMEUnlink(c->bulk));
	CHECK(result <= 0 || c->request.length == 0 || (ptl_size_t)result == c->moved);
	free(c);
	return result;
}

long rpc_call(enum rpc_operation operation, unsigned file, uint64_t offset,
	const ptl_md_iovec_t *pieces, int n)
{
	return rpc_finish(rpc_begin(operation, file, offset, pieces, n));
}

/* Return true if the server answers; nothing answers before it is there. */
static bool reached(void)
{
	struct rpc_call *c = rpc_begin(RPC_STATUS, 0, 0, NULL, 0);
	double until = job_now() + 1;
	while (!(c->answered && c->sent) && job_now() < until)
		poll_client(10);
	bool yes = c->answered;
	if (!yes) {
		int rc = PtlMEUnlink(c->answers);
		yes = rc != PTL_OK;
	}
	while (!c->sent || (yes && !c->answered))
		poll_client(10);
	free(c);
	return yes;
}

void rpc_connect(unsigned life)
{
	client.next = (uint64_t)life << 32;
	DO(PtlEQAlloc(job.ni, EVENTS, PTL_EQ_HANDLER_NONE, &client.eq));
	admit(SERVER_ONLY, job.ids[0], PTL_PT_INDEX_ANY);
	while (!reached())
		;
}

void rpc_disconnect(void)
{
	while (poll_client(0))
		;
	DO(PtlEQFree(client.eq));
}

static void await_sent(struct rpc_call *c)
{
	while (!c->sent)
		poll_client(100);
}

void rpc_trespass(void)
{
	long here = job_drops(), there = rpc_call(RPC_STATUS, 0, 0, NULL, 0);
	struct rpc_call *c = new_call(RPC_BYE, 0, 0);
	c->request.call |= 1u << 31;
	send_request(c, NOBODY);
	await_sent(c);
	CHECK(rpc_call(RPC_STATUS, 0, 0, NULL, 0) > there);
	ptl_handle_me_t me;
	char byte = 0;
	expose(&me, BULK, c, job_md(&byte, 1, 1, PTL_MD_OP_PUT, client.eq));
	ptl_md_t md = job_md("x", 1, 1, PTL_MD_EVENT_START_DISABLE, client.eq);
	md.user_ptr = c;
	c->sent = false;
	DO(PtlMDBind(job.ni, md, PTL_UNLINK, &c->md));
	DO(PtlPut(c->md, PTL_NOACK_REQ, job.self, BULK, SERVER_ONLY, c->request.call, 0,
		0));
	await_sent(c);
	while (job_drops() == here)
		poll_client(1);
	DO(PtlMEUnlink(me));
	CHECK(byte == 0);
	free(c);
}
