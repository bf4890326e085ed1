/* SPDX-License-Identifier: BSD-3-Clause */
/* A trial of loading the allocator of --shared-heap. */
#include "launcher/yod/preload.h"
#include "launcher/yod/say.h"
#include "shm/heap.h"

#include <dlfcn.h>
#include <string.h>

/* Return true if the loader found the library but has no thread storage left for it:
 * programs that start with the library have it. */
static bool is_too_late(const char *why)
{
	return strstr(why, "static TLS") != NULL;
}

bool p3_preload_is_there(void)
{
	if (dlopen(P3_HEAP_JEMALLOC, RTLD_LAZY | RTLD_LOCAL))
		return true;
	const char *why = dlerror();
	if (is_too_late(why))
		return true;
	p3_say("--shared-heap: %s; install the package libjemalloc2", why);
	return false;
}
