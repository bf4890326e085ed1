#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank that is a loop of programs, each with a shared heap of another length: heaps.c
# checks the address space of the other rank.
. "$(dirname "$0")/mp.sh"
lives=30

# shellcheck disable=SC2016
succeeds "heaps of $lives lengths" "$P3_YOD" --timeout "${P3_LIMIT:-3000}" -sz 1 "$MP_BIN/mp_heaps" $lives : \
	-sz 1 sh -c 'i=0
		while [ $i -lt "$1" ]; do
			PTL3_HEAP=$((1024 + 2 * i))M "$0" $i || exit
			i=$((i + 1))
		done' "$MP_BIN/mp_heaps" $lives
nothing_left
finish heaps
