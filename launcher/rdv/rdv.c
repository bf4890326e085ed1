/* SPDX-License-Identifier: BSD-3-Clause */
/* The rendezvous: its loop, the packets of nodes, and the functions that yod calls. */
#include "launcher/rdv/table.h"
#include "shm/fault.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAPS_LINE_LEN 4096

#define LIBOF_LEN     256

/* Return the path of the process' libportals; that of its program, if it is linked in;
 * or "?". */
static const char *libof(uint32_t os_pid, char path[LIBOF_LEN])
{
	char name[32], line[MAPS_LINE_LEN], *at = NULL;
	if (!os_pid)
		return "?";
	snprintf(name, sizeof name, "/proc/%u/maps", os_pid);
	FILE *f = fopen(name, "re");
	while (f && !at && fgets(line, sizeof line, f))
		at = strstr(line, "/libportals.so") ? strchr(line, '/') : NULL;
	if (f)
		fclose(f);
	if (at) {
		snprintf(path, LIBOF_LEN, "%.*s", (int)strcspn(at, "\n"), at);
		return path;
	}
	snprintf(name, sizeof name, "/proc/%u/exe", os_pid);
	ssize_t n = readlink(name, path, LIBOF_LEN - 1);
	if (n <= 0)
		return "?";
	path[n] = 0;
	return path;
}

/* ---- packets ---- */

static void rdv_owner_watch(struct p3_rdv *r, uint32_t i, uint32_t os_pid)
{
	struct p3_rdv_node *n = &r->node[i];
	p3_rdv_owner_forget(r, n);
	n->owner = os_pid;
	if (!os_pid || os_pid == (uint32_t)getpid())
		return;
	n->on_owner.fd = (int)syscall(SYS_pidfd_open, os_pid, 0);
	(void)p3_loop_watch(r->conf.loop, &n->on_owner, EPOLLIN);
}

static void rdv_refuse(struct p3_rdv *r, uint32_t i, int err)
{
	r->node[i].refused = true;
	struct p3_job_msg m = p3_rdv_message(r, P3_JOB_REFUSED, i);
	m.incarnation = 0;
	m.status = err;
	m.layout = r->conf.layout;
	p3_rdv_post(r, i, &m);
	if (r->node[i].state == NODE_GONE)
		return;
	p3_rdv_set_gone(r, i);
	p3_rdv_barrier_look(r);
}

/* Note that a rank that was gone has a process again. */
static void rdv_set_back(struct p3_rdv *r, uint32_t i)
{
	if (r->node[i].state != NODE_GONE || r->conf.here)
		return;
	r->gone_n--;
	for (uint32_t k = 0; r->first_gone == i && k < r->conf.size; k++)
		if (k != i && r->node[k].state == NODE_GONE)
			r->first_gone = k;
}

static void rdv_on_hello(struct p3_rdv *r, uint32_t i, struct p3_job_packet *p)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->state == NODE_JOINED) {
		p3_rdv_breach(r, i, "says hello while it is joined");
		return;
	}
	if (p->from.uid != getuid()) {
		if (!n->refused)
			r->conf.say("rank %u: runs as uid %u, yod as uid %u; start it "
				    "without setuid",
				i, p->from.uid, getuid());
		rdv_refuse(r, i, EPERM);
		return;
	}
	/* Compare the layout with yod's, and not with that of another node: a rank with
	 * another library must not make the others fail. */
	if (p->msg.layout != r->conf.layout) {
		char its[LIBOF_LEN];
		if (!n->refused)
			r->conf.say(
				"rank %u: layout %016" PRIx64
				" of its libportals (%s) is not %016" PRIx64
				", that of this yod; run it with the libportals of this "
				"yod",
				i, p->msg.layout, libof(p->from.os_pid, its),
				r->conf.layout);
		rdv_refuse(r, i, EPROTO);
		return;
	}
	rdv_set_back(r, i);
	n->state = NODE_KNOWN;
	n->awaits_cards = false;
	rdv_owner_watch(r, i, p->from.os_pid);
	if (n->fds[FD_HOST] >= 0)
		p3_rdv_keep_remains(n);

	struct p3_job_msg m = p3_rdv_message(r, P3_JOB_WELCOME, i);
	m.size = r->conf.size;
	m.nid = r->conf.nid_base + i;
	m.jid = r->conf.jid;
	m.uid = getuid();
	m.cpus = r->conf.cpus;
	m.status = r->conf.in_domain ? P3_JOB_IN_DOMAIN : 0;
	m.status |= r->conf.hosts >= 0 ? P3_JOB_ON_HOSTS : 0;
	m.incarnation = 0;
	FAULT_POINT("yod.unwelcomed");
	p3_rdv_post(r, i, &m);
	FAULT_POINT("yod.welcomed");
}

