#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs cnos under yod and without it: cnos.sh program
program=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "$*"
	exit 1
}

said=$("${P3_YOD:?path of yod}" -sz 4 --timeout "${P3_LIMIT:-3000}" "$program" "$dir") || fail "under yod: $said"
wanted=$(printf 'rank %d of 4\n' 0 1 2 3)
[ "$(echo "$said" | sort)" = "$wanted" ] || fail "under yod: $said"
said=$("$program" 2>&1) || fail "alone: $said"
[ -z "$said" ] || fail "alone: $said"
