#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: hosts.sh slurm.sh command...
# Run Slurm on all hosts while a command runs: slurmctld on the first one, slurmd on each.
# All files of Slurm, and those of munge, which knows its users, are in a directory of their
# own.  The command finds in its environment
#
#	SLURM_CONF	the configuration, as Slurm's programs read it
#
# Status 77: a program is missing, or the plugin of PMIx.
set -u
# shellcheck source=../support/patience.sh disable=SC1091
. "$(dirname "$0")/../support/patience.sh"
dir=$(mktemp -d) || exit 1
plugins=/usr/lib/$(uname -m)-linux-gnu/slurm-wlm
export SLURM_CONF=$dir/slurm.conf
daemons=()

skip() {
	echo "skipped: $*"
	rm -rf "$dir"
	exit 77
}

for tool in munged slurmctld slurmd srun scancel sinfo; do
	command -v $tool >/dev/null || skip "there is no $tool (Debian: slurm-wlm, munge)"
done
[ -e "$plugins/mpi_pmix.so" ] || skip "this Slurm has no $plugins/mpi_pmix.so"

no_job_is_left() {
	[ -z "$("$ONHOST" "${HOST_PREFIX}1" squeue -h 2>/dev/null)" ]
}

no_daemon_is_left() {
	! kill -0 "${daemons[@]}" 2>/dev/null
}

# End the daemons when no job is left.  A daemon whose job has just ended may not hear SIGTERM.
end() {
	patiently no_job_is_left
	kill "${daemons[@]}" 2>/dev/null
	P3_WAIT=3 patiently no_daemon_is_left
	kill -9 "${daemons[@]}" 2>/dev/null
	wait "${daemons[@]}" 2>/dev/null
	rm -rf "$dir"
}
trap end EXIT
trap 'exit 143' TERM INT HUP

start() { # name command...
	local log=$dir/$1.log
	shift
	"$@" >"$log" 2>&1 </dev/null &
	daemons+=($!)
}

fail() {
	tail -n 20 "$dir"/*.log
	echo "$*"
	exit 1
}

configure() {
	local host n=0
	cat <<-END
		ClusterName=test
		SlurmctldHost=${HOST_PREFIX}1(10.213.77.1)
		SlurmUser=root
		SlurmdUser=root
		AuthInfo=socket=$dir/munge.socket
		StateSaveLocation=$dir/state
		SlurmdSpoolDir=$dir/spool.%n
		SlurmctldPidFile=$dir/slurmctld.pid
		SlurmdPidFile=$dir/slurmd.%n.pid
		PluginDir=$plugins
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		SelectType=select/cons_tres
		SwitchType=switch/none
		MpiDefault=none
		SlurmdLogFile=$dir/slurmd.%n.log
		ReturnToService=2
		KillWait=30
		MessageTimeout=100
		SlurmdParameters=config_overrides
	END
	for host in $HOSTS; do
		n=$((n + 1))
		echo "NodeName=$host NodeAddr=10.213.77.$n CPUs=2 State=UNKNOWN"
	done
	echo "PartitionName=all Nodes=ALL Default=YES State=UP"
}

chmod 755 "$dir"
mkdir "$dir/state"
configure >"$SLURM_CONF"
echo CgroupPlugin=cgroup/v1 >"$dir/cgroup.conf" # which, unlike v2, needs none to start
echo PMIxCliTmpDirBase=/dev/shm >"$dir/mpi.conf" # which each host has of its own
(umask 077 && head -c 128 /dev/urandom >"$dir/munge.key")
start munged munged --foreground --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" \
	--pid-file="$dir/munged.pid" --seed-file="$dir/munge.seed" --log-file="$dir/munged.log"
until [ -S "$dir/munge.socket" ]; do
	kill -0 "${daemons[0]}" 2>/dev/null || fail "munged has ended"
	sleep 0.05
done
start slurmctld "$ONHOST" "${HOST_PREFIX}1" slurmctld -D -i
for host in $HOSTS; do
	mkdir "$dir/spool.$host"
	start "start.$host" "$ONHOST" "$host" slurmd -D
done

nodes_are_idle() {
	[ "$("$ONHOST" "${HOST_PREFIX}1" sinfo -h -t idle -o %D 2>/dev/null)" = 3 ]
}
patiently nodes_are_idle || {
	"$ONHOST" "${HOST_PREFIX}1" sinfo
	fail "Slurm's nodes are not idle"
}
"$@"
