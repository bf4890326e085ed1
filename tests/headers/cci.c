/* SPDX-License-Identifier: BSD-3-Clause */
/* C99 and C11, cci.h before anything else, and with it the Portals headers. */
#include "cci_layout.h"

#include <portals3.h>

/* Programs that need a handle of their own name the struct. */
static struct cci_rma_handle kept;

int main(void)
{
	cci_event_t *event = 0;
	cci_os_handle_t fd = -1;
	kept.stuff[3] = 0;
	return type_names_are_wrong() || event || fd != -1;
}