/* births in a job of n nodes are told after this time, several at once */
#define TELL_MS(n) ((n) < 1000 ? (n) / 10 : 100)

/* Note a birth that earlier nodes have yet to hear of. */
static void rdv_tell_birth_later(struct p3_rdv *r, uint32_t i)
{
	int64_t ms = r->conf.apart ? TELL_MS(r->conf.size) : 0;
	if (!r->untold_n)
		r->tell_at = p3_now_ms() + ms;
	r->untold[r->untold_n++] = i;
	if (ms)
		p3_loop_before(r->conf.loop, &r->timer, r->tell_at);
	else
		p3_rdv_tell_births(r);
}

static bool rdv_is_as_long(int fd, uint64_t len)
{
	struct stat st;
	return !fstat(fd, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size >= len;
}

static void rdv_on_join(struct p3_rdv *r, uint32_t i, struct p3_job_packet *p)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->state != NODE_KNOWN || p->msg.incarnation == n->incarnation) {
		p3_rdv_breach(r, i, "joins out of turn");
		return;
	}
	if (!p->msg.incarnation ||
		!rdv_is_as_long(p->fds[FD_PUBLISHED], p->msg.seg_len) ||
		(p->msg.heap_len && !rdv_is_as_long(p->fds[FD_HEAP], p->msg.heap_len))) {
		p3_rdv_breach(r, i, "joins with a segment that is shorter than it says");
		return;
	}
	n->state = NODE_JOINED;
	n->joined_as = r->joins++;
	n->was = P3_RDV_JOINED;
	n->incarnation = p->msg.incarnation;
	n->seg_len = p->msg.seg_len;
	n->heap_len = p->msg.heap_len;
	memcpy(n->pid, p->msg.pid, sizeof n->pid);
	p3_close_fds(n->fds, P3_JOB_FDS); /* those of an earlier incarnation */
	memcpy(n->fds, p->fds, sizeof n->fds);
	p->nfds = 0;
	if (r->conf.life)
		r->conf.life(r->conf.arg, i, n->fds[FD_PUBLISHED], n->was);
	FAULT_POINT("yod.join_taken");

	for (uint32_t k = 0; k < r->conf.size; k++) {
		if (r->node[k].state != NODE_JOINED)
			continue;
		uint8_t met = k == i || !r->conf.apart ? PAIR_MET : 0;
		n->pair[k] = (uint8_t)(n->pair[k] & ~PAIR_MET) | met;
		r->node[k].pair[i] = (uint8_t)(r->node[k].pair[i] & ~PAIR_MET) | met;
		p3_rdv_post_born(r, i, k);
	}
	rdv_tell_birth_later(r, i);
	struct p3_job_msg m = p3_rdv_message(r, P3_JOB_JOINED, i);
	FAULT_POINT("yod.births_published");
	p3_rdv_post(r, i, &m);
}

static void rdv_on_pids(struct p3_rdv *r, uint32_t i, struct p3_job_packet *p)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->state != NODE_JOINED) {
		p3_rdv_breach(r, i, "changes its pids before it joins");
		return;
	}
	p3_rdv_tell_births(r);
	memcpy(n->pid, p->msg.pid, sizeof n->pid);
	struct p3_job_msg m = p3_rdv_message_born(r, i);
	m.op = P3_JOB_PIDS;
	for (uint32_t to = 0; to < r->conf.size; to++)
		if (p3_rdv_listens(&r->node[to])) {
			p3_rdv_post_pids(r, to, &m);
			FAULT_POINT("yod.pids_half");
		}
}

