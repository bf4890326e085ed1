# SPDX-License-Identifier: BSD-3-Clause
# Rows beside busy siblings: each node has the other thread of its core spinning.  Read by
# compare, and by its test of the choice of CPUs.

# cpu_list list: its numbers, a line each; 0-2,5 is 0 1 2 5
cpu_list() {
	tr , '\n' <<<"$1" | awk -F- '
		NF == 2 { for (i = $1; i <= $2; i++) print i } NF == 1 && $1 != "" { print }'
}

# core_of topology cpu: the threads of its core, a line each
core_of() {
	local file=$1/cpu$2/topology/thread_siblings_list
	[[ ! -r $file ]] || cpu_list "$(<"$file")"
}

# sibling_of topology cpu cpus: another thread of the core, if it is one of these
sibling_of() {
	local other
	for other in $(core_of "$1" "$2"); do
		((other != $2)) && grep -qx "$other" <<<"$3" && echo "$other" && return
	done
	return 1
}

# siblings topology cpus: "A,B C,D", nodes on A and B, and C and D beside them on two
# cores; status 1 if the machine has no such cores
siblings() {
	local cpu other all used=, nodes=() beside=()
	all=$(cpu_list "$2")
	for cpu in $all; do
		[[ $used != *,$cpu,* ]] && other=$(sibling_of "$1" "$cpu" "$all") || continue
		nodes+=("$cpu") beside+=("$other")
		used+=$(core_of "$1" "$cpu" | paste -sd,),
	done
	((${#nodes[@]} > 1)) && echo "${nodes[0]},${nodes[1]} ${beside[0]},${beside[1]}"
}

spinners=()

# spin_beside cpus: one busy thread on each; they end with compare at the latest
spin_beside() {
	local cpu
	for cpu in $(cpu_list "$1"); do
		taskset -c "$cpu" bash -c '
			while kill -0 "$1" 2>/dev/null; do
				for ((i = 0; i < 100000; i++)); do :; done
			done' spinner $$ &
		spinners+=($!)
	done
}

spin_no_more() {
	((${#spinners[@]})) || return 0
	kill "${spinners[@]}" 2>/dev/null
	wait "${spinners[@]}" 2>/dev/null
	spinners=()
}

# beside_busy nodes function: its 8-byte lines, with busy_ before the test
beside_busy() {
	(
		taskset -cp "$1" "$BASHPID" >/dev/null || exit 1
		first_cpu=${1%,*} second_cpu=${1#*,} sizes=8 am_sizes=8
		wanted=$(common "$wanted" latency,rate,ack,get,am)
		"$2"
	) | sed 's/\t/\tbusy_/'
}
