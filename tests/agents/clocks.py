#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""clocks.py FILE {HOST AHEAD_US}...: does tracedump estimate the clocks of these hosts right?

The first host is the one by whose clock times are.  Each estimate is right within its own
error, which is less than a second, and all messages are taken after they were sent.
"""
import re
import sys


def check(truth, *what):
    if not truth:
        sys.exit("clocks.py: " + " ".join(map(str, what)))


with open(sys.argv[1], encoding="ascii") as text:
    lines = text.read().splitlines()
hosts = dict(zip(sys.argv[2::2], map(float, sys.argv[3::2])))

for host, ahead in list(hosts.items())[1:]:
    line = next((line for line in lines if line.startswith("# ") and f".{host}.trace:" in line), "")
    got = re.search(r"clock ([-+][0-9.]+) us, error ([0-9.]+) us", line)
    check(got, "no estimate for", host, "in", repr(line))
    check(abs(float(got[1]) - ahead) <= float(got[2]) + 1 and float(got[2]) < 1e6,
          "the estimate for", host, "is wrong:", line)

sent, taken = {}, 0
for line in lines:
    ends = re.match(r" *([0-9.]+): ([0-9]+):.* (send|take) [a-z]+ (to|from) ([0-9]+) #(b?[0-9]+)", line)
    if not ends:
        continue
    node, peer = int(ends[2]), int(ends[5])
    if ends[3] == "send":
        sent[node, peer, ends[6]] = float(ends[1])
    elif node // 2 != peer // 2:
        at = sent.get((peer, node, ends[6]))
        check(at is not None and at < float(ends[1]), "taken before it was sent:", line)
        taken += 1
check(taken > 20, "only", taken, "messages between hosts")
