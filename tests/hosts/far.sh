#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: far.sh log
# Check the log of a job with PTL3_LOG=info: two interfaces at least have exchanged frames
# with other hosts.
far=$(grep -c 'frames of other hosts: [1-9][0-9]* out, [1-9][0-9]* in' "$1")
echo "# $far interfaces have exchanged frames with other hosts"
[ "$far" -ge 2 ] || {
	echo "the hosts have exchanged no frames"
	exit 1
}
