# SPDX-License-Identifier: BSD-3-Clause
# For peers whose program is a client and a server.  Read by compare.

# served server-command -- client-command: both pinned, the client tried until it works, or
# the server has ended.
# Call it in a pipeline.
served() {
	local server=()
	while [[ $1 != -- ]]; do
		server+=("$1")
		shift
	done
	shift
	$limit taskset -c "$second_cpu" "${server[@]}" >>"$log" 2>&1 &
	local child=$!
	trap 'kill "$child" 2>/dev/null' EXIT # of the subshell that this runs in
	local tries status=1
	# timeout gives 124, or 137: a client that hangs is not tried again.
	for ((tries = 0; tries < 60 && status && status != 124 && status != 137; tries++)); do
		sleep 0.3
		$limit taskset -c "$first_cpu" "$@" 2>>"$log" >"$work/client"
		status=$?
		kill -0 "$child" 2>/dev/null || break
	done
	((status)) && kill "$child" 2>/dev/null
	wait "$child" 2>/dev/null
	trap - EXIT
	cat "$work/client"
	return "$status"
}

# iterations bytes: of a ping-pong
iterations() {
	if [[ $scale = quick ]]; then
		echo 100
	elif (($1 <= 1024)); then
		echo 20000
	elif (($1 <= 65536)); then
		echo 5000
	else
		echo 500
	fi
}
