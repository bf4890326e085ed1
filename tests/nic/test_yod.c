/* SPDX-License-Identifier: BSD-3-Clause */
/* A node, and rare packets of yod: the test plays yod, the node lives in a thread. */
#include "nic/cases.h"
#include "lib/cci/cci.h"
#include "lib/job/job.h"
#include "lib/node/node.h"
#include "support/own_node.h"
#include "support/asleep.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NID = 40, PT = 11, PATIENCE_MS = 300000, CCI = PTL_IFACE_SS + 1 };

struct yod {
	int sock, other;
	ptl_interface_t iface[2]; /* that the node opens in turn; CCI: its NIC alone */
	struct p3_node *node;
	p3_a32 tid, opened, done;
	struct p3_job_msg join;
	int fds[P3_JOB_FDS];
	unsigned nfds;
};

static struct p3_job_msg hear(struct yod *y, enum p3_job_op op)
{
	struct p3_job_packet p;
	struct pollfd on = {.fd = y->sock, .events = POLLIN};
	assert_int_equal(poll(&on, 1, PATIENCE_MS), 1);
	assert_int_equal(p3_job_recv(y->sock, 0, &p), 0);
	assert_int_equal(p.msg.op, op);
	if (p.nfds) {
		memcpy(y->fds, p.fds, sizeof y->fds);
		y->nfds = p.nfds;
	}
	return p.msg;
}

static void say_with(struct yod *y, struct p3_job_msg m, enum p3_job_op op, unsigned nfds)
{
	m.magic = P3_JOB_MAGIC;
	m.op = op;
	m.nid = NID + m.node;
	int fds[] = {y->fds[0], y->fds[1]};
	m.heap_len = 0;
	assert_int_equal(p3_job_send(y->sock, &m, fds, nfds), 0);
}

static void say(struct yod *y, struct p3_job_msg m, enum p3_job_op op)
{
	say_with(y, m, op, op == P3_JOB_BORN ? 2 : 0);
}

static void welcome(struct yod *y, uint32_t size)
{
	(void)hear(y, P3_JOB_HELLO);
	say(y, (struct p3_job_msg){.size = size, .cpus = 2, .uid = geteuid()},
		P3_JOB_WELCOME);
	y->join = hear(y, P3_JOB_JOIN);
	y->join.os_pid = (uint32_t)getpid();
	y->join.uid = geteuid();
	say(y, y->join, P3_JOB_BORN);
	say(y, y->join, P3_JOB_JOINED);
}

/* Put to this node's second interface, whose pid the node can only have from yod. */
static int put_to_self(ptl_handle_ni_t ni)
{
	static char bytes[8];
	ptl_process_id_t id;
	ptl_event_t ev;
	int which;
	if (PtlGetId(ni, &id) != PTL_OK)
		return PTL_FAIL;
	ptl_handle_eq_t eq = eq_new(ni, 8);
	post_md(ni, PT, 1,
		md_of(bytes, 8, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq));
	ptl_handle_md_t md = bind_md(ni, md_of(bytes, 8, 0, PTL_EQ_NONE));
	int rc = PtlPut(md, PTL_NO_ACK_REQ, id, PT, 0, 1, 0, 0);
	return rc == PTL_OK ? PtlEQPoll(&eq, 1, PATIENCE_MS, &ev, &which) : rc;
}

static void *live(void *arg)
{
	struct yod *y = arg;
	struct p3_node *node = y->node = own_node_create(y->other);
	ptl_handle_ni_t ni, another;
	struct p3_nic *nic;
	int most, rc = PtlInit(&most);
	p3_set(&y->tid, (uint32_t)gettid());
	if (rc == PTL_OK && y->iface[0] == CCI)
		rc = p3_cci_node_use(node, &nic);
	else if (rc == PTL_OK)
		rc = PtlNIInit(y->iface[0], PTL_PID_ANY, NULL, NULL, &ni);
	if (rc == PTL_OK)
		rc = PtlNIInit(y->iface[1], PTL_PID_ANY, NULL, NULL, &another);
	p3_release(&y->opened, 1);
	if (rc == PTL_OK)
		rc = put_to_self(another);
	p3_release(&y->done, 1 + (uint32_t)rc);
	p3_cci_node_release(node);
	own_node_destroy(node);
	return NULL;
}

/* Let a node live, whose yod is this process. */
static pthread_t start(struct yod *y)
{
	int pair[2];
	pthread_t thread;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	y->sock = pair[0];
	y->other = pair[1];
	assert_int_equal(pthread_create(&thread, NULL, live, y), 0);
	return thread;
}

