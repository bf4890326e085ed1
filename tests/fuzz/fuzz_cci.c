/* SPDX-License-Identifier: BSD-3-Clause */
/* One node with endpoints of CCI, and peers that send it arbitrary messages of CCI. */
#include "fuzz/rig.h"

#define STEPS_MOST 400u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void step(struct input *in)
{
	uint8_t what = in_u8(in) % 16;
	if (what < 7)
		wire_cci_step(in);
	else if (what < 12)
		cci_step(in);
	else if (what < 14)
		rig_passes(1 + in_below(in, 4));
	else if (what == 14)
		wire_step(in);
	else
		rig_peer_step(in);
	rig_check();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = {data, data + len};
	rig_start(&in);
	cci_start();
	for (uint32_t i = 0; i < STEPS_MOST && in_any(&in); i++)
		step(&in);
	rig_passes(2);
	cci_stop();
	rig_stop();
	return 0;
}
