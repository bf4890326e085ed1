#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# No call is a cancellation point: cancellation.sh libportals.so.  A thread that libc
# ends in the middle of a call keeps the lease for ever.  The check walks the call
# graph of the disassembled library, from the functions that programs call, those that
# run under the lease (those of the rooms below, p3_job_ask, p3_job_meet, p3_job_hold) and
# those in tables of functions, and reports each way to a function of libc that POSIX makes
# a cancellation point.  It does not walk into functions that call pthread_setcancelstate: they disable
# cancellation for their whole body (p3_caller_save of lib/node/call.h).  Functions that they
# name by address only (threads that start, conf.ask) are not walked either, so a
# callback that runs later under the lease must be listed as a root here.
lib=${1:?library}
rooms='ahead|answer|close|command_(execute|take_posted)|dump|eq|event|exchange|hold|ids|join|lease|looks|lose|match|md|me|mirror|ni_(ac_entry|check|is|of_handle|open|status)|obj|pass|peer|pending|pull|region|reply|rx|slice|source|span|swap|table|tx|wake|why|xfer'
points='accept|accept4|clock_nanosleep|close|closedir|connect|creat|epoll_p?wait2?|fallocate(64)?|fclose|fdatasync|fflush|fgets|fopen(64)?|fprintf|fputs|fread|fscanf|__isoc[0-9]+_fscanf|fsync|fwrite|getrandom|msgrcv|msgsnd|nanosleep|open(64)?|openat(64)?|opendir|pause|poll|ppoll|pread(64)?|preadv(64)?|printf|__f?printf_chk|pselect|pthread_cond_clockwait|pthread_cond_timedwait|pthread_cond_wait|pthread_join|pthread_testcancel|puts|pwrite(64)?|pwritev(64)?|read|readdir(64)?|readv|recv|recvfrom|recvmmsg|recvmsg|select|sem_clockwait|sem_timedwait|sem_wait|send|sendmmsg|sendmsg|sendto|sigsuspend|sigtimedwait|sigwait|sigwaitinfo|sleep|syslog|system|usleep|v?dprintf|wait|wait4|waitid|waitpid|write|writev'

command -v objdump >/dev/null || {
	echo "skipped: no objdump"
	exit 77
}
{
	nm -D --defined-only "$lib" | sed 's/^/exported /'
	objdump -R "$lib" | sed -n 's/.*R_[A-Z0-9_]*_RELATIVE *\*ABS\*+0x/table /p'
	objdump -d --no-show-raw-insn "$lib"
} | awk -v points="^($points)\$" -v rooms="^p3_($rooms)(_|\$)" '
	function plain(hex) { sub(/^0+/, "", hex); return hex }
	$1 == "exported" { if ($3 ~ /^[Tt]$/) root[plain($2)] = 1; next }
	$1 == "table" { root[plain($2)] = 1; next }
	/^[0-9a-f]+ <.*>:$/ {
		at = plain($1)
		name[at] = substr($2, 2, length($2) - 3)
		if (name[at] ~ rooms || name[at] ~ /^p3_job_(ask|meet|hold)$/)
			root[at] = 1
		next
	}
	# A call, a jump, or an address that is taken: "... 1234 <name>" ends the line.
	/<[^+>]*>$/ {
		to = $(NF - 1)
		if (to !~ /^[0-9a-f]+$/ || to == at)
			next
		edge[at] = edge[at] " " to
		if ($NF ~ /^<pthread_setcancelstate[@>]/)
			safe[at] = 1
	}
	END {
		for (f in root)
			if (f in name && !safe[f]) {
				todo[++n] = f
				seen[f] = 1
			}
		for (i = 1; i <= n; i++) {
			f = todo[i]
			k = split(edge[f], next_of, " ")
			for (j = 1; j <= k; j++) {
				g = next_of[j]
				call = name[g]
				if (safe[g] || !(g in name) || (call ~ /@/ ? told[f, g]++ : seen[g]++))
					continue
				if (call !~ /@/) {
					from[g] = f
					todo[++n] = g
					continue
				}
				sub(/@.*/, "", call)
				imports++
				if (call !~ points)
					continue
				way = call
				for (h = f; h; h = from[h])
					way = name[h] " > " way
				print "a cancellation point is reached without pthread_setcancelstate: " way
				bad = 1
			}
		}
		if (n < 300 || imports < 10) {
			print n + 0 " functions and " imports + 0 " of libc found, expected many more: stripped?"
			bad = 1
		}
		exit bad
	}'
