/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault_ofi - a server and a client of the libfabric provider, one of which may die at
 * any point (tests/fault/pair.py)
 *
 *	fault_ofi server		prints its name in hex
 *	fault_ofi client NAME
 *
 * Both send short and long messages, for receives that are posted and that come later,
 * more of them than the peer has room for, write, read and change the peer's memory, and
 * open and close endpoints and regions.  The one that survives must get a completion for
 * each operation that it has begun, with success or as of a dead peer, within its
 * patience.  What it has opened can be closed then, and it ends with status 0.  A server
 * whose standard input ends before a client has come ends, too: its client has died.
 *
 * The provider is part of this program, so that its points are in the list of the
 * library's.  libfabric gives the functions that any provider calls.
 */
#include "lib/ofi/prov.h"
#include "support/patience.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	ROUNDS = 4,
	BURST = 80, /* short messages: the blocks have room for 32 of them */
	SHORT = 8000,
	LONG = 100000,
	EACH = 4,     /* messages of other kinds in a round */
	GREETING = 1, /* tags */
	FLOOD = 2,
	LONGS = 3,
	NEVER = 4, /* is not received */
	END = 5
};

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static struct fid_mr *mr;
static struct fi_info *info;
static struct patience limit;
static fi_addr_t peer;
static unsigned char region[LONG], bytes[LONG], got[LONG];
static struct fi_context2 sends, receives, strays;
static unsigned begun, ended, posted, received;
static bool over; /* the peer is gone */

static void fail(const char *what, const char *detail)
{
	fprintf(stderr, "fault_ofi: %s: %s\n", what, detail);
	exit(1);
}

static void check(ssize_t rc, const char *what)
{
	if (rc < 0)
		fail(what, fi_strerror((int)-rc));
}

/* ---- completions ---- */

static void count(const void *context, int err)
{
	if (err == FI_ECONNABORTED)
		over = true;
	else if (err && err != FI_ECANCELED)
		fail("a completion", fi_strerror(err));
	ended += context == &sends;
	received += context == &receives;
}

static void pump(void)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry bad = {0};
	ssize_t rc = fi_cq_sread(cq, &e, 1, NULL, 1);
	if (rc == 1) {
		count(e.op_context, 0);
	} else if (rc == -FI_EAVAIL) {
		check(fi_cq_readerr(cq, &bad, 0), "fi_cq_readerr");
		count(bad.op_context, bad.err);
	} else if (rc != -FI_EAGAIN) {
		check(rc, "fi_cq_sread");
	}
	if (patience_is_over(&limit))
		fail("patience", "a completion does not come");
}

