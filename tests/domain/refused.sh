#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A domain's directory that is not the user's alone is refused, in one line that tells
# the remedy; so are wrong names and numbers; with "none" a process reaches no other.
# refused.sh domain_meet yod
set -u
. "$(dirname "$0")/../support/patience.sh"
meet=$1 yod=$2
base=/dev/shm/ptl3-$(id -u)
name=refused-$$
export PTL3_DOMAIN=$name PTL3_HUGEPAGES=off
trap 'rm -rf "$base/$name" "$base/$name.far"; rmdir "$base" 2>/dev/null' EXIT

fail() {
	echo "$*"
	exit 1
}

# refused what words...: a member does not start, with one line that has all words
refused() {
	local what=$1 said status
	shift
	said=$("$meet" member 4000 2>&1 </dev/null)
	status=$?
	[ $status -ne 0 ] || fail "$what: is not refused: $said"
	[ "$(grep -c 'p3\[' <<<"$said")" = 1 ] || fail "$what: not one line: $said"
	for word; do
		grep -qF -- "$word" <<<"$said" || fail "$what: no '$word' in: $said"
	done
}

# A process that enters a domain removes empty directories beside the domain's, so this
# one has a file inside from the moment at which it lies there.  A process that leaves
# another domain removes the base while that is empty.
directory() { # mode name
	local made
	made=$(mktemp -d -p /dev/shm) && : >"$made/kept" && chmod "$1" "$made" &&
		patiently lies_there "$made" "$base/$2" || fail "no directory $base/$2"
}

lies_there() { # from to
	mkdir -pm 0700 "$base" && mv -T "$1" "$2" 2>/dev/null
}

directory 0755 "$name"
refused "mode" "$base/$name" "mode 0755" 0700 PTL3_DOMAIN=none
chmod 0770 "$base/$name"
refused "group" "mode 0770"
rm -r "${base:?}/$name"
directory 0700 "$name.far"
ln -s "$base/$name.far" "$base/$name"
refused "symlink" "is no directory" "$base/$name"
rm "$base/$name"
: >"$base/$name"
refused "file" "is no directory"
rm "$base/$name"
if [ "$(id -u)" = 0 ]; then
	directory 0700 "$name"
	chown 65534 "$base/$name"
	refused "owner" "uid 65534"
	rm -rf "${base:?}/$name"
	# Another user's, which this one may not remove.
	nobody=/dev/shm/ptl3-65534
	as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	if [ ! -e $nobody ] && "${as[@]}" test -r "$meet" 2>/dev/null; then
		mkdir -m 0700 $nobody
		said=$("${as[@]}" "$meet" member 4000 2>&1 </dev/null)
		rmdir $nobody
		[[ $said == *"$nobody is uid 0's with mode 0700"*"have root remove it"* ]] ||
			fail "another user's: $said"
	else
		echo "# not tried: a directory of another user's"
	fi
	directory 0700 "$name"
	: >"$base/$name.far/other"
	ln -s "$base/$name.far/other" "$base/$name/locks"
	refused "link to other locks" "$base/$name"
	[ ! -s "$base/$name.far/other" ] || fail "somebody wrote through a link"
	rm -rf "${base:?}/$name"
fi
PTL3_DOMAIN=a/b refused "name" PTL3_DOMAIN "'a/b'" expected
PTL3_DOMAIN=.. refused "name" PTL3_DOMAIN "'..'" expected
PTL3_NID=1.2.3 refused "nid" PTL3_NID "'1.2.3'" expected
PTL3_DOMAIN_NODES=0 refused "nodes" PTL3_DOMAIN_NODES "'0'" expected

# A domain with room for another number of processes than its members'.
coproc MEMBER { "$meet" member 4001; }
member=$MEMBER_PID
read -r _ <&"${MEMBER[0]}"
PTL3_DOMAIN_NODES=65 refused "other room" "has room for 64" PTL3_DOMAIN_NODES
eval "exec ${MEMBER[1]}>&-"
wait "$member" || fail "who was there is hurt"

# A full domain.
export PTL3_DOMAIN_NODES=1
coproc ONLY { "$meet" member 4001; }
only=$ONLY_PID
read -r _ <&"${ONLY[0]}"
refused "full" "is full" "room for 1"
eval "exec ${ONLY[1]}>&-"
wait "$only" || fail "who was there is hurt"
unset PTL3_DOMAIN_NODES

# A missing lock is no clash of ids.
said=$(printf 'locks\nput 2130706433 4000 9000 0 1000000\n' | "$meet" member 4000 2>&1) ||
	fail "locks: $said"
for word in PTL_NO_SPACE "process id 16484" "No locks available" acked; do
	grep -qF -- "$word" <<<"$said" || fail "locks: no '$word' in: $said"
done
[ "$(grep -c 'p3\[' <<<"$said")" = 1 ] || fail "locks: not one line: $said"
said=$("$meet" member 4000 2>&1 </dev/null) || fail "after want of locks: $said"

said=$("$yod" -sz 1 --domain a/b true 2>&1)
[ $? = 2 ] && grep -q "'a/b' is no name" <<<"$said" || fail "yod: $said"
[ ! -e "$base/$name" ] || fail "$base/$name is left: $(ls "$base/$name")"

# none: alone, and without files.
said=$(PTL3_DOMAIN=none "$meet" member 4000 </dev/null) || fail "none: $said"
echo "# tried: 14 domains that must not be entered"
