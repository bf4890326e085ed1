#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh lossy.sh switch settings arguments of run.sh...
# Run a program while switch.c, with these settings, takes the place of the kernel's bridge.
set -u
program=$1 settings=$2
shift 2
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
log=$dir/log
begin_switch "$program" "$settings" "$log"
trap 'kill $switch 2>/dev/null; rm -rf "$dir"' EXIT

"$here/run.sh" "$@"
status=$?
kill $switch
wait $switch || status=1
cat "$log"
[[ $settings != *loss=* ]] || ! grep -q ' 0 lost' "$log" || status=1
[[ $settings != *double=* ]] || ! grep -q ' 0 doubled' "$log" || status=1
[[ $settings != *reorder=* ]] || ! grep -q ' 0 reordered' "$log" || status=1
exit $status
