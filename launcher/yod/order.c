/* SPDX-License-Identifier: BSD-3-Clause */
/* Packing and unpacking orders. */
#include "launcher/yod/order.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- packing ---- */

static void put(FILE *f, const void *bytes, size_t len)
{
	fwrite(bytes, 1, len, f);
}

static void put_number(FILE *f, uint64_t n)
{
	put(f, &n, sizeof n);
}

/* Put a text, or NULL: its length with the final zero byte, or 0, and its bytes. */
static void put_text(FILE *f, const char *text)
{
	size_t len = text ? strlen(text) + 1 : 0;
	put_number(f, len);
	put(f, text ? text : "", len);
}

static void put_list(FILE *f, char *const *list)
{
	size_t n = 0;
	while (list && list[n])
		n++;
	put_number(f, n);
	for (size_t i = 0; i < n; i++)
		put_text(f, list[i]);
}

static void put_programs(FILE *f, const struct p3_opt *opt)
{
	put_number(f, opt->prog_n);
	for (uint32_t i = 0; i < opt->prog_n; i++) {
		const struct p3_prog *p = &opt->prog[i];
		put_number(f, p->first);
		put_number(f, p->size);
		put_list(f, p->argv);
		put_list(f, (char *const *)(uintptr_t)p->env);
		put_text(f, p->dir);
		put_text(f, p->place);
	}
}

static void put_hosts(FILE *f, const struct p3_hosts *h)
{
	put_number(f, h->n);
	put(f, h->host, h->n * sizeof h->host[0]);
}

/* Put the options that an agent obeys.  yod itself sees to the others. */
static void put_options(FILE *f, const struct p3_opt *opt)
{
	put_number(f, opt->size);
	put_number(f, opt->keep_going);
	put_number(f, opt->only);
	put(f, &opt->only_ranks, sizeof opt->only_ranks);
	put_number(f, opt->shared_heap);
	put_number(f, opt->line_buffered);
	put_number(f, opt->valgrind);
	put_number(f, opt->stats);
	put_number(f, (uint64_t)opt->kill_after_ms);
	put_text(f, opt->mode);
	put_text(f, opt->trace);
	put(f, &opt->place, sizeof opt->place);
}

char *p3_order_pack(const struct p3_order *order, size_t *len_out)
{
	char *bytes = NULL;
	FILE *f = open_memstream(&bytes, len_out);
	if (!f)
		return NULL;
	put_number(f, order->jid);
	put_number(f, order->host);
	put_text(f, order->tag);
	put_text(f, order->dir);
	put_number(f, order->mask);
	put_list(f, order->env);
	put_options(f, &order->opt);
	put_hosts(f, &order->opt.hosts);
	put_programs(f, &order->opt);
	bool failed = ferror(f);
	if (fclose(f) || failed) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

/* ---- unpacking ---- */

struct reader {
	const char *at;
	size_t left;
	bool bad; /* the bytes are no order, or memory has run out; all reads give 0 */
};

static const void *get(struct reader *r, size_t len)
{
	const char *at = r->at;
	r->bad |= len > r->left;
	if (r->bad)
		return NULL;
	r->at += len;
	r->left -= len;
	return at;
}

static void get_into(struct reader *r, void *out, size_t len)
{
	const void *at = get(r, len);
	if (at)
		memcpy(out, at, len);
	else
		memset(out, 0, len);
}

static uint64_t get_number(struct reader *r, uint64_t most)
{
	uint64_t n = 0;
	get_into(r, &n, sizeof n);
	r->bad |= n > most;
	return r->bad ? 0 : n;
}

static char *get_text(struct reader *r)
{
	uint64_t len = get_number(r, SIZE_MAX);
	const char *text = len ? get(r, len) : NULL;
	r->bad |= text && text[len - 1];
	return (char *)(uintptr_t)text;
}

/* Return a new array that ends with NULL, or NULL if the bytes are bad. */
static char **get_list(struct reader *r)
{
	uint64_t n = get_number(r, r->left / sizeof(uint64_t));
	char **list = r->bad ? NULL : calloc(n + 1, sizeof *list);
	r->bad |= !list;
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		list[i] = get_text(r);
		r->bad |= !list[i];
	}
	return list;
}

static void get_program(struct reader *r, struct p3_prog *p)
{
	p->first = (uint32_t)get_number(r, P3_OPT_SIZE_MAX);
	p->size = (uint32_t)get_number(r, P3_OPT_SIZE_MAX);
	p->argv = get_list(r);
	r->bad |= !p->argv || !p->argv[0];
	p->env = (const char **)(uintptr_t)get_list(r);
	while (p->env && p->env[p->env_n])
		p->env_n++;
	p->dir = get_text(r);
	p->place = get_text(r);
}

static void get_programs(struct reader *r, struct p3_opt *opt)
{
	uint64_t n = get_number(r, P3_OPT_SIZE_MAX);
	opt->prog = calloc(n + 1, sizeof *opt->prog);
	r->bad |= !opt->prog || !n;
	while (opt->prog_n < n && !r->bad)
		get_program(r, &opt->prog[opt->prog_n++]);
}

static void get_hosts(struct reader *r, struct p3_hosts *h)
{
	h->n = (uint32_t)get_number(r, P3_OPT_SIZE_MAX);
	h->host = calloc(h->n + 1, sizeof *h->host);
	r->bad |= !h->host || !h->n;
	if (h->host)
		get_into(r, h->host, h->n * sizeof *h->host);
}

static void get_options(struct reader *r, struct p3_opt *opt)
{
	opt->size = (uint32_t)get_number(r, P3_OPT_SIZE_MAX);
	opt->keep_going = get_number(r, 1);
	opt->only = get_number(r, 1);
	get_into(r, &opt->only_ranks, sizeof opt->only_ranks);
	opt->shared_heap = get_number(r, 1);
	opt->line_buffered = get_number(r, 1);
	opt->valgrind = (enum p3_valgrind)get_number(r, P3_VALGRIND_OFF);
	opt->stats = get_number(r, 1);
	opt->kill_after_ms = (int64_t)get_number(r, INT64_MAX);
	opt->mode = get_text(r);
	opt->trace = get_text(r);
	get_into(r, &opt->place, sizeof opt->place);
	opt->output_dir_fd = -1;
}

/* Return true if the ranks of each host and program are ranks of the job. */
static bool is_sound(const struct p3_order *o)
{
	uint64_t size = o->opt.size;
	for (uint32_t i = 0; i < o->opt.hosts.n; i++) {
		const struct p3_host *h = &o->opt.hosts.host[i];
		if ((uint64_t)h->first + h->size > size || h->name[P3_HOST_NAMES])
			return false;
	}
	for (uint32_t i = 0; i < o->opt.prog_n; i++)
		if ((uint64_t)o->opt.prog[i].first + o->opt.prog[i].size > size)
			return false;
	return size && o->host < o->opt.hosts.n && o->tag && o->dir;
}

bool p3_order_unpack(const char *bytes, size_t len, struct p3_order *order_out)
{
	struct reader r = {bytes, len, false};
	struct p3_order o = {.jid = (uint32_t)get_number(&r, UINT32_MAX)};
	o.host = (uint32_t)get_number(&r, P3_OPT_SIZE_MAX);
	o.tag = get_text(&r);
	o.dir = get_text(&r);
	o.mask = (uint32_t)get_number(&r, 0777);
	o.env = get_list(&r);
	get_options(&r, &o.opt);
	get_hosts(&r, &o.opt.hosts);
	get_programs(&r, &o.opt);
	*order_out = o;
	return !r.bad && !r.left && is_sound(&o);
}
