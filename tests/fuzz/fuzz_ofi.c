/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_ofi - the libfabric provider, and a peer that sends it any Portals headers
 *
 * The input is a list of steps of 24 bytes.  Some are requests that the peer, another
 * process, sends to any index with any bits, header data and length; the others are calls
 * of the program whose provider gets them.  Only a crash, or a report of a sanitizer, is
 * an error.
 */
#include <portals3.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { STEP = 24, STEPS = 80, BUFFER = 1 << 16, RECEIVES = 64, EAGER = 8192 };

struct step {
	uint8_t kind, index, flags, size; /* size: of receives, in units of 256 */
	uint32_t length;
	uint64_t bits, data;
};
_Static_assert(sizeof(struct step) == STEP, "a step is 24 bytes");

/* What the two processes share: one request, and the name of the endpoint. */
static struct shared {
	_Atomic uint32_t asked, done;
	struct step step;
	uint8_t name[16];
} * shared;

static struct fid_cq *cq;
static struct fid_ep *ep;
static char buffer[BUFFER];
static struct fi_context2 contexts[RECEIVES];

static void must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_ofi: %s fails\n", what);
	_exit(1);
}

/* ---- the peer ---- */

static void send_step(ptl_handle_md_t md, ptl_process_id_t to, const struct step *s)
{
	static const ptl_pt_index_t likely[] = {0, 1, 8, 9, 64, 65, 64, 65};
	ptl_pt_index_t at = s->flags & 1 ? s->index : likely[s->index % 8];
	ptl_size_t length = s->length % BUFFER;
	/* A long message that does not say so would stay in the peer's lane for ever. */
	if (at >= 64 && !(s->bits >> 63))
		length %= EAGER + 1;
	if (s->flags & 2)
		(void)PtlGetRegion(md, 0, length, to, at, 0, s->bits, s->data);
	else
		(void)PtlPutRegion(md, 0, length,
			s->flags & 4 ? PTL_ACK_REQ : PTL_NOACK_REQ, to, at, 0, s->bits,
			s->flags & 8 ? s->data : 0, s->data);
}

_Noreturn static void peer_main(void)
{
	int n;
	ptl_handle_ni_t ni;
	ptl_handle_md_t handle;
	ptl_process_id_t to;
	ptl_md_t md = {.start = buffer,
		.length = BUFFER,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE,
		.eq_handle = PTL_EQ_NONE};
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!shared->asked)
		usleep(100); /* pause: between two looks */
	must(PtlInit(&n) == PTL_OK, "PtlInit");
	must(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK,
		"PtlNIInit");
	must(PtlMDBind(ni, md, PTL_RETAIN, &handle) == PTL_OK, "PtlMDBind");
	memcpy(&to.nid, shared->name + 8, sizeof to.nid);
	memcpy(&to.pid, shared->name + 12, sizeof to.pid);
	for (;;) {
		ptl_sr_value_t count;
		(void)PtlNIStatus(ni, PTL_SR_DROP_COUNT, &count); /* and make progress */
		if (shared->done != shared->asked) {
			send_step(handle, to, &shared->step);
			shared->done = shared->asked;
		}
		sched_yield();
	}
}

static void ask_peer(const struct step *s)
{
	struct fi_cq_tagged_entry e;
	shared->step = *s;
	shared->asked++;
	while (shared->done != shared->asked) {
		(void)fi_cq_read(cq, &e, 1);
		sched_yield();
	}
}

/* ---- the program ---- */

static void open_all(void)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fi_info *info, *hints = fi_allocinfo();
	struct fi_av_attr table = {.type = FI_AV_TABLE};
	struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_TAGGED};
	size_t n = sizeof shared->name;
	hints->caps = FI_TAGGED | FI_MSG | FI_SOURCE | FI_DIRECTED_RECV | FI_MULTI_RECV;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("portals");
	must(!fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	must(!fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(!fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(!fi_av_open(domain, &table, &av, NULL), "fi_av_open");
	must(!fi_cq_open(domain, &queue, &cq, NULL), "fi_cq_open");
	must(!fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(!fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(!fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(!fi_enable(ep), "fi_enable");
	must(!fi_getname(&ep->fid, shared->name, &n), "fi_getname");
	fi_freeinfo(hints);
	fi_freeinfo(info);
}

static void start(void)
{
	char domain[40];
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(shared != MAP_FAILED, "mmap");
	snprintf(domain, sizeof domain, "fuzz_ofi.%d", (int)getpid());
	(void)setenv("PTL3_DOMAIN", domain, 1);
	(void)setenv("FI_PROVIDER", "portals", 1);
	(void)setenv("FI_PROVIDER_PATH", P3_OFI_PATH, 0);
	pid_t pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0)
		peer_main();
	open_all();
}

static void read_completions(unsigned n)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry error;
	fi_addr_t from;
	while (n-- > 0)
		if (fi_cq_readfrom(cq, &e, 1, &from) == -FI_EAVAIL)
			(void)fi_cq_readerr(cq, &error, 0);
}

static void receive(const struct step *s, void *context)
{
	struct iovec iov = {buffer, (size_t)s->size * 256};
	struct fi_msg_tagged m = {.msg_iov = &iov,
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.tag = s->bits >> 8,
		.ignore = s->data >> 8,
		.context = context};
	struct fi_msg plain = {.msg_iov = &iov,
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.context = context};
	static const uint64_t looks[] = {FI_PEEK, FI_PEEK | FI_CLAIM, FI_CLAIM,
		FI_PEEK | FI_DISCARD, FI_CLAIM | FI_DISCARD, 0, 0, 0};
	if (s->flags & 16)
		(void)fi_recvmsg(
			ep, &plain, s->flags & 32 && iov.iov_len ? FI_MULTI_RECV : 0);
	else
		(void)fi_trecvmsg(ep, &m, looks[s->flags % 8] | FI_COMPLETION);
}

static void do_step(const struct step *s)
{
	void *context = &contexts[s->index % RECEIVES];
	switch (s->kind % 8) {
	case 5:
		receive(s, context);
		break;
	case 6:
		(void)fi_cancel(&ep->fid, context);
		break;
	case 7:
		read_completions(s->size);
		break;
	default:
		ask_peer(s);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (!shared)
		start();
	for (unsigned i = 0; i < STEPS && len >= STEP; i++, data += STEP, len -= STEP) {
		struct step s;
		memcpy(&s, data, STEP);
		do_step(&s);
	}
	for (unsigned i = 0; i < RECEIVES; i++)
		for (unsigned n = 0; n < 100 && fi_cancel(&ep->fid, &contexts[i]) == 0;
			n++)
			read_completions(4);
	read_completions(100);
	return 0;
}
