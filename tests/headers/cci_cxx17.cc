/* SPDX-License-Identifier: BSD-3-Clause */
/* C++17: cci.h before anything else, and its functions with C linkage. */
#include "cci_layout.h"

#include <portals3.h>

#include <type_traits>

extern "C" int cci_finalize(void);
static_assert(sizeof(&cci_finalize) == sizeof(void *), "declared twice in the same way");

static_assert(std::is_standard_layout<ptl_event_t>::value, "an event is as in C");
static_assert(std::is_unsigned<ptl_handle_any_t>::value, "a handle is a number");
constexpr ptl_handle_eq_t no_queue = PTL_EQ_NONE;
static_assert(no_queue == PTL_EQ_NONE, "a constant");

int main()
{
	struct cci_rma_handle kept = {};
	cci_rma_handle_t *handle = &kept;
	return type_names_are_wrong() || handle->stuff[0];
}
