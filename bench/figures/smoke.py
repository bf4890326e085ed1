#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run a command with little work, and check what it has written:

    smoke.py compare BIN DIR PEERS [OPTION...]
    smoke.py papers BIN DIR
    smoke.py netpipe BIN DIR

compare: each pattern has a row of libportals and of each of PEERS that has the pattern and is installed; its
figures are numbers of a plausible size; each acceptance line is measured exactly if its two rows are there; a
peer that is left out has a line that says so.
papers: each figure and each table has a place on the page, and an answer to each of its questions, or a line
that says what is missing.  Without the library BIN/../ablation, its items have such a line.
netpipe: NetPIPE with its module runs with few sizes in both modes.  Its integrity check, which is for puts, needs
-I: it gives NetPIPE two buffers.  Skipped if the source is not there and cannot be fetched within half a minute.
Labels of pictures do not overlap, and each library has its color.  No check depends on speed.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parents[1]
LABELS = BENCH.parent / "tests/support/svg_labels.py"
sys.dont_write_bytecode = True
sys.path.insert(0, str(BENCH))

from figures import chart  # noqa: E402

bad = []


def check(holds, text):
    if not holds:
        bad.append(text)


def check_pictures(out, names, *options):
    for name in names:
        check((out / f"{name}.svg").is_file(), f"no picture: {name}")
    pictures = sorted(out.glob("*.svg"))
    if pictures and subprocess.run([LABELS, *options, *pictures], check=False).returncode:
        bad.append("pictures, see above")


