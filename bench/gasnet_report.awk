# SPDX-License-Identifier: BSD-3-Clause
# Tables, bars, and data for plots, from the bars (lines with "|") and samples of gasnetfigures:
# round, figure, curve, bytes, ns of the median, ns of p99, ratio.  out is the directory.

# Sort v[1..n] in place.
function sort(v, n,   i, k, x) {
	for (i = 2; i <= n; i++) {
		x = v[i]
		for (k = i - 1; k >= 1 && v[k] > x; k--)
			v[k + 1] = v[k]
		v[k + 1] = x
	}
}

function median(v, n) {
	sort(v, n)
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

# Collect a field of a curve at a size in all rounds into v; return their number.
function rounds_of(table, figure, curve, bytes,   r, n) {
	n = 0
	for (r = 1; r <= rounds; r++)
		if ((r, figure, curve, bytes) in table)
			v[++n] = table[r, figure, curve, bytes]
	return n
}

function median_of(table, figure, curve, bytes,   n) {
	n = rounds_of(table, figure, curve, bytes)
	return n ? median(v, n) : 0
}

# Return the median of the rounds' ratios of times, 0 if no round has both.  Bare Portals is in
# the same job as its other side, so gasnetperf has formed the ratio, that of its turns.
function ratio_of(figure, a, b, bytes,   r, n) {
	n = 0
	for (r = 1; r <= rounds; r++) {
		if (!((r, figure, a, bytes) in p50) || !((r, figure, b, bytes) in p50))
			continue
		v[++n] = b ~ /bare/ ? own[r, figure, b, bytes] : \
			p50[r, figure, a, bytes] / p50[r, figure, b, bytes]
	}
	return n ? median(v, n) : 0
}

function is_rate(figure, curve) {
	return (figure == 3 || figure == 5) && curve !~ /bind/
}

function unit_of(figure, curve) {
	return curve ~ /bind/ ? "ns" : is_rate(figure, curve) ? "MB/s" : "us"
}

# Return a time in the unit of the curve; M is 2^20.
function in_unit(figure, curve, bytes, ns) {
	if (!ns)
		return 0
	return curve ~ /bind/ ? ns : is_rate(figure, curve) ? bytes / ns * 1e9 / 1048576 : ns / 1000
}

function print_figure(figure,   c, s, name, bytes, m) {
	printf "\nfigure %d\n%10s %22s %12s %12s %5s\n", figure, "bytes", "way", "median", "p99", ""
	for (s = 1; s <= sizes[figure]; s++)
		for (c = 1; c <= curves[figure]; c++) {
			name = curve[figure, c]
			bytes = size[figure, s]
			m = median_of(p50, figure, name, bytes)
			if (!m)
				continue
			printf "%10d %22s %12.3f %12.3f %s\n", bytes, name,
				in_unit(figure, name, bytes, m), in_unit(figure, name, bytes,
				median_of(p99, figure, name, bytes)), unit_of(figure, name)
		}
}

# Write the data of the plots: bytes, median and quartiles of the rounds.
function write_data(figure,   c, s, n, name, bytes, m, file) {
	for (c = 1; c <= curves[figure]; c++) {
		name = curve[figure, c]
		file = out "/figure" figure "." name ".dat"
		for (s = 1; s <= sizes[figure]; s++) {
			bytes = size[figure, s]
			n = rounds_of(p50, figure, name, bytes)
			if (!n || !bytes || name ~ /bind/)
				continue
			m = median(v, n)
			printf "%d %g %g %g\n", bytes, in_unit(figure, name, bytes, m),
				in_unit(figure, name, bytes, v[int((n + 3) / 4)]),
				in_unit(figure, name, bytes, v[n + 1 - int((n + 3) / 4)]) >file
		}
		close(file)
	}
}

# The size of the bar's range whose ratio is nearest to failing decides.
function judge(line,   f, s, bytes, r, worst, at) {
	split(line, f, "|")
	worst = 0
	for (s = 1; s <= sizes[f[2]]; s++) {
		bytes = size[f[2], s]
		if (bytes + 0 < f[5] + 0 || bytes + 0 > f[6] + 0)
			continue
		r = ratio_of(f[2], f[3], f[4], bytes)
		if (r && f[8] == "min")
			r = 1 / r
		if (r && (!worst || (f[8] == "min" ? r < worst : r > worst))) {
			worst = r
			at = bytes
		}
	}
	if (!worst) {
		printf "%s: not measured\n", f[1]
		return
	}
	printf "%s: %d B, %.3f and %.3f %s, ratio %.3f, bar %s %s: %s\n", f[1], at,
		in_unit(f[2], f[3], at, median_of(p50, f[2], f[3], at)),
		in_unit(f[2], f[4], at, median_of(p50, f[2], f[4], at)), unit_of(f[2], f[3]),
		worst, f[8] == "min" ? ">=" : "<=", f[7],
		(f[8] == "min" ? worst >= f[7] : worst <= f[7]) ? "holds" : "missed"
}

# The greatest gain of firehose over temporary descriptors, as the paper states it.
function compare_sides(   s, bytes, gain, best, at, last) {
	best = -1
	for (s = 1; s <= sizes[5]; s++) {
		bytes = size[5, s]
		last = ratio_of(5, "tmpmd_put_bulk", "firehose_put_bulk", bytes)
		if (last && (best < 0 || last > best)) {
			best = last
			at = bytes
		}
	}
	if (best > 0)
		printf "firehose over tmpmd (figure 5): %+.1f %% at most, at %d B; %+.1f %% at %d B; " \
			"the paper has +8.5 %% at 8192 B, +3.5 %% at last; bind and unlink %.0f ns\n",
			100 * (best - 1), at, 100 * (last - 1), bytes,
			median_of(p50, 5, "all_bind_unlink", at)
}

/\|/ {
	bar[++bars] = $0
	next
}

{
	rounds = $1 > rounds ? $1 : rounds
	p50[$1, $2, $3, $4] = $5
	p99[$1, $2, $3, $4] = $6
	own[$1, $2, $3, $4] = $7
	if (!(($2, $3) in seen_curve)) {
		seen_curve[$2, $3] = 1
		curve[$2, ++curves[$2]] = $3
	}
	if (!(($2, "size", $4) in seen_size)) {
		seen_size[$2, "size", $4] = 1
		size[$2, ++sizes[$2]] = $4
	}
}

END {
	for (figure = 2; figure <= 5; figure++)
		if (curves[figure]) {
			print_figure(figure)
			write_data(figure)
		}
	print ""
	for (i = 1; i <= bars; i++)
		judge(bar[i])
	compare_sides()
}
