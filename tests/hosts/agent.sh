#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: agent.sh host words...
# A remote shell for mpirun: the words are one line of a shell on that host.
host=$1
shift
exec "$(dirname "$0")/onhost.sh" "$host" bash -c "$*"
