#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# yod --shared-heap from outside: the nodes' environment, and messages where it cannot
# work.

. "$(dirname "$0")/mp.sh"

err_says() { # what, pattern
	grep -Eq -- "$2" "$dir/err" || fail "$1: no '$2' in stderr"
}

job() { # what, status, command...
	local what=$1 expected=$2
	shift 2
	run timeout "${P3_LIMIT:-3000}" "$@"
	[ $status = "$expected" ] || fail "$what: status $status, expected $expected"
}

scene() { # what, status, scene
	job "$1" "$2" "$P3_YOD" -sz 2 --shared-heap "$MP_BIN/mp_shared" "$3"
}

show='echo "$LD_PRELOAD|$MALLOC_CONF|$PTL3_SHARED_HEAP"'
ours=libjemalloc.so.2
conf=oversize_threshold:16384,tcache_max:14336,retain:false

# The nodes' environment; the user's values stand behind yod's.
job environment 0 "$P3_YOD" -sz 1 --shared-heap sh -c "$show"
says environment "^$ours\|$conf\|on$"
LD_PRELOAD=libm.so.6 MALLOC_CONF=narenas:2 \
	job "the user's" 0 "$P3_YOD" -sz 1 --shared-heap sh -c "$show"
says "the user's" "^$ours:libm.so.6\|$conf,narenas:2\|on$"
job "no option" 0 "$P3_YOD" -sz 1 sh -c "$show"
says "no option" '^\|\|$'

# Without the library: one line, no node runs.
: >"$dir/$ours"
LD_LIBRARY_PATH=$dir job "no library" 125 "$P3_YOD" -sz 2 --shared-heap echo ran
err_says "no library" '^yod: --shared-heap: .*; install the package libjemalloc2$'
[ "$(wc -l <"$dir/err")" = 1 ] || fail "no library: more than one line"
[ -s "$dir/out" ] && fail "no library: a node ran"
rm "$dir/$ours"

# Where malloc is not jemalloc's, or has other options, everything else works.
export PTL3_HUGEPAGES=off
PTL3_SHARED_HEAP=on job "malloc of libc" 0 "$P3_YOD" -sz 2 "$MP_BIN/mp_shared" nothing
err_says "malloc of libc" "warn: malloc gives ordinary memory: .* not jemalloc's"
[ "$(wc -l <"$dir/err")" = 1 ] || fail "malloc of libc: more than one line"
MALLOC_CONF=oversize_threshold:0 scene "no arena" 0 nothing
err_says "no arena" 'warn: malloc gives ordinary memory: MALLOC_CONF'
PTL3_SHARED_HEAP=perhaps job "no choice" 2 "$P3_YOD" -sz 2 "$MP_BIN/mp_shared" nothing
err_says "no choice" "PTL3_SHARED_HEAP is 'perhaps'; expected on, off"

# Settings that change how jemalloc gets its memory.
for more in narenas:1 dirty_decay_ms:0 dirty_decay_ms:-1 junk:true \
	background_thread:true percpu_arena:percpu tcache_max:65536; do
	for name in again threads; do
		MALLOC_CONF=$more scene "$more, $name" 0 $name
	done
done

# The end of sharing is reported once a node.
scene forks 0 forks
[ "$(grep -c 'fork ends the sharing' "$dir/err")" = 2 ] || fail "forks: not said twice"

finish shared_heap
