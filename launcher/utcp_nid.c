/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * utcp_nid - prints this host's node id in the form that programs and scripts for maps
 * need
 *
 * The reference implementation has a tool of this name, which takes a network device.
 */
#include <p3nal_tcp.h>

#include <stdio.h>
#include <string.h>

#ifndef P3_VERSION
#define P3_VERSION "unversioned"
#endif

enum { STATUS_OK, STATUS_FAILED, STATUS_USAGE };

static int show_help(void)
{
	puts("usage: utcp_nid [DEVICE]\n"
	     "Prints the node id of a process that is started by hand on this host, as "
	     "a\n"
	     "decimal number.  PTL3_NID sets it.  DEVICE is ignored: there is one\n"
	     "network.\n\n"
	     "  -h, --help  print this help\n"
	     "  --version   print the version\n\n"
	     "status: 0, 1 the library cannot start, 2 usage.");
	return STATUS_OK;
}

static int show_nid(const char *device)
{
	unsigned nid;
	int rc = p3tcp_my_nid(device, &nid);
	if (rc == PTL_OK) {
		printf("%u\n", nid);
		return STATUS_OK;
	}
	fprintf(stderr,
		"utcp_nid: the library cannot start (%s); see the line before this one, "
		"or yod --help-env\n",
		PtlErrorStr((unsigned)rc));
	return STATUS_FAILED;
}

static int perform(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		return show_help();
	if (!strcmp(word, "--version")) {
		puts("utcp_nid (libportals " P3_VERSION ", Portals 3.3)");
		return STATUS_OK;
	}
	if (argc > 2 || *word == '-') {
		fprintf(stderr, "utcp_nid: '%s': not expected; see utcp_nid --help\n",
			argc > 2 ? argv[2] : word);
		return STATUS_USAGE;
	}
	return show_nid(argc > 1 ? word : NULL);
}

int main(int argc, char **argv)
{
	int status = perform(argc, argv);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "utcp_nid: cannot write to standard output; see df, and where it "
			"leads\n");
	return status ? status : STATUS_FAILED;
}
