#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The folders that a folder may include: shm <- nic <- lib, shm <- launcher; programs
# include the public headers only; the other headers of nic/ and lib/ are private, except for tests.
. "${0%/*}/sources.sh"

include='^#[ 	]*include[ 	]*'
files_of() {
	sources '*.c' '*.h' '*.cc' | grep "^$1/" | grep -v "^${without:-none}/"
}

# allow dir pattern [own]: files of dir include in quotes only names that match the
# pattern, or lie beside them
allow() {
	# shellcheck disable=SC2046
	while read -r file header; do
		[ -z "$file" ] && continue # none is forbidden
		[ "$3" = own ] && [ -f "${file%/*}/$header" ] && continue
		complain "$file includes \"$header\""
	done <<EOF
$(sed -n "s/$include\"\([^\"]*\)\".*/\1/p;T;F" $(files_of "$1") | paste - - |
		ALLOWED="^($2)\$" awk '$1 !~ ENVIRON["ALLOWED"] { print $2, $1 }')
EOF
}

# forbid dir pattern: no file of dir includes that in angle brackets
forbid() {
	grep -nE "$include<($2)>" $(files_of "$1") /dev/null &&
		complain "$1 includes what it must not know"
}

public='(portals3(_runtime|x)?|cnos_mpi_os|p3nal_tcp|cci)\.h'
allow shm 'shm/[a-z]+\.h'
allow nic "(nic|shm)(/[a-z_]+)+\.h|$public"
allow lib "(lib|shm)(/[a-z]+)+\.h|nic/(nic|cci|streams)\.h|$public|(internal|atomics|prov)\.h"
allow lib/gasnet '' own # the other headers of lib/gasnet are public ones
allow lib/ofi 'prov\.h' # and of Portals and libfabric the public headers
forbid lib/ofi 'portals3_runtime\.h|cci\.h|cnos.*|p3.*|portals/.*|gasnet.*'
without=launcher/info
allow launcher '(launcher|shm)(/[a-z]+)+\.h'
without=
# portals-info opens an interface, and tells the limits of the movers.
allow launcher/info "(launcher|shm)(/[a-z]+)+\.h|nic/(proto|xfer)/[a-z]+\.h|$public"
allow include '(\.\./)*(p3rt/|p3api/|p3/)?[a-z0-9_]+\.h' # other names
allow examples "$public" own
allow bench "$public" own
forbid shm 'portals.*|p3rt/.*'
forbid launcher 'portals.*|p3rt/.*'
forbid include 'portals/.*|p3rt/.*|([^ps]|s[^y]|sy[^s]).*/.*'

[ -n "$(sources '*.h' | grep '^shm/')" ] || complain "no headers in $root/shm"
exit $status
