#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each message of yod has a case that provokes it: for every format of p3_say() and its
# like in launcher/, tests/mp/yod_errors.txt has as many lines of that form as the code
# has such calls.  Formats that only pass other texts on do not count.
. "${0%/*}/sources.sh"

perl - $(sources '*.c' | grep '^launcher/' | grep -v '/\(look\|ptl[a-z]*\)\.c$') <<'EOP' || status=1
use strict;
my $string = qr/"(?:[^"\\]|\\.)*"/;
my (%at, %places);
for my $file (@ARGV) {
	open my $in, '<', $file or die "$file: $!";
	my $text = do { local $/; <$in> };
	while ($text =~ /\b(?:p3_say|OPT_NO|conf\.say|p3_rdv_breach|(?:\w+_)?say_cannot)\s*\((?:\s*[ri]\s*,)*\s*
			((?:$string|PRI\w+|P3_\w+|\s)+)/gx) {
		my $format = $1;
		$format =~ s/(PRI\w+|P3_\w+)/"d"/g;
		$format = join '', map { substr $_, 1, -1 } $format =~ /$string/g;
		$format =~ s/\\(.)/$1/g;
		my $words = $format =~ s/%[^a-z%]*[a-z]+//gr;
		next if $words !~ /\w{3}/;
		my $look = join '.+', map { quotemeta } split /%[^a-z%]*(?:ll|z)?[a-z]/, $format, -1;
		$at{$look} = "$file: $format";
		$places{$look}++;
	}
}
open my $table, '<', 'tests/mp/yod_errors.txt' or die $!;
my @said = grep { /^(err|out): yod: / } <$table>;
my ($bad, $n) = (0, 0);
for my $look (sort { $at{$a} cmp $at{$b} } keys %at) {
	my $seen = grep { /$look/ } @said;
	$n += $places{$look};
	next if $seen >= $places{$look};
	print "$at{$look}: $places{$look} say it, tests/mp/yod_errors.txt provokes $seen\n";
	$bad = 1;
}
$n > 40 or print "only $n messages found in launcher/\n" and $bad = 1;
exit $bad;
EOP
exit $status
