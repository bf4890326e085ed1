#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: local.sh host line
# A remote shell for yod that runs the line on this machine.  It stays the parent of the
# agent, as sshd does.
[ $# = 2 ] || exit 2
exec 3<&0
sh -c "$2" <&3 3<&- &
exec 3<&-
wait $!
