# SPDX-License-Identifier: BSD-3-Clause
# libfabric: fi_pingpong over its provider of shared memory.  Read by compare.

libfabric_there() { have fi_pingpong && fi_info -p shm >/dev/null 2>&1; }
libfabric_package() { echo "libfabric-bin"; }
libfabric_tests() { echo latency; }

libfabric_run() {
	local bytes n
	want latency || return 0
	for bytes in ${sizes//,/ }; do
		n=$(iterations "$bytes")
		served fi_pingpong -p shm -e rdm -I "$n" -S "$bytes" -- fi_pingpong -p shm -e \
			rdm -I "$n" -S "$bytes" 127.0.0.1 |
			awk -v x="$bytes" '$1 ~ /^[0-9]/ && NF > 6 {
				printf "libfabric\tlatency\t%s\t%g\n", x, $7 * 1000; n++ }
			END { exit !n }' || return 1
	done
}
