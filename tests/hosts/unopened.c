/* SPDX-License-Identifier: BSD-3-Clause */
/* Begin and end Portals without an interface. */
#include <portals3.h>

int main(void)
{
	int most;
	if (PtlInit(&most) != PTL_OK)
		return 1;
	PtlFini();
	return 0;
}
