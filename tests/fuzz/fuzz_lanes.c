/* SPDX-License-Identifier: BSD-3-Clause */
/* One node, and peers whose published memory has arbitrary content. */
#include "fuzz/rig.h"

#define STEPS_MOST 400u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Return the number of passes, sometimes enough that a lane grows cold. */
static uint32_t passes(uint8_t how)
{
	return how >= 0xfc ? 80 : 1 + how % 4;
}

static void step(struct input *in)
{
	uint8_t what = in_u8(in) % 16;
	if (what < 8)
		wire_step(in);
	else if (what < 11)
		rig_passes(passes(in_u8(in)));
	else if (what < 14)
		host_step(in);
	else if (what == 14)
		rig_peer_step(in);
	else
		rig_node_bell(in);
	host_check();
	rig_check();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = {data, data + len};
	rig_start(&in);
	for (uint32_t i = 0; i < STEPS_MOST && in_any(&in); i++)
		step(&in);
	rig_passes(2);
	rig_stop();
	return 0;
}
