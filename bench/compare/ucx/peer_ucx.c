/* SPDX-License-Identifier: BSD-3-Clause */
/* The patterns of compare with the API of UCX: two processes, and how they meet. */
#include "peer_ucx.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The place where the sides exchange names; a side writes only its own. */
static struct meeting {
	struct name {
		_Alignas(128) _Atomic unsigned stage; /* of the side, counted by meet */
		size_t worker_bytes, rkey_bytes;
		uint64_t address;
		char worker[UCX_NAME], rkey[UCX_NAME];
	} side[2];
	_Alignas(128) _Atomic bool done; /* side 0 has its value */
} * meeting;

static const char *who;

const struct pattern ucx_patterns[4] = {{"ack", NULL, put_run}, {"get", NULL, get_run},
	{"am", am_open, am_run}, {"eqget", NULL, idle_run}};

void ucx_check(ucs_status_t status, const char *call)
{
	if (status != UCS_OK)
		peer_die("%s: %s; expected that it works; see UCX_LOG_LEVEL=info", call,
			ucs_status_string(status));
}

void ucx_progress(struct side *s)
{
	static unsigned turn;
	if (!ucp_worker_progress(s->worker) && ++turn % (1 << 14) == 0)
		sched_yield();
}

void ucx_wait(struct side *s, ucs_status_ptr_t request, const char *call)
{
	if (!UCS_PTR_IS_PTR(request)) {
		ucx_check(UCS_PTR_STATUS(request), call);
		return;
	}
	while (ucp_request_check_status(request) == UCS_INPROGRESS)
		ucx_progress(s);
	ucx_check(ucp_request_check_status(request), call);
	ucp_request_free(request);
}

double ucx_timed(struct side *s, round_fn *fn, uint64_t bytes)
{
	struct peer_plan p = peer_plan_of(s->quick, false, bytes);
	double ns[PEER_BATCHES];
	uint64_t round = 0;
	while (round < p.warm)
		fn(s, bytes, round++);
	for (uint64_t b = 0; b < p.batches; b++) {
		double t = peer_now_ns();
		for (uint64_t i = 0; i < p.each; i++)
			fn(s, bytes, round++);
		ns[b] = (peer_now_ns() - t) / (double)p.each;
	}
	return peer_median(ns, p.batches);
}

/* ---- a side ---- */

/* Wait until both sides are at this stage, and make progress for the other one. */
static void meet(struct side *s)
{
	unsigned stage = atomic_load(&meeting->side[s->number].stage) + 1;
	atomic_store(&meeting->side[s->number].stage, stage);
	while (atomic_load(&meeting->side[!s->number].stage) < stage) {
		if (s->worker)
			ucp_worker_progress(s->worker);
		sched_yield();
	}
}

static void open_worker(struct side *s)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_RMA | UCP_FEATURE_AM};
	ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE};
	ucp_config_t *config;
	ucx_check(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
	ucx_check(ucp_init(&params, config, &s->context), "ucp_init");
	ucp_config_release(config);
	ucx_check(
		ucp_worker_create(s->context, &single, &s->worker), "ucp_worker_create");
}

static void map_memory(struct side *s)
{
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
						     UCP_MEM_MAP_PARAM_FIELD_FLAGS,
		.length = UCX_MEMORY,
		.flags = UCP_MEM_MAP_ALLOCATE};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	ucx_check(ucp_mem_map(s->context, &params, &s->memory), "ucp_mem_map");
	ucx_check(ucp_mem_query(s->memory, &attr), "ucp_mem_query");
	s->bytes = attr.address;
	memset(s->bytes, 0, UCX_MEMORY);
}

static void copy_name(char to[UCX_NAME], const void *from, size_t bytes, const char *what)
{
	if (bytes > UCX_NAME)
		peer_die("a %s of %zu bytes; expected at most %d", what, bytes, UCX_NAME);
	memcpy(to, from, bytes);
}

