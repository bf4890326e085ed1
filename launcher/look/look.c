/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that open a look at a job or at a domain, and renew it. */
#include "launcher/look/lookin.h"

#include <errno.h>
#include <stdlib.h>

int p3_look_again(struct p3_look *look)
{
	return look->of_domain ? p3_look_ask_domain(look) : p3_look_ask_yod(look);
}

static struct p3_look *create(int sock)
{
	struct p3_look *look = calloc(1, sizeof *look);
	if (!look)
		return NULL;
	p3_domain_none(&look->domain);
	look->sock = sock;
	return look;
}

static int ask_first(struct p3_look *look)
{
	int rc = p3_look_ask_yod(look);
	return rc ? rc : p3_look_ask_hosts(look);
}

static int keep(struct p3_look *look, int rc, struct p3_look **look_out)
{
	if (rc)
		p3_look_close(look);
	else
		*look_out = look;
	return rc;
}

int p3_look_open(uint32_t pid, struct p3_look **look_out)
{
	struct p3_look *look = create(p3_look_connect(pid));
	if (!look)
		return -ENOMEM;
	int rc = look->sock == -ESRCH ? p3_look_find_member(look, pid)
		 : look->sock < 0     ? look->sock
				      : ask_first(look);
	return keep(look, rc, look_out);
}

int p3_look_open_socket(int sock, struct p3_look **look_out)
{
	struct p3_look *look = create(sock);
	return look ? keep(look, ask_first(look), look_out) : -ENOMEM;
}

const char *p3_look_host(const struct p3_look *look, uint32_t rank)
{
	for (uint32_t i = 0; i < look->hosts; i++)
		if (rank - look->host[i].first < look->host[i].size)
			return look->host[i].name;
	return NULL;
}

const struct p3_attach_msg *p3_look_job(const struct p3_look *look)
{
	return &look->job;
}

const struct p3_look_node *p3_look_node(const struct p3_look *look, uint32_t i)
{
	return &look->node[i];
}

const char *p3_look_domain(const struct p3_look *look)
{
	return look->of_domain ? look->name : NULL;
}
