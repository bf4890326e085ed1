# SPDX-License-Identifier: BSD-3-Clause
# Many descriptors under way between processes, of which the kernel lets a user without
# privileges have no more than `ulimit -n` (unix(7)).  For scripts with a folder $dir, and
# with patience.sh.

unprivileged='' # a prefix for commands
[ "$(id -u)" != 0 ] || unprivileged="setpriv --bounding-set=-sys_admin,-sys_resource"

# 253 are under way until the process $holder ends, as it does with this script.
hold_descriptors() {
	python3 -c 'import array, os, socket, time
parent = os.getppid()
ours, theirs = socket.socketpair()
while True:
    try:
        ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 253))])
        break
    except OSError:  # others have too many
        time.sleep(0.1)
print("held", flush=True)
while os.getppid() == parent:
    time.sleep(0.05)' >"$dir/holder" &
	holder=$!
	patiently grep -q held "$dir/holder"
}
