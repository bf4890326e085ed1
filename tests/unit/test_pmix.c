/* SPDX-License-Identifier: BSD-3-Clause */
/* The modex by PMIx (lib/job/pmix.c) beside a launcher that is played here:
 * --wrap leads the calls of dlopen and dlsym to this file. */

#include "lib/job/job.h"
#include "lib/node/node.h"
#include "support/cases.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 5 };

static const char *peers; /* ranks of this host, as the launcher lists them */

void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlsym(void *lib, const char *name);

static pmix_status_t begin(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo)
{
	(void)proc, (void)info, (void)ninfo;
	return PMIX_SUCCESS;
}

/* Rank 0 leads the other host. */
static pmix_status_t get(const pmix_proc_t *proc, const char key[],
	const pmix_info_t info[], size_t ninfo, pmix_value_t **value)
{
	(void)proc, (void)info, (void)ninfo;
	pmix_value_t *v = *value = calloc(1, sizeof *v);
	assert_non_null(v);
	if (strcmp(key, PMIX_LOCAL_PEERS) == 0) {
		v->type = PMIX_STRING;
		v->data.string = strdup(peers);
	} else {
		assert_string_equal(key, PMIX_LOCALLDR);
		v->type = PMIX_PROC_RANK;
	}
	return PMIX_SUCCESS;
}

static void uncalled(void)
{
	fail();
}

void *__wrap_dlopen(const char *name, int flags)
{
	(void)name, (void)flags;
	return &peers;
}

void *__wrap_dlsym(void *lib, const char *name)
{
	(void)lib;
	void *at;
	void (*found)(void) = strcmp(name, "PMIx_Init") == 0  ? (void (*)(void))begin
			      : strcmp(name, "PMIx_Get") == 0 ? (void (*)(void))get
							      : uncalled;
	if (strcmp(name, "PMIx_Register_event_handler") == 0)
		return NULL; /* as in an older PMIx */
	memcpy(&at, &found, sizeof at);
	return at;
}

/* The least rank of a host leads it, wherever the launcher's list has it. */
CASE(ranks_have_the_least_as_leader)
{
	static const char *const lists[] = {"1,2,4", "4,2,1", "2,1,4", "2,4,1"};
	static struct p3_node node = {.size = RANKS};
	for (unsigned i = 0; i < sizeof lists / sizeof *lists; i++) {
		uint32_t leader[RANKS];
		peers = lists[i];
		assert_int_equal(p3_pmix->hosts(&node, leader), 0);
		for (uint32_t rank = 0; rank < RANKS; rank++)
			assert_int_equal(leader[rank], rank == 0 || rank == 3 ? 0 : 1);
	}
}
