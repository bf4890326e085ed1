#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: onhost.sh host command...
# Run a command on a host of hosts.sh: in its network, with its host name, and with
# semaphores and shared memory of its own.
exec ip netns exec "$1" unshare --uts --ipc --mount --propagation private bash -c \
	'hostname "$0"; mount -t tmpfs tmpfs /dev/shm; exec "$@"' "$@"
