/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_ucx - the patterns of compare that ucx_perftest has not, with the API of UCX
 *
 *	peer_ucx WHO quick|full test=list ...
 *
 * ack is ucp_put_nbx and ucp_ep_flush_nbx, get ucp_get_nbx, am ucp_am_send_nbx with a
 * reply, and eqget ucp_worker_progress where nothing is to be done.
 *
 * The other rank makes progress meanwhile.  UCX allocates the memory of put and get, so
 * that its shared memory reaches it.
 */
#include "../am.h"
#include "../peer.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

enum { NAME = 4096, MEMORY = 4096, STEP = 64, STEPS = MEMORY / STEP };

/* The place where the ranks exchange names; a rank writes only its own. */
static struct name {
	_Alignas(128) _Atomic unsigned stage; /* of the rank, counted by meet */
	size_t worker_bytes, rkey_bytes;
	uint64_t address;
	char worker[NAME], rkey[NAME];
} * names;

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static ucp_mem_h memory;
static char *bytes_of_memory;
static ucp_rkey_h rkey;  /* of the other rank's memory */
static uint64_t address; /* of the other rank's memory */
static const ucp_request_param_t plain;
static char word[STEP];

static void check(ucs_status_t status, const char *call)
{
	if (status != UCS_OK)
		peer_die("%s: %s; expected that it works; see UCX_LOG_LEVEL=info", call,
			ucs_status_string(status));
}

#define UCX_DO(function, ...) check(function(__VA_ARGS__), #function)

/* Make progress, and yield the CPU now and then. */
static void progress(void)
{
	static unsigned turn;
	if (!ucp_worker_progress(worker) && ++turn % (1 << 14) == 0)
		sched_yield();
}

/* Wait until the request has ended. */
static void wait_for(ucs_status_ptr_t request, const char *call)
{
	if (!UCS_PTR_IS_PTR(request)) {
		check(UCS_PTR_STATUS(request), call);
		return;
	}
	while (ucp_request_check_status(request) == UCS_INPROGRESS)
		progress();
	check(ucp_request_check_status(request), call);
	ucp_request_free(request);
}

#define UCX_WAIT(function, ...) wait_for(function(__VA_ARGS__), #function)

/* Wait until both ranks are at this stage, and make progress for the other one. */
static void meet(void)
{
	unsigned stage = atomic_load(&names[peer_rank].stage) + 1;
	atomic_store(&names[peer_rank].stage, stage);
	while (atomic_load(&names[!peer_rank].stage) < stage)
		progress();
}

/* ---- put, get, and a worker that has nothing to do: by rank 0 ---- */

static void put_at(uint64_t at, uint64_t bytes, uint64_t number)
{
	peer_stamp(word, bytes, number);
	UCX_WAIT(ucp_put_nbx, ep, word, bytes, address + at, rkey, &plain);
}

static void get_from(uint64_t at, uint64_t bytes)
{
	UCX_WAIT(ucp_get_nbx, ep, word, bytes, address + at, rkey, &plain);
}

static void flush(void)
{
	UCX_WAIT(ucp_ep_flush_nbx, ep, &plain);
}

static void puts_of(uint64_t bytes, uint64_t done, uint64_t count)
{
	for (uint64_t i = done; !peer_rank && i < done + count; i++) {
		put_at(0, bytes, i);
		flush();
	}
}

/* Each get begins a step further on, and brings the number of its step. */
static void gets_of(uint64_t bytes, uint64_t done, uint64_t count)
{
	for (uint64_t i = done; !peer_rank && i < done + count; i++) {
		get_from(i % STEPS * STEP, bytes);
		peer_check(word, bytes, i % STEPS);
	}
}

static void looks(uint64_t x, uint64_t done, uint64_t count)
{
	(void)x, (void)done;
	for (; !peer_rank && count; count--)
		ucp_worker_progress(worker);
}

/* ---- active messages ---- */

/* UCX ends the request itself.  The reply outlives this call if UCX keeps it for a
 * while. */
static void am_request(unsigned function, const void *bytes)
{
	static char reply[PEER_BYTES];
	if (function == AM_DONE)
		bytes = memcpy(reply, bytes, am.bytes);
	ucs_status_ptr_t request =
		ucp_am_send_nbx(ep, function, NULL, 0, bytes, am.bytes, &plain);
	if (UCS_PTR_IS_PTR(request))
		ucp_request_free(request);
	else
		check(UCS_PTR_STATUS(request), "ucp_am_send_nbx");
}

static void am_poll(void)
{
	progress();
}

