/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * utcp_nid - prints this host's node id in the form that programs and scripts for maps
 * need
 *
 * The reference implementation has a tool of this name, which takes a network device.
 */
#include "launcher/tools/options.h"

#include <p3nal_tcp.h>

#include <stdio.h>

enum { STATUS_OK, STATUS_FAILED };

static const struct p3_options options = {.program = "utcp_nid",
	.usage = "usage: utcp_nid [DEVICE]\n"
		 "Prints the node id of a process that is started by hand on this host, "
		 "as a\n"
		 "decimal number.  PTL3_NID sets it.  DEVICE is ignored: there is one\n"
		 "network.\n",
	.after = "status: 0, 1 the library cannot start, 2 usage.",
	.words = 1,
	.say = p3_tool_say};

int main(int argc, char **argv)
{
	unsigned nid;
	int rc, first, status = p3_options_read(&options, NULL, argc, argv, &first);
	if (status == P3_OPTIONS_GO && (rc = p3tcp_my_nid(argv[first], &nid)) != PTL_OK) {
		p3_tool_say(
			"the library cannot start (%s); see the line before this one, "
			"or yod --help-env",
			PtlErrorStr((unsigned)rc));
		status = STATUS_FAILED;
	} else if (status == P3_OPTIONS_GO) {
		printf("%u\n", nid);
		status = STATUS_OK;
	}
	return p3_tool_end(status, STATUS_FAILED);
}
