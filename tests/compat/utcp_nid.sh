#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# utcp_nid prints the id that PtlGetId gives to a process started by hand: utcp_nid.sh
# TUTORIAL_1
status=0
complain() {
	echo "$*"
	status=1
}
nid_of_program() {
	"$@" | sed -n 's/.* of node \([0-9]*\)$/\1/p'
}
for nid in '' 10.0.0.1 77; do
	export PTL3_NID=$nid PTL3_HUGEPAGES=off
	program=$(nid_of_program "$1")
	said=$("$P3_BIN/utcp_nid" eth0) || complain "PTL3_NID=$nid: status $?"
	[ -n "$said" ] && [ "$said" = "$program" ] ||
		complain "PTL3_NID=$nid: utcp_nid says '$said', PtlGetId '$program'"
done
[ "$said" = 77 ] || complain "PTL3_NID=77 gives '$said'"
said=$(PTL3_NID=a:b "$P3_BIN/utcp_nid" 2>&1)
[ $? = 1 ] && [[ $said == *"PTL3_NID is 'a:b'; expected"* ]] || complain "PTL3_NID=a:b: $said"
for word in --nonsense -x; do
	said=$("$P3_BIN/utcp_nid" $word 2>&1)
	[ $? = 2 ] && [ "$(wc -l <<<"$said")" = 1 ] || complain "$word: $said"
done
"$P3_BIN/utcp_nid" --help | grep -q '^usage: utcp_nid' || complain "--help prints no usage"
"$P3_BIN/utcp_nid" >/dev/full 2>/dev/null && complain "a full disk is no failure"
exit $status
