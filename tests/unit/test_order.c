/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders for agents, the frames that carry them, and the places of ranks on hosts. */
#include "launcher/yod/remote.h"
#include "support/cases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char *argv_a[] = {"a", "", "x y\n'", NULL}, *argv_b[] = {"b", NULL};
static const char *env_b[] = {"N=1", "EMPTY=", NULL};
static char *environment[] = {"PATH=/bin", "ODD=a\nb", NULL};

static void make(struct p3_spec *o, struct p3_prog prog[2])
{
	prog[0] = (struct p3_prog){.size = 3, .argv = argv_a};
	prog[1] = (struct p3_prog){.first = 3,
		.size = 2,
		.argv = argv_b,
		.env = env_b,
		.env_n = 2,
		.dir = "/tmp",
		.place = "f:2"};
	*o = (struct p3_spec){.jid = 4711,
		.host = 1,
		.tag = "0123",
		.dir = "/home",
		.mask = 027,
		.env = environment};
	o->opt = (struct p3_opt){.size = 5,
		.prog_n = 2,
		.prog = prog,
		.keep_going = true,
		.mode = "park",
		.valgrind = "off",
		.kill_after_ms = 1500,
		.place = {.bind = P3_BIND_CORE, .per_unit = 2}};
	assert_int_equal(p3_hosts_parse("c1:4,c2", &o->opt.hosts), 0);
	assert_int_equal(p3_hosts_place(&o->opt.hosts, 5), 0);
}

static char *pack(size_t *len)
{
	struct p3_prog prog[2];
	struct p3_spec o;
	make(&o, prog);
	char *bytes = p3_spec_pack(&o, len);
	assert_non_null(bytes);
	free(o.opt.hosts.host);
	return bytes;
}

static void drop(struct p3_spec *o)
{
	for (uint32_t i = 0; o->opt.prog && i < o->opt.prog_n; i++) {
		free(o->opt.prog[i].argv);
		free((void *)(uintptr_t)o->opt.prog[i].env);
	}
	free(o->opt.prog);
	free(o->opt.hosts.host);
	free(o->env);
}

CASE(order_is_unpacked_as_it_was)
{
	size_t len;
	char *bytes = pack(&len);
	struct p3_spec o;
	assert_true(p3_spec_unpack(bytes, len, &o));
	assert_int_equal(o.jid, 4711);
	assert_int_equal(o.host, 1);
	assert_int_equal(o.mask, 027);
	assert_string_equal(o.dir, "/home");
	assert_string_equal(o.env[1], "ODD=a\nb");
	assert_null(o.env[2]);
	assert_int_equal(o.opt.size, 5);
	assert_true(o.opt.keep_going && !o.opt.stats && !o.opt.only);
	assert_string_equal(o.opt.mode, "park");
	assert_int_equal(o.opt.kill_after_ms, 1500);
	assert_int_equal(o.opt.place.bind, P3_BIND_CORE);
	assert_string_equal(o.opt.hosts.host[1].name, "c2");
	assert_int_equal(o.opt.hosts.host[1].first, 4);
	assert_int_equal(o.opt.prog_n, 2);
	assert_string_equal(o.opt.prog[0].argv[2], "x y\n'");
	assert_string_equal(o.opt.prog[0].argv[1], "");
	assert_null(o.opt.prog[0].dir);
	assert_string_equal(o.opt.prog[1].env[1], "EMPTY=");
	assert_int_equal(o.opt.prog[1].env_n, 2);
	assert_string_equal(o.opt.prog[1].place, "f:2");
	drop(&o);
	free(bytes);
}

CASE(part_of_an_order_is_refused)
{
	size_t len;
	char *bytes = pack(&len);
	for (size_t n = 0; n < len; n++) {
		struct p3_spec o;
		char *part = malloc(n + 1); /* so that a sanitizer sees reads behind it */
		memcpy(part, bytes, n);
		part = realloc(part, n ? n : 1);
		assert_false(p3_spec_unpack(part, n, &o));
		drop(&o);
		free(part);
	}
	free(bytes);
}

/* No changed byte makes a read outside of the order, or ranks outside of the job. */
CASE(changed_order_harms_nothing)
{
	size_t len, refused = 0;
	char *bytes = pack(&len);
	for (size_t at = 0; at < len; at++)
		for (int bit = 0; bit < 8; bit++) {
			struct p3_spec o;
			bytes[at] ^= (char)(1 << bit);
			if (!p3_spec_unpack(bytes, len, &o))
				refused++;
			else
				for (uint32_t i = 0; i < o.opt.prog_n; i++)
					assert_true(o.opt.prog[i].first +
							    o.opt.prog[i].size <=
						    o.opt.size);
			drop(&o);
			bytes[at] ^= (char)(1 << bit);
		}
	assert_true(refused > len);
	free(bytes);
}

