#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check the results of compare --quick: rows.py PEERS DIR

Each pattern has a row of libportals and of each of PEERS that has the pattern and is
installed; its figures are numbers of a plausible size, and agree with samples.tsv; each
acceptance line is measured exactly if its two rows are there; a peer that is left out has
a line that says so.  No check depends on speed.
"""
import json
import pathlib
import shutil
import statistics
import sys

EVERY = {"latency": (8, 65536), "stream": (8, 65536), "rate": (8,), "match": (1, 100),
         "alltoall": (2, 4), "eqget": (1,), "eqpoll": (3,), "ack": (8,), "get": (8,),
         "am": (8, 64), "queues": (1, 3, 8), "threads": (2,)}
BUSY = ("latency", "rate", "ack", "get", "am")
UCX = ("latency", "stream", "rate", "eqget", "ack", "get", "am")
HAS = {"openmpi": tuple(EVERY), "mpich": tuple(EVERY), "ucx": UCX, "ucx-sysv": UCX,
       "old": tuple(EVERY), "ours": tuple(EVERY)}
RAW = {"raw_line": {"latency": (8,), "ack": (8,), "get": (8,)},
       "raw_sketch": {"latency": (8,), "rate": (8,), "alltoall": (2, 4), "eqget": (1,),
                      "ack": (8,), "get": (8,), "am": (8, 64)},
       "raw_ring": {"rate": (8,)}, "raw_pipe": {"stream": (8, 65536)},
       "raw_cma": {"latency": (8, 65536), "stream": (8, 65536)},
       "raw_memcpy": {"stream": (8, 65536)}}
NEEDS = {"openmpi": ("mpicc.openmpi", "mpirun.openmpi"), "mpich": ("mpicc.mpich", "mpirun.mpich"),
         "ucx": ("ucx_perftest",), "ucx-sysv": ("ucx_perftest",)}
RATES = ("stream", "rate", "alltoall", "threads")
LINES = 9

bad = []


def expected(peers, left_out):
    """Return the rows of these peers: (test, x, who)."""
    rows = set()
    for who in ["ours"] + peers:
        lacks = [line for line in left_out if f" of {who}" in line or f" and {who}:" in line]
        missing = lacks[0].split(" ", 1)[0].split(",") if lacks else []
        rows |= {(t, x, who) for t in HAS.get(who, ()) if t not in missing for x in EVERY[t]}
    if "raw" in peers:
        rows |= {(t, x, who) for who, of in RAW.items() for t in of for x in of[t]}
    if not any(line.startswith("busy:") for line in left_out):
        rows |= {("busy_" + t, 8, who) for t, x, who in rows if t in BUSY and x == 8}
    return rows


def check_left_out(peers, left_out):
    """Return the peers that are there."""
    there = []
    for peer in peers:
        gone = any(line.startswith(peer + ":") for line in left_out)
        installed = all(shutil.which(p) for p in NEEDS.get(peer, ()))
        if gone and installed and peer in ("ucx", "ucx-sysv"):
            bad.append(f"{peer} is left out, but installed")
        if not gone:
            there.append(peer)
    return there


def speedup(test, ours, other):
    return ours / other if test.replace("busy_", "") in RATES else other / ours


def read_samples(path):
    """Return the values by test, x, who, and there by round and slot."""
    values = {}
    for line in path.read_text().splitlines():
        rnd, slot, who, test, x, value = line.split("\t")
        values.setdefault((test, int(x), who), {})[int(rnd), int(slot)] = float(value)
    return values


def near(a, b):
    return abs(a - b) <= 1e-4 * max(abs(a), abs(b))


def check_row(row, values):
    key = row["test"], int(row["x"]), row["who"]
    mine = values.get(key, {})
    high = 1e6 if row["test"].replace("busy_", "") in RATES else 6e10
    if not row["unit"]:
        bad.append(f"{key}: no unit")
    if not 1e-6 < row["p10"] <= row["median"] <= row["p90"] < high:
        bad.append(f"{key}: implausible: {row}")
    if len(mine) != row["samples"] or not near(row["median"], statistics.median(mine.values() or [0])):
        bad.append(f"{key}: differs from samples.tsv: {row}")
    ours = values.get(key[:2] + ("ours",), {})
    both = [s for s in mine if s in ours]
    if key[2] != "ours" and "_heap" not in key[2] and not key[2].startswith("old_") and both:
        ratio = statistics.median(speedup(key[0], ours[s], mine[s]) for s in both)
        if row.get("pairs") != len(both) or not near(row["ratio_median"], ratio):
            bad.append(f"{key}: expected {len(both)} pairs, ratio {ratio}: {row}")


def check_line(line, values):
    test, x, who = line["test"], int(line["x"]), line["who"]
    ours, other = values.get((test, x, "ours"), {}), values.get((test, x, who), {})
    rounds = sorted({r for r, s in ours if (r, s) in other})
    if line["rounds"] != len(rounds):
        bad.append(f"{line['name']}: {line['rounds']} rounds; expected {len(rounds)}")
    if not rounds or bad:
        return
    pairs = []
    for rnd in rounds:
        slots = [s for s in ours if s[0] == rnd and s in other]
        pairs.append([statistics.median(v[s] for s in slots) for v in (ours, other)])
    ratios = [speedup(test, *p) for p in pairs]
    want = [statistics.median(ratios), min(ratios), max(ratios)]
    want += [statistics.median(p[i] for p in pairs) for i in (0, 1)]
    got = [line[key] for key in ("ratio", "min", "max", "ours", "other")]
    if not all(map(near, want, got)):
        bad.append(f"{line['name']}: {got}; expected {want}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[2])
    doc, text = json.loads((out / "compare.json").read_text()), (out / "compare.txt").read_text()
    values = read_samples(out / "samples.tsv")
    there = check_left_out(sys.argv[1].split(","), doc["left_out"])
    # A row of an MPICH that spins while nodes share CPUs says so in its name (mpi/run.sh).
    found = {(r["test"], int(r["x"]), r["who"].removesuffix("-spins")) for r in doc["results"]}
    bad.extend(f"no row: {key}" for key in sorted(expected(there, doc["left_out"]) - found))
    for row in doc["results"]:
        check_row(row, values)
    for line in doc["acceptance"]:
        check_line(line, values)
    names = [line["name"] for line in doc["acceptance"]]
    if len(set(names)) != LINES:
        bad.append(f"{len(set(names))} acceptance lines; expected {LINES}")
    bad.extend(f"not in compare.txt: {t}" for t in names + doc["left_out"] if t not in text)
    if bad:
        sys.exit("\n".join(bad))
    print(f"{len(found)} rows, {len(names)} acceptance lines")


if __name__ == "__main__":
    main()
