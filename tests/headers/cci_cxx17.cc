/* SPDX-License-Identifier: BSD-3-Clause */
/* C++17: cci.h before anything else, and its functions with C linkage. */
#include "cci_layout.h"

#include <portals3.h>

extern "C" int cci_finalize(void);
static_assert(sizeof(&cci_finalize) == sizeof(void *), "declared twice in the same way");

int main()
{
	struct cci_rma_handle kept = {};
	cci_rma_handle_t *handle = &kept;
	return type_names_are_wrong() || handle->stuff[0];
}