static void open_pair(struct p3_frames *a, struct p3_frames *b, int sock[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
	assert_int_equal(p3_frames_open(a, sock[0], sock[0]), 0);
	assert_int_equal(p3_frames_open(b, sock[1], sock[1]), 0);
}

CASE(frames_arrive_whole_and_in_order)
{
	enum { LEN = 300000, N = 20 };
	struct p3_frames a, b;
	int sock[2], got = 0;
	struct p3_frame f;
	const char *bytes;
	char *sent = malloc(LEN);
	open_pair(&a, &b, sock);
	for (int i = 0; i < N; i++) {
		memset(sent, 'a' + i, LEN);
		p3_frames_send(&a,
			(struct p3_frame){.op = P3_FRAME_OUTPUT,
				.node = (uint32_t)i,
				.len = (uint64_t)LEN - (uint64_t)i},
			sent);
	}
	assert_true(p3_backlog_len(&a.owed) > LEN);
	while (got < N) {
		assert_int_equal(p3_frames_flush(&a), 0);
		int rc = p3_frames_fill(&b);
		assert_true(!rc || rc == -EAGAIN);
		while (!p3_frames_next(&b, &f, &bytes)) {
			assert_int_equal(f.node, got);
			assert_int_equal(f.len, LEN - got);
			assert_int_equal(bytes[f.len - 1], 'a' + got);
			got++;
		}
	}
	assert_int_equal(p3_backlog_len(&a.owed), 0);
	close(sock[0]);
	assert_int_equal(p3_frames_fill(&b), -EPIPE);
	assert_int_equal(p3_frames_next(&b, &f, &bytes), -EAGAIN);
	close(sock[1]);
	p3_frames_close(&a);
	p3_frames_close(&b);
	free(sent);
}

/* Frames that wait are not moved for each further one. */
CASE(long_queue_moves_rarely)
{
	enum { LEN = 16384, WAIT = 256, ROUNDS = 1000, MOST = 16 };
	static char bytes[LEN];
	struct p3_frames a, b;
	struct p3_frame f = {.op = P3_FRAME_OUTPUT, .len = LEN};
	const char *taken;
	int sock[2], moves = 0;
	open_pair(&a, &b, sock);
	for (int i = 0; i < WAIT; i++)
		p3_frames_send(&a, f, bytes);
	for (int i = 0; i < ROUNDS; i++) {
		int rc = p3_frames_fill(&b);
		assert_true(!rc || rc == -EAGAIN);
		while (!p3_frames_next(&b, &f, &taken))
			assert_int_equal(f.len, LEN);
		assert_int_equal(p3_frames_flush(&a), 0);
		const char *at = a.owed.at;
		size_t begin = a.owed.begin;
		p3_frames_send(&a, f, bytes);
		moves += a.owed.at != at || a.owed.begin < begin;
	}
	assert_true(moves <= MOST);
	p3_frames_close(&a);
	p3_frames_close(&b);
	close(sock[0]);
	close(sock[1]);
}

/* Return the answer to these bytes. */
static int judged(const void *bytes, size_t len, struct p3_frame *f)
{
	struct p3_frames a, b;
	int sock[2];
	const char *at;
	open_pair(&a, &b, sock);
	assert_int_equal(write(sock[0], bytes, len), len);
	assert_int_equal(p3_frames_fill(&b), 0);
	int rc = p3_frames_next(&b, f, &at);
	p3_frames_close(&a);
	p3_frames_close(&b);
	close(sock[0]);
	close(sock[1]);
	return rc;
}

CASE(frames_of_others_are_refused)
{
	struct p3_frame f, out;
	f = (struct p3_frame){.magic = P3_FRAMES_MAGIC, .op = P3_FRAME_GO};
	assert_int_equal(judged(&f, sizeof f, &out), 0);
	assert_int_equal(judged(&f, sizeof f - 1, &out), -EAGAIN);
	assert_int_equal(judged("W", 1, &out), -EAGAIN);
	assert_int_equal(judged("Welcome to c1\n", 14, &out), -EPROTO);
	f.magic = P3_FRAMES_MAGIC + 1;
	assert_int_equal(judged(&f, 4, &out), -EPROTONOSUPPORT);
	assert_int_equal(out.magic, P3_FRAMES_MAGIC + 1);
	f = (struct p3_frame){.magic = P3_FRAMES_MAGIC, .op = P3_FRAME_OPS};
	assert_int_equal(judged(&f, sizeof f, &out), -EPROTO);
	f = (struct p3_frame){
		.magic = P3_FRAMES_MAGIC, .op = P3_FRAME_GO, .len = P3_FRAMES_LONG + 1};
	assert_int_equal(judged(&f, sizeof f, &out), -EPROTO);
}

static void place(const char *list, uint32_t size, struct p3_hosts *h)
{
	assert_int_equal(p3_hosts_parse(list, h), 0);
	assert_int_equal(p3_hosts_place(h, size), 0);
}

CASE(ranks_fill_hosts_in_order)
{
	struct p3_hosts h;
	place("a,b,c", 7, &h);
	assert_int_equal(h.host[0].size, 3);
	assert_int_equal(h.host[2].first, 5);
	assert_ptr_equal(p3_hosts_of(&h, 4), &h.host[1]);
	assert_ptr_equal(p3_hosts_of(&h, 6), &h.host[2]);
	free(h.host);
	place("a:2,b,c:9", 5, &h); /* b has one slot, since others have numbers */
	assert_int_equal(h.host[1].size, 1);
	assert_int_equal(h.host[2].size, 2);
	free(h.host);
	place("a:4,b:4", 3, &h);
	assert_int_equal(h.n, 1);
	free(h.host);
}
