#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The library ends no process and touches no signal handler: imported_symbols.sh
# libportals.so.  _exit is allowed in a forked child that cannot have its copy of the
# shared heap (shm/heap.h), kill in a node whose yod was killed (lib/job/yod.c), and exit
# in a process whose own threads have all ended (shm/process.c).
lib=${1:?library}
never='abort|quick_exit|_Exit|__assert_fail|__assert|__libc_fatal|raise|tgkill|pthread_kill|signal|__sysv_signal|bsd_signal|sigaction|sigset|siginterrupt|atexit|on_exit|longjmp|siglongjmp|setitimer|alarm'

command -v nm >/dev/null || {
	echo "skipped: no nm"
	exit 77
}
names=$(nm -D --undefined-only "$lib" | awk '{ sub("@.*", "", $NF); print $NF }') || exit 1
status=0
for name in $(printf '%s\n' "$names" | grep -Ex "$never"); do
	echo "imported, but a library must not: $name"
	status=1
done
for name in kill pthread_create recvmsg; do
	printf '%s\n' "$names" | grep -qx $name || {
		echo "not imported, is this the library? $name"
		status=1
	}
done
exit $status
