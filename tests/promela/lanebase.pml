/* SPDX-License-Identifier: BSD-3-Clause */
/* The lane with a base ring.  Rules: a word of payload is cleared before the consumer may
 * take it for a header (DIRTY_1), and the producer notes where payload is (DIRTY_2). */
#define DIRTY_1_p3_ring_clear_dirty 11
#define DIRTY_2_p3_ring_clear_dirty 12
#define BASE
#include "lane.pml"
