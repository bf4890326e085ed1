/* SPDX-License-Identifier: BSD-3-Clause */
/* The statement of collective operations. */
#include "gn.h"

#include <gasnet_coll.h>

const struct gn_program gn_program = {.segment = 0};

enum { FLAGS = GASNET_COLL_LOCAL | GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC };

static void broadcast(gasnet_image_t root, size_t n)
{
	unsigned char *src = gn_alloc(n), *dst = gn_alloc(n + 1);
	gn_fill(src, n, (unsigned)root + 1);
	dst[n] = 0x3c;
	gasnet_coll_broadcast(GASNET_TEAM_ALL, dst, root, src, n, FLAGS);
	CHECK_BYTES(dst, n, (unsigned)root + 1);
	CHECK_EQ(dst[n], 0x3c);
}

STATEMENT(153, broadcasts)
{
	gn_barrier();
	gasnet_coll_init(0, 0, 0, 0, 0);
	for (gasnet_image_t root = 0; root < gn.size; root++)
		for (size_t n = 1; n <= (size_t)1 << 20; n *= 4)
			broadcast(root, n);
}
