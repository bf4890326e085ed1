/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cci_ends.c - the processes of a job on several hosts use CCI alone, and leave by
 * quick_exit()
 *
 * The launcher must take each of them for a process that has ended well.
 */
#include <cci.h>

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	uint32_t caps;
	cci_endpoint_t *endpoint;
	if (cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS ||
		cci_create_endpoint(NULL, 0, &endpoint, NULL) != CCI_SUCCESS) {
		fprintf(stderr, "cci_ends: cci_init or cci_create_endpoint failed\n");
		return 1;
	}
	quick_exit(0);
}
