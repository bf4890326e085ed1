/* SPDX-License-Identifier: BSD-3-Clause */
/* A node, and rare packets of yod: the test plays yod, the node lives in a thread. */
#include "nic/cases.h"
#include "lib/node/node.h"
#include "lib/nodes.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NID = 40, PT = 11, PATIENCE_MS = 300000 };

struct yod {
	int sock, other;
	p3_a32 done;
	struct p3_job_msg join;
	int fds[P3_JOB_FDS];
	unsigned nfds;
};

static struct p3_job_msg hear(struct yod *y, enum p3_job_op op)
{
	struct p3_job_msg m;
	struct pollfd on = {.fd = y->sock, .events = POLLIN};
	int fds[P3_JOB_FDS];
	unsigned nfds = 0;
	assert_int_equal(poll(&on, 1, PATIENCE_MS), 1);
	assert_int_equal(p3_job_recv(y->sock, &m, fds, &nfds), 0);
	assert_int_equal(m.op, op);
	if (nfds) {
		memcpy(y->fds, fds, nfds * sizeof *fds);
		y->nfds = nfds;
	}
	return m;
}

static void say(struct yod *y, struct p3_job_msg m, enum p3_job_op op)
{
	m.magic = P3_JOB_MAGIC;
	m.op = op;
	m.nid = NID;
	int fds[] = {y->fds[0], y->fds[1]};
	m.heap_len = 0;
	assert_int_equal(p3_job_send(y->sock, &m, fds, op == P3_JOB_BORN ? 2 : 0), 0);
}

static void welcome(struct yod *y)
{
	(void)hear(y, P3_JOB_HELLO);
	say(y, (struct p3_job_msg){.size = 1, .cpus = 2, .uid = geteuid()},
		P3_JOB_WELCOME);
	y->join = hear(y, P3_JOB_JOIN);
	y->join.os_pid = (uint32_t)getpid();
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
	struct p3_node *node = p3_node_create(y->other);
	ptl_handle_ni_t ni, another;
	int most, rc = PtlInit(&most);
	if (rc == PTL_OK)
		rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni);
	if (rc == PTL_OK)
		rc = PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &another);
	if (rc == PTL_OK)
		rc = put_to_self(another);
	p3_release(&y->done, 1 + (uint32_t)rc);
	p3_node_destroy(node);
	return NULL;
}

/* yod puts changed pids into a BORN that it has yet to send, and sends no PIDS then.  The
 * node must take them from there: for PtlNIInit, which waits for its own pids, and for
 * messages to them */
static void ids_in_a_birth_are_told(void **state)
{
	(void)state;
	struct yod y = {0};
	int pair[2];
	pthread_t thread;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	y.sock = pair[0];
	y.other = pair[1];
	assert_int_equal(pthread_create(&thread, NULL, live, &y), 0);
	welcome(&y);
	struct p3_job_msg pids = hear(&y, P3_JOB_PIDS);
	memcpy(y.join.pid, pids.pid, sizeof pids.pid);
	say(&y, y.join, P3_JOB_BORN);
	struct patience p = patience_begin();
	while (!p3_acquire(&y.done) && !patience_is_over(&p))
		sleep_ms(1);
	assert_int_equal(p3_acquire(&y.done), 1 + PTL_OK);
	close(y.sock);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < y.nfds; i++)
		close(y.fds[i]);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(ids_in_a_birth_are_told),
	};
	return cmocka_run_group_tests(cases, NULL, NULL);
}
