/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mode.c - all that has the name of its mode in it: the words that a program's
 * definitions are linked with, the library's marks, gasnet_init and gasnet_attach.  All
 * other files are the same in GASNET_PAR and GASNET_PARSYNC.
 */
#include "internal.h"

const int GASNETI_LINK_THREADS = 1;
const int GASNETI_LINK_SEGMENT = 1;
const int GASNETI_LINK_DEBUG = 1;
const int gasneti_linkconfig_idiotcheck_ABI_1 = 1;

/* Strings that programs look for in the library's file. */
#define IDENT(name, text) static const char name[] __attribute__((used)) = text
IDENT(ident_config, "$GASNetConfig: (libgasnet.a) " GASNET_CONFIG_STRING " $");
IDENT(ident_core_version, "$GASNetCoreLibraryVersion: " GASNET_CORE_VERSION_STR " $");
IDENT(ident_core_name, "$GASNetCoreLibraryName: " GASNET_CORE_NAME_STR " $");
IDENT(ident_extended_version,
	"$GASNetExtendedLibraryVersion: " GASNET_EXTENDED_VERSION_STR " $");
IDENT(ident_extended_name, "$GASNetExtendedLibraryName: " GASNET_EXTENDED_NAME_STR " $");
IDENT(ident_conduit, "$GASNetConduitName: " GASNET_CONDUIT_NAME_STR " $");

int gasnet_init(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	return gasneti_core_init();
}

int gasnet_attach(gasnet_handlerentry_t *table, int numentries, uintptr_t segsize,
	uintptr_t minheapoffset)
{
	return gasneti_core_attach(table, numentries, segsize, minheapoffset);
}