/* The argument is the function. */
static ucs_status_t received(void *function, const void *header, size_t header_length,
	void *data, size_t bytes, const ucp_am_recv_param_t *param)
{
	(void)header, (void)header_length;
	if (bytes != am.bytes || param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
		peer_die("an active message of %zu bytes; expected %" PRIu64
			 ", and no rendezvous",
			bytes, am.bytes);
	(*(void (*const *)(const char *))function)(data);
	return UCS_OK;
}

static void handle_messages(void)
{
	for (unsigned i = 0; i < AM_FUNCTIONS; i++) {
		ucp_am_handler_param_t param = {
			.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
				      UCP_AM_HANDLER_PARAM_FIELD_CB |
				      UCP_AM_HANDLER_PARAM_FIELD_ARG,
			.id = i,
			.cb = received,
			.arg = (void *)&am_functions[i]};
		UCX_DO(ucp_worker_set_am_recv_handler, worker, &param);
	}
}

/* ---- a rank ---- */

static void open_worker(void)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_RMA | UCP_FEATURE_AM};
	ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE};
	ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
						  UCP_MEM_MAP_PARAM_FIELD_FLAGS,
		.length = MEMORY,
		.flags = UCP_MEM_MAP_ALLOCATE};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	ucp_config_t *config;
	UCX_DO(ucp_config_read, NULL, NULL, &config);
	UCX_DO(ucp_init, &params, config, &context);
	ucp_config_release(config);
	UCX_DO(ucp_worker_create, context, &single, &worker);
	UCX_DO(ucp_mem_map, context, &map, &memory);
	UCX_DO(ucp_mem_query, memory, &attr);
	memset(attr.address, 0, MEMORY);
	bytes_of_memory = attr.address;
}

static void copy_name(char to[NAME], const void *from, size_t bytes, const char *what)
{
	if (bytes > NAME)
		peer_die("a %s of %zu bytes; expected at most %d", what, bytes, NAME);
	memcpy(to, from, bytes);
}

static void tell_names(struct name *mine)
{
	ucp_address_t *at;
	void *key;
	UCX_DO(ucp_worker_get_address, worker, &at, &mine->worker_bytes);
	copy_name(mine->worker, at, mine->worker_bytes, "worker address");
	ucp_worker_release_address(worker, at);
	UCX_DO(ucp_rkey_pack, context, memory, &key, &mine->rkey_bytes);
	copy_name(mine->rkey, key, mine->rkey_bytes, "remote key");
	ucp_rkey_buffer_release(key);
	mine->address = (uint64_t)bytes_of_memory;
}

static void open_rank(uint64_t x)
{
	struct name *other = &names[!peer_rank];
	open_worker();
	am_open(x);
	handle_messages();
	tell_names(&names[peer_rank]);
	meet();
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
		.address = (const ucp_address_t *)other->worker};
	UCX_DO(ucp_ep_create, worker, &params, &ep);
	UCX_DO(ucp_ep_rkey_unpack, ep, other->rkey, &rkey);
	address = other->address;
	flush();
	meet();
}

static void close_rank(uint64_t x)
{
	(void)x;
	meet();
	ucp_rkey_destroy(rkey);
	UCX_WAIT(ucp_ep_close_nbx, ep, &plain);
	meet();
	UCX_DO(ucp_mem_unmap, context, memory);
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
}

/* Write the numbers of the steps that gets bring. */
static void open_gets(uint64_t bytes)
{
	open_rank(bytes);
	for (uint64_t i = 0; !peer_rank && i < STEPS; i++)
		put_at(i * STEP, bytes, i);
	flush();
}

/* A put has been flushed, so a get behind it brings the last one. */
static void close_puts(uint64_t bytes)
{
	memset(word, 0, sizeof word);
	if (!peer_rank) {
		get_from(0, bytes);
		peer_check(word, bytes, peer_last_round);
	}
	close_rank(bytes);
}

static void before(uint64_t x)
{
	(void)x;
	memset(names, 0, 2 * sizeof *names);
}

static const struct peer_test tests[] = {
	{"ack", NULL, PEER_WORD, STEP, 1, puts_of, open_rank, close_puts},
	{"get", NULL, PEER_WORD, STEP, 1, gets_of, open_gets, close_rank},
	{"am", NULL, PEER_WORD, PEER_BYTES, 1, am_rounds, open_rank, close_rank},
	{"eqget", NULL, 1, 1, 1, looks, open_rank, close_rank},
	{0},
};

int main(int argc, char **argv)
{
	static const struct peer peer = {
		.tests = tests, .named = true, .forks = true, .before = before};
	peer_program = "peer_ucx";
	names = peer_share(2 * sizeof *names);
	peer_run(&peer, argc, argv);
	return 0;
}
