# SPDX-License-Identifier: BSD-3-Clause
"""lab - run the benches, and keep the figures of the papers that come of them.

A Figure has curves, the figures that the paper's text gives, and verdicts: questions that
the measured data answer.  A Table has rows in place of curves, and no picture.
"""
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

# The sides of the comparison, and their environment.
ACCELERATED = {"PTL3_MATCH": "firmware"}
GENERIC = {"PTL3_MATCH": "host"}


@dataclasses.dataclass
class Curve:
    """Points (x, y) of one line of a figure; ours is the one that has the strong color."""
    name: str
    points: list
    ours: bool = False


@dataclasses.dataclass
class Verdict:
    """A shape that the paper claims, and the answer of this run's data."""
    question: str
    holds: bool
    data: str


@dataclasses.dataclass
class Figure:
    name: str
    title: str
    paper: str
    told: list  # sentences with the figures in the paper's text
    xlabel: str
    ylabel: str
    curves: list
    verdicts: list
    bytes: bool = True  # x is a number of bytes
    notes: list = dataclasses.field(default_factory=list)  # of this run: a program that is missing


@dataclasses.dataclass
class Table:
    """A table of the paper with our rows or columns beside it.  A cell is text, a number, or
    None for a value that nobody gives; the header has the units."""
    name: str
    title: str
    paper: str
    told: list  # sentences with the figures in the paper's text
    header: list
    rows: list
    verdicts: list
    notes: list = dataclasses.field(default_factory=list)  # as those of a Figure


def absent(name, title, paper, told, note):
    """Return what stands on the page in place of a figure that cannot be measured."""
    return Table(name, title, paper, told, [], [], [], [note])


class Lab:
    """Runs jobs of two nodes.  A quick lab checks that all figures are drawn."""

    def __init__(self, bin_dir, quick, rounds):
        self.bin = pathlib.Path(bin_dir)
        self.quick = quick
        self.rounds = 1 if quick else rounds

    def lacks(self, *programs):
        """Return a sentence that names the programs which are not there, or ""."""
        names = [name for name in programs if not (self.bin / name).exists()]
        return f"{self.bin} has no {' and no '.join(names)}: build the preset release." if names else ""

    def run(self, name, command, env):
        """Return what a command said, on standard output and standard error.  It is called
        name where it fails, which ends the program."""
        run = subprocess.run([str(word) for word in command], env={**os.environ, **env},
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"papers: {name} ended with status {run.returncode}: {run.stderr.strip()[-400:]}")
        return run.stdout, run.stderr

    def two_nodes(self, *options):
        """Return the beginning of the command of a job of two nodes."""
        return [self.bin / "yod", "-sz", "2", "--timeout", "600", *options]

    def job(self, program, options, env):
        """Return the JSON of a bench that ran in a job of two nodes."""
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            command = [*self.two_nodes(), self.bin / program, *options, "--json", out.name]
            if self.quick:
                command.append("--quick")
            self.run(program, command, env)
            return json.load(open(out.name, encoding="utf-8"))

    def perf(self, tests, sizes, sides, iters=None):
        """Run portalperf for each side in turns.  Return {side: {test: [(bytes, ns)]}}, the
        medians of the rounds."""
        options = ["--no-raw", "--test", ",".join(tests), "--sizes", ",".join(map(str, sizes))]
        if iters:
            options += ["--iters", str(iters)]
        seen = {}
        for _ in range(self.rounds):
            for side, env in sides.items():
                for row in self.job("portalperf", options, env)["results"]:
                    seen.setdefault((side, row["test"], row["bytes"]), []).append(row["p50_ns"])
        return {side: {test: [(size, statistics.median(seen[side, test, size])) for size in sizes]
                       for test in tests} for side in sides}


def medians(seen):
    """Turn {key: [values of the rounds]} into {key: median}."""
    return {key: statistics.median(values) for key, values in seen.items()}


def microseconds(points):
    """Turn (x, ns) into (x, microseconds)."""
    return [(x, ns / 1000) for x, ns in points]


def median_points(rounds):
    """Return the medians of curves that have the same x in all rounds."""
    return [(points[0][0], statistics.median(y for _, y in points)) for points in zip(*rounds)]


def bandwidth(points, messages=1):
    """Turn (bytes, ns) into (bytes, MB/s)."""
    return [(size, messages * size * 1000 / ns) for size, ns in points if size]


def at(points, x):
    return dict(points)[x]


def half_bandwidth(points):
    """Return the length at which a curve of bandwidth reaches half of its peak."""
    half = max(y for _, y in points) / 2
    before = None
    for x, y in points:
        if y >= half:
            if not before:
                return x
            x0, y0 = before
            return x0 + (x - x0) * (half - y0) / (y - y0)
        before = (x, y)
    return points[-1][0]


def size_text(size):
    for unit, name in ((1 << 20, " MiB"), (1 << 10, " KiB")):
        if size >= unit:
            return f"{size / unit:.3g}{name}"
    return f"{size:.0f} B"
