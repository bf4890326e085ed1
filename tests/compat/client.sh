#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One client under yod: client.sh kind nodes seconds work options-of-job.h...
kind=$1 nodes=$2 seconds=$3 work=$4
shift 4
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

read -ra words <<<"$work"
if [ "$kind" = rpc ]; then # a server has a fixed address
	words=("$dir" "${words[@]}")
	set -- "$@" -p 4000
fi
"${P3_YOD:?path of yod}" -sz "$nodes" --timeout "$seconds" \
	"${COMPAT_BIN:?folder of the clients}/compat_$kind" "$@" "${words[@]}" || exit
