#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The memory cgroup of a job's first rank is too small, by more or less: the kernel
# kills it with SIGKILL (pages of segments are charged in fallocate), never with SIGBUS.
# yod says so, and nothing is left.  With enough room the job works.

bin=${STRESS_BIN:?where the programs are} yod=${P3_YOD:?}
out=$(mktemp)
path=$(awk -F: '$2 == "memory" { print $3 }' /proc/self/cgroup)
here=/sys/fs/cgroup/memory$path limit=memory.limit_in_bytes
if [ -z "$path" ]; then
	path=$(awk -F: '$1 == 0 { print $3 }' /proc/self/cgroup)
	here=/sys/fs/cgroup$path limit=memory.max
fi
group=$here/p3-stress-$$
trap 'rm -f "$out"; rmdir "$group" 2>/dev/null' EXIT
if ! mkdir "$group" 2>/dev/null || ! [ -w "$group/$limit" ]; then
	echo "skipped: no memory cgroup can be made in $here"
	exit 77
fi

job() { # bytes
	echo "$1" >"$group/$limit" || exit 77
	timeout -k 1 "${P3_LIMIT:-3000}" "$yod" -sz 2 bash -c '
		[ "$PTL_MY_RID" != 0 ] || echo $$ >"$1/cgroup.procs"
		exec "$2"' - "$group" "$bin/stress_lives" >"$out" 2>&1
	status=$?
}

complain() {
	echo "$mib MiB, status $status: $1"
	sed 's/^/    /' "$out"
	bad=1
}

bad=0
for mib in 5 6 8 10 12 14 16 18 20 24 1024; do
	job $((mib << 20))
	seen+=" $mib:$status"
	[ -s "$group/cgroup.procs" ] && complain "processes are left"
	grep -qiE 'signal 7|bus error' "$out" && complain "SIGBUS"
	case $status in
	0) [ "$(grep -c '^fine' "$out")" = 2 ] || complain "not both came to the end" ;;
	137) grep -q 'rank 0 .*killed by signal 9' "$out" || complain "yod does not say why" ;;
	1) grep -q 'rank 1: .*\(PTL_FAIL\|failed\)' "$out" || complain "rank 1 is not told" ;;
	*) complain "neither killed nor fine" ;;
	esac
done
[ "$status" = 0 ] || complain "there is room, and it does not work"
echo "limit in MiB: status$seen"
echo "# tried: $(wc -w <<<"$seen") limits"
exit $bad