static void rdv_on_leave(struct p3_rdv *r, uint32_t i, struct p3_job_packet *p)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->state != NODE_JOINED || p->msg.incarnation != n->incarnation) {
		p3_rdv_breach(r, i, "leaves without having joined");
		return;
	}
	p3_rdv_unjoin(r, i, P3_JOB_LEFT, 0, false);
	FAULT_POINT("yod.leave_taken");
	struct p3_job_msg m = p3_rdv_message(r, P3_JOB_LEFT, i);
	p3_rdv_post(r, i, &m);
}

static void rdv_on_dropped(struct p3_rdv *r, uint32_t i, struct p3_job_packet *p)
{
	if (p->msg.node >= r->conf.size) {
		p3_rdv_breach(r, i, "drops a node that the job does not have");
		return;
	}
	if (r->node[p->msg.node].incarnation == p->msg.incarnation)
		p3_rdv_owe_no_more(r, i, p->msg.node);
}

/* Send a birth with its descriptors to a node that had no room for it, or that wants to
 * send to the peer, unless that incarnation has ended.  The peer must take the node's
 * messages, so it gets the node's descriptors, too. */
static void rdv_on_again(struct p3_rdv *r, uint32_t i, struct p3_job_packet *p)
{
	uint32_t about = p->msg.node;
	if (about >= r->conf.size) {
		p3_rdv_breach(r, i, "asks for a node that the job does not have");
		return;
	}
	const struct p3_rdv_node *born = &r->node[about];
	if (!p3_rdv_listens(&r->node[i]) || born->state != NODE_JOINED ||
		born->incarnation != p->msg.incarnation)
		return;
	p3_rdv_tell_births(r);
	p3_rdv_post_introduction(r, i, about);
	FAULT_POINT("yod.introduction_half");
	if (!(born->pair[i] & PAIR_MET) && p3_rdv_listens(born))
		p3_rdv_post_introduction(r, about, i);
}

/* Answer an ASK with TOLD, behind the births before it.  Drop a queued answer to an
 * earlier ASK, since only the last one counts. */
static void rdv_on_ask(struct p3_rdv *r, uint32_t i, struct p3_job_packet *p)
{
	struct p3_job_msg m = p3_rdv_message(r, P3_JOB_TOLD, i);
	m.incarnation = p->msg.incarnation;
	m.round = p->msg.round;
	if (!p3_rdv_listens(&r->node[i]) || r->node[i].incarnation != m.incarnation)
		return;
	p3_rdv_tell_births(r);
	p3_outq_drop(&r->node[i].out, P3_JOB_TOLD, &m);
	FAULT_POINT("yod.asked");
	p3_rdv_post(r, i, &m);
}

static void rdv_on_watch(struct p3_rdv *r, uint32_t i, struct p3_job_packet *p)
{
	struct p3_rdv_node *n = &r->node[i];
	if (!p3_rdv_listens(n) || n->incarnation != p->msg.incarnation || n->watches)
		return;
	n->watches = true;
	for (uint32_t k = 0; k < r->conf.size; k++)
		if (r->node[k].state == NODE_GONE)
			p3_rdv_post_over(r, i, k);
}

static void rdv_on_barrier(struct p3_rdv *r, uint32_t i, struct p3_job_packet *p)
{
	(void)p;
	struct p3_rdv_node *n = &r->node[i];
	if ((n->state != NODE_KNOWN && n->state != NODE_JOINED) || n->waits) {
		p3_rdv_breach(r, i, "enters the barrier out of turn");
		return;
	}
	n->waits = true;
	n->waits_since = p3_now_ms();
	if (!r->waits_n++)
		r->barrier_since = n->waits_since;
	p3_rdv_barrier_look(r);
}

