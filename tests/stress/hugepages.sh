#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 0, 1, one too few and enough hugepages for a job of two: hugepages free before are
# free after, a job that may have ordinary pages says nothing of a shortage, and with
# PTL3_HUGEPAGES=on that is an error.  The number is the machine's: it is changed only where P3_HUGE_PAGES=1 allows
# that, and restored.  Unchanged, the machine counts as one case.

bin=${STRESS_BIN:?where the programs are} yod=${P3_YOD:?}
number=/proc/sys/vm/nr_hugepages
out=$(mktemp)
was=$(cat $number)
bad=0
restore() {
	[ -z "$P3_HUGE_PAGES" ] || echo "$was" >$number
	rm -f "$out"
}
trap restore EXIT

free() {
	awk '/HugePages_Free/ { print $2 }' /proc/meminfo
}

complain() {
	echo "$1"
	sed 's/^/    /' "$out" | head
	bad=1
}

job() { # policy
	before=$(free)
	PTL3_HUGEPAGES=$1 PTL3_HEAP=8M timeout -k 1 "${P3_LIMIT:-3000}" "$yod" -sz 2 "$bin/stress_lives" \
		>"$out" 2>&1
	status=$?
	lines=$(grep -c 'no hugepages' "$out")
	[ "$(free)" = "$before" ] || [ -z "$P3_HUGE_PAGES" ] ||
		complain "$1 of $before: $(free) are free after"
	seen+=" $before:$1:$status"
}

count() {
	echo "free:policy:status$seen"
	echo "# tried: $(wc -w <<<"$seen") numbers of hugepages"
}

auto_works() {
	job auto
	[ $status = 0 ] || complain "auto with $before: status $status"
	[ "$lines" = 0 ] || complain "auto with $before: $lines lines"
}

with() { # pages
	echo "$1" >$number
	[ "$(cat $number)" = "$1" ] && auto_works
}

# Two for each rank, and one that is not enough for a queue.
grows_in_malloc() {
	echo 5 >$number
	PTL3_HUGEPAGES=on PTL3_HEAP=0 timeout -k 1 "${P3_LIMIT:-3000}" "$yod" -sz 2 \
		"$bin/stress_in_malloc" real >"$out" 2>&1 || complain "a signal handler: $?"
	seen+=" 5:in_malloc:0"
}

if [ -z "$P3_HUGE_PAGES" ]; then
	auto_works
	if [ "$before" = 0 ]; then
		# Refused calls are repeated for ever: there is an error, and the job
		# does not work.
		PTL3_HUGEPAGES=on timeout -k 1 "${P3_LIMIT:-3000}" "$yod" -sz 2 \
			"$bin/stress_lives" >"$out" 2>&1 &
		until grep -q 'error: .*free hugepages' "$out"; do
			kill -0 $! 2>/dev/null || { complain "on: no word" && break; }
			sleep 0.1
		done
		# pause: time for it to work wrongly
		sleep 1
		kill $! 2>/dev/null
		wait $!
		grep -q '^fine' "$out" && complain "on: it works?"
	fi
	count
	exit $bad
fi
for n in 0 1 2 3 4 5 6 8 9 10 11 12 13 14 15 16 18 20 24 32; do
	with $n || { echo "this machine gives no $n hugepages"; break; }
	grep -q '^fine 0: .* 1 huge' "$out" && enough=${enough:-$n}
done
grows_in_malloc
[ -n "$enough" ] || complain "hugepages are never used"
echo "from $enough on the segments of rank 0 are in hugepages"
count
exit $bad
