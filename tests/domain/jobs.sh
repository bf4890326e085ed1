#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A service that was started by hand, and jobs of yod, in one domain: all have ids of
# their own; the service's access control admits one job by its number, and its own
# user. jobs.sh domain_meet domain_node yod
set -u
meet=$1 node=$2 yod=$3
name=jobs-$$
export PTL3_HUGEPAGES=off

fail() {
	echo "$*"
	exit 1
}

coproc SERVICE { PTL3_DOMAIN=$name "$meet" member 4000; }
service=$SERVICE_PID
read -r nid pid jid uid <&"${SERVICE[0]}"

ask() { # order...
	echo "$*" >&"${SERVICE[1]}"
	read -r answer <&"${SERVICE[0]}"
}

# job status entry outcome: three ranks, each puts once to the service
job() {
	said=$("$yod" -sz 3 --domain "$name" --timeout "${P3_LIMIT:-3000}" "$node" "$nid" "$pid" "$1" "$2" 2>&1) ||
		fail "a job with entry $1: $said"
	read -r jobs_nid _ jobs_jid jobs_uid <<<"$said"
	[ "$jobs_nid" -ge 10000 ] || fail "the job's node ids begin at $jobs_nid"
	[ "$jobs_uid" = "$uid" ] && [ "$jobs_jid" != "$jid" ] ||
		fail "uid and job: $said beside $uid and $jid"
}

job 0 acked
ask got
read -r got _ last <<<"$answer"
[ "$got" = 3 ] && [ "$last" = "$jobs_jid" ] || fail "the service has: $answer"

said=$("$yod" -sz 3 --domain "$name" --nid-base 77 --timeout "${P3_LIMIT:-3000}" "$node" "$nid" "$pid" 0 acked 2>&1) ||
	fail "a job with --nid-base: $said"
[ "${said%% *}" = 77 ] || fail "--nid-base 77 gives: $said"
ask got
read -r got _ _ <<<"$answer"
[ "$got" = 6 ] || fail "the service has $got messages, not 6"

# Two at a time: their node ids do not overlap.
"$yod" -sz 3 --domain "$name" --timeout "${P3_LIMIT:-3000}" "$node" "$nid" "$pid" 0 acked >"/tmp/$name" 2>&1 &
other=$!
job 0 acked
wait $other || fail "a job beside another: $(cat "/tmp/$name")"
read -r _ _ other_jid _ <"/tmp/$name"
rm -f "/tmp/$name"
[ "$other_jid" != "$jobs_jid" ] || fail "two jobs are $jobs_jid"

ask admit 1 "$uid" 4294967295 # this user, any job
[ "$answer" = 0 ] || fail "an entry by user: $answer"
job 1 acked
(
	until [ -e "/tmp/$name.go" ]; do sleep 0.02; done
	exec "$yod" -sz 3 --domain "$name" --timeout "${P3_LIMIT:-3000}" "$node" "$nid" "$pid" 2 acked
) >"/tmp/$name" 2>&1 &
own=$!
ask admit 2 "$uid" "$own" # this very job
job 2 sent              # another one
: >"/tmp/$name.go"
wait $own || fail "the job $own is not let in: $(cat "/tmp/$name")"
read -r _ _ last _ <"/tmp/$name"
rm -f "/tmp/$name" "/tmp/$name.go"
[ "$last" = "$own" ] || fail "the job $own has number $last"
ask admit 3 $((uid + 1)) 4294967295 # another user
job 3 sent
ask got
read -r got _ _ <<<"$answer"
[ "$got" = 18 ] || fail "the service has $got messages, not 18"

# A process started by hand cannot have ids of a job.
"$yod" -sz 1 --domain "$name" --timeout "${P3_LIMIT:-3000}" sh -c "PTL3_NID=10000 PTL3_YOD_FD= \"$meet\" member 5 </dev/null" >"/tmp/$name" 2>&1 &&
	fail "a process takes a node id of a job: $(cat "/tmp/$name")"
grep -q "belongs to a job" "/tmp/$name" || fail "clash of node ids: $(cat "/tmp/$name")"
rm -f "/tmp/$name"

eval "exec ${SERVICE[1]}>&-"
wait "$service" || fail "the service ended with $?"
[ ! -e "/dev/shm/ptl3-$(id -u)/$name" ] || fail "the domain is left"
