#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The library exports the API and nothing else: exported_symbols.sh libportals.so
lib=${1:?library}
allowed='Ptl[A-Z][A-Za-z]*|ptl_err_str|ptl_event_str|cnos_[a-z_]+|p3tcp_my_nid|LIBPORTALS_[0-9]+'

command -v nm >/dev/null || {
	echo "skipped: no nm"
	exit 77
}
names=$(nm -D --defined-only "$lib" | awk '{ sub("@.*", "", $NF); print $NF }') || exit 1
status=0
for name in $(printf '%s\n' "$names" | grep -Evx "$allowed"); do
	echo "exported, but no part of the API: $name"
	status=1
done
for name in PtlInit PtlNIInit PtlPut PtlGet PtlEQWait ptl_err_str ptl_event_str \
	cnos_get_rank cnos_barrier p3tcp_my_nid; do
	printf '%s\n' "$names" | grep -qx $name || {
		echo "not exported: $name"
		status=1
	}
done
exit $status
