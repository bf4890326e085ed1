#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Break the library in 12 ways, one after another, and show that the model test or the
# conformance suite of CCI notices each.
#
#	tests/cci/mutants.sh [NAME...]
#
# It takes some minutes, so no test calls it; run it by hand after a change of these tests
# or of nic/cci/.  The mutants are made in a copy of the sources below build/mutants, built
# without optimization.  A mutant is a file, a line of it as it is, and the line instead;
# when the code has changed and the line is not there, the script says so and fails.  The
# programs run as processes of a domain.  First the library must pass without a mutant.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$root/build/mutants
export CCI_BY=hand CCI_SHARE=200 PTL3_HUGEPAGES=off
failures=0

# name | file | line | line instead | judge: model, or PROGRAM NUMBER... of the suite
mutants='
order|msg_rx.c|m->seq == conn->seq_in;|conn->seq_in == conn->seq_in;|messages 89
lost|msg_rx.c|answer(n, p, m, P3_CCI_RNR);|answer(n, p, m, P3_CCI_OK);|model
unending|msg_rx.c|rx->slot[conn->coming_len] = 0;|(void)rx;|events 61
rights|rma_rx.c|!(r->flags & right)|!right|model
range|region.h|length <= r->length - offset|length <= r->length|rma 100
pulls|region.c|		if (pull->over && pull->region == name)|		if (pull->over && !pull->region)|rma 113
why|retry.c|	conn->rnr = true;|	conn->rnr = false;|messages 91
buffers|item.c|	ep->tx_used--;|	(void)ep;|messages 87
borrowed|msg_tx.c|bool borrow = (flags & CCI_FLAG_NO_COPY) && n == 1 &&|bool borrow = flags >= 0 && n == 1 &&|model
fence|rma_tx.c|		if (tx->is.fence && conn->rma_out)|		if (tx->is.fence > 1 && conn->rma_out)|rma 109
early|rma_tx.c|	bool msg = status == CCI_SUCCESS && tx->is.with_msg;|	bool msg = tx->is.with_msg;|rma 112
events|op.c|	if (conn->pub.attribute != CCI_CONN_ATTR_RO) {|	if (conn->pub.attribute != CCI_CONN_ATTR_UU_MC_TX) {|model
'

say() {
	printf '%-10s %s\n' "$1" "$2"
}

bad() {
	say "$1" "$2"
	failures=$((failures + 1))
}

copy_sources() {
	mkdir -p "$work"
	rm -rf "$work/src"
	mkdir "$work/src"
	(cd "$root" && git ls-files -co --exclude-standard -z | tar cf - --null -T -) | tar xf - -C "$work/src"
	touch "$work"/src/nic/cci/* # the last mutant's objects are newer
	[ -f "$work/build/build.ninja" ] ||
		cmake -G Ninja -S "$work/src" -B "$work/build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1 >/dev/null
}

build() {
	ninja -C "$work/build" libportals.so cci_model cci_events cci_messages cci_rma >"$work/log" 2>&1
}

# judge WORDS...: succeed if the tests pass, those of the suite eight times
judge() {
	if [ "$1" = model ]; then
		"$work/build/tests/cci/cci_model" --seeds 30 --steps 1000 --no-shrink >"$work/out" 2>&1
		return
	fi
	local program=$1 i
	shift
	for i in 1 2 3 4 5 6 7 8; do
		"$work/build/tests/cci/cci_$program" "$@" >"$work/out" 2>&1 || return
	done
}

try() { # name file line instead judge
	local at=$work/src/nic/cci/$2
	if ! grep -qF -- "$3" "$at" 2>/dev/null; then
		bad "$1" "nic/cci/$2 has no line '$3'"
		return
	fi
	cp "$at" "$work/kept"
	OLD=$3 NEW=$4 perl -0pi -e 's/\Q$ENV{OLD}\E/$ENV{NEW}/' "$at"
	if ! build; then
		bad "$1" "does not build: $(grep -m1 error "$work/log")"
	elif judge ${5}; then
		bad "$1" "survives $5"
	else
		say "$1" "killed by $5: $(grep -m1 -E '^(# [0-9]+ |seed )' "$work/out" | cut -c1-120)"
	fi
	cp "$work/kept" "$at"
}

copy_sources
build || { tail -20 "$work/log"; exit 1; }
for tests in model "events 61" "messages 87 89 91" "rma 100 109 112 113"; do
	judge $tests || { bad none "fails without a mutant: $tests"; cat "$work/out"; exit 1; }
done
while IFS='|' read -r name file line instead tests; do
	[ -n "$name" ] || continue
	[ $# = 0 ] || [[ " $* " = *" $name "* ]] || continue
	try "$name" "$file" "$line" "$instead" "$tests"
done <<<"$mutants"
echo "$failures failures"
[ $failures = 0 ]
