#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every fault and bad input of docs/reliability.md, with the table of what was lost.
set -e
for preset in fault fuzz; do
	cmake --preset $preset
	cmake --build --preset $preset
done
exec tests/reliability
