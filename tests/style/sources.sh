# SPDX-License-Identifier: BSD-3-Clause
# Read by the scripts of this directory: $1 is the source tree.
root=${1:?source tree}
cd "$root" || exit 1
status=0

# Files of the tree, not of a binary directory inside it: sources 'pattern'... in dirs
sources() {
	find .ci bench cmake examples include launcher lib nic shm tests \
		-type f \( -name "$1" ${2:+-o -name "$2"} ${3:+-o -name "$3"} \) \
		2>/dev/null | sort
}

complain() {
	printf '%s\n' "$*"
	status=1
}
