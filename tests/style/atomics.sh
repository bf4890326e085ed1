#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# shm/atomics.h alone includes <stdatomic.h> and has stand-alone fences.  Benches, examples
# and GASNet's tests are programs that do not see it; the GASNet libraries, which use public headers
# only, have their own file, and gasnet_tools.h offers fences to programs.
. "${0%/*}/sources.sh"
only=shm/atomics.h
word='[<"]stdatomic\.h|atomic_thread_fence|__sync_|__atomic_[a-z]|[^a-z][mls]fence'

for file in $(sources '*.c' '*.h' '*.cc' | grep -vE '^(bench|examples|tests/gasnet)/'); do
	case $file in $only | lib/gasnet/atomics.h | include/gasnet_tools.h) continue ;; esac
	lines=$(grep -nE "$word" "$file") && complain "$file: only in $only: $lines"
done
grep -q '<stdatomic.h>' $only || complain "$only does not include <stdatomic.h>"
grep -q 'atomic_thread_fence' $only || complain "$only has no fence"
exit $status
