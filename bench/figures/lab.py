# SPDX-License-Identifier: BSD-3-Clause
"""lab - run the benches, and keep the figures of the papers that come of them.

A Figure has curves, the figures that the paper's text gives, and verdicts (judge.py):
questions that the measured data answer.  A Table has rows in place of curves, and no picture.
"""
import dataclasses
import functools
import pathlib
import tempfile
from functools import partial

from figures import run
from figures.chart import Curve  # noqa: F401, which the modules of papers/ take from here
from figures.stats import medians

# The sides of the comparison, and their environment.
ACCELERATED = {"PTL3_MATCH": "firmware"}
GENERIC = {"PTL3_MATCH": "host"}


@dataclasses.dataclass
class Item:
    name: str
    title: str
    paper: str
    told: list  # sentences with the figures in the paper's text


@dataclasses.dataclass
class Figure(Item):
    xlabel: str
    ylabel: str
    curves: list
    verdicts: list
    notes: list = dataclasses.field(default_factory=list)  # of this run: a program that is missing


@dataclasses.dataclass
class Table(Item):
    """A table of the paper with our rows or columns beside it.  A cell is text, a number, or
    None for a value that is not known; the header has the units."""
    header: list
    rows: list
    verdicts: list
    notes: list = dataclasses.field(default_factory=list)  # as those of a Figure


class Lab:
    """Runs jobs of two nodes.  A quick lab checks that all figures are drawn."""

    def __init__(self, bin_dir, quick, rounds):
        self.bin = pathlib.Path(bin_dir)
        self.quick = quick
        self.rounds = 1 if quick else rounds
        self.work = tempfile.TemporaryDirectory()

    @functools.cache
    def mpi(self, name):
        """Return an MPI with its peer_mpi, and "" or a sentence about a figure that lacks it."""
        mpi = run.Mpi(name)
        return mpi, mpi.build_peer(pathlib.Path(self.work.name))

    def run(self, name, command, env):
        """Return what a command said, on standard output and standard error.  It is called
        name where it fails."""
        return run.output(command, env, limit=3600, name=name)

    def scale(self):
        """Return the argument of a program of compare/peer.h that tells how much it is to do."""
        return "quick" if self.quick else "full"

    def two_nodes(self, *options):
        """Return the beginning of the command of a job of two nodes."""
        return [self.bin / "yod", "-sz", "2", "--timeout", "600", *options]

    def job(self, program, options, env, nodes=2):
        """Return the rows of a bench that ran in a job of this number of nodes."""
        return run.job(self.bin, nodes, program, [*options, *["--quick"] * self.quick], env)["results"]

    def each_round(self, measure):
        """Call a function that returns {key: value} in each round.  Return {key: [values]}."""
        seen = {}
        for _ in range(self.rounds):
            for key, value in measure().items():
                seen.setdefault(key, []).append(value)
        return seen

    def values(self, ways):
        """Call each of {name: function that returns a value} in turns, in each round.  Return
        {name: Measured}."""
        return medians(self.each_round(lambda: {name: measure() for name, measure in ways.items()}))

    def turns(self, ways):
        """Do so with functions that return {key: value}.  Return {name: {key: Measured}}."""
        seen = self.each_round(lambda: {(name, key): value for name, measure in ways.items()
                                        for key, value in measure().items()})
        values = {name: {} for name in ways}
        for (name, key), value in medians(seen).items():
            values[name][key] = value
        return values

    def perf_once(self, tests, sizes, env, iters=None):
        """Run portalperf once.  Return {(test, bytes): ns}."""
        options = ["--test", ",".join(tests), "--sizes", ",".join(map(str, sizes))]
        if iters:
            options += ["--iters", str(iters)]
        rows = self.job("portalperf", options, env)
        return {(row["test"], row["bytes"]): row["p50_ns"] for row in rows}

    def perf(self, tests, sizes, sides, iters=None):
        """Run portalperf for each side in turns.  Return {side: {test: [(bytes, ns)]}}."""
        seen = self.turns({side: partial(self.perf_once, tests, sizes, env, iters)
                           for side, env in sides.items()})
        return {side: curves(values) for side, values in seen.items()}


def curves(values):
    """Turn {(test, x): value} into {test: [(x, value)]}."""
    points = {}
    for (test, x), value in values.items():
        points.setdefault(test, []).append((x, value))
    return points


def microseconds(points):
    """Turn (x, ns) into (x, microseconds)."""
    return [(x, ns / 1000) for x, ns in points]


def bandwidth(points, messages=1):
    """Turn (bytes, ns) into (bytes, MB/s)."""
    return [(size, messages * size * 1000 / ns) for size, ns in points if size]