/* Send the node the pids of its interfaces, and let it end. */
static void end(struct yod *y, pthread_t thread, const struct p3_job_msg *pids)
{
	memcpy(y->join.pid, pids->pid, sizeof pids->pid);
	say(y, y->join, P3_JOB_BORN);
	struct patience p = patience_begin();
	while (!p3_acquire(&y->done) && !patience_is_over(&p))
		sleep_ms(1);
	assert_int_equal(p3_acquire(&y->done), 1 + PTL_OK);
	close(y->sock);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < y->nfds; i++)
		close(y->fds[i]);
}

/* yod puts changed pids into a BORN that it has yet to send, and sends no PIDS then.  The
 * node must take them from there: for PtlNIInit, which waits for its own pids, and for
 * messages to them */
static void open_in_turn(ptl_interface_t first, ptl_interface_t second)
{
	struct yod y = {.iface = {first, second}};
	pthread_t thread = start(&y);
	welcome(&y, 1);
	struct p3_job_msg pids = hear(&y, P3_JOB_PIDS);
	assert_true(await_thread_state((pid_t)p3_get(&y.tid), 'S'));
	assert_int_equal(p3_acquire(&y.opened), 0);
	end(&y, thread, &pids);
}

CASE(ids_in_a_birth_are_told)
{
	open_in_turn(PTL_IFACE_DEFAULT, PTL_IFACE_SS);
	open_in_turn(CCI, PTL_IFACE_DEFAULT);
}

/* yod keeps the descriptors of a node until another asks for them.  Once that node has
 * ended, there is nothing to ask for. */
CASE(an_end_takes_a_held_birth_back)
{
	struct yod y = {.iface = {PTL_IFACE_DEFAULT, PTL_IFACE_SS}};
	struct p3_job_msg held = {.node = 1, .incarnation = 7};
	pthread_t thread = start(&y);
	welcome(&y, 2);
	struct p3_job_msg pids = hear(&y, P3_JOB_PIDS);
	say_with(&y, held, P3_JOB_BORN, 0);
	say(&y, held, P3_JOB_DIED);
	(void)hear(&y, P3_JOB_DROPPED);
	p3_or64(&y.node->wanted[0], UINT64_C(1) << held.node);
	p3_job_wake(y.node);
	say(&y, held, P3_JOB_DIED);
	(void)hear(&y, P3_JOB_DROPPED); /* and no AGAIN */
	end(&y, thread, &pids);
}

static void dial(cci_endpoint_t *ep, uintptr_t context)
{
	const struct p3_cci_connect c = {.node = 1,
		.endpoint = 1,
		.context = (void *)context,
		.timeout_ns = P3_CCI_NO_TIMEOUT};
	assert_int_equal(p3_cci_connect(ep, &c), CCI_SUCCESS);
}

static void expect_refused(cci_endpoint_t *ep, uintptr_t context)
{
	cci_event_t *e = NULL;
	struct patience p = patience_begin();
	while (p3_cci_get_event(ep, &e) == CCI_EAGAIN && !patience_is_over(&p))
		sched_yield();
	assert_non_null(e);
	assert_int_equal(e->type, CCI_EVENT_CONNECT);
	assert_int_equal(e->connect.status, CCI_ECONNREFUSED);
	assert_int_equal((uintptr_t)e->connect.context, context);
	assert_int_equal(p3_cci_return_event(e), CCI_SUCCESS);
}

/* A node asks yod whether another comes.  A connect behind that question is not refused
 * by the answer: the other may have come since, and the node asks anew. */
CASE(an_answer_is_for_connects_before_its_question)
{
	struct yod y = {.iface = {CCI, PTL_IFACE_DEFAULT}};
	const struct p3_cci_endpoint_conf conf = {.max_send_size = P3_CCI_MTU};
	cci_endpoint_t *ep = NULL;
	cci_event_t *none;
	pthread_t thread = start(&y);
	welcome(&y, 2);
	struct p3_job_msg pids = hear(&y, P3_JOB_PIDS), answer = y.join;
	assert_int_equal(p3_cci_endpoint_create(p3_nic(y.node), &conf, &ep), CCI_SUCCESS);
	dial(ep, 1);
	answer.round = hear(&y, P3_JOB_ASK).round;
	dial(ep, 2);
	say(&y, answer, P3_JOB_TOLD);
	answer.round = hear(&y, P3_JOB_ASK).round;
	expect_refused(ep, 1);
	assert_int_equal(p3_cci_get_event(ep, &none), CCI_EAGAIN);
	say(&y, answer, P3_JOB_TOLD);
	expect_refused(ep, 2);
	assert_true(p3_cci_endpoint_destroy(p3_nic(y.node), ep));
	end(&y, thread, &pids);
}
