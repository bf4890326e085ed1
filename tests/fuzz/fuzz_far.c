/* SPDX-License-Identifier: BSD-3-Clause */
/* One node, and peers on other hosts that send arbitrary frames. */
#include "fuzz/rig.h"

#define STEPS_MOST 300u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void step(struct input *in)
{
	uint8_t what = in_u8(in) % 16;
	if (what < 5) {
		wire_step(in);
		far_flush();
	} else if (what < 11) {
		far_step(in);
	} else if (what < 14) {
		host_step(in);
	} else if (what == 14) {
		rig_passes(1 + in_below(in, 4));
	} else {
		rig_peer_step(in);
	}
	host_check();
	rig_check();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = {data, data + len};
	rig.far = true;
	rig_start(&in);
	for (uint32_t i = 0; i < STEPS_MOST && in_any(&in); i++)
		step(&in);
	far_end();
	rig_stop();
	return 0;
}
