#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh model.sh [-w] model worker yod|mpirun provider arguments of model...
# Random programs of tests/model, whose nodes are ranks on three hosts.  With -w, one node
# changes a byte of its memory, and the model must notice that.
set -u
wrong=
[ "$1" != -w ] || { wrong=1; shift; }
model=$1 worker=$2 by=$3 provider=$4
shift 4
# shellcheck source=lib.sh disable=SC1091
. "$(dirname "$0")/lib.sh"
export P3_MODEL_SOCKET=$dir/orders
options=("-x" "PTL3_HUGEPAGES=off" "-x" "PTL3_LOG=info" "-x" "PTL3_FABRIC=$provider")
[ -z "$wrong" ] || options+=("-x" "P3_MODEL_SPOIL=5")
printf -v P3_MODEL_JOB '%q ' exec "$here/$by.sh" "${options[@]}" "$worker" "$P3_MODEL_SOCKET"
P3_MODEL_JOB+=">>$(printf '%q' "$dir/log") 2>&1"
export P3_MODEL_JOB
"$model" "$@" >"$dir/out" 2>&1
status=$?
cat "$dir/out"
grep -v ' info nic: ' "$dir/log"
awk '/frames of other hosts/ { for (i = 1; i < NF; i++) if ($i == "hosts:") n += $(i + 1) }
	END { print "# " n " frames between hosts" }' "$dir/log"
"$here/far.sh" "$dir/log" || exit 1
[ -n "$wrong" ] || exit $status
[ $status = 1 ] && grep -q 'memory of node 1 at' "$dir/out"