/* Begin an operation.  A peer that is known to be gone is refused at once. */
#define BEGIN(call)                                                                      \
	do {                                                                             \
		ssize_t rc_;                                                             \
		while ((rc_ = (call)) == -FI_EAGAIN && !over)                            \
			pump();                                                          \
		if (rc_ == 0)                                                            \
			begun++;                                                         \
		else if (rc_ == -FI_EADDRNOTAVAIL)                                       \
			over = true;                                                     \
		else if (rc_ != -FI_EAGAIN)                                              \
			check(rc_, #call);                                               \
	} while (0)

static void receive(size_t len, uint64_t tag)
{
	check(fi_trecv(ep, got, len, NULL, FI_ADDR_UNSPEC, tag, 0, &receives),
		"fi_trecv");
	posted++;
}

/* Ask the peer for a byte: the death of a peer that owes nothing else is noticed. */
static void probe(void)
{
	BEGIN(fi_read(ep, bytes, 1, NULL, peer, 0, 1, &sends));
	while (ended < begun)
		pump();
}

static void await_received(void)
{
	for (unsigned turns = 1; received < posted && !over; turns++) {
		pump();
		if (turns % 16 == 0)
			probe();
	}
}

/* ---- a life ---- */

static struct fid_ep *open_endpoint(void)
{
	struct fid_ep *made;
	check(fi_endpoint(domain, info, &made, NULL), "fi_endpoint");
	check(fi_ep_bind(made, &av->fid, 0), "fi_ep_bind");
	check(fi_ep_bind(made, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	check(fi_enable(made), "fi_enable");
	return made;
}

static void open_all(void)
{
	extern struct fi_provider *fi_prov_ini(void);
	struct fi_provider *provider = fi_prov_ini();
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr table = {.type = FI_AV_TABLE};
	struct fi_cq_attr queue = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
	hints->caps = FI_TAGGED | FI_RMA | FI_ATOMIC;
	hints->ep_attr->type = FI_EP_RDM;
	check(provider->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info),
		"fi_getinfo");
	check(provider->fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	check(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	check(fi_av_open(domain, &table, &av, NULL), "fi_av_open");
	check(fi_cq_open(domain, &queue, &cq, NULL), "fi_cq_open");
	ep = open_endpoint();
	check(fi_mr_reg(domain, region, sizeof region, FI_REMOTE_READ | FI_REMOTE_WRITE,
		      0, 1, 0, &mr, NULL),
		"fi_mr_reg");
	fi_freeinfo(hints);
}

static void close_one(struct fid *fid, const char *what)
{
	check(fi_close(fid), what);
}

/* A receive without a message stays until it is canceled. */
static void cancel_all(void)
{
	while (received < posted) {
		ssize_t rc = fi_cancel(&ep->fid, &receives);
		if (rc && rc != -FI_ENOENT)
			check(rc, "fi_cancel");
		pump();
	}
}

static void close_all(void)
{
	while (ended < begun)
		pump();
	cancel_all();
	close_one(&mr->fid, "fi_close of the region");
	close_one(&ep->fid, "fi_close of the endpoint");
	close_one(&cq->fid, "fi_close of the queue");
	close_one(&av->fid, "fi_close of the addresses");
	close_one(&domain->fid, "fi_close of the domain");
	close_one(&fabric->fid, "fi_close of the fabric");
	fi_freeinfo(info);
}

/* Open an endpoint and a region for a while; a message that nobody receives goes. */
static void come_and_go(void)
{
	struct fid_ep *other = open_endpoint();
	struct fid_mr *more;
	check(fi_mr_reg(domain, got, sizeof got, FI_REMOTE_WRITE, 0, 2, 0, &more, NULL),
		"fi_mr_reg");
	ssize_t rc = fi_tsend(other, bytes, LONG, NULL, peer, NEVER, &strays);
	if (rc && rc != -FI_EAGAIN && rc != -FI_EADDRNOTAVAIL)
		check(rc, "fi_tsend");
	close_one(&more->fid, "fi_close of a region");
	close_one(&other->fid, "fi_close of an endpoint");
}

static void send_round(void)
{
	for (unsigned i = 0; i < BURST && !over; i++)
		BEGIN(fi_tsend(ep, bytes, SHORT, NULL, peer, FLOOD, &sends));
	for (unsigned i = 0; i < EACH && !over; i++)
		BEGIN(fi_tsend(ep, bytes, LONG, NULL, peer, LONGS, &sends));
	if (!over)
		(void)fi_tinject(ep, bytes, 8, peer, NEVER); /* or there is no room */
}

static void round_of_both(unsigned round)
{
	static uint64_t one = 1;
	for (unsigned i = 0; i < EACH / 2; i++)
		receive(LONG, LONGS);
	send_round();
	BEGIN(fi_write(ep, bytes, round % 2 ? LONG : 8, NULL, peer, 0, 1, &sends));
	BEGIN(fi_read(ep, bytes, round % 2 ? 8 : LONG, NULL, peer, 0, 1, &sends));
	BEGIN(fi_atomic(ep, &one, 1, NULL, peer, 0, 1, FI_UINT64, FI_SUM, &sends));
	come_and_go();
	for (unsigned i = EACH / 2; i < EACH && !over; i++)
		receive(LONG, LONGS);
	for (unsigned i = 0; i < BURST && !over; i++)
		receive(SHORT, FLOOD);
	await_received();
	while (ended < begun)
		pump();
}

/* Both have done all before one of them closes. */
static void play(void)
{
	for (unsigned round = 0; round < ROUNDS && !over; round++)
		round_of_both(round);
	if (!over)
		BEGIN(fi_tsend(ep, bytes, 1, NULL, peer, END, &sends));
	if (!over)
		receive(1, END);
	await_received();
}

/* ---- meeting ---- */

static void enter(const void *name)
{
	check(fi_av_insert(av, name, 1, &peer, 0, NULL) == 1 ? 0 : -FI_EINVAL,
		"fi_av_insert");
}

static void serve(void)
{
	struct ofi_name name;
	size_t n = sizeof name;
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	check(fi_getname(&ep->fid, &name, &n), "fi_getname");
	for (size_t i = 0; i < sizeof name; i++)
		printf("%02x", ((unsigned char *)&name)[i]);
	puts("");
	fflush(stdout);
	receive(sizeof name, GREETING);
	while (received < posted) {
		bool gone = poll(&input, 1, 0) > 0;
		pump();
		if (gone && received < posted)
			return;
	}
	memcpy(&name, got, sizeof name);
	enter(&name);
	play();
}

static void be_client(const char *text)
{
	struct ofi_name name;
	size_t n = sizeof name;
	for (size_t i = 0; i < sizeof name; i++)
		if (sscanf(text + 2 * i, "%2hhx", (unsigned char *)&name + i) != 1)
			fail("the name", text);
	enter(&name);
	check(fi_getname(&ep->fid, &name, &n), "fi_getname");
	memcpy(bytes, &name, sizeof name);
	BEGIN(fi_tsend(ep, bytes, sizeof name, NULL, peer, GREETING, &sends));
	while (ended < begun)
		pump();
	play();
}

int main(int argc, char **argv)
{
	bool serves = argc == 2 && !strcmp(argv[1], "server");
	limit = patience_begin();
	if (!serves && (argc != 3 || strcmp(argv[1], "client") != 0)) {
		fprintf(stderr, "usage: fault_ofi server, or fault_ofi client NAME\n");
		return 2;
	}
	open_all();
	if (serves)
		serve();
	else
		be_client(argv[2]);
	close_all();
	return 0;
}
