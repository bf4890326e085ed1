#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks of the sources as text; each function is one.  usage: code.sh NAME ROOT
what=$1
shift
. "${0%/*}/sources.sh"

# shm/atomics.h alone includes <stdatomic.h> and has stand-alone fences.  Benches, examples
# and GASNet's tests are programs that do not see it; the GASNet libraries, which use public headers
# only, have their own file, and gasnet_tools.h offers fences to programs.
atomics() {
	only=shm/atomics.h
	others="$only|lib/gasnet/atomics\.h|include/gasnet_tools\.h"
	word='[<"]stdatomic\.h|atomic_thread_fence|__sync_|__atomic_[a-z]|[^a-z][mls]fence'

	# shellcheck disable=SC2046
	lines=$(grep -nE "$word" $(sources '*.c' '*.h' '*.cc' | grep -vxE "$others|(bench|examples|tests/gasnet)/.*")) &&
		complain "only in $only: $lines"
	grep -q '<stdatomic.h>' $only || complain "$only does not include <stdatomic.h>"
	grep -q 'atomic_thread_fence' $only || complain "$only has no fence"
}

# C files are as clang-format leaves them.
format() {
	format=${CLANG_FORMAT:-clang-format}

	command -v "$format" >/dev/null || {
		echo "skipped: no $format"
		exit 77
	}
	for file in $(sources '*.c' '*.h' | xargs -P 4 -n 16 "$format" --dry-run -Werror 2>&1 |
		sed -nE 's/^([^: ]+):[0-9]+:[0-9]+: error:.*/\1/p' | sort -u); do
		complain "$file: differs from $format in" \
			"$("$format" "$file" | diff "$file" - | grep -c '^[<0-9]') lines"
	done
}

# The folders that a folder may include: shm <- nic <- lib, shm <- launcher; programs
# include the public headers only; the other headers of nic/ and lib/ are private, except for tests.
include_arrows() {
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
	allow launcher/info "(launcher|shm)(/[a-z]+)+\.h|nic/xfer/movers\.h|$public"
	allow include '(\.\./)*(p3rt/|p3api/|p3/)?[a-z0-9_]+\.h' # other names
	allow examples "$public" own
	allow bench "$public|launcher/tools/options\.h" own
	forbid shm 'portals.*|p3rt/.*'
	forbid launcher 'portals.*|p3rt/.*'
	forbid include 'portals/.*|p3rt/.*|([^ps]|s[^y]|sy[^s]).*/.*'

	[ -n "$(sources '*.h' | grep '^shm/')" ] || complain "no headers in $root/shm"
}

# No line of code is wider than 90 columns, tabs being 8; no function outside of tests has
# more than 60 lines; no line of a document has more than 200 characters.
line_width() {
	said=$(sources '*.c' '*.h' '*.cc' | xargs awk '
		FNR == 1 { head = open = 0 }
		length > 90 || /\t/ && length > 90 - 7 * gsub(/\t/, "\t") {
			wide = 0
			for (i = 1; i <= length; i++)
				wide += substr($0, i, 1) == "\t" ? 8 - wide % 8 : 1
			if (wide > 90)
				print FILENAME ": too wide: " FNR " (" wide ")"
		}
		FILENAME ~ /^tests\// { next }
		/^[^\t #/}].*[^;]$/ && !head { head = FNR }
		/^{$/ { open = head }
		/^[ \t]*$/ && !open { head = 0 }
		/^}/ { head = 0 }
		/^}$/ {
			if (open && FNR - open > 59)
				print FILENAME ": functions of more than 60 lines: " open " (" FNR - open + 1 ")"
			open = 0
		}')
	[ -z "$said" ] || complain "$said"
	for doc in $(find README.md CONTRIBUTING.md NEWS.md docs examples -name '*.md'); do
		# Bytes of a character behind its first one do not count.
		wide=$(LC_ALL=C awk '{ gsub(/[\200-\277]/, "") } length > 200 { printf " %d (%d)", NR, length }' "$doc")
		[ -z "$wide" ] || complain "$doc: more than 200 characters:$wide"
	done
	[ -n "$(sources '*.c')" ] || complain "no sources in $root"
}

# Each ordering edge that the code names (LANE.1) is explained in docs/ordering.md, and
# each that is explained there is named in the code.
ordering_edges() {
	doc=docs/ordering.md
	name='\b[A-Z]{2,}\.[0-9]+\b'
	code=$(sources '*.c' '*.h' | grep -E '^(shm|nic|lib|launcher)/')
	cited() {
		grep -hoE "$name" $code | sort -u
	}

	[ -f $doc ] || complain "there is no $doc"
	[ -n "$(cited)" ] || complain "the code names no edge"
	for edge in $(cited); do
		grep -qE "\b${edge%.*}\.${edge#*.}\b" $doc 2>/dev/null ||
			complain "not explained in $doc: $edge, named in" \
				$(grep -lE "\b${edge%.*}\.${edge#*.}\b" $code)
	done
	for edge in $(grep -oE "$name" $doc 2>/dev/null | sort -u); do
		cited | grep -qx "${edge%.*}\.${edge#*.}" ||
			complain "explained in $doc, but named nowhere: $edge"
	done
}

$what
exit $status