static void rdv_on_card(struct p3_rdv *r, uint32_t i, struct p3_job_packet *p)
{
	char card[P3_JOB_CARD_LEN] = {0};
	struct p3_rdv_node *n = &r->node[i];
	bool early = n->state != NODE_KNOWN && n->state != NODE_JOINED;
	size_t len = p->msg.seg_len;
	if (!r->conf.parent || early || n->awaits_cards || len > sizeof card ||
		(!p->msg.status &&
			(!rdv_is_as_long(p->fds[0], len) ||
				pread(p->fds[0], card, len, 0) != (ssize_t)len))) {
		p3_rdv_breach(r, i, "hands over a card out of turn");
		return;
	}
	n->awaits_cards = true;
	p3_frames_send(r->conf.parent,
		(struct p3_frame){.op = P3_FRAME_CARD, .node = i, .len = sizeof card},
		card);
}

/* Return true if the process that said HELLO runs. */
static bool rdv_owner_lives(const struct p3_rdv_node *n)
{
	struct pollfd fd = {.fd = n->on_owner.fd, .events = POLLIN};
	if (fd.fd < 0)
		return kill((pid_t)n->owner, 0) == 0 || errno != ESRCH;
	return poll(&fd, 1, 0) == 0;
}

/* Return true if the packet must be ignored: the node's process lives, and another one,
 * such as a forked child, sent it.  If the node's process has ended, end the node; the
 * sender is the wrapper's next program, and may become the node. */
static bool rdv_is_from_another(
	struct p3_rdv *r, uint32_t i, const struct p3_job_packet *p)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->state == NODE_NEW || n->state == NODE_GONE || p->from.os_pid == n->owner)
		return false;
	if (!rdv_owner_lives(n)) {
		if (n->state == NODE_JOINED)
			p3_rdv_unjoin(r, i, P3_JOB_DIED, 0, true);
		p3_rdv_node_over(r, i);
		return false;
	}
	if (!n->warned)
		r->conf.say("rank %u: process %u speaks for the node that process %u is; "
			    "ignored (start it by a yod of its own)",
			i, p->from.os_pid, n->owner);
	n->warned = true;
	return true;
}

static void rdv_dispatch(struct p3_rdv *r, uint32_t i, struct p3_job_packet *p)
{
	static void (*const on[])(struct p3_rdv *, uint32_t, struct p3_job_packet *) = {
		[P3_JOB_HELLO] = rdv_on_hello,
		[P3_JOB_JOIN] = rdv_on_join,
		[P3_JOB_PIDS] = rdv_on_pids,
		[P3_JOB_LEAVE] = rdv_on_leave,
		[P3_JOB_DROPPED] = rdv_on_dropped,
		[P3_JOB_BARRIER] = rdv_on_barrier,
		[P3_JOB_AGAIN] = rdv_on_again,
		[P3_JOB_ASK] = rdv_on_ask,
		[P3_JOB_WATCH] = rdv_on_watch,
		[P3_JOB_CARD] = rdv_on_card,
	};
	unsigned join = p->msg.heap_len ? P3_JOB_FDS : P3_JOB_FDS - 1;
	bool card = p->msg.op == P3_JOB_CARD && !p->msg.status;
	unsigned want = p->msg.op == P3_JOB_JOIN ? join : card;
	if (p->nfds != want)
		p3_rdv_breach(r, i, "sends a wrong number of descriptors");
	else if (rdv_is_from_another(r, i, p))
		return;
	else if (p->msg.op < sizeof on / sizeof on[0] && on[p->msg.op])
		on[p->msg.op](r, i, p);
	else
		p3_rdv_breach(r, i, "sends a packet that nodes do not send");
}

