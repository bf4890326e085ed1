# SPDX-License-Identifier: BSD-3-Clause
# Writes the blocks ```c file=NAME of a page to DIR/NAME: awk -v out=DIR -f tangle.awk page
# Lines keep their numbers, for compilers' messages; with -v plain=1 they do not.
/^```c file=/ {
	name = $2
	sub(/file=/, "", name)
	if (!plain)
		print "#line " FNR + 1 " \"" FILENAME "\"" > (out "/" name)
	writing = 1
	next
}
/^```/ { writing = 0 }
writing { print > (out "/" name) }
