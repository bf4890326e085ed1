# SPDX-License-Identifier: BSD-3-Clause
# The charts of compare, with gnuplot.  Read by compare.

# libportals has one strong colour, the machine's own limits are grey, the others are
# pale.
pale=('#8da0cb' '#66a61e' '#e6ab02' '#a6761d' '#40a0a0' '#b294c7' '#5090d0' '#a0c060' '#c090a0'
	'#607090' '#d0a070')
style_of() { # who, number
	case $1 in
	ours) echo "lc rgb '#d00000' lw 3 pt 7" ;;
	ours_*) echo "lc rgb '#d00000' lw 3 dt 2 pt 6" ;;
	raw*) echo "lc rgb '#606060' lw 1 pt $(($2 + 1))" ;;
	*) echo "lc rgb '${pale[$2 % ${#pale[@]}]}' lw 1 pt $(($2 + 1))" ;;
	esac
}
name_of() {
	case $1 in
	ours) echo libportals ;;
	ours_heap) echo "libportals, shared heap" ;;
	ours_*) echo "libportals, ${1#ours_}" ;;
	*) tr _ ' ' <<<"$1" ;;
	esac
}
byte_tics="('8' 8, '64' 64, '256' 256, '1K' 1024, '4K' 4096, '16K' 16384, '64K' 65536,
	'256K' 262144, '1M' 1048576, '4M' 4194304)"

# plot file title x-label y-label test log-axes base
plot() {
	local lines=() f who tics=
	[[ $4 != million* && $4 != us ]] || tics="set format y '%g'"
	[[ $3 != bytes ]] || tics+=$'\n'"set xtics ${byte_tics//$'\n'/}"
	for f in "$out/$5".*.dat; do
		[[ -s $f ]] || continue
		f=${f##*/}
		who=$(cut -d. -f2 <<<"$f")
		lines+=("'$f' using 1:2:3:4 with yerrorlines $(style_of "$who" ${#lines[@]}) \
title '$(name_of "$who")'")
	done
	((${#lines[@]})) || return 0
	(cd "$out" && gnuplot <<-END
		set terminal svg size 860,500 noenhanced font 'sans,12' background 'white'
		set output '$1.svg'
		set format '%.0s%c'
		$tics
		set title '$2'
		set xlabel '$3'
		set ylabel '$4'
		set key outside right noenhanced
		set grid
		set logscale $6
		$([[ $6 = *x* ]] && echo "set logscale x $7")
		plot $(IFS=,; echo "${lines[*]}")
	END
	) || failed=1
}

# Rates are few: one bar for each program.
plot_rate() {
	local f who colour
	for f in "$out"/rate.*.dat; do
		[[ -s $f ]] || return 0
		who=$(basename "$f" .dat | cut -d. -f2)
		case $who in
		ours*) colour=0xd00000 ;;
		raw*) colour=0x909090 ;;
		*) colour=0x8da0cb ;;
		esac
		echo "\"$(name_of "$who")\" $(head -n 1 "$f") $colour"
	done >"$work/rates"
	gnuplot <<-END || failed=1
		set terminal svg size 860,500 noenhanced font 'sans,12' background 'white'
		set output '$out/rate.svg'
		set title '8-byte messages, window 64, one pair'
		set ylabel 'million messages a second'
		set style fill solid 0.6
		set boxwidth 0.6
		set yrange [0:*]
		set grid y
		set xtics font ',10'
		plot '$work/rates' using 0:3:6:xtic(1) with boxes lc rgb variable notitle, \
			'' using 0:3:4:5 with yerrorbars lc black notitle
	END
}

draw() {
	plot latency 'Ping-pong: half a round trip' bytes ns latency xy 2
	plot bandwidth 'One way, window 64' bytes 'MB/s' stream xy 2
	plot match 'Cost of a message behind a list' 'entries before it' ns match xy 10
	plot oversubscription 'All-to-all, 64 bytes' nodes 'million messages a second' \
		alltoall xy 2
	plot_rate
}