/* Take one packet.  Return false if there is no more for now, or the socket is gone. */
static bool rdv_take_packet(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	struct p3_job_packet p;
	int rc = p3_job_recv(n->sock, 0, &p);
	if (rc == -EAGAIN)
		return false;
	if (rc == -EMFILE) {
		r->conf.say("rank %u: joins, and yod has no descriptors left for it; cut "
			    "off; raise ulimit -Hn, or use fewer nodes",
			i);
		p3_rdv_cut_off(r, i);
	} else if (rc == -EPROTONOSUPPORT) {
		char text[80];
		snprintf(text, sizeof text,
			"speaks version %u of yod's protocol, this yod %u",
			p3_job_version(p.msg.magic), p3_job_version(P3_JOB_MAGIC));
		p3_rdv_breach(r, i, text);
	} else if (rc == -EPROTO) {
		p3_rdv_breach(r, i, "sends what is no packet of this yod");
	} else if (rc) {
		p3_rdv_sock_close(r, i);
		p3_rdv_node_lost(r, i);
	}
	if (rc)
		return false;
	/* If SO_PASSCRED was not set when the packet was sent, take the process that made
	 * the socket for the sender. */
	struct ucred cred;
	socklen_t len = sizeof cred;
	if (!p.from.os_pid &&
		!getsockopt(n->sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
		(p.from.uid == UINT32_MAX || p.from.uid == 65534)) {
		p.from.os_pid = (uint32_t)cred.pid;
		p.from.uid = cred.uid;
	}
	rdv_dispatch(r, i, &p);
	p3_job_close(&p);
	return n->sock >= 0;
}

/* Take at most this number of packets from the node. */
static void rdv_read_sock(struct p3_rdv *r, uint32_t i, unsigned most)
{
	for (unsigned k = 0; k < most; k++)
		if (r->node[i].sock < 0 || !rdv_take_packet(r, i))
			return;
}

/* ---- the loop ---- */

#define SLEEPERS_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#define PACKETS        64 /* packets taken from a node before the next node's turn */

/* Read the packets that a process sent before it ended, since a LEAVE among them counts;
 * then note its end. */
static void rdv_on_owner(void *arg)
{
	struct p3_rdv_node *n = arg;
	struct p3_rdv *r = n->rdv;
	uint32_t i = (uint32_t)(n - r->node);
	rdv_read_sock(r, i, PACKETS_LAST);
	if (n->on_owner.fd < 0 || rdv_owner_lives(&r->node[i]))
		return;
	(void)p3_loop_watch(r->conf.loop, &n->on_owner, 0);
	p3_rdv_node_lost(r, i);
}

static void rdv_on_sock(void *arg)
{
	struct p3_rdv_node *n = arg;
	uint32_t i = (uint32_t)(n - n->rdv->node);
	if (n->on_sock.came & EPOLLOUT)
		p3_rdv_flush(n->rdv, i);
	if (n->on_sock.came & (EPOLLIN | EPOLLHUP | EPOLLERR))
		rdv_read_sock(n->rdv, i, PACKETS);
}

static void rdv_on_timer(void *arg)
{
	struct p3_rdv *r = arg;
	int64_t now = p3_now_ms();
	if (r->tell_at <= now)
		p3_rdv_tell_births(r);
	p3_loop_before(r->conf.loop, &r->timer, r->tell_at);
	for (uint32_t i = 0; i < r->conf.size; i++) {
		struct p3_rdv_node *n = &r->node[i];
		/* The node has died, unless it is ending still. */
		bool started = n->state != NODE_JOINED || !n->owner ||
			       n->owner == n->started_pid;
		if (n->fate_at <= now && n->fate_by > now && r->conf.ends && started &&
			r->conf.ends((pid_t)n->started_pid))
			n->fate_at = now + r->conf.eof_ms;
		else if (n->fate_at <= now)
			p3_rdv_node_died(r, i, 0);
		if (n->reap_at <= now)
			p3_rdv_owe_nothing(r, i);
		if (n->retry)
			p3_rdv_flush(r, i);
	}
	for (uint32_t i = 0; i < r->conf.size; i++)
		p3_loop_before(r->conf.loop, &r->timer,
			p3_earlier(r->node[i].fate_at, r->node[i].reap_at));
}

/* Make the file of sleepers (shm/layout.h), with its size sealed and its memory reserved.
 * Without it each node sleeps on a word of its own doorbell, and a sender's look at these
 * words takes longer. */
static void rdv_make_sleepers(struct p3_rdv *r)
{
	uint64_t len = p3_sleepers_len(r->conf.size);
	r->sleepers = r->cards = -1;
	if (r->conf.in_domain)
		return;
	r->sleepers = memfd_create("p3-sleepers", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (r->sleepers >= 0 && !ftruncate(r->sleepers, (off_t)len) &&
		!fallocate(r->sleepers, 0, 0, (off_t)len) &&
		!fcntl(r->sleepers, F_ADD_SEALS, SLEEPERS_SEALS))
		return;
	r->conf.say("no memory for the words that nodes sleep on (%s): each has its own, "
		    "which "
		    "costs some speed; check the limits of open files (ulimit -n)",
		strerror(errno));
	p3_close_fds(&r->sleepers, 1);
}

static void rdv_say_nothing(const char *fmt, ...)
{
	(void)fmt;
}

struct p3_rdv *p3_rdv_create(const struct p3_rdv_conf *conf)
{
	size_t size = conf->size;
	struct p3_rdv *r = calloc(1, sizeof *r + size * sizeof r->node[0]);
	uint8_t *pairs = calloc(size, size);
	uint32_t *untold = calloc(size, sizeof *untold);
	if (!r || !pairs || !untold || !size) {
		free(r);
		free(pairs);
		free(untold);
		errno = size ? ENOMEM : EINVAL;
		return NULL;
	}
	r->conf = *conf;
	if (!conf->here)
		r->conf.hosts = -1;
	if (!conf->say)
		r->conf.say = rdv_say_nothing;
	r->untold = untold;
	for (uint32_t i = 0; i < conf->size; i++) {
		struct p3_rdv_node *n = &r->node[i];
		*n = (struct p3_rdv_node){.rdv = r,
			.sock = -1,
			.on_sock = {.on = rdv_on_sock, .arg = n},
			.on_owner = {.fd = -1, .on = rdv_on_owner, .arg = n},
			.fds = {-1, -1, -1, -1},
			.fate_at = P3_NEVER,
			.reap_at = P3_NEVER,
			.pair = pairs + i * size};
		n->out.end = &n->out.first;
	}

	r->tell_at = P3_NEVER;
	r->timer = (struct p3_loop_timer){.on = rdv_on_timer, .arg = r};
	rdv_make_sleepers(r);
	return r;
}

void p3_rdv_destroy(struct p3_rdv *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->conf.size; i++) {
		p3_rdv_owner_forget(r, &r->node[i]);
		p3_rdv_sock_close(r, i);
		p3_close_fds(r->node[i].fds, P3_JOB_FDS);
	}
	p3_close(r->sleepers);
	p3_close(r->cards);
	p3_loop_at(r->conf.loop, &r->timer, P3_NEVER);
	free(r->node[0].pair);
	free(r->untold);
	free(r);
}

int p3_rdv_add(struct p3_rdv *r, uint32_t i, int sock, uint32_t started_pid)
{
	struct ucred cred;
	socklen_t len = sizeof cred;
	int on = 1;
	if (i >= r->conf.size)
		return -EINVAL;
	struct p3_rdv_node *n = &r->node[i];
	if (n->sock >= 0 || n->state == NODE_JOINED)
		return -EBUSY;
	if (p3_set_nonblocking(sock) ||
		setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) ||
		getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	n->on_sock.fd = sock;
	int rc = cred.uid != geteuid()
			 ? -EPERM
			 : p3_loop_watch(r->conf.loop, &n->on_sock, EPOLLIN);
	if (rc)
		return rc;
	rdv_set_back(r, i);
	n->state = NODE_NEW;
	n->started_pid = started_pid;
	n->fate_at = P3_NEVER;
	n->ended = false;
	n->sock = sock;
	return 0;
}

void p3_rdv_ended(struct p3_rdv *r, uint32_t i, int wait_status)
{
	if (i >= r->conf.size || r->node[i].ended)
		return;
	struct p3_rdv_node *n = &r->node[i];
	rdv_read_sock(r, i, PACKETS_LAST);
	n->ended = true;
	n->status = wait_status;
	bool orderly = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
	if (n->state == NODE_JOINED)
		p3_rdv_unjoin(
			r, i, orderly ? P3_JOB_LEFT : P3_JOB_DIED, wait_status, true);
	p3_rdv_sock_close(r, i);
	p3_rdv_node_over(r, i);
}