def run(command, *words):
    """Return what a command says on stdout; end if it fails."""
    done = subprocess.run([BENCH / command, *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{command}: status {done.returncode}")
    return done.stdout


# ---- compare ----

EVERY = {"latency": (8, 65536), "stream": (8, 65536), "rate": (8,), "match": (1, 100),
         "alltoall": (2, 4), "eqget": (1,), "ack": (8,), "get": (8,), "am": (8, 64), "queues": (1, 3, 8),
         "threads": (2,)}
BUSY = ("latency", "rate", "ack", "get", "am")
UCX = ("latency", "stream", "rate", "eqget", "ack", "get", "am")
HAS = {"openmpi": EVERY, "mpich": EVERY, "ucx": UCX, "ucx-sysv": UCX, "old": EVERY, "ours": EVERY}
RAW = {"raw_line": ("latency", "ack", "get"),
       "raw_sketch": ("latency", "rate", "alltoall", "eqget", "ack", "get", "am"), "raw_ring": ("rate",),
       "raw_pipe": ("stream",), "raw_cma": ("latency", "stream"), "raw_memcpy": ("stream",)}
SHORT = ("raw_line", "raw_sketch")  # which have 8 bytes only
LINES = 9
PICTURES = ["latency", "bandwidth", "match", "oversubscription", "rate"]


def expected(peers, left_out):
    """Return the rows of these peers: (test, x, who)."""
    rows = set()
    for who in ["ours"] + peers:
        lacks = [line for line in left_out if f" of {who}" in line or f" and {who}:" in line]
        missing = lacks[0].split(" ", 1)[0].split(",") if lacks else []
        rows |= {(t, x, who) for t in HAS.get(who, ()) if t not in missing for x in EVERY[t]}
    if "raw" in peers:
        rows |= {(t, x, who) for who, of in RAW.items() for t in of for x in EVERY[t]
                 if who not in SHORT or t != "latency" or x == 8}
    if not any(line.startswith("busy:") for line in left_out):
        rows |= {("busy_" + t, 8, who) for t, x, who in rows if t in BUSY and x == 8}
    return rows


def check_row(row):
    key = row["test"], int(row["x"]), row["who"]
    check(row["unit"], f"{key}: no unit")
    check(1e-6 < row["p10"] <= row["median"] <= row["p90"] < 6e10 and row["samples"], f"{key}: implausible: {row}")


def compare(folder, out, peers, *more):
    peers = peers.split(",")
    if "old" in peers:  # the same library, at another place
        (out / "old/bin").mkdir(parents=True)
        shutil.copy(folder / "yod", out / "old/bin")
        shutil.copy(folder / "../libportals.so.0", out / "old")
        more = ["--old", out / "old/bin", *more]
    run("compare/compare", "--only", ",".join(p for p in peers if p != "old"), "--bin", folder, "--quick", "--out", out,
        *more)
    doc, text = json.loads((out / "compare.json").read_text()), (out / "compare.txt").read_text()
    lines = [line.split("\t") for line in (out / "samples.tsv").read_text().splitlines()]
    turns = {}  # {(test, x, who): {(round, slot)}}
    for number, slot, who, test, x, _ in lines:
        turns.setdefault((test, int(x), who), set()).add((number, slot))
    there = [p for p in peers if not any(line.startswith(p + ":") for line in doc["left_out"])]
    for peer in {"ucx", "ucx-sysv"} & set(peers) - set(there):
        check(not shutil.which("ucx_perftest"), f"{peer} is left out, but installed")
    # A row of an MPICH that spins while nodes share CPUs says so in its name.
    found = {(r["test"], int(r["x"]), r["who"].removesuffix("-spins")) for r in doc["results"]}
    bad.extend(f"no row: {key}" for key in sorted(expected(there, doc["left_out"]) - found))
    for row in doc["results"]:
        check_row(row)
    for line in doc["acceptance"]:
        key = line["test"], int(line["x"])
        both = {number for number, _ in turns.get((*key, "ours"), set()) & turns.get((*key, line["who"]), set())}
        check(line["rounds"] == len(both), f"{line['name']}: {line['rounds']} rounds; expected {len(both)}")
    names = [line["name"] for line in doc["acceptance"]]
    check(len(set(names)) == LINES, f"{len(set(names))} acceptance lines; expected {LINES}")
    bad.extend(f"not in compare.txt: {t}" for t in names + doc["left_out"] if t not in text)
    if shutil.which("gnuplot"):
        check_pictures(out, PICTURES, "--colours", chart.COLOURS)


# ---- papers ----

FIGURES = """paper1-fig3 paper1-fig4 paper1-fig5 paper1-fig6-accelerated paper1-fig6-generic
    paper1-fig7-accelerated paper1-fig7-generic paper2-fig6 paper3-fig3 paper3-fig4 paper4-fig2 paper4-fig3
    paper4-fig4 paper5-fig2 paper5-fig3 paper5-fig4 paper5-fig5""".split()
TABLES = "interrupts bypass stolen paper2-fig2 paper2-memory paper3-table1 paper3-table2 paper5-p99".split()
ANSWER = ": (?:yes|NO|unclear): "
ABLATED_FIGURES = "paper2-fig5-latency paper2-fig5-bandwidth match-depth".split()
ABLATED_TABLES = "paper2-shadows parts".split()


def papers(folder, out):
    if not shutil.which("gnuplot"):
        print("skipped: gnuplot is not installed")
        sys.exit(77)
    said = run("papers/all", "--quick", "--bin", folder, "--out", out)
    figures, tables, missing = FIGURES, TABLES, ABLATED_FIGURES + ABLATED_TABLES
    if (folder / "../ablation").is_dir():
        figures, tables, missing = figures + ABLATED_FIGURES, tables + ABLATED_TABLES, []
    markdown = (out / "papers.md").read_text()
    document = json.loads((out / "papers.json").read_text())
    check_pictures(out, figures)
    for figure in figures:
        check(re.search(r"rgb\(208, *0, *0\)", (out / f"{figure}.svg").read_text()), f"{figure}: libportals is not red")
        check(f"({figure}.svg)" in markdown, f"{figure} is not in papers.md")
    for item in figures + tables:
        check(item in document["items"], f"{item} is not in papers.json")
        check(re.search(rf"^{item}: .*(: (yes|NO|unclear): | is missing: )", said, re.M),
              f"{item}: no question has an answer")
    for item in missing:
        check(re.search(rf"^{item}: .* has no library that can leave out parts: ", said, re.M),
              f"{item}: the library for it is not there, and no line says so")
    check({"machine", "CPUs", "rounds"} <= set(document), "papers.json lacks a key")
    check(not re.search(r"[0-9]e[+-][0-9]", markdown), "papers.md has exponents")
    for pattern, count in (("^## ", len(figures + tables + missing)),
                           (r"^.*\| (yes|NO|unclear): ", len(re.findall(ANSWER, said)))):
        found = len(re.findall(pattern, markdown, re.M))
        check(found == count, f"{found} of '{pattern}' on the page; expected {count}")
    ablated = subprocess.run([folder / "yod", "-sz", "1", folder / "matchperf", "--quick"], capture_output=True,
                             text=True, env={**os.environ, "PTL3_ABLATE": "index"}, check=False)
    check("cannot leave out any part" in ablated.stdout + ablated.stderr, "the ordinary library takes PTL3_ABLATE")
    wrong = subprocess.run([BENCH / "papers/all", "--only", "9", "--out", out], capture_output=True, text=True,
                           check=False)
    check("'9'; expected" in wrong.stderr, "paper 9 is taken")


# ---- netpipe ----

RANGES = [("4099", "-n 20 -u 4096"), ("98304", "-p 0 -n 600 -l 49152 -u 98304 -s"),
          ("8192", "-p 0 -n 20 -u 4096 -O 1,3 -2")]  # the last size, and options


def netpipe(folder, out):
    build = subprocess.run([BENCH / "papers/netpipe/build", "--bin", folder, "--out", out, "--seconds", "15"],
                           check=False)
    if build.returncode:
        sys.exit(build.returncode)

    def start(options, nodes="2", mode="firmware"):
        return subprocess.run([folder / "yod", "-sz", nodes, out / "NPportals", *options],
                              capture_output=True, text=True, env={**os.environ, "PTL3_MATCH": mode}, check=False)
    cases = [(last, f"{options}{get}") for get in ("", " -g") for last, options in RANGES]
    for mode in ("firmware", "host"):
        for last, options in [*cases, ("98305", "-n 10 -u 98305 -i -I")]:
            done = start(["-o", out / "check.out", *options.split()], mode=mode)
            lines = (out / "check.out").read_text().splitlines() if done.returncode == 0 else []
            check(lines and lines[-1].split()[0] == last,
                  f"{mode}: NPportals {options}: status {done.returncode}, expected {last} as the last size: "
                  f"{done.stderr}")
    for options, nodes, message in ((["-f"], "2", "NPportals: -f; expected"),
                                    ([], "3", "NPportals: 3 ranks; expected 2; use")):
        done = start(options, nodes)
        check(done.returncode and message in done.stdout + done.stderr, f"no line '{message}'")


def main():
    commands = {"compare": compare, "papers": papers, "netpipe": netpipe}
    if len(sys.argv) < 4 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[3])
    if sys.argv[1] != "netpipe":  # which keeps its source
        shutil.rmtree(out, ignore_errors=True)
    commands[sys.argv[1]](pathlib.Path(sys.argv[2]), out, *sys.argv[4:])
    if bad:
        sys.exit("\n".join(bad))
    print("all that was checked is right")


if __name__ == "__main__":
    main()