static void tell_names(struct side *s)
{
	struct name *mine = &meeting->side[s->number];
	ucp_address_t *worker;
	void *rkey;
	ucx_check(ucp_worker_get_address(s->worker, &worker, &mine->worker_bytes),
		"ucp_worker_get_address");
	copy_name(mine->worker, worker, mine->worker_bytes, "worker address");
	ucp_worker_release_address(s->worker, worker);
	ucx_check(ucp_rkey_pack(s->context, s->memory, &rkey, &mine->rkey_bytes),
		"ucp_rkey_pack");
	copy_name(mine->rkey, rkey, mine->rkey_bytes, "remote key");
	ucp_rkey_buffer_release(rkey);
	mine->address = (uint64_t)s->bytes;
}

static void connect_sides(struct side *s)
{
	struct name *other = &meeting->side[!s->number];
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
		.address = (const ucp_address_t *)other->worker};
	ucx_check(ucp_ep_create(s->worker, &params, &s->ep), "ucp_ep_create");
	ucx_check(ucp_ep_rkey_unpack(s->ep, other->rkey, &s->rkey), "ucp_ep_rkey_unpack");
	s->address = other->address;
}

static void open_side(struct side *s, const struct pattern *p, uint64_t x)
{
	open_worker(s);
	map_memory(s);
	if (p->open)
		p->open(s, x);
	tell_names(s);
	meet(s);
	connect_sides(s);
	ucp_request_param_t param = {0};
	ucx_wait(s, ucp_ep_flush_nbx(s->ep, &param), "ucp_ep_flush_nbx");
	meet(s);
}

static void close_side(struct side *s)
{
	ucp_request_param_t param = {0};
	meet(s);
	ucp_rkey_destroy(s->rkey);
	ucx_wait(s, ucp_ep_close_nbx(s->ep, &param), "ucp_ep_close_nbx");
	meet(s);
	ucx_check(ucp_mem_unmap(s->context, s->memory), "ucp_mem_unmap");
	ucp_worker_destroy(s->worker);
	ucp_cleanup(s->context);
}

/* ---- a run ---- */

static void be_target(pid_t parent, const struct pattern *p, uint64_t x, bool quick)
{
	struct side s = {.number = 1, .quick = quick};
	peer_expect_children(false);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	peer_pin(1);
	open_side(&s, p, x);
	while (!atomic_load_explicit(&meeting->done, memory_order_acquire))
		ucx_progress(&s);
	close_side(&s);
	exit(0);
}

static double be_initiator(const struct pattern *p, uint64_t x, bool quick)
{
	struct side s = {.quick = quick};
	open_side(&s, p, x);
	double value = p->run(&s, x);
	atomic_store_explicit(&meeting->done, true, memory_order_release);
	peer_expect_children(false); /* the other side may leave from here on */
	close_side(&s);
	return value;
}

static double measure(const struct pattern *p, uint64_t x, bool quick)
{
	int status;
	pid_t parent = getpid();
	fflush(stdout);
	memset(meeting, 0, sizeof *meeting);
	peer_expect_children(true);
	pid_t child = fork();
	if (child < 0)
		peer_die("fork: %s", strerror(errno));
	if (!child)
		be_target(parent, p, x, quick);
	double value = be_initiator(p, x, quick);
	if (waitpid(child, &status, 0) != child || status)
		peer_die("the other side has failed; expected status 0");
	return value;
}

static void run(const char *test, uint64_t x, bool quick)
{
	for (size_t i = 0; i < sizeof ucx_patterns / sizeof ucx_patterns[0]; i++)
		if (!strcmp(test, ucx_patterns[i].name))
			peer_print(who, test, x, measure(&ucx_patterns[i], x, quick));
}

int main(int argc, char **argv)
{
	peer_program = "peer_ucx";
	if (argc < 2)
		peer_die("expected a name, quick or full, test=list");
	who = argv[1];
	meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (meeting == MAP_FAILED)
		peer_die("no shared memory: %s", strerror(errno));
	peer_pin(0);
	peer_each(argc - 1, argv + 1, run);
	return 0;
}
