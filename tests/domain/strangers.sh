#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Processes of the same user that call a member and send nothing, or wrong packets, are
# hung up with one line each; they keep no process from joining, and use nothing up.
# strangers.sh domain_meet domain_stranger
set -u
. "$(dirname "$0")/../support/patience.sh"
. "$(dirname "$0")/../support/flight.sh"
meet=$1 stranger=$2
base=/dev/shm/ptl3-$(id -u)
export PTL3_DOMAIN=strangers-$$ PTL3_HUGEPAGES=off
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir" "$base/$PTL3_DOMAIN"; rmdir "$base" 2>/dev/null' EXIT

fail() {
	echo "$*"
	cat "$dir"/err.* 2>/dev/null
	exit 1
}

has_more_lines() {
	[ "$(grep -c 'p3\[' "$dir/err.member")" -gt $lines ]
}

# says text: the member has printed one more line, which contains this
lines=0
says() {
	patiently has_more_lines
	lines=$((lines + 1))
	[ "$(grep -c 'p3\[' "$dir/err.member")" = $lines ] || fail "not line $lines: $1"
	[[ "$(grep 'p3\[' "$dir/err.member" | tail -1)" == *"$1"* ]] || fail "no '$1' in the last line"
}

# launch NAME command...: in the background; start: until it has printed a line
declare -A pid to
launch() {
	local name=$1 fd
	shift
	mkfifo "$dir/in.$name"
	"$@" <"$dir/in.$name" >"$dir/out.$name" 2>"$dir/err.$name" &
	pid[$name]=$!
	exec {fd}>"$dir/in.$name"
	to[$name]=$fd
}

start() {
	launch "$@"
	patiently test -s "$dir/out.$1" || fail "$1 does not start"
}

# end NAME: by the end of its input; print its last line
end() {
	eval "exec ${to[$1]}>&-"
	wait "${pid[$1]}" || fail "$1 ends with $?"
	last=$(tail -1 "$dir/out.$1")
}

has_answers() { # number
	[ "$(grep -c '^ok$' "$dir/out.member")" -ge "$1" ]
}

# Give the member an order that it answers with ok, and wait for that.
answers=0
tell_member() { # order
	answers=$((answers + 1))
	echo "$*" >&"${to[member]}"
	patiently has_answers $answers || fail "the member does not answer '$*'"
}

fds() {
	find "/proc/$member/fd" -mindepth 1 2>/dev/null | wc -l
}

# Return true if this number of strangers is connected, or if the member has hung up the
# first of them already.
has_all() { # number of strangers
	[ "$(fds)" -ge $((had + $1)) ] || has_more_lines
}

has_as_before() {
	[ "$(fds)" = "$had" ]
}

# Let a process come, put to the member, and leave.  Its put fails if it has not met the member,
# for which it waits a second at most.
is_reached() {
	said=$(echo "put 2130706433 4000 50000 0 1000000" | timeout "${P3_LIMIT:-3000}" "$meet" member 4001 |
		tail -1)
	[ "$said" = acked ]
}

others_come() {
	patiently is_reached || fail "$1: a newcomer's put is '$said'"
}

ours=$("$stranger" ours)
# shellcheck disable=SC2086
$unprivileged true 2>/dev/null || unprivileged=
# shellcheck disable=SC2086
start member $unprivileged "$meet" member 4000
member=${pid[member]}
had=$(fds)
others_come "alone"
patiently has_as_before || fail "$(fds) descriptors after the first newcomer, $had before"

for how in version bare early noise; do
	said=$("$stranger" $how 0 2>"$dir/err.$how")
	[ "$said" = gone ] || fail "$how: '$said'"
	case $how in
	version) says "speaks version $((ours + 1)) of the protocol of domains, this one version $ours" ;;
	bare) says "a wrong number of descriptors" ;;
	early) says "does not say first who it is" ;;
	noise) says "no packet of a domain" ;;
	esac
done

# Fewer than there is room for: each is hung up after its time.
start silent "$stranger" silent 0 40
patiently has_all 40 || fail "they were not let in: $(fds)"
others_come "40 silent ones"
says "connects, and does not say who it is"
patiently has_as_before || fail "$(fds) descriptors after silent ones, $had before"
end silent
[ "$last" = 40 ] || fail "$last of 40 silent ones are hung up"

# Always more than there is room for: each makes room for the next, and the only one of
# another process, which is the oldest, is not hung up for them.
start alone "$stranger" silent 0 1
patiently has_all 1 || fail "the single one was not let in: $(fds)"
start insists "$stranger" insists 0 400
for i in 1 2 3; do
	others_come "400 that insist, $i"
done
patiently grep -q "process ${pid[insists]} takes the last connection" "$dir/err.member" ||
	fail "no line about those that insist"
end insists
[ "$last" -gt 300 ] || fail "$last were hung up"
grep "process ${pid[alone]} takes" "$dir/err.member" && fail "the single one is hung up for others"
end alone
others_come "after them"
patiently has_as_before || fail "$(fds) descriptors, $had before"
lines=$(grep -c 'p3\[' "$dir/err.member") # its time may be over meanwhile

# Descriptors that find no room, here or under way, are no breach of the protocol.
# While the member can send none it says nothing else either.
hold_descriptors
tell_member files 1
launch poor "$meet" member 4002
says "cannot be attached: Too many open files"
# pause: time for the member to ask for the descriptors again
sleep 2
kill "$holder"
tell_member files 0
patiently test -s "$dir/out.poor" || fail "poor does not start"
[ ! -s "$dir/err.poor" ] || fail "poor complains"
is_acked() { # a put fails until the poor one has heard of the member
	echo "put 2130706433 4000 50000 0 1000000" >&"${to[poor]}"
	sleep 0.1
	grep -q acked "$dir/out.poor"
}
patiently is_acked || fail "after want of descriptors a put is '$(tail -1 "$dir/out.poor")'"
end poor
end member

# A newcomer calls a member again that hangs up, but not one that has yet to answer.
was_called() { # number of times
	[ "$(grep -c called "$dir/out.rude")" -ge "$1" ]
}
start mute "$stranger" mute
start rude "$stranger" rude
start late "$meet" member 4000
patiently was_called 5 || fail "the member that hangs up is not called again"
end late
end rude
end mute
[ "$last" = 1 ] || fail "the member that says nothing is called $last times"

# A member of another version meets no other.
start other "$stranger" member
said=$("$meet" member 4000 2>&1 </dev/null) && fail "version: is not refused"
[ "$(grep -c 'p3\[' <<<"$said")" = 1 ] || fail "version: not one line: $said"
for word in "process ${pid[other]}" "version $((ours + 1)) of" "this one version $ours" "one build"; do
	[[ $said == *"$word"* ]] || fail "version: no '$word' in: $said"
done
end other
[ ! -e "$base/$PTL3_DOMAIN" ] || fail "left: $(ls "$base/$PTL3_DOMAIN")"
echo "# tried: 4 that say what is wrong, 440 that say nothing, another version"
