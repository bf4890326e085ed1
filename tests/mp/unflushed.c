/* SPDX-License-Identifier: BSD-3-Clause */
/* unflushed - prints two lines, flushes neither, and is killed */
#include <portals3.h>

#include <signal.h>
#include <stdio.h>

int main(void)
{
	int most;
	printf("before PtlInit\n");
	if (PtlInit(&most) != PTL_OK)
		return 1;
	printf("after PtlInit\n");
	return raise(SIGKILL);
}
