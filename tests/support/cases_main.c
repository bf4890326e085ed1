/* SPDX-License-Identifier: BSD-3-Clause */
/* main() of the programs whose cases need no other. */
#include "support/cases.h"

int main(void)
{
	return cases_run();
}
