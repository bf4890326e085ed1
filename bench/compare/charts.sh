# SPDX-License-Identifier: BSD-3-Clause
# The charts of compare, with gnuplot.  Read by compare.

charts_dir=$(dirname "${BASH_SOURCE[0]}")

# colour_of who: that of its library.
colour_of() {
	awk -v who="$(name_of "$1")" '/^[^#]/ && index(tolower(who), $1) == 1 && length($1) > best {
		best = length($1)
		colour = $2
	}
	END { print best ? colour : "#c090a0" }' "$charts_dir/colours"
}
style_of() { # who, number
	local width=1 more="pt $(($2 + 1))"
	case $1 in
	ours) width=3 more='pt 7' ;;
	ours_*) width=3 more='dt 2 pt 6' ;;
	esac
	echo "lc rgb '$(colour_of "$1")' lw $width $more"
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
		colour=$(colour_of "$who")
		echo "\"$(name_of "$who")\" $(head -n 1 "$f") 0x${colour#'#'}"
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
