/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that open a look at a job or at a domain, and renew it. */
#include "launcher/look/lookin.h"

#include <errno.h>
#include <stdlib.h>

int p3_look_again(struct p3_look *look)
{
	return look->of_domain ? p3_look_ask_domain(look) : p3_look_ask_yod(look);
}

int p3_look_open(uint32_t pid, struct p3_look **look_out)
{
	struct p3_look *look = calloc(1, sizeof *look);
	if (!look)
		return -ENOMEM;
	p3_domain_none(&look->domain);
	look->sock = p3_look_connect(pid);
	int rc = look->sock == -ESRCH ? p3_look_find_member(look, pid)
		 : look->sock < 0     ? look->sock
				      : p3_look_ask_yod(look);
	if (rc)
		p3_look_close(look);
	else
		*look_out = look;
	return rc;
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
