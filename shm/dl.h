/* SPDX-License-Identifier: BSD-3-Clause */
/* dl - functions of libraries that are loaded when they are needed */
#ifndef P3_SHM_DL_H
#define P3_SHM_DL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Find a function of a library, and store its address at *out.  Return false if there is
 * none. */
static inline bool p3_dl_find(void *lib, const char *name, void *out)
{
	void *at = dlsym(lib, name);
	memcpy(out, &at, sizeof at);
	return at != NULL;
}

#endif
